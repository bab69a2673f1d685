"""The exact p(E(B)) for a fixed set against every outcome of every coin, and against closed forms on larger graphs."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.bounds import MAX_EXPLICIT_PATHS, inclusion_exclusion, multiplicative_bound, single_source_bounds
from graycert.bounds.hop_limited import arrival_probability
from graycert.bounds.hop_network import HopNetwork
from graycert.errors import InvalidParameterError
from graycert.graph import (
    Adjacency,
    bottleneck_graph,
    count_simple_paths,
    explicit_simple_paths,
    path_graph,
    shared_edge_graph,
    star_graph,
)
from support.enumeration import nodes_that_reach
from support.random_graphs import random_edges, to_adjacency

ROUNDING = Fraction(1, 2**52)
CASES = list(itertools.product(["directed", "two coins", "one coin"], [1, 2, 3, 4]))


def small_graph(rng, kind, *, max_coins=9):
    """Draw a graph on 2 to 6 nodes with at most ``max_coins`` coins."""
    while True:
        num_nodes = int(rng.integers(2, 7))
        edges = random_edges(rng, num_nodes, rng.uniform(0.15, 0.9), directed=kind == "directed")
        if 0 < len(edges) // (2 if kind == "one coin" else 1) <= max_coins:
            return num_nodes, edges


def draw_probabilities(rng, size):
    """Draw different probabilities, often exactly 0 or 1, sometimes all the same."""
    values = rng.choice([0.0, 1.0, 0.5, rng.random()], size=size) if rng.integers(2) else rng.random(size)
    return np.full(size, values[0]) if size and rng.integers(4) == 0 else values


def enumerated_law(edges, coin_of, p_coin, num_layers):
    """Return the law of the set of nodes that reach node 0; each coin deletes its edges with its own probability."""
    law = {}
    for kept in itertools.product((True, False), repeat=len(p_coin)):
        weight = Fraction(1)
        for is_kept, p in zip(kept, p_coin, strict=True):
            weight *= 1 - Fraction(p) if is_kept else Fraction(p)
        if weight:
            left = [edge for edge, coin in zip(edges, coin_of, strict=True) if kept[coin]]
            reached = nodes_that_reach(left, 0, num_layers)
            law[reached] = law.get(reached, Fraction(0)) + weight
    return law


def enumerated_probability(law, attackers, p_ablate):
    """Return p(E(B)): each attacker that reaches the target is silent only if it is ablated."""
    silent = Fraction(0)
    for reached, weight in law.items():
        for node in reached & set(attackers):
            weight *= Fraction(p_ablate[node])
        silent += weight
    return 1 - silent


def compare_with_enumeration(rng, kind, num_layers, num_graphs):
    for _ in range(num_graphs):
        num_nodes, edges = small_graph(rng, kind)
        edges = sorted(edges, key=lambda edge: edge[::-1])  # the order of an Adjacency
        keys = [tuple(sorted(edge)) if kind == "one coin" else edge for edge in edges]
        coins = sorted(set(keys))
        p_coin = draw_probabilities(rng, len(coins))
        coin_of = [coins.index(key) for key in keys]
        p_ablate = draw_probabilities(rng, num_nodes)
        law = enumerated_law(edges, coin_of, p_coin.tolist(), num_layers)
        arguments = {"p_delete": p_coin[coin_of], "p_ablate": p_ablate, "num_layers": num_layers}
        for size in rng.integers(0, num_nodes + 1, size=2).tolist():
            attackers = rng.permutation(num_nodes)[:size].tolist()
            exact = enumerated_probability(law, attackers, p_ablate.tolist())
            result = arrival_probability(to_adjacency(edges, num_nodes), 0, attackers, **arguments)
            assert result.exact
            assert Fraction(result.p_lower) <= exact <= Fraction(result.p_upper)
            assert Fraction(result.p_upper) - Fraction(result.p_lower) <= ROUNDING
            few = int(rng.integers(1, 12))
            result = arrival_probability(to_adjacency(edges, num_nodes), 0, attackers, max_states=few, **arguments)
            assert 0 <= Fraction(result.p_lower) <= exact <= Fraction(result.p_upper) <= 1
            assert not result.exact or Fraction(result.p_upper) - Fraction(result.p_lower) <= ROUNDING


@pytest.mark.few(6)
@pytest.mark.parametrize(("kind", "num_layers"), CASES)
def test_every_outcome_of_every_coin(kind, num_layers):
    compare_with_enumeration(np.random.default_rng([1, CASES.index((kind, num_layers))]), kind, num_layers, 30)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "num_layers"), CASES)
def test_every_outcome_of_every_coin_on_many_graphs(kind, num_layers):
    compare_with_enumeration(np.random.default_rng([2, CASES.index((kind, num_layers))]), kind, num_layers, 200)


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_one_coin_or_two_per_undirected_edge_give_the_same_law_with_different_probabilities(num_layers):
    rng = np.random.default_rng([3, num_layers])
    for _ in range(6):
        _, edges = small_graph(rng, "two coins", max_coins=8)
        coins = sorted({tuple(sorted(edge)) for edge in edges})
        coin_of = [coins.index(tuple(sorted(edge))) for edge in edges]
        p_coin = draw_probabilities(rng, len(coins))
        joint = enumerated_law(edges, coin_of, p_coin.tolist(), num_layers)
        two = enumerated_law(edges, range(len(edges)), p_coin[coin_of].tolist(), num_layers)
        assert joint == two


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_inclusion_exclusion_gives_the_same(num_layers):
    rng = np.random.default_rng([4, num_layers])
    compared = 0
    while compared < 25:
        num_nodes = int(rng.integers(4, 12))
        edges = random_edges(rng, num_nodes, rng.uniform(0.1, 0.5), directed=bool(rng.integers(2)))
        graph = to_adjacency(edges, num_nodes)
        attackers = rng.permutation(num_nodes)[: int(rng.integers(1, 4))].tolist()
        paths = list(explicit_simple_paths(graph, 0, attackers, num_layers=num_layers))
        if len(paths) > MAX_EXPLICIT_PATHS - 4:
            continue
        smoothing = {"p_delete": float(rng.random()), "p_ablate": float(rng.choice([0.0, rng.random()]))}
        expected = inclusion_exclusion(paths, **smoothing)
        result = arrival_probability(graph, 0, attackers, num_layers=num_layers, **smoothing)
        assert result.exact
        assert result.p_lower <= expected <= result.p_upper + 2.0**-52
        compared += 1


def test_values_worked_out_by_hand():
    shared = arrival_probability(shared_edge_graph(), 0, [4], p_delete=0.5, p_ablate=0.0, num_layers=3)
    assert shared.p_upper == pytest.approx(0.5 * (1 - 0.75**2), abs=2**-52)
    hostile_target = arrival_probability(path_graph(2), 0, [0, 1], p_delete=0.5, p_ablate=0.5, num_layers=1)
    assert hostile_target.p_upper == pytest.approx(0.5 + 0.5 * 0.25, abs=2**-52)


@pytest.mark.parametrize("num_layers", [1, 2, 3, 100])
def test_certain_outcomes_are_exact(num_layers):
    graph = path_graph(num_layers + 2)

    def ends(attackers, p_delete, p_ablate):
        result = arrival_probability(graph, 0, attackers, p_delete=p_delete, p_ablate=p_ablate, num_layers=num_layers)
        assert result.exact
        return result.p_lower, result.p_upper

    assert ends([num_layers], 0.0, 0.0) == (1.0, 1.0)
    assert ends([num_layers], 0.0, 0.25) == (0.75, 0.75)
    assert ends([num_layers + 1], 0.0, 0.0) == (0.0, 0.0)  # one hop too far
    assert ends([num_layers], 1.0, 0.0) == (0.0, 0.0)
    assert ends([0, num_layers], 0.0, 1.0) == (0.0, 0.0)
    assert ends([], 0.0, 0.0) == (0.0, 0.0)


def test_a_long_path():
    result = arrival_probability(path_graph(101), 0, [100], p_delete=0.25, p_ablate=0.0, num_layers=100)
    exact = Fraction(3, 4) ** 100
    assert result.exact
    assert Fraction(result.p_lower) <= exact <= Fraction(result.p_upper) <= exact * (1 + ROUNDING)


def test_independent_parts_do_not_multiply_the_states():
    keep, shown = 1 - Fraction(0.9), 1 - Fraction(0.75)
    star = arrival_probability(star_graph(400), 0, range(1, 401), p_delete=0.9, p_ablate=0.75, num_layers=3)
    exact = 1 - (1 - keep * shown) ** 400
    assert star.exact
    assert Fraction(star.p_lower) <= exact <= Fraction(star.p_upper) <= exact + ROUNDING
    bottleneck = arrival_probability(
        bottleneck_graph(400), 0, range(2, 402), p_delete=0.9, p_ablate=0.75, num_layers=3, max_states=2
    )
    exact *= keep
    assert bottleneck.exact
    assert Fraction(bottleneck.p_lower) <= exact <= Fraction(bottleneck.p_upper) <= exact + ROUNDING


def test_states_that_agree_are_visited_once():
    # 20 layers of two nodes, each linked to both nodes of the next: 2^78 outcomes, three states per layer.
    layers = [[2 * index + 1, 2 * index + 2] for index in range(20)]
    edges = [(node, 0) for node in layers[0]]
    edges += [edge for near, far in itertools.pairwise(layers) for edge in itertools.product(far, near)]
    result = arrival_probability(
        to_adjacency(edges, 41), 0, layers[-1], p_delete=0.5, p_ablate=0.0, num_layers=20, max_states=500
    )
    none, one, both = Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)
    for _ in range(19):
        none, one, both = (
            none + one * Fraction(1, 4) + both * Fraction(1, 16),
            one * Fraction(1, 2) + both * Fraction(3, 8),
            one * Fraction(1, 4) + both * Fraction(9, 16),
        )
    assert result.exact
    assert Fraction(result.p_lower) <= 1 - none <= Fraction(result.p_upper)


def test_few_attackers_or_few_first_hops_are_both_cheap():
    # Two layers, complete bipartite: forward from one attacker or backward from one neighbour is one step.
    forward = [(1, node) for node in range(2, 42)] + [(node, 0) for node in range(2, 42)]
    one_attacker = arrival_probability(
        to_adjacency(forward, 42), 0, [1], p_delete=0.5, p_ablate=0.5, num_layers=2, max_states=2
    )
    assert one_attacker.exact
    assert one_attacker.p_upper == pytest.approx(0.5 * (1 - 0.75**40), abs=1e-15)


def test_a_field_that_is_too_large_is_reported_and_still_no_worse_than_theorem_3():
    rng = np.random.default_rng(5)
    for _ in range(5):
        graph = to_adjacency(random_edges(rng, 18, 0.6, directed=True), 18)
        attackers = [3, 5, 8, 13]
        result = arrival_probability(graph, 0, attackers, p_delete=0.9, p_ablate=0.3, num_layers=3, max_states=100)
        assert not result.exact
        assert 0.0 < result.p_lower < result.p_upper
        paths = count_simple_paths(graph, [0], num_layers=3)
        singles = single_source_bounds(paths.counts[np.isin(paths.sources, attackers)], p_delete=0.9, p_ablate=0.3)
        assert result.p_upper <= multiplicative_bound(singles, max_radius=4)[-1]


def test_real_fields_of_three_layers(golden_root):
    with np.load(golden_root / "deltas_cora_ml.npz") as arrays:
        num_nodes = len(arrays["original_id_of_test_graph_node"])
        graph = Adjacency.from_edge_index(arrays["test_graph_edge_index"], num_nodes=num_nodes)
        targets = arrays["target_test_graph_id"][:40].tolist()
    rng = np.random.default_rng(6)
    num_exact = 0
    for target in targets:
        paths = count_simple_paths(graph, [target], num_layers=3)
        attackers = rng.permutation(paths.sources[1:])[:5]
        lost, ablated = np.full(graph.num_edges, 0.6), np.full(attackers.size, 0.6)
        network, _ = HopNetwork.around(graph, target, attackers, lost, ablated, num_layers=3)
        result = arrival_probability(
            graph, target, attackers, p_delete=0.6, p_ablate=0.6, num_layers=3, max_states=3000
        )
        num_exact += result.exact
        assert result.exact or len(network.lost) > 40
        if attackers.size:
            counts = paths.counts[np.isin(paths.sources, attackers)]
            singles = single_source_bounds(counts, p_delete=0.6, p_ablate=0.6)
            assert result.p_upper <= multiplicative_bound(singles, max_radius=5)[-1] + 2.0**-52
    assert num_exact >= 36


@given(st.data())
def test_more_attackers_or_layers_help_and_higher_probabilities_hinder_the_adversary(data):
    num_nodes = data.draw(st.integers(2, 7))
    pairs = [(w, v) for w in range(num_nodes) for v in range(num_nodes) if w != v]
    graph = to_adjacency(data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=14)), num_nodes)
    probability = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
    delete, ablate = (
        np.array(data.draw(st.lists(probability, min_size=size, max_size=size)))
        for size in (graph.num_edges, num_nodes)
    )
    attackers = data.draw(st.sets(st.integers(0, num_nodes - 1)))
    more = attackers | data.draw(st.sets(st.integers(0, num_nodes - 1)))
    num_layers, weight = data.draw(st.integers(1, 4)), data.draw(st.floats(0, 1))
    small = arrival_probability(graph, 0, attackers, p_delete=delete, p_ablate=ablate, num_layers=num_layers)
    large = arrival_probability(
        graph, 0, more, p_delete=delete * weight, p_ablate=ablate * weight, num_layers=num_layers + 1
    )
    assert small.p_lower <= large.p_upper


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": 5}, "`target` must be in"),
        ({"attackers": [7]}, "`attackers` must be < 5"),
        ({"attackers": [0.5]}, "`attackers` must hold integers"),
        ({"num_layers": 0}, "`num_layers` must be in"),
        ({"num_layers": 101}, "`num_layers` must be in"),
        ({"max_states": 0}, "`max_states` must be >= 1"),
        ({"p_delete": 1.5}, "`p_delete` must be in"),
        ({"p_delete": [0.5] * 4}, "`p_delete` must be a number or one number per edge"),
        ({"p_ablate": [0.5, 0.5, np.nan, 0.5, 0.5]}, "`p_ablate` must be in"),
        ({"p_ablate": "0.5"}, "`p_ablate` must be a number or one number per node"),
        ({"p_ablate": True}, "`p_ablate` must be a number or one number per node"),
    ],
)
def test_arguments_are_checked(change, message):
    arguments = {"target": 0, "attackers": [4], "p_delete": 0.5, "p_ablate": 0.5, "num_layers": 3} | change
    with pytest.raises(InvalidParameterError, match=message):
        arrival_probability(shared_edge_graph(), **arguments)
