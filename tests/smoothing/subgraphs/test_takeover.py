"""Hash-subgraph voting against nodes that choose all their edges: they still change one vote each."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import graycert
from graycert.errors import UnsoundSetupError
from graycert.smoothing.subgraphs.classifier import SubgraphClassifier
from graycert.smoothing.subgraphs.division import hash_division, subgraphs
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph
from support.known_models import shaken

NUM_SUBGRAPHS = 4


def taken_over(data: Data, hostile: list[int], num_nodes: int, rng: np.random.Generator) -> Data:
    """The graph with other features of hostile nodes and random edges wherever they touch one; new nodes come last."""
    sources, ends = data.edge_index.numpy()
    honest = ~(np.isin(sources, hostile) | np.isin(ends, hostile))
    pairs = np.array([(h, u) for h in hostile for u in range(num_nodes) if u != h])
    out, into = (pairs[rng.random(len(pairs)) < 0.5] for _ in range(2))
    chosen = np.concatenate([out, into[:, ::-1]]).T
    edges = np.concatenate([data.edge_index.numpy()[:, honest], chosen], axis=1)
    x = torch.zeros(num_nodes, data.x.size(1))
    x[: data.num_nodes] = data.x
    x[hostile] = torch.from_numpy(10 * rng.normal(size=(len(hostile), x.size(1)))).to(torch.float32)
    return Data(x=x, edge_index=torch.from_numpy(edges))


def scores(model: nn.Module, data: Data, targets: np.ndarray, *, seed: int) -> Tensor:
    """Shape (num_subgraphs, num_targets, num_classes)."""
    division = hash_division(data.num_nodes, num_subgraphs=NUM_SUBGRAPHS, seed=seed)
    classifier = SubgraphClassifier.build(model, data, targets)
    parts = subgraphs(data.edge_index, division, num_subgraphs=NUM_SUBGRAPHS)
    return torch.stack([classifier.scores(part) for part in parts])


@pytest.mark.few(4)
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_a_node_that_chooses_all_its_edges_changes_its_own_subgraph_only(architecture: str, num_layers: int) -> None:
    data = random_graph(num_nodes=10, num_pairs=35, seed=num_layers)
    model = shaken(graycert.build_model(architecture, data, num_layers=num_layers, seed=3)).eval()
    rng = np.random.default_rng(num_layers)
    before = scores(model, data, np.arange(10), seed=1)
    noticed = 0
    for hostile in range(11):  # the last one is new
        others = np.array([node for node in range(10) if node != hostile])
        attacked = taken_over(data, [hostile], max(hostile + 1, 10), rng)
        own = hash_division(11, num_subgraphs=NUM_SUBGRAPHS, seed=1)[hostile]
        after = scores(model, attacked, others, seed=1)
        elsewhere = np.arange(NUM_SUBGRAPHS) != own
        torch.testing.assert_close(after[elsewhere], before[elsewhere][:, others], rtol=1e-4, atol=1e-5)
        noticed += not torch.allclose(after[own], before[own][others], rtol=1e-3, atol=1e-3)
    assert noticed > 5


@pytest.mark.deep
def test_no_takeover_within_the_radius_changes_a_prediction() -> None:
    changed = certified = 0
    for seed in range(6):
        data = random_graph(num_nodes=12, num_pairs=40, seed=seed)
        model = shaken(graycert.build_model("gcn", data, seed=seed)).eval()
        smoothing = graycert.SubgraphVoting(num_subgraphs=NUM_SUBGRAPHS)
        found = graycert.certify(
            model, data, smoothing=smoothing, threat=graycert.NodeTakeoverThreat(), targets=np.arange(12), seed=seed
        )
        assert found.setup.convolution == "degree-normalised"
        rng = np.random.default_rng(seed)
        for _ in range(60):
            hostile = sorted(rng.choice(13, size=int(rng.integers(1, 3)), replace=False).tolist())
            attacked = taken_over(data, hostile, max(hostile[-1] + 1, 12), rng)
            votes = scores(model, attacked, np.arange(12), seed=seed).argmax(dim=2)
            counts = np.stack([np.bincount(row, minlength=4) for row in votes.T.numpy()])
            holds = counts.argmax(axis=1) == found.prediction
            safe = (found.radius >= len(hostile)) & ~np.isin(np.arange(12), hostile)
            assert holds[safe].all()
            changed += int((~holds).sum())
            certified += int(safe.sum())
    assert changed > 50
    assert certified > 100


class BySenders(nn.Module):
    """Weighs messages by how many edges start at their sender: edges into hostile nodes are noticed elsewhere."""

    num_layers = 1

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        leaving = torch.bincount(edge_index[0], minlength=x.size(0)).clamp(min=1)
        return x.index_add(0, edge_index[1], x[edge_index[0]] / leaving[edge_index[0], None])


def test_a_model_that_reads_edges_out_of_honest_nodes_is_refused_for_a_reason() -> None:
    data = random_graph(num_nodes=10, num_pairs=35, seed=1)
    smoothing = graycert.SubgraphVoting(num_subgraphs=NUM_SUBGRAPHS)
    with pytest.raises(UnsoundSetupError) as caught:
        graycert.certify(
            BySenders(), data, smoothing=smoothing, threat=graycert.NodeTakeoverThreat(), targets=[0, 1], num_layers=1
        )
    assert caught.value.slug == "unknown-convolution"
    before, rng = scores(BySenders(), data, np.arange(10), seed=1), np.random.default_rng(0)
    after = scores(BySenders(), taken_over(data, [4], 10, rng), np.arange(10), seed=1)
    elsewhere = np.arange(NUM_SUBGRAPHS) != hash_division(10, num_subgraphs=NUM_SUBGRAPHS, seed=1)[4]
    assert not torch.allclose(after[elsewhere][:, :4], before[elsewhere][:, :4])
