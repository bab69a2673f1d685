import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.graph import Adjacency, graph_fingerprint
from graycert.graph import fingerprint as fingerprints
from graycert.graph.edge_order import order_by_target, rises_strictly


@st.composite
def edge_lists(draw):
    num_nodes = draw(st.integers(1, 6))
    node = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=30))
    by = draw(st.sampled_from([None, lambda pair: pair[0], lambda pair: pair, lambda pair: pair[::-1]]))
    pairs = pairs if by is None else sorted(pairs, key=by)
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T, num_nodes


@given(edge_lists())
def test_the_order_is_that_of_sorting_by_comparison_also_among_equal_edges(given_edges):
    edges, num_nodes = given_edges
    expected = np.lexsort((edges[0], edges[1]))
    order = order_by_target(edges, num_nodes=num_nodes)
    assert (order is None) == np.array_equal(expected, np.arange(expected.size))
    if order is not None:
        assert order.tolist() == expected.tolist()


@given(edge_lists())
def test_pairs_rise_strictly_where_their_keys_do(given_edges):
    (sources, targets), num_nodes = given_edges
    assert rises_strictly(targets, sources) == bool((np.diff(targets * num_nodes + sources) > 0).all())


@given(edge_lists())
def test_the_fingerprint_is_the_hash_of_all_sorted_edges_at_once(given_edges):
    edges, num_nodes = given_edges
    ordered = edges[:, np.lexsort((edges[0], edges[1]))]
    head = f"graycert graph 1; nodes {num_nodes}; edges {edges.shape[1]};".encode()
    whole = hashlib.sha256(head + np.ascontiguousarray(ordered, dtype="<i8").tobytes() + b"no features").hexdigest()
    assert graph_fingerprint(edges, num_nodes, None) == f"sha256:{whole}"


def test_the_fingerprint_does_not_depend_on_the_parts_that_are_hashed(monkeypatch):
    edges = np.random.default_rng(0).integers(9, size=(2, 50))
    whole = graph_fingerprint(edges, 9, None)
    monkeypatch.setattr(fingerprints, "_EDGES", 7)
    assert graph_fingerprint(edges, 9, None) == whole


def test_the_arrays_of_a_graph_are_its_own():
    edges = np.array([[1, 2], [0, 0]])  # sorted already
    graph = Adjacency.from_edge_index(edges, num_nodes=3)
    edges[0, 0] = 2
    assert graph.sources.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        graph.sources[0] = 0
