"""Routes of hostile nodes through first hops, against their definition in rational numbers."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.bounds.routes import find_routes, make_walker
from graycert.graph import receptive_fields
from support.random_graphs import random_edges, to_adjacency
from support.two_level_oracles import KINDS, SmallGraph, TwoLevels, random_graph

CASES = list(itertools.product(KINDS, [1, 2, 3, 4]))
FEW_OR_MANY = [25, pytest.param(300, marks=pytest.mark.slow)]  # 12 cases each: 3,600 graphs
PLENTY = 2**40


def routes_of(graph, eligible, *, max_steps=PLENTY, walker=None):
    adjacency = to_adjacency(graph.edges, graph.num_nodes)
    nodes = np.array(graph.field())
    walker = walker or make_walker(graph.num_nodes, graph.num_layers)
    found = find_routes(
        adjacency.indptr,
        adjacency.sources,
        np.array(graph.p_delete),
        np.array(graph.p_ablate),
        nodes,
        np.isin(nodes, list(eligible)),
        graph.num_layers,
        max_steps,
        walker,
    )
    assert_at_rest(walker)
    return nodes, found


def assert_at_rest(walker):
    assert np.all(walker.place == -1)
    assert not walker.on_walk.any()
    assert np.all(walker.miss == 1.0)


def routes_of_kind(routes, kind):
    part = slice(routes.indptr[kind], routes.indptr[kind + 1])
    assert np.all(np.diff(routes.hops[part]) > 0)
    return dict(zip(routes.hops[part].tolist(), routes.misses[part].tolist(), strict=True))


def check_routes(graph, eligible):
    """Compare with the definition."""
    nodes, routes = routes_of(graph, eligible)
    oracle = TwoLevels(graph)
    always = len(oracle.hops)
    p_hop = [graph.deletes[hop, 0] for hop in oracle.hops]
    assert routes.p_first.tolist() == [*map(float, p_hop), 0.0]
    assert routes.copies.tolist() == np.bincount(routes.type_of[routes.type_of >= 0]).tolist()
    assert np.all((routes.misses >= 0.0) & (routes.misses < 1.0))
    described = {}
    for node, kind in zip(nodes.tolist(), routes.type_of.tolist(), strict=True):
        wanted = {}
        if node in eligible and graph.ablates[node] < 1:
            missed = {} if node == 0 else {index: oracle.miss_hop[node, hop] for index, hop in enumerate(oracle.hops)}
            wanted = {index: miss for index, miss in missed.items() if miss < 1 and p_hop[index] < 1}
            if node == 0 or any(miss == 0 and p_hop[index] == 0 for index, miss in wanted.items()):
                wanted = {always: Fraction(0)}
        if kind < 0:
            assert not wanted
            continue
        found = routes_of_kind(routes, kind)
        assert found.keys() == wanted.keys()
        for index, miss in found.items():
            assert wanted[index] * (1 - Fraction(1, 10**13)) <= Fraction(miss) <= wanted[index]
            assert graph.num_layers > 2 or Fraction(miss) == wanted[index]
        assert routes.p_ablate[kind] == graph.p_ablate[node]
        described.setdefault((graph.p_ablate[node], tuple(found.items())), set()).add(kind)
    assert all(len(kinds) == 1 for kinds in described.values())  # nodes with equal routes are of one type
    assert len(described) == routes.copies.size  # and no others


@pytest.mark.parametrize("num_graphs", FEW_OR_MANY)
@pytest.mark.parametrize(("kind", "num_layers"), CASES)
def test_the_definition(kind, num_layers, num_graphs):
    rng = np.random.default_rng([1, CASES.index((kind, num_layers)), num_graphs])
    for _ in range(num_graphs):
        graph = random_graph(rng, kind, num_layers, most_coins=25)
        check_routes(graph, [node for node in graph.field() if rng.random() < 0.8])


def test_nodes_that_make_no_difference_are_one_type():
    edges = [(1, 0), (2, 0), *((node, hop) for hop in (1, 2) for node in range(3, 8)), (8, 2)]
    p_delete = [0.0, 0.5, *[0.25] * 5, *[0.5, 0.5, 0.5, 0.75, 0.5], 0.5]
    graph = SmallGraph(9, 2, edges, range(len(edges)), p_delete, [0.5, 0.5, 0.5, 0.5, 0.5, 0.9, 0.5, 1.0, 0.5])
    nodes, routes = routes_of(graph, range(9))
    kind = dict(zip(nodes.tolist(), routes.type_of.tolist(), strict=True))
    assert kind[0] == kind[1]  # both always arrive unless they are ablated
    assert kind[3] == kind[4]
    assert len({kind[node] for node in (1, 2, 3, 5, 6, 8)}) == 6
    assert kind[7] == -1  # always ablated
    assert routes.copies.tolist() == [2, 1, 2, 1, 1, 1]


def test_the_lists_grow_with_the_number_of_routes():
    rng = np.random.default_rng(2)
    edges = [(hop, 0) for hop in range(1, 13)] + [(node, hop) for node in range(13, 53) for hop in range(1, 13)]
    edges.sort(key=lambda edge: edge[::-1])
    p_delete = rng.uniform(0.1, 0.9, size=len(edges)).tolist()
    graph = SmallGraph(53, 2, edges, range(len(edges)), p_delete, [0.5] * 53)
    nodes, routes = routes_of(graph, range(1, 53))
    assert routes.copies.tolist() == [1] * 52
    assert routes.hops.size == 12 + 40 * 12
    for node, kind in zip(nodes[1:].tolist(), routes.type_of[1:].tolist(), strict=True):
        for hop, miss in routes_of_kind(routes, kind).items():
            assert miss == (0.0 if node <= 12 else float(graph.deletes[node, hop + 1]))


@pytest.mark.parametrize("num_layers", [2, 3, 5])
def test_too_many_walks_are_given_up_and_leave_nothing_behind(num_layers):
    rng = np.random.default_rng([3, num_layers])
    edges = sorted(random_edges(rng, 8, 0.8, directed=True), key=lambda edge: edge[::-1])
    graph = SmallGraph(8, num_layers, edges, range(len(edges)), [0.3] * len(edges), [0.5] * 8)
    walker = make_walker(8, num_layers)
    _, complete = routes_of(graph, range(8), walker=walker)
    used = PLENTY - int(walker.steps_left[0])
    for max_steps in (0, 1, used // 2, used - 1):
        _, partial = routes_of(graph, range(8), max_steps=max_steps, walker=walker)
        assert partial.p_first.size == partial.copies.size == partial.hops.size == 0
        assert np.all(partial.type_of == -1)
    _, again = routes_of(graph, range(8), max_steps=used, walker=walker)
    for left, right in zip(complete, again, strict=True):
        assert np.array_equal(left, right)


def test_one_walker_serves_all_targets():
    rng = np.random.default_rng(4)
    adjacency = to_adjacency(random_edges(rng, 30, 0.15, directed=False), 30)
    p_delete, p_ablate = rng.random(adjacency.num_edges), rng.random(30)
    fields = receptive_fields(adjacency, range(30), num_layers=3)
    shared = make_walker(30, 3)
    for index in range(30):
        nodes = fields.nodes[fields.indptr[index] : fields.indptr[index + 1]]
        eligible = rng.random(nodes.size) < 0.7
        found = [
            find_routes(adjacency.indptr, adjacency.sources, p_delete, p_ablate, nodes, eligible, 3, PLENTY, walker)
            for walker in (shared, make_walker(30, 3))
        ]
        assert all(np.array_equal(left, right) for left, right in zip(*found, strict=True))
        assert_at_rest(shared)


@given(st.data())
def test_a_lower_bound_for_any_probabilities(data):
    num_nodes = data.draw(st.integers(2, 6))
    pairs = [(w, v) for v in range(num_nodes) for w in range(num_nodes) if w != v]
    edges = sorted(data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=14)), key=lambda edge: edge[::-1])
    probability = st.sampled_from([0.0, 1.0]) | st.floats(0, 1, allow_subnormal=False)
    p_delete = data.draw(st.lists(probability, min_size=len(edges), max_size=len(edges)))
    graph = SmallGraph(num_nodes, data.draw(st.integers(3, 5)), edges, range(len(edges)), p_delete, [0.5] * num_nodes)
    nodes, routes = routes_of(graph, range(1, num_nodes))
    oracle = TwoLevels(graph)
    for node, kind in zip(nodes[1:].tolist(), routes.type_of[1:].tolist(), strict=True):
        found = routes_of_kind(routes, kind) if kind >= 0 else {}
        for index, hop in enumerate(oracle.hops):
            if graph.deletes[hop, 0] < 1 and len(oracle.hops) not in found:
                assert Fraction(found.get(index, 1.0)) <= oracle.miss_hop[node, hop] + Fraction(2.0**-1070)
