"""Node retention of real models against the evaluation of every kept set, one at a time."""

import itertools
from collections import Counter
from math import comb

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models import build_model
from graycert.sampling import CoinStream, Purpose
from graycert.smoothing.retention.deterministic import certify_derandomized
from graycert.smoothing.retention.draws import build_retention_engine, draw_kept_sets
from graycert.smoothing.retention.parameters import UniformRetention
from support.attributed_graphs import random_graph
from support.kept_sets import connected_part, kept_sets
from support.known_models import CLASSES, WIDTH, TwoLiner, shaken

SEED_OF_GRAPHS = 3
HALF = UniformRetention(keep_ratio=0.5)
NO_NORMALISATION = ("gat", "gatv2", "sage", "gin")


def small_graph(*, directed, seed=SEED_OF_GRAPHS):
    return random_graph(num_nodes=9, num_pairs=20 if directed else 12, directed=directed, seed=seed)


def small_model(name, data, *, skip=False):
    torch.manual_seed(0)
    if name == "sage":
        return shaken(TwoLiner(pyg.SAGEConv(WIDTH, 6), pyg.SAGEConv(6, CLASSES)))
    if name == "gin":
        return shaken(TwoLiner(pyg.GINConv(nn.Linear(WIDTH, 6)), pyg.GINConv(nn.Linear(6, CLASSES))))
    return shaken(build_model(name, data, skip=skip))


def edges_of(data):
    return list(map(tuple, data.edge_index.t().tolist()))


def scores_on(model, x, data, kept, target):
    """Scores of the target on the subgraph that the kept nodes induce."""
    nodes = torch.tensor(sorted(kept))
    edges, _ = subgraph(nodes, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes)
    with torch.no_grad():
        scores = model(x[nodes], edges)[int((nodes == target).nonzero())]
        return scores + model.skip_logits(x[target].unsqueeze(0))[0] if getattr(model, "skip", False) else scores


def label_per_kept_set(model, x, data, target, num_layers, num_kept):
    found = kept_sets(edges_of(data), target, num_layers, num_kept)
    return {kept: int(scores_on(model, x, data, kept, target).argmax()) for kept in found}


def field_and_kept(data, target, num_layers=2):
    field = connected_part(edges_of(data), frozenset(range(data.num_nodes)), target, num_layers)
    return field, HALF.num_kept(len(field) - 1)


@pytest.mark.few(2)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", ["gcn", "sma", *NO_NORMALISATION])
def test_one_evaluation_stands_for_all_kept_sets_of_a_class(name, directed):
    data = small_graph(directed=directed)
    model = small_model(name, data)
    for hops in (None, 2) if name in NO_NORMALISATION else (None,):
        engine = build_retention_engine(model, data, smoothing=HALF, num_layers=2, hops=hops)
        for target in range(data.num_nodes):
            found = engine.label_representatives(target)
            _, num_kept = field_and_kept(data, target)
            truth = label_per_kept_set(model, data.x, data, target, 2, num_kept)
            sets = np.split(found.representatives.members, found.representatives.indptr[1:-1])
            labels = {
                frozenset(found.representatives.nodes[members].tolist()): label
                for members, label in zip(sets, found.labels.tolist(), strict=True)
            }
            for kept, label in truth.items():
                assert labels[connected_part(edges_of(data), kept, target, hops)] == label
            assert sum(found.representatives.class_sizes) == len(truth)


@pytest.mark.deep
def test_labels_do_not_depend_on_the_batches(monkeypatch):
    data = random_graph(num_nodes=14, directed=False)
    engine = build_retention_engine(small_model("gcn", data), data, smoothing=HALF, num_layers=2)
    expected = [engine.label_representatives(target).labels.tolist() for target in range(14)]
    votes = [engine.votes(target, 0, Purpose.ESTIMATION, num_samples=50).tolist() for target in range(14)]
    monkeypatch.setattr("graycert.smoothing.retention.draws._NODES_PER_PASS", 10)
    monkeypatch.setattr("graycert.smoothing.retention.draws._TABLE_ENTRIES", 100)
    assert [engine.label_representatives(target).labels.tolist() for target in range(14)] == expected
    assert [engine.votes(target, 0, Purpose.ESTIMATION, num_samples=50).tolist() for target in range(14)] == votes


def test_the_skip_connection_and_self_loops_are_part_of_the_classifier():
    data = small_graph(directed=False)
    looped = Data(x=data.x, edge_index=torch.cat([data.edge_index, torch.tensor([[0, 1, 3], [0, 1, 3]])], dim=1))
    for model, graph in ((small_model("gat", data, skip=True), data), (small_model("gin", data), looped)):
        engine = build_retention_engine(model, graph, smoothing=HALF, num_layers=2)
        for target in range(9):
            found = engine.label_representatives(target)
            _, num_kept = field_and_kept(graph, target)
            truth = Counter(label_per_kept_set(model, graph.x, graph, target, 2, num_kept).values())
            counted = Counter()
            for label, size in zip(found.labels.tolist(), found.representatives.class_sizes, strict=True):
                counted[label] += size
            assert counted == truth


