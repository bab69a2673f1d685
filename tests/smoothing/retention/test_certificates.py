"""certify() with node retention against every kept set and every adversary, one by one, and exact against sampled."""

import dataclasses
import itertools
from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torch_geometric.utils import subgraph

from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import Adjacency, receptive_fields
from graycert.graph.reduced_representatives import reduced_representatives
from graycert.models import build_model
from graycert.rules import certify_votes
from graycert.sampling import Purpose
from graycert.smoothing.retention.bound import retention_delta_bound
from graycert.smoothing.retention.draws import build_retention_engine
from graycert.smoothing.retention.label_counts import count_labels
from graycert.smoothing.retention.parameters import UniformRetention
from graycert.threats.node_features import NodeFeatureThreat
from support import foreign_models as foreign
from support.attributed_graphs import random_graph
from support.enumeration import hop_distances
from support.flat_arguments import certify_flat
from support.kept_sets import kept_sets
from support.known_models import CLASSES, WIDTH, known_model, shaken

FAILURE = 1e-6  # chance that right code fails a statistical test of this file
HALF = UniformRetention(keep_ratio=0.5)
OTHERS = NodeFeatureThreat(min_distance=1)
FEW = {"num_selection": 30, "num_estimation": 200, "max_radius": 3}


def small_graph(*, directed=False, seed=3):
    return random_graph(num_nodes=9, num_pairs=20 if directed else 12, directed=directed, seed=seed)


def certified(model=None, data=None, **changes):
    data = data if data is not None else small_graph()
    model = model if model is not None else shaken(build_model("gat", data))
    changes = {"smoothing": HALF, "threat": OTHERS, **FEW, **changes}
    if "tau" in changes:
        changes["smoothing"] = dataclasses.replace(changes["smoothing"], tau=changes.pop("tau"))
    return certify_flat(model, data, **changes)


def hops_of(found):
    """By how long paths kept nodes count as connected; None for any length."""
    return None if found.hops < 0 else int(found.hops)


def numbers_of_kept_sets(found):
    """Numbers, which are stored as texts."""
    return [int(text) for text in found.num_kept_sets]


def labels_of_exact(found, data, row):
    """The exact shares of labels of a target, from what is stored of the labels of its classes of kept sets."""
    smoothing, depth = found.setup.smoothing, found.setup.num_layers
    adjacency = Adjacency.from_edge_index(data.edge_index.numpy(), num_nodes=data.num_nodes)
    target = int(found.targets[row])
    field = receptive_fields(adjacency, [target], num_layers=depth).nodes
    classes = reduced_representatives(
        adjacency,
        target,
        num_layers=depth,
        num_kept=smoothing.num_kept(field.size - 1),
        hops=hops_of(found),
        max_representatives=smoothing.tau,
    )
    labels = found.kept_set_labels[found.kept_set_starts[row] : found.kept_set_starts[row + 1]]
    assert classes.num_classes == labels.size
    return count_labels(classes, labels, num_classes=CLASSES)


def labels_of_all_kept_sets(model, x, data, target, retention, *, num_layers=2):
    """The model on the subgraph of each kept set as a whole, connected or not."""
    edges = list(map(tuple, data.edge_index.t().tolist()))
    num_kept = retention.num_kept(len(hop_distances(edges, target, num_layers)) - 1)
    labels = []
    for kept in kept_sets(edges, target, num_layers, num_kept):
        nodes = torch.tensor(sorted(kept))
        inside, _ = subgraph(nodes, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes)
        with torch.no_grad():
            labels.append(int(model(x[nodes], inside)[int((nodes == target).nonzero())].argmax()))
    return labels


