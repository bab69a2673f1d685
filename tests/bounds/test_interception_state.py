"""The probability that everything is intercepted, and its stack of hostile nodes, against rational numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.bounds.interception_state import gain, memory_needed, pop, push, relative_error, start_state
from graycert.bounds.routes import Routes, find_routes, make_walker
from support.random_graphs import to_adjacency
from support.two_level_oracles import SmallGraph, TwoLevels, random_graph, random_probabilities

PLENTY = 2**40
BOTH_FORMS = [0, 10]  # subsets of surviving hops up to so many


def routes_of(graph):
    adjacency = to_adjacency(graph.edges, graph.num_nodes)
    nodes = np.array(graph.field())
    routes = find_routes(
        adjacency.indptr,
        adjacency.sources,
        np.array(graph.p_delete),
        np.array(graph.p_ablate),
        nodes,
        nodes > 0,
        graph.num_layers,
        PLENTY,
        make_walker(graph.num_nodes, graph.num_layers),
    )
    return nodes, routes


def start(routes, subsets_up_to, *, max_nodes=12, max_work=PLENTY, memory=2**16):
    return start_state(routes, subsets_up_to, max_nodes, max_work, np.full(memory, np.nan))


def silence(state, number):
    """Return g of one component, summed without further error."""
    width = 1 if state.by_subsets[number] else 1 + state.num_component_hops[number]
    place, count = state.start[number], state.scenarios[number]
    return sum((Fraction(p) for p in state.memory[place : place + count * width : width]), Fraction(0))


def snapshot(state):
    used = state.memory[: state.top[0]].copy()
    return used, state.top[:2].tolist(), state.start.tolist(), state.scenarios.tolist(), state.by_subsets.tolist()


def assert_same(left, right):
    assert np.array_equal(left[0], right[0])
    assert left[1:] == right[1:]


def two_level_graph(rng, num_hops, num_nodes, *, density=0.6):
    """Draw a graph of two layers in which every node has some way to the target."""
    edges = [(hop, 0) for hop in range(1, num_hops + 1)]
    for node in range(1, num_hops + num_nodes + 1):
        ends = [hop for hop in range(1, num_hops + 1) if hop != node and rng.random() < density]
        edges += [(node, hop) for hop in ends or ([] if node <= num_hops else [1])]
    edges.sort(key=lambda edge: edge[::-1])
    size = num_hops + num_nodes + 1
    p_delete, p_ablate = random_probabilities(rng, len(edges)), random_probabilities(rng, size)
    return SmallGraph(size, 2, edges, range(len(edges)), p_delete, p_ablate)


def test_the_sum_over_hops_is_the_sum_over_ablated_nodes():
    rng = np.random.default_rng(0)
    for index in range(100):
        graph = random_graph(rng, "directed", 1 + index % 4, most_coins=20)
        oracle = TwoLevels(graph)
        attackers = [node for node in graph.field() if rng.random() < 0.5]
        assert oracle.miss(attackers) == oracle.miss_by_ablation(attackers)


def measured_errors(rng, num_graphs):
    """Yield the true error of g over its stated bound, for sets of growing size within one component."""
    for _ in range(num_graphs):
        graph = two_level_graph(rng, int(rng.integers(1, 6)), int(rng.integers(1, 6)))
        nodes, routes = routes_of(graph)
        oracle = TwoLevels(graph)
        reachable = nodes[routes.type_of >= 0].tolist()
        for form in BOTH_FORMS:
            if not reachable:
                continue
            state = start(routes, form)
            number = state.component[routes.type_of[nodes.tolist().index(int(rng.choice(reachable)))]]
            hostile = []
            for node in rng.permutation(reachable).tolist():
                kind = routes.type_of[nodes.tolist().index(node)]
                if state.component[kind] != number or len(hostile) == 8:
                    continue
                before = oracle.miss(hostile)
                step = gain(routes, state, kind)
                assert push(routes, state, kind)
                hostile.append(node)
                exact, bound = oracle.miss(hostile), relative_error(routes, state, len(hostile))
                if exact == 0:
                    assert silence(state, number) == 0
                    assert step == np.inf
                    break
                yield abs(silence(state, number) / exact - 1) / Fraction(bound)
                assert step == pytest.approx(math.log(before / exact), abs=2 * bound + 1e-15, rel=1e-15)


@pytest.mark.parametrize("num_graphs", [60, pytest.param(1_000, marks=pytest.mark.slow)])
def test_the_stated_rounding_error_is_never_exceeded(num_graphs):
    errors = list(measured_errors(np.random.default_rng([1, num_graphs]), num_graphs))
    assert len(errors) > 4 * num_graphs
    assert 0 < max(errors) <= 0.5  # what the count of first order terms allows; it is doubled


@pytest.mark.parametrize("form", BOTH_FORMS)
def test_pop_undoes_push(form):
    rng = np.random.default_rng([2, form])
    for _ in range(60):
        graph = two_level_graph(rng, int(rng.integers(1, 6)), int(rng.integers(1, 8)))
        _, routes = routes_of(graph)
        if not routes.copies.size:
            continue
        state = start(routes, form)
        history = [snapshot(state)]
        for _ in range(40):
            if state.top[1] and rng.random() < 0.4:
                pop(state)
                history.pop()
                assert_same(snapshot(state), history[-1])
            elif state.top[1] < 12:
                gains = [gain(routes, state, kind) for kind in range(routes.copies.size)]
                assert min(gains) >= 0.0
                assert_same(snapshot(state), history[-1])  # looking changes nothing
                assert push(routes, state, int(rng.integers(routes.copies.size)))
                history.append(snapshot(state))
                assert np.array_equal(history[-1][0][: history[-2][0].size], history[-2][0])


def test_components_do_not_interact():
    rng = np.random.default_rng(3)
    edges = [(1, 0), (2, 0), (3, 0), (4, 1), (4, 2), (5, 3), (6, 3), (1, 2)]
    edges.sort(key=lambda edge: edge[::-1])
    graph = SmallGraph(7, 2, edges, range(8), rng.random(8).tolist(), rng.random(7).tolist())
    nodes, routes = routes_of(graph)
    for form in BOTH_FORMS:
        state = start(routes, form)
        assert state.num_component_hops.tolist() == [2, 1]
        kind = dict(zip(nodes.tolist(), routes.type_of.tolist(), strict=True))
        assert [state.component[kind[node]] for node in range(1, 7)] == [0, 0, 1, 0, 1, 1]
        alone, before = gain(routes, state, kind[5]), gain(routes, state, kind[1])
        assert push(routes, state, kind[4])
        assert gain(routes, state, kind[5]) == alone
        assert gain(routes, state, kind[1]) < before - 1e-3


def test_a_push_beyond_the_budget_or_the_memory_changes_nothing():
    rng = np.random.default_rng(4)
    edges = [(hop, 0) for hop in range(1, 5)] + [(node, hop) for node in range(5, 9) for hop in range(1, 5)]
    edges.sort(key=lambda edge: edge[::-1])
    graph = SmallGraph(9, 2, edges, range(len(edges)), rng.random(len(edges)).tolist(), [0.5] * 9)
    _, routes = routes_of(graph)
    for form in BOTH_FORMS:
        for limits in ({"max_work": 100}, {"memory": memory_needed(routes, 12)}):
            state = start(routes, form, **limits)
            pushed = 0
            while pushed < 12:
                before, work = snapshot(state), int(state.work[0])
                if not push(routes, state, 4 + pushed % 4):
                    assert_same(snapshot(state), before)
                    assert state.work[0] == work
                    break
                pushed += 1
            assert 0 < pushed < 12


def many_components(sizes):
    """Build routes by hand: each component has so many hops and nodes, and every node reaches all of its hops."""
    num_hops, num_types = (sum(counts) for counts in zip(*sizes, strict=True))
    hops, first = [], 0
    for count, num_nodes in sizes:
        hops += list(range(first, first + count)) * num_nodes
        first += count
    lengths = np.repeat([count for count, _ in sizes], [num_nodes for _, num_nodes in sizes])
    return Routes(
        p_first=np.append(np.full(num_hops, 0.5), 0.0),
        p_ablate=np.full(num_types, 0.5),
        copies=np.ones(num_types, dtype=np.int64),
        indptr=np.concatenate([[0], np.cumsum(lengths)]),
        hops=np.array(hops),
        misses=np.linspace(0.0, 0.5, len(hops)),
        type_of=np.arange(num_types),
    )


@pytest.mark.parametrize("extra", [0, 100, 3_000, 30_000, 2**18])
def test_the_start_stays_within_the_memory_promised(extra):
    large_then_many = [(9, max(1, int(150 * 0.8**index))) for index in range(20)] + [(1, 20)] * 600
    for sizes in ([(2, 3)] * 60, [(6, 12)] * 30, [(1, 2)] * 200, large_then_many):
        routes = many_components(sizes)
        size = memory_needed(routes, 5) + extra
        memory = np.full(size + 2**20, np.nan)
        state = start_state(routes, 10, 5, PLENTY, memory[:size])
        assert state.top[0] <= size
        assert np.isnan(memory[size:]).all()
        pushed = [push(routes, state, kind) for kind in range(5)]
        assert any(pushed)
        assert np.isnan(memory[size:]).all()
        assert extra < 2**18 or state.by_subsets.mean() > 0.9


def test_hops_that_always_or_never_lose_the_message():
    edges = [(1, 0), (2, 0), (3, 1), (3, 2), (4, 1), (4, 2)]
    for form in BOTH_FORMS:
        graph = SmallGraph(5, 2, edges, range(6), [0.0, 1.0, 0.5, 0.25, 0.0, 0.5], [0.25] * 5)
        nodes, routes = routes_of(graph)
        kind = dict(zip(nodes.tolist(), routes.type_of.tolist(), strict=True))
        assert kind[2] == -1
        state = start(routes, form)
        assert gain(routes, state, kind[1]) == pytest.approx(-math.log(0.25), abs=1e-14)
        assert gain(routes, state, kind[3]) == pytest.approx(-math.log(0.25 + 0.75 * 0.5), abs=1e-14)
        assert push(routes, state, kind[3])
        assert gain(routes, state, kind[4]) == pytest.approx(-math.log(0.25 + 0.75 * 0.25), abs=1e-14)
        surely = SmallGraph(5, 2, edges, range(6), [0.0] * 6, [0.0] * 5)
        _, routes = routes_of(surely)
        assert routes.copies.tolist() == [4]
        state = start(routes, form)
        assert gain(routes, state, 0) == np.inf
        assert push(routes, state, 0)
        assert gain(routes, state, 0) == 0.0


@given(st.data())
def test_both_forms_agree_and_gains_do_not_rise(data):
    num_hops, num_nodes = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    probability = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(1e-6, 1 - 1e-6)
    edges = [(hop, 0) for hop in range(1, num_hops + 1)]
    pairs = [(node, hop) for hop in range(1, num_hops + 1) for node in range(num_hops + 1, num_hops + num_nodes + 1)]
    edges = sorted([*edges, *data.draw(st.sets(st.sampled_from(pairs)))], key=lambda edge: edge[::-1])
    size = num_hops + num_nodes + 1
    p_delete, p_ablate = (data.draw(st.lists(probability, min_size=n, max_size=n)) for n in (len(edges), size))
    _, routes = routes_of(SmallGraph(size, 2, edges, range(len(edges)), p_delete, p_ablate))
    if not routes.copies.size:
        return
    states = [start(routes, form) for form in BOTH_FORMS]
    previous = np.full(routes.copies.size, np.inf)
    for _ in range(3):
        gains = [np.array([gain(routes, state, kind) for kind in range(routes.copies.size)]) for state in states]
        assert gains[0] == pytest.approx(gains[1], abs=1e-12)
        assert np.all(gains[0] <= previous + 1e-12)
        previous = gains[0]
        kind = data.draw(st.integers(0, routes.copies.size - 1))
        if gains[0][kind] == np.inf:
            return
        assert all(push(routes, state, kind) for state in states)
