"""Hash-subgraph voting: one node, one vote; and no attack within the radius succeeds."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import BatchNorm

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.smoothing.subgraphs.classifier import SubgraphClassifier
from graycert.smoothing.subgraphs.division import hash_division, subgraphs
from graycert.smoothing.subgraphs.parameters import SubgraphVoting
from graycert.smoothing.subgraphs.training import training_smoothing
from graycert.threats import FeaturesAndOutEdgesThreat, NodeFeatureThreat, Threat
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph
from support.communities import two_communities
from support.foreign_models import GlobalMean, Sandwich, TwoLiner
from support.known_models import shaken

OTHERS = NodeFeatureThreat(min_distance=1)
HOSTILE = (1e4, -1e4, float("nan"), float("inf"))


def model_for(data: Data, architecture: str = "gcn", **options: Any) -> nn.Module:
    return shaken(graycert.build_model(architecture, data, seed=3, **options)).eval()


def voted(
    model: nn.Module, data: Data, *, num_subgraphs: int, threat: Threat = OTHERS, **options: Any
) -> graycert.Certificates:
    smoothing = SubgraphVoting(num_subgraphs=num_subgraphs)
    return graycert.certify(model, data, smoothing=smoothing, threat=threat, **options)


def radius_of_votes(found: graycert.Certificates, data: Data) -> np.ndarray:
    """The rival's own radius, from the votes alone."""
    return found.again(data, threat=FeaturesAndOutEdgesThreat()).radius


def votes_of(found: graycert.Certificates) -> np.ndarray:
    """Subgraphs that vote for each class, shape (num_targets, num_classes)."""
    return np.stack([np.bincount(row, minlength=found.setup.num_classes) for row in found.subgraph_predictions])


def scores_of(model: nn.Module, data: Data, targets: np.ndarray, division: np.ndarray, num_subgraphs: int) -> Tensor:
    """The scores of every target in every subgraph, shape (num_subgraphs, num_targets, num_classes)."""
    classifier = SubgraphClassifier.build(model, data, targets)
    parts = subgraphs(data.edge_index, division, num_subgraphs=num_subgraphs)
    return torch.stack([classifier.scores(part) for part in parts])


def hostile(model: nn.Module, data: Data, targets: np.ndarray, x: Tensor) -> SubgraphClassifier:
    """The classifier on attacked features, which `SubgraphClassifier.build` would refuse for being infinite."""
    clean = SubgraphClassifier.build(model, data, targets)
    with torch.inference_mode():
        rows = clean.model.project(x) if clean.rowwise else x
        skip = model.skip_logits(x[clean.targets]) if clean.skip_logits is not None else None
    return SubgraphClassifier(
        model=clean.model,
        rows=rows,
        rowwise=clean.rowwise,
        skip_logits=skip,
        targets=clean.targets,
        num_classes=clean.num_classes,
    )


@pytest.mark.few(8)
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_a_node_changes_other_targets_in_its_own_subgraph_only_bit_for_bit(
    architecture: str, skip: bool, num_layers: int
) -> None:
    data = random_graph(num_nodes=12, num_pairs=60, seed=num_layers)
    model = model_for(data, architecture, skip=skip, num_layers=num_layers)
    division, everyone = hash_division(12, num_subgraphs=3, seed=1), np.arange(12)
    parts = list(subgraphs(data.edge_index, division, num_subgraphs=3))
    before = SubgraphClassifier.build(model, data, everyone)
    expected = [before.scores(part) for part in parts]
    changed_own = 0
    for node in range(12):
        x = data.x.clone()
        x[node] = HOSTILE[node % 4]
        attacked = hostile(model, data, everyone, x)
        for number, part in enumerate(parts):
            same = (attacked.scores(part) == expected[number]).all(dim=1)
            same[node] = True
            if number != division[node]:
                assert bool(same.all()), (node, number)
            else:
                changed_own += int((~same).sum())
    assert changed_own > 0  # in its own subgraph it does send messages


def test_edges_that_start_at_a_node_change_its_own_subgraph_only() -> None:
    data = random_graph(num_nodes=12, num_pairs=60, seed=5)
    model, everyone = model_for(data), np.arange(12)
    division = hash_division(12, num_subgraphs=3, seed=1)
    before = scores_of(model, data, everyone, division, 3)
    for node in range(12):
        others = data.edge_index[:, data.edge_index[0] != node]
        new = torch.stack([torch.full((11,), node), torch.tensor([v for v in range(12) if v != node])])
        for edges in (others, torch.cat([others, new], dim=1)):
            after = scores_of(model, Data(x=data.x, edge_index=edges, y=data.y), everyone, division, 3)
            elsewhere = [t for t in range(3) if t != division[node]]
            assert torch.equal(after[elsewhere], before[elsewhere])