class Obedient(nn.Module):
    """A network that any node within reach can command: flag c anywhere makes it say class c, the worst there is."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.num_layers = inner, 2

    def forward(self, x, edge_index):
        features, flags = x[:, :WIDTH], x[:, WIDTH:]
        source, end = edge_index
        for _ in range(2):
            flags = flags.index_add(0, end, flags[source]).clamp(max=1)
        return self.inner(features, edge_index) + 1e6 * flags


class HandWritten(nn.Module):
    """One step without layers of PyTorch Geometric."""

    def __init__(self, *, by_out_degree=False):
        super().__init__()
        self.linear, self.by_out_degree = nn.Linear(WIDTH, CLASSES), by_out_degree

    def forward(self, x, edge_index):
        source, end = edge_index
        hidden = self.linear(x)
        share = 1 / torch.bincount(source, minlength=x.size(0)).clamp(min=1)
        messages = hidden[source] * (share[source].unsqueeze(1) if self.by_out_degree else 1)
        return hidden.index_add(0, end, messages)


def worst_radius(model, data, target, eligible, retention, majority, max_radius):
    """The largest radius at which no commands of any nodes bring another class to a tie or further."""
    for radius in range(max_radius + 1):
        for hostile in itertools.combinations(eligible, min(radius, len(eligible))):
            for wanted in set(range(CLASSES)) - {majority}:
                x = data.x.clone()
                x[list(hostile), WIDTH + wanted] = 1.0
                counts = np.bincount(labels_of_all_kept_sets(model, x, data, target, retention), minlength=CLASSES)
                if counts[majority] <= np.delete(counts, majority).max():
                    return radius - 1
    return max_radius


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("name", "hops", "directed"),
    [
        ("gcn", None, True),
        ("gat", 2, False),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [("gcn", None, False), ("gat", 2, True)]),
        *(pytest.param("sma", None, directed, marks=pytest.mark.slow) for directed in (True, False)),
    ],
)
def test_exact_radii_are_those_of_the_worst_adversary(name, hops, directed):
    radii = []
    for seed, ratio, distance in ((3, "1/5", 1), (4, "1/2", 1), (4, "1/5", 2)):
        data = small_graph(directed=directed, seed=seed)
        model = Obedient(shaken(build_model(name, data)))
        data.x = torch.cat([data.x, torch.zeros(9, CLASSES)], dim=1)
        retention = UniformRetention(keep_ratio=ratio)
        trusted = np.arange(9) == 4
        threat = NodeFeatureThreat(min_distance=distance, trusted=trusted)
        found = certify_flat(model, data, smoothing=retention, threat=threat, num_layers=2, max_radius=3)
        assert found.evaluation.tolist() == ["exact"] * 9
        assert hops_of(found) == hops
        edges = list(map(tuple, data.edge_index.t().tolist()))
        for target in range(9):
            near = hop_distances(edges, target, 2)
            eligible = sorted(node for node, hop in near.items() if hop >= distance and node != 4)
            assert found.num_eligible[target] == len(eligible)
            majority = int(found.prediction[target])
            worst = worst_radius(model, data, target, eligible, retention, majority, 3)
            assert found.radius[target] == min(worst, len(eligible))
            radii.append(worst)
    assert {0, 1} <= set(radii)


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "hops"), [("gcn", None), ("gat", 2), ("gatv2", 2), ("sma", None)])
def test_exact_probabilities_are_those_of_all_kept_sets(name, hops):
    data = small_graph()
    model = shaken(build_model(name, data))
    found = certified(model, data)
    assert hops_of(found) == hops
    for target in range(9):
        labels = Counter(labels_of_all_kept_sets(model, data.x, data, target, HALF))
        shares = [Fraction(labels[c], labels.total()) for c in range(CLASSES)]
        exact = labels_of_exact(found, data, target)
        assert exact.p_lower == exact.p_upper == tuple(shares)
        chosen = shares.pop(int(found.prediction[target]))
        assert 0 <= chosen - Fraction(found.p_lower[target]) < Fraction(1, 10**15)
        assert 0 <= Fraction(found.p_upper[target]) - max(shares) < Fraction(1, 10**15)
        assert numbers_of_kept_sets(found)[target] == labels.total()
        assert chosen >= max(shares)
        assert (found.radius[target] < 0) == (chosen == max(shares))
    assert not found.selection_votes.any()
    assert not found.estimation_votes.any()


def test_a_tie_abstains_and_nothing_else_does():
    abstained = 0
    for seed in range(4):
        data = small_graph(seed=seed, directed=True)
        found = certified(shaken(build_model("gat", data)), data)
        tied = found.p_lower <= found.p_upper
        np.testing.assert_array_equal(found.status == "abstained", tied)
        abstained += int(tied.sum())
    assert abstained > 0


@pytest.mark.deep
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["gcn", "gat"])
def test_sampled_targets_are_about_the_same_classifier(name):
    """4,000 votes of 14 targets and 3 classes against the exact probabilities: jointly wrong with chance 1e-6."""
    data = random_graph(directed=False)
    model = shaken(build_model(name, data))
    exact = certified(model, data, tau=10**6)
    sampled = certified(model, data, tau=1, num_selection=1_000, num_estimation=4_000, alpha=1e-7)
    assert (exact.evaluation == "exact").all()
    single = np.array(numbers_of_kept_sets(exact)) == 1  # at most one kept set: still exact
    np.testing.assert_array_equal(sampled.evaluation == "exact", single)
    for row in np.flatnonzero(~single):
        shares = labels_of_exact(exact, data, row).p_lower
        for label, p in enumerate(shares):
            count = sampled.estimation_votes[row, label]
            law = stats.binom(4_000, float(p))
            assert 2 * min(law.cdf(count), law.sf(count - 1)) > FAILURE / (14 * CLASSES)
        if sampled.radius[row] >= 0:
            assert sampled.prediction[row] == exact.prediction[row]
            assert sampled.radius[row] <= exact.radius[row]
            assert sampled.p_lower[row] <= float(shares[exact.prediction[row]])
    assert (sampled.radius[~single] >= 0).any()


def test_sampled_targets_are_the_composition_of_their_parts():
    data = random_graph(directed=False)
    model = shaken(build_model("gcn", data))
    trusted = np.arange(14) % 2 == 0
    threat = NodeFeatureThreat(min_distance=1, trusted=trusted)
    found = certified(model, data, tau=6, targets=[9, 2, 13, 4], seed=5, alpha=0.05, threat=threat)
    assert set(found.evaluation.tolist()) == {"exact", "sampled"}
    adjacency = Adjacency.from_edge_index(data.edge_index.numpy(), num_nodes=14)
    edges = list(map(tuple, data.edge_index.t().tolist()))
    engine = build_retention_engine(model, data, smoothing=HALF, num_layers=2)
    for row, target in enumerate([9, 2, 13, 4]):
        near = hop_distances(edges, target, 2)
        others = len(near) - 1
        assert numbers_of_kept_sets(found)[row] == comb(others, -(-others // 2))
        hostile = np.isin(np.arange(14), [node for node in near if node != target and node % 2])
        deltas = retention_delta_bound(
            adjacency, target, num_layers=2, num_kept=-(-others // 2), eligible=hostile, max_radius=3
        )
        np.testing.assert_array_equal(found.delta_upper[row], deltas)
        assert (found.evaluation[row] == "exact") == (numbers_of_kept_sets(found)[row] <= 6)
        num_labels = found.kept_set_starts[row + 1] - found.kept_set_starts[row]
        assert (num_labels > 0) == (found.evaluation[row] == "exact")
        if found.evaluation[row] == "sampled":
            selection = engine.votes(target, 5, Purpose.SELECTION, num_samples=30)
            estimation = engine.votes(target, 5, Purpose.ESTIMATION, num_samples=200)
            assert found.selection_votes[row].tolist() == selection.tolist()
            assert found.estimation_votes[row].tolist() == estimation.tolist()
            again = certify_votes(
                selection[None], estimation[None], deltas[None], alpha=0.05, belongs_to="one target of this graph"
            )
            for name in ("prediction", "radius", "status", "p_lower", "p_upper"):
                assert getattr(found, name)[row] == getattr(again, name)[0]


def test_the_threshold_is_the_number_of_kept_sets():
    data = random_graph(directed=False)
    sizes = numbers_of_kept_sets(certified(data=data))
    tau = sorted(sizes)[7]
    found = certified(data=data, tau=tau)
    assert [kind == "exact" for kind in found.evaluation] == [size <= tau for size in sizes]


@pytest.mark.deep
def test_models_of_others_get_the_classes_that_are_right_for_them():
    for name, hops in (("GCN", None), ("GAT", 2), ("GraphSAGE", 2), ("GIN", 2), ("shared weights", None)):
        assert hops_of(certified(known_model(name), small_graph(), targets=[0])) == hops
    torch.manual_seed(0)
    assert certified(HandWritten(), small_graph(), num_layers=1).hops == -1


def test_degrees_of_senders_are_refused():
    """With 1 and 3 kept and 2 deleted, 3 does not reach 0, yet 1 sends to it."""
    data = small_graph()
    data.x, data.y = data.x[:4], data.y[:4]
    data.edge_index = torch.tensor([[1, 1, 2, 3], [0, 3, 0, 2]])
    torch.manual_seed(0)
    with pytest.raises(UnsoundSetupError) as caught:
        certified(HandWritten(by_out_degree=True), data, num_layers=2, smoothing=UniformRetention(keep_ratio="2/3"))
    assert caught.value.slug == "disconnected-nodes-matter"


def test_a_hostile_target_has_no_radius():
    data = small_graph()
    with pytest.warns(UserWarning, match="9 of 9 targets may be hostile themselves"):
        found = certified(data=data, threat=NodeFeatureThreat())
    assert found.radius.max() == 0
    trusted = np.ones(9, dtype=bool)
    trusted[1] = False
    others = certified(data=data, threat=NodeFeatureThreat(trusted=trusted), targets=np.flatnonzero(trusted))
    assert others.radius.max() > 0
    skipping = build_model("gat", data, skip=True)
    with pytest.raises(UnsoundSetupError) as caught:
        certified(skipping, data, threat=NodeFeatureThreat())
    assert caught.value.slug == "skip-exposes-target"
    assert certified(skipping, data).setup.threat.min_distance == 1


def test_models_that_leak_are_refused():
    torch.manual_seed(0)
    with pytest.raises(UnsoundSetupError) as caught:
        certified(foreign.GlobalMean(), small_graph())
    assert caught.value.slug == "message-leak"


def test_lonely_targets_are_certified_against_everybody():
    data = random_graph()
    found = certified(shaken(build_model("gcn", data)), data, targets=[13])
    assert (numbers_of_kept_sets(found), found.radius.tolist(), found.num_eligible.tolist()) == ([1], [0], [0])
    assert (found.p_lower.tolist(), found.p_upper.tolist()) == ([1.0], [0.0])


def test_the_summary_says_which_targets_are_certain():
    data = random_graph(directed=False)
    found = certified(shaken(build_model("gcn", data)), data, tau=6)
    num_exact = int((found.evaluation == "exact").sum())
    assert 0 < num_exact < 14
    text = found.summary()
    assert f"For {num_exact} of 14 targets all kept sets, at most 6, were looked at" in text
    assert f"Each of the {14 - num_exact} others is wrong with probability at most α = 0.01" in text
    assert "a share of 1/2 of its receptive field" in text
    assert len(found) == 14


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("smoothing", "half"),
        ("threat", "anyone"),
        ("targets", [9]),
        ("tau", 0),
        ("num_selection", 0),
        ("num_estimation", 0),
        ("max_radius", 0),
        ("alpha", 0.0),
        ("seed", -1),
        ("device", "abacus"),
    ],
)
def test_arguments_are_checked(name, value):
    with pytest.raises(InvalidParameterError, match=rf"`{name}` must"):
        certified(**{name: value})