def cycle_of_five():
    """Without node 4, node 3 is three hops from node 0, and node 2 still counts it in its degree."""
    ends = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    x = torch.randn(5, WIDTH, generator=torch.Generator().manual_seed(0))
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=torch.arange(5) % CLASSES)


def test_degree_normalisation_needs_paths_of_any_length():
    data, most = cycle_of_five(), UniformRetention(keep_ratio="3/4")
    model = small_model("gcn", data)
    build_retention_engine(model, data, smoothing=most, num_layers=2).label_representatives(0)
    engine = build_retention_engine(model, data, smoothing=most, num_layers=2, hops=2)
    for evaluate in (engine.label_representatives, lambda v: engine.votes(v, 0, Purpose.SELECTION, num_samples=5)):
        with pytest.raises(UnsoundSetupError, match="disconnected-nodes-matter"):
            evaluate(0)
    sage = small_model("sage", data)
    build_retention_engine(sage, data, smoothing=most, num_layers=2, hops=2).label_representatives(0)


class OutDegree(nn.Module):
    """Divides messages by how many nodes the sender sends to."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        source, end = edge_index
        share = 1 / torch.bincount(source, minlength=x.size(0)).clamp(min=1)
        hidden = self.linear(x)
        return hidden.index_add(0, end, share[source].unsqueeze(1) * hidden[source])


def test_normalisation_by_the_degree_of_the_sender_is_refused():
    # With 1 and 3 kept and 2 deleted, 3 does not reach 0, yet 1 sends to it.
    data = Data(x=cycle_of_five().x[:4], edge_index=torch.tensor([[1, 1, 2, 3], [0, 3, 0, 2]]))
    torch.manual_seed(0)
    engine = build_retention_engine(OutDegree(), data, smoothing=UniformRetention(keep_ratio="2/3"), num_layers=2)
    with pytest.raises(UnsoundSetupError, match="disconnected-nodes-matter"):
        engine.label_representatives(0)


def test_beyond_the_threshold_there_are_votes():
    data = random_graph(num_nodes=14, directed=False)
    engine = build_retention_engine(small_model("gcn", data), data, smoothing=HALF, num_layers=2)
    found = engine.label_representatives(0)
    num_classes = found.representatives.num_classes
    assert engine.label_representatives(0, tau=num_classes) is not None
    assert engine.label_representatives(0, tau=num_classes - 1) is None


def test_votes_are_those_of_the_drawn_kept_sets():
    data = random_graph(num_nodes=12, directed=True)
    model = small_model("gat", data)
    engine = build_retention_engine(model, data, smoothing=HALF, num_layers=2)
    for target in range(12):
        field, num_kept = field_and_kept(data, target)
        nodes = torch.tensor([target, *sorted(field - {target})])
        kept = draw_kept_sets(CoinStream(5, Purpose.SELECTION), torch.arange(40), nodes, num_kept=num_kept)
        labels = [int(scores_on(model, data.x, data, nodes[row].tolist(), target).argmax()) for row in kept]
        votes = engine.votes(target, 5, Purpose.SELECTION, num_samples=40)
        assert votes.tolist() == np.bincount(labels, minlength=CLASSES).tolist()
        parts = [
            engine.votes(target, 5, Purpose.SELECTION, num_samples=n, first_sample=s) for s, n in ((0, 13), (13, 27))
        ]
        assert (parts[0] + parts[1]).tolist() == votes.tolist()


@pytest.mark.statistical
def test_kept_sets_are_uniform():
    """20,000 draws of 2 of 6 nodes: each of 15 sets within 5.5 standard deviations; fails by chance below 1e-6."""
    samples = torch.arange(20_000)
    nodes = torch.tensor([17, 0, 1, 2, 900, 901, 5])
    kept = draw_kept_sets(CoinStream(1, Purpose.ESTIMATION), samples, nodes, num_kept=2)
    assert kept[:, 0].all()
    assert (kept.sum(dim=1) == 3).all()
    counts = Counter(map(tuple, kept.tolist()))
    assert len(counts) == comb(6, 2)
    expected, deviation = 20_000 / 15, (20_000 / 15 * 14 / 15) ** 0.5
    assert max(abs(count - expected) for count in counts.values()) < 5.5 * deviation


@pytest.mark.parametrize("num_kept", [0, 6])
def test_keeping_nothing_or_everything(num_kept):
    kept = draw_kept_sets(CoinStream(1, Purpose.ESTIMATION), torch.arange(3), torch.arange(7), num_kept=num_kept)
    assert kept.sum(dim=1).tolist() == [num_kept + 1] * 3


def test_purposes_and_seeds_share_no_draw():
    draws = [
        draw_kept_sets(CoinStream(seed, purpose), torch.arange(8), torch.arange(30), num_kept=10)
        for seed in (0, 1)
        for purpose in (Purpose.SELECTION, Purpose.ESTIMATION)
    ]
    assert not any(torch.equal(first, second) for first, second in itertools.combinations(draws, 2))


class Obedient(nn.Module):
    """A two-layer network that any node within reach can command: flag c anywhere makes it say class c."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.num_layers = inner, 2

    def forward(self, x, edge_index):
        features, flags = x[:, :WIDTH], x[:, WIDTH:]
        source, end = edge_index
        for _ in range(2):
            flags = flags.index_add(0, end, flags[source]).clamp(max=1)
        return self.inner(features, edge_index) + 1e6 * flags


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("name", "hops", "directed"),
    [
        ("gcn", None, True),
        ("sage", 2, False),
        *(pytest.param("gat", None, directed, marks=pytest.mark.slow) for directed in (True, False)),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [("gcn", None, False), ("sage", 2, True)]),
    ],
)
def test_radii_are_those_of_the_worst_real_perturbation(name, hops, directed):
    """Flags are the worst perturbation there is: the certified radius is reached, and no node more."""
    radii = []
    for seed, ratio in itertools.product((3, 4), ("1/5", "1/2")):
        data = small_graph(directed=directed, seed=seed)
        model = Obedient(small_model(name, data))
        data.x = torch.cat([data.x, torch.zeros(9, CLASSES)], dim=1)
        smoothing = UniformRetention(keep_ratio=ratio)
        engine = build_retention_engine(model, data, smoothing=smoothing, num_layers=2, hops=hops)
        for target in range(9):
            found = engine.label_representatives(target)
            nodes = found.representatives.nodes
            certificate = certify_derandomized(
                found.representatives,
                found.labels,
                num_classes=CLASSES,
                eligible=nodes != target,
                num_layers=2,
                max_radius=3,
            )
            others = [node for node in nodes.tolist() if node != target]
            kept = smoothing.num_kept(len(others))
            assert certificate.radius == worst_radius(model, data, target, others, kept, certificate.prediction, 3)
            radii.append(certificate.radius)
    assert {0, 1} <= set(radii)