def vote(model: nn.Module, data: Data, division: np.ndarray, num_subgraphs: int) -> list[int]:
    """The majority class of every node, two classes, by one plain forward pass per subgraph."""
    ones = torch.zeros(data.num_nodes, dtype=torch.long)
    with torch.inference_mode():
        for number in range(num_subgraphs):
            edges = data.edge_index[:, torch.from_numpy(division)[data.edge_index[0]] == number]
            ones += model(data.x, edges).argmax(dim=1)
    return (2 * ones > num_subgraphs).long().tolist()


class SumOfField(nn.Module):
    """Adds up one feature over in-neighbours, k times: a hostile node of the field decides alone."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.num_layers = num_layers

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for _ in range(self.num_layers):
            x = x.index_add(0, edge_index[1], x[edge_index[0]])
        return torch.cat([-x, x - 0.5], dim=1)


def all_attacks(data: Data, division: np.ndarray, num_subgraphs: int, num_layers: int) -> tuple[np.ndarray, np.ndarray]:
    """Every way of leaving a node alone or setting it to -50 or 50: which nodes changed, and all predictions."""
    choices = np.array(list(product((0, -50, 50), repeat=data.num_nodes)))
    x = np.where(choices == 0, data.x[:, 0].numpy(), choices)
    votes = np.zeros(x.shape, dtype=np.int64)
    for number in range(num_subgraphs):
        step = np.eye(data.num_nodes)
        for source, target in data.edge_index.t().tolist():
            step[source, target] += division[source] == number
        votes += x @ np.linalg.matrix_power(step, num_layers) > 0.25
    return choices != 0, (2 * votes > num_subgraphs).astype(np.int64)


@pytest.mark.few(1)
@pytest.mark.parametrize(("min_distance", "num_layers"), [(1, 1), (1, 2), (2, 2)])
def test_no_attack_within_the_radii_changes_a_prediction(min_distance: int, num_layers: int) -> None:
    broken = certified = 0
    for seed in range(12):
        data = random_graph(num_nodes=7, num_pairs=14, num_features=1, num_classes=2, directed=False, seed=seed)
        data.x = data.x.sign()
        threat = NodeFeatureThreat(min_distance=min_distance)
        model, num_subgraphs = SumOfField(num_layers), 3 + seed % 3
        found = voted(
            model,
            data,
            num_subgraphs=num_subgraphs,
            targets=np.arange(7),
            threat=threat,
            num_layers=num_layers,
            seed=seed,
        )
        division, hops = hash_division(7, num_subgraphs=num_subgraphs, seed=seed), distances(data)
        plain = radius_of_votes(found, data)
        changed, predictions = all_attacks(data, division, num_subgraphs, num_layers)
        assert found.prediction.tolist() == predictions[~changed.any(axis=1)][0].tolist()
        for target in range(7):
            eligible = (hops[:, target] >= min_distance) & (hops[:, target] <= num_layers)
            allowed = ~(changed & ~eligible).any(axis=1)
            succeeds = allowed & (predictions[:, target] != found.prediction[target])
            needed = changed[succeeds].sum(axis=1).min(initial=99)
            assert found.num_eligible[target] == eligible.sum()
            assert min(plain[target], eligible.sum()) <= found.radius[target] < needed
            broken += needed < 99
            certified += found.radius[target] > 0
    assert broken > 5  # attacks beyond the radii are strong enough to succeed
    assert certified > 10


def distances(data: Data) -> np.ndarray:
    hops = np.full((data.num_nodes, data.num_nodes), 99)
    np.fill_diagonal(hops, 0)
    for w, v in data.edge_index.T.tolist():
        hops[w, v] = 1
    for middle in range(data.num_nodes):
        hops = np.minimum(hops, hops[:, [middle]] + hops[[middle], :])
    return hops


@pytest.mark.parametrize("min_distance", [1, 2, 3])
def test_attackable_subgraphs_are_those_with_a_path(min_distance: int) -> None:
    data = random_graph(num_nodes=14, num_pairs=50, seed=2)
    trusted = np.zeros(14, dtype=bool)
    trusted[[2, 3]] = True
    threat = NodeFeatureThreat(min_distance=min_distance, trusted=trusted)
    model = model_for(data, num_layers=3)
    certified = voted(model, data, num_subgraphs=3, targets=np.arange(14), threat=threat)
    division, whole = hash_division(14, num_subgraphs=3, seed=0), distances(data)
    parts = [distances(Data(edge_index=e, num_nodes=14)) for e in subgraphs(data.edge_index, division, num_subgraphs=3)]
    for target in range(14):
        eligible = [u for u in range(14) if not trusted[u] and min_distance <= whole[u, target] <= 3]
        assert certified.num_eligible[target] == len(eligible)
        expected = sum(any(part[u, target] <= 3 for u in eligible) for part in parts)
        assert certified.num_attackable[target] == expected


def test_votes_are_those_of_plain_forward_passes_and_ties_go_to_the_smaller_class() -> None:
    data = random_graph(num_nodes=14, num_pairs=40, num_classes=2, seed=4)
    model = model_for(data, "gat")
    certified = voted(model, data, num_subgraphs=4, targets=np.arange(14), seed=9)
    division = hash_division(14, num_subgraphs=4, seed=9)
    assert certified.prediction.tolist() == vote(model, data, division, 4)
    assert votes_of(certified).sum(axis=1).tolist() == [4] * 14


def test_no_edges_self_loops_and_parallel_edges_are_fine() -> None:
    data = random_graph(num_nodes=6, num_pairs=10, seed=1)
    loops = torch.arange(6).repeat(2, 1)
    data.edge_index = torch.cat([data.edge_index, data.edge_index, loops], dim=1)
    certified = voted(TwoLiner(), data, num_subgraphs=40, targets=[0, 5])
    assert votes_of(certified).sum(axis=1).tolist() == [40, 40]
    bare = Data(x=data.x, edge_index=torch.empty(2, 0, dtype=torch.long), y=data.y)
    alone = voted(model_for(bare), bare, num_subgraphs=5, targets=[0])
    assert radius_of_votes(alone, bare).tolist() == [2]
    assert (alone.radius.tolist(), alone.num_eligible.tolist()) == ([0], [0])


def test_one_subgraph_is_the_plain_model_and_certifies_nothing() -> None:
    data = random_graph(num_nodes=14, num_pairs=60, directed=False, seed=1)
    model = model_for(data)
    targets = np.arange(13)  # the last node has no edge
    certified = voted(model, data, num_subgraphs=1, targets=targets)
    with torch.inference_mode():
        assert certified.prediction.tolist() == model(data.x, data.edge_index).argmax(dim=1)[:13].tolist()
    assert radius_of_votes(certified, data).max() == 0
    assert (certified.radius[certified.num_eligible > 0] == 0).all()


def test_the_hash_is_pinned_even_and_changes_with_the_seed() -> None:
    assert hash_division(8, num_subgraphs=10, seed=0).tolist() == [2, 3, 9, 0, 1, 2, 7, 4]
    sizes = np.bincount(hash_division(30_000, num_subgraphs=30, seed=7), minlength=30)
    # binomial(30,000, 1/30), standard deviation 31.1; none of 30 is off by six of these, up to a chance of 1e-7
    assert np.abs(sizes - 1_000).max() < 6 * 31.1
    first, second = (hash_division(1_000, num_subgraphs=30, seed=seed) for seed in (0, 1))
    assert (first == second).mean() < 0.1


def test_a_hostile_target_is_refused_unless_trusted() -> None:
    data = random_graph()
    model, anyone = model_for(data), NodeFeatureThreat()
    with pytest.raises(UnsoundSetupError, match="target 3 are in every subgraph") as error:
        voted(model, data, num_subgraphs=5, targets=[3], threat=anyone)
    assert error.value.slug == "target-in-every-subgraph"
    trusted = np.zeros(14, dtype=bool)
    trusted[3] = True
    threat = NodeFeatureThreat(trusted=trusted)
    assert voted(model, data, num_subgraphs=5, targets=[3], threat=threat).subgraph_predictions.shape == (1, 5)


def test_models_that_are_not_message_passing_are_refused() -> None:
    data = random_graph()
    normalised = Sandwich(BatchNorm(8, track_running_stats=False))
    for model, slug in ((GlobalMean(), "message-leak"), (normalised, "batch-statistics")):
        with pytest.raises(UnsoundSetupError) as error:
            voted(model, data, num_subgraphs=5, targets=[0])
        assert error.value.slug == slug


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_subgraphs": 0}, "`num_subgraphs` must be in"),
        ({"targets": [0, 0]}, "`targets` must be distinct"),
        ({"seed": -1}, "`seed` must be >= 0"),
        ({"threat": 1}, "`threat` must be a threat of graycert, .* got int"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    data = random_graph()
    with pytest.raises(InvalidParameterError, match=message):
        voted(model_for(data), data, **{"num_subgraphs": 5, "targets": [0], **options})


def test_training_on_sparse_draws_makes_a_vote_that_learns() -> None:
    data = two_communities()
    split = graycert.inductive_split(data, seed=0, per_class=8, test_fraction="0.2")
    model = graycert.build_model("gcn", split, dropout=0.3, seed=1)
    graycert.train(model, split, smoothing=training_smoothing(4), learning_rate=0.01, max_epochs=80)
    certified = voted(model, data, num_subgraphs=4, targets=split.test.nodes.numpy())
    assert (certified.prediction == data.y[split.test.nodes].numpy()).mean() >= 0.75
