"""The worst set of hostile nodes against every outcome of every coin, and against Theorems 2 and 3."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.bounds import ablation_only_delta, multiplicative_bound, two_level
from graycert.bounds.interception_state import memory_needed, start_state
from graycert.bounds.two_level import DEFAULT_BUDGET, TwoLevelSearch
from graycert.bounds.worst_set import CLOSE, branch_and_bound, dominations, greedy
from graycert.graph import bottleneck_graph, receptive_fields
from support.random_graphs import random_edges, to_adjacency
from support.two_level_oracles import (
    KINDS,
    Outcomes,
    SmallGraph,
    Theorems,
    TwoLevels,
    greedy_set,
    optimum,
    random_graph,
)

EQUAL = Fraction(1, 10**12)
CASES = list(itertools.product(KINDS, [1, 2, 3, 4]))
FEW_OR_MANY = [20, pytest.param(400, marks=pytest.mark.slow)]  # 12 cases each: 4,800 graphs


def search_for(graph, *, budget=DEFAULT_BUDGET):
    return TwoLevelSearch(
        to_adjacency(graph.edges, graph.num_nodes),
        p_delete=np.array(graph.p_delete),
        p_ablate=np.array(graph.p_ablate),
        num_layers=graph.num_layers,
        budget=budget,
    )


def worst_sets(graph, eligible, max_radius, *, budget=DEFAULT_BUDGET):
    nodes = np.array(graph.field())
    return search_for(graph, budget=budget).worst_sets(nodes, np.isin(nodes, list(eligible)), max_radius=max_radius)


def draw_eligible(rng, graph):
    """All nodes of the field but the target, or an arbitrary subset that may contain it."""
    field = graph.field()
    if rng.integers(2):
        return field[1:]
    return [node for node in field if rng.random() < 0.6]


def check_attackers(worst, eligible, radius):
    """Return the set named for ``radius``."""
    row = worst.attackers[radius - 1]
    named = row[row >= 0].tolist()
    assert row[len(named) :].tolist() == [-1] * (row.size - len(named))
    assert len(set(named)) == len(named) <= radius
    assert set(named) <= set(eligible)
    return named


def compare_with_enumeration(rng, kind, num_layers, num_graphs):
    for _ in range(num_graphs):
        graph = random_graph(rng, kind, num_layers)
        truth, surrogate = Outcomes(graph), TwoLevels(graph)
        eligible = draw_eligible(rng, graph)
        max_radius = int(rng.integers(1, len(graph.field()) + 3))  # beyond the field too
        worst = worst_sets(graph, eligible, max_radius)
        assert worst.delta_upper.shape == worst.proved.shape == (max_radius,)
        assert np.all(np.diff(worst.delta_upper) >= 0.0)
        previous = 0.0
        for radius in range(1, max_radius + 1):
            upper = Fraction(worst.delta_upper[radius - 1])
            exact = optimum(truth.miss, eligible, radius)
            attacked = 1 - truth.miss(check_attackers(worst, eligible, radius))
            assert attacked <= exact <= upper <= 1
            proved = worst.proved[radius - 1]
            assert proved or previous >= 0.5  # a certificate never asks beyond one half
            if num_layers <= 2:
                assert not proved or upper - EQUAL <= attacked
            else:
                assert exact <= optimum(surrogate.miss, eligible, radius)
                assert upper <= optimum(Theorems(graph).miss, eligible, radius) + EQUAL
                assert not proved or upper - EQUAL <= optimum(surrogate.miss, eligible, radius) <= upper
            previous = worst.delta_upper[radius - 1]


@pytest.mark.few(6)
@pytest.mark.parametrize("num_graphs", FEW_OR_MANY)
@pytest.mark.parametrize(("kind", "num_layers"), CASES)
def test_every_outcome_of_every_coin(kind, num_layers, num_graphs):
    compare_with_enumeration(
        np.random.default_rng([1, CASES.index((kind, num_layers)), num_graphs]), kind, num_layers, num_graphs
    )


@pytest.mark.parametrize("num_graphs", [40, pytest.param(2_000, marks=pytest.mark.slow)])
def test_larger_graphs_against_the_sum_over_surviving_last_edges(num_graphs):
    rng = np.random.default_rng([2, num_graphs])
    for _ in range(num_graphs):
        graph = random_graph(rng, "directed", 2, most_coins=30)
        oracle, eligible = TwoLevels(graph), draw_eligible(rng, graph)
        worst = worst_sets(graph, eligible, 4)
        for radius in range(1, 5):
            exact = optimum(oracle.miss, eligible, radius)
            assert exact <= Fraction(worst.delta_upper[radius - 1])
            attacked = 1 - oracle.miss(check_attackers(worst, eligible, radius))
            assert not worst.proved[radius - 1] or Fraction(worst.delta_upper[radius - 1]) - attacked <= EQUAL


@pytest.mark.parametrize("budget", [1, 30, 100, 300, 1000])
def test_a_search_that_is_given_up_is_sound_never_above_theorem_3_and_says_so(budget):
    rng = np.random.default_rng([3, budget])
    given_up = 0
    for index in range(40):
        graph = random_graph(rng, "directed", 1 + index % 2, most_coins=30)
        oracle, eligible = TwoLevels(graph), draw_eligible(rng, graph)
        worst = worst_sets(graph, eligible, 4, budget=budget)
        if worst is None:
            assert sum(1 + len(graph.in_neighbors(hop)) for hop in oracle.hops) > budget
            assert graph.num_layers == 2
            continue
        for radius in range(1, 5):
            exact, upper = optimum(oracle.miss, eligible, radius), Fraction(worst.delta_upper[radius - 1])
            assert exact <= upper <= optimum(Theorems(graph).miss, eligible, radius) + EQUAL
            attacked = 1 - oracle.miss(check_attackers(worst, eligible, radius))
            assert not worst.proved[radius - 1] or upper - attacked <= EQUAL
            given_up += not worst.proved[radius - 1]
    assert given_up > 0


def test_greedy_is_not_optimal_and_branch_and_bound_finds_the_optimum():
    # Node 1 has the most ways in: its own edge, and through node 2. But the edges of 2 and 3 to the target lead past
    # what is behind node 1, and the two of them use all three.
    edges = sorted([(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (1, 2)], key=lambda edge: edge[::-1])
    graph = SmallGraph(4, 2, edges, range(6), [0.75] * 6, [0.0] * 4)
    oracle = Outcomes(graph)
    worst = worst_sets(graph, [1, 2, 3], 2)
    greedily = 1 - oracle.miss(greedy_set(oracle.miss, [1, 2, 3], 2))
    assert float(greedily) == pytest.approx(0.47265625, abs=1e-15)
    assert worst.attackers.tolist() == [[worst.attackers[0, 0], -1], [2, 3]]
    assert worst.delta_upper[1] == pytest.approx(0.4990234375, abs=1e-12)
    assert worst.proved.all()


def test_the_best_sets_are_found_with_and_without_dominance():
    rng = np.random.default_rng(4)
    compared = 0
    for index in range(150):
        graph = random_graph(rng, "directed", 2 + index % 2, most_coins=30)
        nodes = np.array(graph.field())
        eligible, oracle = draw_eligible(rng, graph), TwoLevels(graph)
        routes = search_for(graph).routes(nodes, np.isin(nodes, eligible))
        dominates = dominations(routes)
        for radius in range(1, min(4, int(routes.copies.sum())) + 1):
            missed = 1 - optimum(oracle.miss, eligible, radius)
            largest = -math.log(missed) if missed else math.inf
            for relation in (dominates, np.zeros_like(dominates)):
                state = start_state(routes, 10, radius, DEFAULT_BUDGET, np.empty(2**14))
                best, finished = branch_and_bound(routes, state, relation, radius, 0.0, np.zeros(radius, np.int64))
                assert finished
                assert state.top[1] == 0
                assert best == pytest.approx(largest, abs=2 * CLOSE)
            compared += bool(dominates.any())
    assert compared > 50


def test_dominance_compares_routes_and_ablation():
    # Nodes 3 and 4 are behind both hops, node 5 behind one; 4 is ablated less often than 3, as often as 5.
    edges = [(1, 0), (2, 0), (3, 1), (4, 1), (3, 2), (4, 2), (5, 2)]
    graph = SmallGraph(6, 2, edges, range(7), [0.5] * 7, [0.5, 0.5, 0.5, 0.5, 0.25, 0.25])
    nodes = np.array(graph.field())
    routes = search_for(graph).routes(nodes, nodes > 0)
    kind_of = dict(zip(nodes.tolist(), routes.type_of.tolist(), strict=True))
    dominates = dominations(routes)
    pairs = {(i, j) for i in range(1, 6) for j in range(1, 6) if dominates[kind_of[i], kind_of[j]]}
    assert pairs == {(4, 3), (4, 5)}


def test_signed_zeros_do_not_dominate_each_other():
    edges = [(1, 0), (2, 1), (3, 1), (4, 1)]
    graph = SmallGraph(5, 2, edges, range(4), [0.5, 0.0, -0.0, 0.0], [0.5, 0.5, 0.5, 0.5, -0.0])
    nodes = np.array(graph.field())
    dominates = dominations(search_for(graph).routes(nodes, nodes > 0))
    assert not np.any(dominates & dominates.T)
    worst = worst_sets(graph, [1, 2, 3], 3)
    assert worst.delta_upper == pytest.approx([0.25, 0.375, 0.4375], abs=1e-12)


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_without_deletion_it_is_proposition_2(num_layers):
    rng = np.random.default_rng([5, num_layers])
    for _ in range(10):
        edges = sorted(random_edges(rng, 7, 0.4, directed=True), key=lambda edge: edge[::-1])
        graph = SmallGraph(7, num_layers, edges, range(len(edges)), [0.0] * len(edges), [0.85] * 7)
        eligible = draw_eligible(rng, graph)
        worst = worst_sets(graph, eligible, 9)
        expected = ablation_only_delta(p_ablate=0.85, num_eligible=len(eligible), max_radius=9)
        assert np.all(worst.delta_upper >= expected - 2.0**-53)  # which is itself rounded up
        assert worst.delta_upper == pytest.approx(expected, abs=1e-12)
        assert worst.proved[expected < 0.5].all()


@pytest.mark.parametrize(("budget", "memory"), [(DEFAULT_BUDGET, 2**21), (10, 2**21), (DEFAULT_BUDGET, 600)])
def test_targets_together_have_the_bounds_of_each_alone(monkeypatch, budget, memory):
    monkeypatch.setattr(two_level, "_MEMORY", memory)  # some need more: they are looked at again
    monkeypatch.setattr(two_level, "_ENTRIES_AT_ONCE", 100)
    rng = np.random.default_rng([9, budget, memory])
    graph = to_adjacency(random_edges(rng, 30, 0.1, directed=True), 30)
    fields = receptive_fields(graph, np.arange(30), num_layers=2)
    eligible = rng.random(fields.nodes.size) < 0.7
    options = {"p_delete": rng.random(graph.num_edges), "p_ablate": rng.random(30), "num_layers": 2, "budget": budget}

    def found(indptr, low, high):
        search = TwoLevelSearch(graph, **options)
        nodes = fields.nodes[low:high]
        return search.worst_sets_of(indptr, nodes, eligible[low:high], max_radius=5, most_sets=4)

    together, left_out = found(fields.indptr, 0, fields.nodes.size), 0
    for one, low, high in zip(together, fields.indptr, fields.indptr[1:], strict=False):
        (alone,) = found(np.array([0, high - low]), low, high)
        left_out += one is None
        assert (one is None) == (alone is None)
        if one is not None:
            for name in ("delta_upper", "proved", "attackers"):
                assert np.array_equal(getattr(one, name), getattr(alone, name))
    assert (left_out > 0) == (budget == 10)


@pytest.mark.parametrize(("p_delete", "p_ablate"), [(0.25, 0.0), (0.8, 0.0), (0.5, 0.3), (0.0, 0.0), (1.0, 0.0)])
def test_a_bottleneck_cannot_be_passed_by_any_number_of_attackers(p_delete, p_ablate):
    graph = bottleneck_graph(50)
    fields = receptive_fields(graph, [0], num_layers=2)
    search = TwoLevelSearch(
        graph, p_delete=np.full(graph.num_edges, p_delete), p_ablate=np.full(graph.num_nodes, p_ablate), num_layers=2
    )
    worst = search.worst_sets(fields.nodes, fields.distances == 2, max_radius=60)
    p, a = Fraction(p_delete), Fraction(p_ablate)
    for radius in range(1, 61):
        exact = (1 - p) * (1 - (a + (1 - a) * p) ** min(radius, 50))
        excess = Fraction(worst.delta_upper[radius - 1]) - exact
        assert excess >= 0
        assert not worst.proved[radius - 1] or excess <= (1 if radius <= 15 else 10) * EQUAL
    assert worst.proved[: np.searchsorted(worst.delta_upper, 0.5) + 1].all()
    assert worst.attackers[0, 0] >= 2 or p_delete == 1.0


def test_certain_outcomes():
    edges = [(1, 0), (2, 1)]
    for p_ablate, expected in ((0.0, 1.0), (1.0, 0.0)):
        graph = SmallGraph(3, 2, edges, range(2), [0.0, 0.0], [p_ablate] * 3)
        worst = worst_sets(graph, [0, 1, 2], 4)
        assert worst.delta_upper.tolist() == [expected] * 4
        assert worst.proved.all()
    nobody = worst_sets(SmallGraph(3, 2, edges, range(2), [0.5, 0.5], [0.5] * 3), [], 2)
    assert nobody.delta_upper.tolist() == [0.0, 0.0]
    assert nobody.attackers.tolist() == [[-1, -1], [-1, -1]]
    target = worst_sets(SmallGraph(3, 2, edges, range(2), [1.0, 0.5], [0.75] * 3), [0, 1, 2], 2)
    assert target.delta_upper == pytest.approx([0.25, 0.25], abs=1e-12)
    assert target.attackers.tolist() == [[0, -1], [0, -1]]


def test_greedy_limits_hold_for_every_radius_and_every_prefix():
    rng = np.random.default_rng(6)
    for _ in range(60):
        graph = random_graph(rng, "directed", 2, most_coins=30)
        nodes, oracle = np.array(graph.field()), TwoLevels(graph)
        routes = search_for(graph).routes(nodes, nodes > 0)
        if not routes.copies.size:
            continue
        memory = np.empty(memory_needed(routes, 5) + 2**12)
        for stop_above in (0.0, 0.3, np.inf):
            state = start_state(routes, 10, 5, DEFAULT_BUDGET, memory)
            reached, limit, _, chosen = greedy(routes, state, 5, stop_above)
            assert state.top[1] == 0
            assert chosen.size <= 5
            for radius in range(1, 6):
                best = 1 - optimum(oracle.miss, nodes[1:].tolist(), radius)
                most = -math.log(best) if best else math.inf
                assert reached[radius] <= most + 1e-12
                assert most <= limit[radius] + 1e-12


def test_for_three_layers_the_prefix_bound_would_be_false_with_the_true_probabilities():
    edges = [(1, 0), (2, 0), (3, 1), (5, 1), (1, 2), (4, 3), (6, 5)]
    graph = SmallGraph(7, 3, edges, range(7), [0.15] * 7, [0.0] * 7)
    violations = [
        float(oracle.miss([3, 4]) * oracle.miss([4, 6]) - oracle.miss([4]) * oracle.miss([3, 4, 6]))
        for oracle in (Outcomes(graph), TwoLevels(graph))
    ]
    assert violations[0] == pytest.approx(0.0040, abs=1e-4)
    assert violations[1] <= 0.0


@st.composite
def settings_of_a_search(draw):
    num_nodes = draw(st.integers(2, 6))
    pairs = [(w, v) for v in range(num_nodes) for w in range(num_nodes) if w != v]
    edges = sorted(draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12)), key=lambda edge: edge[::-1])
    probability = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
    p_delete, p_ablate = (draw(st.lists(probability, min_size=n, max_size=n)) for n in (len(edges), num_nodes))
    graph = SmallGraph(num_nodes, draw(st.integers(1, 4)), edges, range(len(edges)), p_delete, p_ablate)
    return graph, sorted(draw(st.sets(st.sampled_from(graph.field()))))


@given(settings_of_a_search(), st.data())
def test_interception_is_log_supermodular(setting, data):
    graph, eligible = setting
    oracle, some_of_them = TwoLevels(graph), st.sets(st.sampled_from(eligible)) if eligible else st.just(set())
    first, second = data.draw(some_of_them), data.draw(some_of_them)
    both, either = first & second, first | second
    assert oracle.miss(first) * oracle.miss(second) <= oracle.miss(either) * oracle.miss(both)
    assert oracle.miss(either) <= oracle.miss(first)


@given(settings_of_a_search())
def test_the_bound_holds_never_falls_and_is_at_most_theorem_3(setting):
    graph, eligible = setting
    worst = worst_sets(graph, eligible, 4)
    singles = [float(Theorems(graph).single(node)) for node in eligible]
    assert np.all(np.diff(worst.delta_upper) >= 0.0)
    assert np.all(worst.delta_upper <= multiplicative_bound(singles, max_radius=4) + 1e-12)
    oracle = TwoLevels(graph)
    for radius in range(1, 5):
        assert optimum(oracle.miss, eligible, radius) <= Fraction(worst.delta_upper[radius - 1])