def worst_radius(model, data, target, others, num_kept, majority, max_radius):
    """The largest radius at which no commands of any nodes bring another class to a tie or further."""
    for radius in range(max_radius + 1):
        for hostile in itertools.combinations(others, min(radius, len(others))):
            for wanted in set(range(CLASSES)) - {majority}:
                x = data.x.clone()
                x[list(hostile), WIDTH + wanted] = 1.0
                labels = list(label_per_kept_set(model, x, data, target, 2, num_kept).values())
                counts = np.bincount(labels, minlength=CLASSES)
                if counts[majority] <= np.delete(counts, majority).max():
                    return radius - 1
    return max_radius


@pytest.mark.few(1)
@pytest.mark.end_to_end
@pytest.mark.parametrize(("name", "hops"), [("gcn", None), ("gat", 2), ("gin", 2)])
def test_random_perturbations_never_change_a_certified_prediction(name, hops):
    generator, tried = torch.Generator().manual_seed(0), 0
    smoothing = UniformRetention(keep_ratio="1/5")
    for seed in range(3, 6):
        data = small_graph(directed=False, seed=seed)
        model = small_model(name, data)
        engine = build_retention_engine(model, data, smoothing=smoothing, num_layers=2, hops=hops)
        for target in range(9):
            found = engine.label_representatives(target)
            nodes = found.representatives.nodes
            certificate = certify_derandomized(
                found.representatives, found.labels, num_classes=CLASSES, eligible=nodes != target, num_layers=2
            )
            others = nodes[1:].tolist()
            size = min(certificate.radius, len(others))
            if size < 1:
                continue
            for hostile in itertools.combinations(others, size):
                x = data.x.clone()
                x[list(hostile)] = 100 * torch.randn(size, WIDTH, generator=generator)
                labels = label_per_kept_set(model, x, data, target, 2, smoothing.num_kept(len(others))).values()
                assert np.bincount(list(labels), minlength=CLASSES).argmax() == certificate.prediction
                tried += 1
    assert tried > 15


def test_arguments_are_checked():
    data = small_graph(directed=True)
    engine = build_retention_engine(small_model("gat", data), data, smoothing=HALF, num_layers=2)
    with pytest.raises(InvalidParameterError, match="`num_samples` must be"):
        engine.votes(0, 0, Purpose.SELECTION, num_samples=0)
    with pytest.raises(InvalidParameterError, match="`max_representatives` must be"):
        engine.label_representatives(0, tau=0)
    with pytest.raises(InvalidParameterError, match="`targets` must"):
        engine.votes(9, 0, Purpose.SELECTION, num_samples=1)
