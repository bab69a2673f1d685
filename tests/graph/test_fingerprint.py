import numpy as np
import pytest

from graycert.errors import InvalidParameterError
from graycert.graph import Adjacency, adjacency_fingerprint, graph_fingerprint

EDGES = np.array([[0, 1, 2], [1, 2, 0]])
FEATURES = np.arange(6, dtype=np.float32).reshape(3, 2)
PINNED = "sha256:ee07d1f318b6d35d359f363c8d1d5e8d99a9bcdd012e4c9bfbe9c9d3c1b189d4"
PINNED_WITH_FEATURES = "sha256:a1e63b40a6fb44d0c80af834a19e47db61768b248356e05d64954e6249b21db9"


def test_edge_order_integer_type_and_memory_layout_do_not_matter():
    wanted = graph_fingerprint(EDGES, 3, FEATURES)
    assert wanted.startswith("sha256:")
    assert len(wanted) == len("sha256:") + 64
    assert graph_fingerprint(EDGES[:, ::-1].astype(np.int32), 3, np.asfortranarray(FEATURES)) == wanted
    assert graph_fingerprint(EDGES, 3, FEATURES.astype(">f4")) == wanted


def test_the_value_is_pinned():
    # Stored certificates name their graph by this value: a change breaks every one of them.
    assert graph_fingerprint(EDGES, 3, None) == PINNED
    assert graph_fingerprint(EDGES, 3, FEATURES) == PINNED_WITH_FEATURES


@pytest.mark.parametrize(
    ("edges", "num_nodes", "features"),
    [
        (EDGES[::-1], 3, FEATURES),
        (EDGES[:, :2], 3, FEATURES),
        (np.hstack([EDGES, [[0], [0]]]), 3, FEATURES),
        (np.hstack([EDGES, [[0], [1]]]), 3, FEATURES),
        (EDGES, 3, None),
        (EDGES, 3, FEATURES[::-1]),
        (EDGES, 3, FEATURES.astype(np.float64)),
        (EDGES, 3, FEATURES[:, :1]),
        (EDGES, 3, FEATURES + np.float32(1e-6)),
        (EDGES, 4, np.vstack([FEATURES, FEATURES[:1]])),
    ],
)
def test_any_change_of_the_graph_changes_it(edges, num_nodes, features):
    assert graph_fingerprint(edges, num_nodes, features) != graph_fingerprint(EDGES, 3, FEATURES)


def test_large_matrices_are_hashed_whole():
    features = np.zeros((10_000, 2))
    changed = features.copy()
    changed[9_999, 1] = 1
    empty = np.zeros((2, 0), dtype=np.int64)
    assert graph_fingerprint(empty, 10_000, features) != graph_fingerprint(empty, 10_000, changed)


@pytest.mark.parametrize(
    ("edges", "features", "words"),
    [
        ([[0, 3], [0, 1]], None, "`edge_index` must be < 3"),
        ([[0, 1]], None, "`edge_index` must have shape"),
        (EDGES, FEATURES[:2], "`features` must be numbers of shape"),
        (EDGES, np.array([["a"], ["b"], ["c"]]), "`features` must be numbers of shape"),
    ],
)
def test_malformed_input(edges, features, words):
    with pytest.raises(InvalidParameterError, match=words):
        graph_fingerprint(edges, 3, features)


def test_a_sorted_graph_has_the_fingerprint_of_its_list_of_edges(monkeypatch):
    random = np.random.default_rng(0)
    edges = np.unique(random.integers(30, size=(2, 200)), axis=1)
    edges = edges[:, edges[0] != edges[1]]
    graph = Adjacency.from_edge_index(edges[:, random.permutation(edges.shape[1])], num_nodes=30)
    expected = graph_fingerprint(edges, 30, None)
    assert adjacency_fingerprint(graph) == expected
    monkeypatch.setattr("graycert.graph.fingerprint._EDGES", 7)
    assert adjacency_fingerprint(graph) == expected
    assert adjacency_fingerprint(Adjacency.from_edge_index(edges, num_nodes=31)) != expected
    assert adjacency_fingerprint(Adjacency.from_edge_index(edges[:, 1:], num_nodes=30)) != expected
