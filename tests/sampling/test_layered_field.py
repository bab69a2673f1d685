"""The field of some targets, found a few edges at a time: what one look at all of them gives, for little memory."""

import tracemalloc

import numpy as np
import pytest

from graycert.sampling import layered_field as module
from graycert.sampling.layered_field import InEdges, layered_field


def random_edges(seed, *, num_nodes=60, num_edges=240):
    random = np.random.default_rng(seed)
    edges = np.unique(random.integers(num_nodes, size=(2, num_edges)), axis=1)
    return edges[:, random.permutation(edges.shape[1])], random.random(edges.shape[1]).astype(np.float32)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
def test_edges_are_sorted_by_receiver_and_sender(self_loops, weighted):
    edges, weights = random_edges(0)
    graph = InEdges.of(edges, num_nodes=60, self_loops=self_loops, weights=weights if weighted else None)
    listed = sorted(
        (target, source, weight)
        for source, target, weight in zip(*edges.tolist(), weights.tolist(), strict=True)
        if self_loops or source != target
    )
    assert graph.sources.tolist() == [source for _, source, _ in listed]
    assert graph.sources.dtype == np.int32
    assert np.diff(graph.indptr).tolist() == np.bincount([target for target, _, _ in listed], minlength=60).tolist()
    assert (graph.weights is None) == (not weighted)
    if weighted:
        assert graph.weights.tolist() == [weight for _, _, weight in listed]


@pytest.mark.parametrize("at_once", [1, 7, 2**20])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_field_is_that_of_its_definition(seed, num_layers, at_once, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    edges, weights = random_edges(seed)
    graph = InEdges.of(edges, num_nodes=60, self_loops=False, weights=weights)
    targets = np.random.default_rng(seed).permutation(60)[:5]
    field = layered_field(graph, targets, num_layers=num_layers)
    into = {node: graph.sources[graph.indptr[node] : graph.indptr[node + 1]].tolist() for node in range(60)}
    nodes, sizes, last = targets.tolist(), [5], targets.tolist()
    for _ in range(num_layers):
        last = sorted({source for node in last for source in into[node]} - set(nodes))
        nodes += last
        sizes.append(len(nodes))
    assert field.nodes.tolist() == nodes
    assert field.sizes.tolist() == sizes[::-1]
    assert graph.edge_ids(field.nodes).tolist() == [source * 60 + node for node in nodes for source in into[node]]
    place = {node: number for number, node in enumerate(nodes)}
    receivers = nodes[: sizes[-2]]
    assert field.sources.tolist() == [place[source] for node in receivers for source in into[node]]
    kept = [graph.weights[graph.indptr[node] : graph.indptr[node + 1]] for node in nodes]
    assert field.weights.tolist() == np.concatenate(kept).tolist()
    assert field.indptr.tolist() == np.cumsum([0, *(len(into[node]) for node in nodes)]).tolist()


@pytest.mark.parametrize("at_once", [1, 2**20])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_a_graph_numbered_as_the_field_is_has_the_same_edges_under_their_names(seed, num_layers, at_once, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    edges, weights = random_edges(seed)
    graph = InEdges.of(edges, num_nodes=60, self_loops=False, weights=weights)
    targets = np.random.default_rng(seed).permutation(60)[:5]
    field = layered_field(graph, targets, num_layers=num_layers)
    own, nodes = graph.renumbered(targets, num_layers=num_layers)
    assert nodes.tolist() == field.nodes.tolist()
    assert own.names[: nodes.size].tolist() == nodes.tolist()
    assert np.unique(own.names).size == own.names.size
    there = layered_field(own, np.arange(5), num_layers=num_layers)
    assert there.keeps_order
    for name in ("sizes", "indptr", "sources", "weights"):
        np.testing.assert_array_equal(getattr(there, name), getattr(field, name))
    assert np.shares_memory(there.sources, own.sources)
    assert np.shares_memory(there.weights, own.weights)
    assert own.edge_ids(there.nodes).tolist() == graph.edge_ids(field.nodes).tolist()
    some = layered_field(own, np.array([3, 1]), num_layers=num_layers)
    expected = layered_field(graph, targets[[3, 1]], num_layers=num_layers)
    assert set(own.names[some.nodes].tolist()) == set(expected.nodes.tolist())
    ids = own.edge_ids(some.nodes[: some.sizes[1]])
    assert ids.tolist() == [
        each for node in own.names[some.nodes[: some.sizes[1]]] for each in graph.edge_ids(np.array([node]))
    ]


def test_a_graph_in_this_order_is_left_as_it_is():
    edges, _ = random_edges(0)
    graph = InEdges.of(edges, num_nodes=60, self_loops=False)
    own, nodes = graph.renumbered(np.arange(60), num_layers=2)
    assert own is graph
    assert nodes.tolist() == list(range(60))


def test_a_target_without_edges_and_a_graph_without_edges():
    graph = InEdges.of(np.zeros((2, 0), dtype=np.int64), num_nodes=3, self_loops=False)
    field = layered_field(graph, np.array([2, 0]), num_layers=2)
    assert field.nodes.tolist() == [2, 0]
    assert field.sizes.tolist() == [2, 2, 2]
    assert field.num_edges == field.sources.size == graph.edge_ids(field.nodes).size == 0


def test_it_is_made_for_little_more_than_it_takes(monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 2**18)
    num_nodes = 2**17
    ring = np.arange(num_nodes)
    edges = np.concatenate([np.stack([(ring + step) % num_nodes, ring]) for step in range(1, 33)], axis=1)
    graph = InEdges.of(edges, num_nodes=num_nodes, self_loops=False)
    tracemalloc.start()
    try:
        field = layered_field(graph, ring[::-1], num_layers=2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    taken = sum(each.nbytes for each in (field.nodes, field.indptr, field.sources, field.weights))
    assert peak < taken + 2**24
    assert 2 * graph.sources.size * 8 > 2**25  # what one look at all edges would take besides
