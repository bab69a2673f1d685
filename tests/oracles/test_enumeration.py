"""Bounds against every outcome of every coin on small random graphs."""

from fractions import Fraction

import numpy as np
import pytest

from graycert import InterceptionSmoothing, NodeFeatureThreat
from graycert.bounds import MAX_EXPLICIT_PATHS, inclusion_exclusion, single_source_bound, single_source_bounds
from graycert.bounds.evaluation import evaluate_deltas
from graycert.graph import count_simple_paths, explicit_simple_paths, shared_edge_graph
from support.enumeration import arrival_law, arrival_probability, exact_delta, hop_distances
from support.random_graphs import random_edges, to_adjacency

TIGHT = Fraction(1, 10**12)
CASES = [
    (directed, joint, layers)
    for directed, joint in [(True, False), (False, False), (False, True)]
    for layers in (1, 2, 3, 4)
]


def small_graph(rng, directed, joint):
    """Draw a graph on 3 to 6 nodes with at most ten coins (fewer when both directions have their own)."""
    while True:
        num_nodes = int(rng.integers(3, 7))
        edges = random_edges(rng, num_nodes, rng.uniform(0.15, 0.8), directed=directed)
        if 0 < len(edges) // (2 if joint else 1) <= 10:
            return num_nodes, edges


def draw_probability(rng):
    return float(rng.choice([0.0, 1.0, 0.31, rng.random(), rng.random()]))


@pytest.mark.few(1)
@pytest.mark.parametrize(("directed", "joint", "num_layers"), CASES)
def test_theorem_2_covers_every_single_node(directed, joint, num_layers):
    rng = np.random.default_rng([1, directed, joint, num_layers])
    for _ in range(10):
        num_nodes, edges = small_graph(rng, directed, joint)
        p_delete, p_ablate = draw_probability(rng), draw_probability(rng)
        law = arrival_law(edges, 0, num_layers, Fraction(p_delete), joint=joint)
        paths = count_simple_paths(to_adjacency(edges, num_nodes), [0], num_layers=num_layers)
        bounds = single_source_bounds(paths.counts, p_delete=p_delete, p_ablate=p_ablate)
        for source, bound in zip(paths.sources[1:].tolist(), bounds[1:].tolist(), strict=True):
            exact = arrival_probability(law, [source], Fraction(p_ablate))
            assert Fraction(bound) >= exact
            if num_layers <= 2:
                assert Fraction(bound) - exact <= TIGHT
        reached = frozenset().union(*law) if p_delete < 1 else frozenset(paths.sources.tolist())
        assert reached == frozenset(paths.sources.tolist())  # the receptive field holds all who can reach the target


def test_theorem_2_is_loose_where_paths_share_an_edge():
    edges = [(4, 3), (3, 1), (3, 2), (1, 0), (2, 0)]
    exact = arrival_probability(arrival_law(edges, 0, 3, Fraction(1, 2)), [4], Fraction(0))
    assert exact == Fraction(1, 2) * (1 - Fraction(3, 4) ** 2)
    graph = shared_edge_graph()
    assert list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)) == sorted(
        edges, key=lambda e: e[::-1]
    )
    assert single_source_bound([3, 3], p_delete=0.5, p_ablate=0.0) > exact + Fraction(1, 100)


@pytest.mark.few(4)
@pytest.mark.parametrize(("directed", "joint", "num_layers"), CASES)
def test_theorem_3_covers_every_set_of_nodes(directed, joint, num_layers):
    rng = np.random.default_rng([2, directed, joint, num_layers])
    for _ in range(6):
        num_nodes, edges = small_graph(rng, directed, joint)
        p_delete, p_ablate = draw_probability(rng), draw_probability(rng)
        threat = NodeFeatureThreat(
            min_distance=int(rng.integers(0, 3)), trusted=(rng.random(num_nodes) < 0.2) if rng.integers(2) else None
        )
        smoothing = InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)
        arguments = {"smoothing": smoothing, "threat": threat, "num_layers": num_layers, "max_radius": 4}
        graph = to_adjacency(edges, num_nodes)
        multiplicative = evaluate_deltas(graph, [0], bound="multiplicative", **arguments)
        union = evaluate_deltas(graph, [0], bound="union", **arguments)
        law = arrival_law(edges, 0, num_layers, Fraction(p_delete), joint=joint)
        distances = hop_distances(edges, 0, num_layers)
        eligible = [
            node
            for node, distance in distances.items()
            if distance >= threat.min_distance and (threat.trusted is None or not threat.trusted[node])
        ]
        assert multiplicative.num_eligible.tolist() == [len(eligible)]
        assert multiplicative.receptive_field_size.tolist() == [len(distances)]
        for radius in range(1, 5):
            exact = exact_delta(law, eligible, radius, Fraction(p_ablate))
            bound = multiplicative.delta_upper[0, radius - 1]
            assert Fraction(float(bound)) >= exact
            assert union.delta_upper[0, radius - 1] >= bound
            if p_delete == 0.0 or (radius == 1 and num_layers <= 2):
                assert Fraction(float(bound)) - exact <= TIGHT


@pytest.mark.parametrize(("directed", "joint", "num_layers"), CASES)
def test_inclusion_exclusion_is_exact(directed, joint, num_layers):
    rng = np.random.default_rng([3, directed, joint, num_layers])
    compared = 0
    while compared < 8:
        num_nodes, edges = small_graph(rng, directed, joint)
        p_delete, p_ablate = draw_probability(rng), draw_probability(rng)
        attackers = rng.permutation(num_nodes)[: int(rng.integers(1, 4))].tolist()
        paths = list(explicit_simple_paths(to_adjacency(edges, num_nodes), 0, attackers, num_layers=num_layers))
        if len(paths) > MAX_EXPLICIT_PATHS:
            continue
        law = arrival_law(edges, 0, num_layers, Fraction(p_delete), joint=joint)
        exact = arrival_probability(law, attackers, Fraction(p_ablate))
        value = Fraction(inclusion_exclusion(paths, p_delete=p_delete, p_ablate=p_ablate))
        assert exact <= value <= exact + Fraction(1, 2**53)
        compared += 1


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_one_coin_or_two_per_undirected_edge_give_the_same_law(num_layers):
    rng = np.random.default_rng(num_layers)
    for _ in range(5):
        _, edges = small_graph(rng, directed=False, joint=False)
        independent, joint = (
            arrival_law(edges, 0, num_layers, Fraction(3, 10), joint=joint) for joint in (False, True)
        )
        assert independent == joint
        assert sum(joint.values()) == 1
