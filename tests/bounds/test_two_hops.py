"""Worst nodes by looking Theorem 2 up: the bounds, sets and counts that listing every field gives, bit for bit."""

import numpy as np
import pytest

from graycert import InterceptionSmoothing, NodeFeatureThreat
from graycert.bounds import evaluation
from graycert.bounds.evaluation import evaluate_deltas
from graycert.bounds.two_hops import TwoHops
from graycert.errors import InvalidParameterError
from graycert.graph import Adjacency, star_graph

FIELDS = ("delta_upper", "proved", "methods", "num_eligible", "receptive_field_size", "path_counts_exact")


def random_case(seed):
    random = np.random.default_rng(seed)
    num_nodes, num_pairs = int(random.integers(2, 60)), int(random.integers(200))
    edges = np.unique(random.integers(num_nodes, size=(2, num_pairs)), axis=1)
    graph = Adjacency.from_edge_index(edges[:, edges[0] != edges[1]], num_nodes=num_nodes)
    trusted = None if seed % 2 else random.random(num_nodes) < 0.3
    return (
        graph,
        random.permutation(num_nodes)[: num_nodes // 2 + 1],
        {
            "threat": NodeFeatureThreat(min_distance=int(random.integers(4)), trusted=trusted),
            "smoothing": InterceptionSmoothing(
                p_delete=float(random.choice([0.0, 0.31, 0.5, 1.0])), p_ablate=float(random.choice([0.0, 0.794, 1.0]))
            ),
            "max_radius": int(random.integers(1, 12)),
        },
    )


@pytest.mark.parametrize("bound", ["multiplicative", "union"])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("seed", range(25))
def test_bounds_are_those_of_listed_fields(seed, num_layers, bound, monkeypatch):
    graph, targets, options = random_case(seed)
    found = evaluate_deltas(graph, targets, num_layers=num_layers, bound=bound, **options)
    assert not isinstance(found.attackers, tuple)
    monkeypatch.setattr(evaluation, "_FEW", 0)
    listed = evaluate_deltas(graph, targets, num_layers=num_layers, bound=bound, **options)
    assert isinstance(listed.attackers, tuple)
    for name in FIELDS:
        assert np.array_equal(getattr(found, name), getattr(listed, name)), name
        assert getattr(found, name).dtype == getattr(listed, name).dtype, name
    assert [sets.tolist() for sets in found.attackers] == [sets.tolist() for sets in listed.attackers]
    assert found.worst_set(0, 3).tolist() == listed.worst_set(0, 3).tolist()


@pytest.mark.parametrize("num_threads", [1, 3])
def test_blocks_make_no_difference(num_threads, monkeypatch):
    graph, targets, options = random_case(4)
    options |= {"num_layers": 2, "bound": "multiplicative"}
    whole = evaluate_deltas(graph, targets, **options)
    monkeypatch.setattr(evaluation, "_LOOKED_UP", 1)
    parts = evaluate_deltas(graph, targets, num_threads=num_threads, **options)
    for name in FIELDS:
        assert np.array_equal(getattr(parts, name), getattr(whole, name))
    assert [sets.tolist() for sets in parts.attackers] == [sets.tolist() for sets in whole.attackers]
    assert [sets.tolist() for sets in parts.attackers[1:3]] == [sets.tolist() for sets in whole.attackers][1:3]


def test_among_nodes_with_one_bound_the_nearest_and_then_the_first_come_first():
    search = TwoHops.of(star_graph(5), p_delete=0.5, p_ablate=0.0, trusted=None, nearest=1, num_layers=2)
    found = search.worst(np.array([3, 0]), max_radius=4)
    assert found.nodes.tolist() == [[0, 1, 2, 4], [1, 2, 3, 4]]
    assert found.single[0].tolist() == pytest.approx([0.5, 0.25, 0.25, 0.25])
    assert found.field_size.tolist() == [6, 6]


def test_what_the_listed_way_refuses_is_refused():
    threat = NodeFeatureThreat(min_distance=1, trusted=np.zeros(4, dtype=bool))
    with pytest.raises(InvalidParameterError, match="trusted"):
        evaluate_deltas(
            star_graph(5),
            [0],
            smoothing=InterceptionSmoothing(p_delete=0.5, p_ablate=0.5),
            threat=threat,
            num_layers=2,
            bound="multiplicative",
        )
