"""CASES D1 beyond interception smoothing: an LSTM over messages votes as in one forward pass per draw."""

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric.data import Data
from torch_geometric.utils import add_self_loops, sort_edge_index, subgraph

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.sampling import CoinStream, Purpose, build_engine
from graycert.smoothing.randomized_ablation.draws import build_randomized_ablation_engine, kept_nodes
from graycert.smoothing.retention.draws import build_retention_engine, draw_kept_sets
from support.attributed_graphs import random_graph
from support.enumeration import nodes_that_reach
from support.kept_sets import connected_part
from support.known_models import CLASSES, WIDTH, TwoLiner, shaken

TARGETS = [2, 5, 9, 13]
HALF = graycert.UniformRetention(keep_ratio=0.5)


class PadsByHand(torch.nn.Module):
    """A mean over the longest list of messages of the pass, padding included; not known to pad."""

    def forward(self, x, edge_index):
        longest = int(torch.bincount(edge_index[1]).max())
        total = torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])
        return total[:, :CLASSES] / longest + torch.tensor([0.0, 0.02, 0.01]) * longest


def lstm(data):
    """Two layers, no class of which is everybody's favourite."""
    torch.manual_seed(0)
    model = shaken(TwoLiner(pyg.SAGEConv(WIDTH, 6, aggr="lstm"), pyg.SAGEConv(6, CLASSES, aggr="lstm")), factor=6.0)
    with torch.no_grad():
        model.conv2.lin_l.bias -= model(data.x, data.edge_index).mean(dim=0)
    return model


MODELS = {"lstm": lstm, "by hand": lambda _: PadsByHand()}


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        yield


def looped(*, directed, num_pairs=20):
    """Every node has a self-loop, so that what stays is never without edges; sorted, as an LSTM needs it."""
    data = random_graph(num_nodes=14, num_pairs=num_pairs, directed=directed)
    edges = sort_edge_index(add_self_loops(data.edge_index, num_nodes=14)[0], sort_by_row=False)
    return Data(x=data.x, edge_index=edges, y=data.y)


def counted(classes):
    return np.bincount(classes, minlength=CLASSES + 1)[:CLASSES].tolist()


def alone(model, x, edge_index, target):
    """The class of one target, CLASSES where its scores single out none."""
    with torch.no_grad():
        scores = model(x, edge_index)[target]
    return int(scores.argmax()) if int((scores == scores.max()).sum()) == 1 else CLASSES


@pytest.mark.few(1)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("scope", ["global", "local"])
@pytest.mark.parametrize("kind", list(MODELS))
def test_randomized_ablation(kind, scope, directed):
    data = looped(directed=directed)
    model = MODELS[kind](data)
    smoothing = graycert.RandomizedAblation(scope=scope, p_ablate=0.5)
    expected = []
    for target in TARGETS:
        reach = nodes_that_reach(data.edge_index.t().tolist(), target, 2)
        nodes = torch.tensor(sorted(reach) if scope == "local" else range(14))
        num_kept = smoothing.num_kept_among(nodes.numel())
        shown = kept_nodes(CoinStream(3, Purpose.ESTIMATION), torch.arange(40), nodes, num_kept=num_kept)
        votes = []
        for kept in shown:
            x = torch.zeros_like(data.x)
            x[nodes[kept]] = data.x[nodes[kept]]
            votes.append(alone(model, x, data.edge_index, target))
        expected.append(counted(votes))
    assert any(max(votes) < 40 for votes in expected)
    for batch_size in (1, 7, None):
        engine = build_randomized_ablation_engine(
            model, data, np.array(TARGETS), smoothing=smoothing, num_layers=2, batch_size=batch_size
        )
        assert engine.votes(3, Purpose.ESTIMATION, num_samples=40).tolist() == expected


@pytest.mark.deep
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", list(MODELS))
def test_retention(kind, directed, monkeypatch):
    data = looped(directed=directed, num_pairs=91 if directed else 70)  # so many that whoever stays is mostly heard
    model = MODELS[kind](data)
    edges, compared = list(map(tuple, data.edge_index.t().tolist())), 0
    for per_pass in (10, 2**15):
        monkeypatch.setattr("graycert.smoothing.retention.draws._NODES_PER_PASS", per_pass)
        engine = build_retention_engine(model, data, smoothing=HALF, num_layers=2)
        for target in (0, 1, *TARGETS):
            try:
                votes = engine.votes(target, 5, Purpose.SELECTION, num_samples=40).tolist()
            except UnsoundSetupError as refused:  # the longest list was one of a node that the target never hears
                assert refused.slug == "disconnected-nodes-matter"  # noqa: PT017
                continue
            nodes = torch.tensor([target, *sorted(nodes_that_reach(edges, target, 2) - {target})])
            num_kept = HALF.num_kept(nodes.numel() - 1)
            kept = draw_kept_sets(CoinStream(5, Purpose.SELECTION), torch.arange(40), nodes, num_kept=num_kept)
            expected = []
            for row in kept:
                part = sorted(connected_part(edges, frozenset(nodes[row].tolist()), target, None))
                inside, _ = subgraph(torch.tensor(part), data.edge_index, relabel_nodes=True, num_nodes=14)
                expected.append(alone(model, data.x[part], inside, part.index(target)))
            assert votes == counted(expected)
            compared += max(votes) < 40
    assert compared > 2


def test_a_node_without_any_edge_is_refused_in_words():
    data, threat = random_graph(num_nodes=14), graycert.NodeFeatureThreat(min_distance=1)
    with pytest.raises(InvalidParameterError, match=r"must run on every graph that is drawn, got RuntimeError"):
        graycert.certify(
            lstm(looped(directed=False)), data, smoothing=HALF, threat=threat, targets=TARGETS, num_layers=2
        )


def test_an_lstm_over_the_layers_of_a_node_pads_nothing():
    data = random_graph(num_nodes=14, directed=False)
    model = shaken(pyg.GCN(WIDTH, 6, 2, CLASSES, jk="lstm"))
    engine = build_engine(
        model, data, np.arange(14), smoothing=graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.5), num_layers=2
    )
    assert not engine.name.endswith("one full graph per pass")
