import numpy as np
import pytest
import scipy.sparse as sp

from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import Adjacency, as_adjacency


def test_edges_are_sorted_by_target_and_self_loops_dropped():
    graph = Adjacency.from_edge_index([[2, 1, 0, 3, 3], [0, 0, 0, 3, 1]], num_nodes=4)
    assert graph.sources.tolist() == [1, 2, 3]
    assert graph.targets.tolist() == [0, 0, 1]
    assert graph.indptr.tolist() == [0, 2, 3, 3, 3]
    assert graph.num_edges == 3
    assert [graph.in_neighbors(v).tolist() for v in range(4)] == [[1, 2], [3], [], []]


def test_csr_has_a_one_at_source_target():
    dense = Adjacency.from_edge_index([[2, 0], [0, 1]], num_nodes=3).to_csr()
    assert dense.dtype == np.int64
    assert dense.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


def test_a_graph_without_edges_is_a_graph():
    graph = Adjacency.from_edge_index(np.zeros((2, 0)), num_nodes=2)
    assert graph.num_edges == 0
    assert graph.to_csr().shape == (2, 2)


def test_arrays_cannot_be_changed():
    graph = Adjacency.from_edge_index([[1], [0]], num_nodes=2)
    for array in (graph.sources, graph.targets, graph.indptr):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_the_users_edge_index_is_neither_changed_nor_frozen():
    edges = np.array([[1, 2], [0, 1]])
    Adjacency.from_edge_index(edges, num_nodes=3)
    edges[0, 0] = 2
    assert edges.tolist() == [[2, 2], [0, 1]]


def test_parallel_edges_are_refused_with_their_slug():
    with pytest.raises(UnsoundSetupError, match=r"edge \(1, 0\) more than once") as error:
        Adjacency.from_edge_index([[1, 2, 1], [0, 0, 0]], num_nodes=3)
    assert error.value.slug == "parallel-edges"


def test_repeated_self_loops_are_harmless():
    assert Adjacency.from_edge_index([[0, 0, 1], [0, 0, 0]], num_nodes=2).num_edges == 1


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "words"),
    [
        ([[0, 3], [1, 0]], 3, "`edge_index` must be < 3, got 3"),
        ([[0, -1], [1, 0]], 3, "`edge_index` must be >= 0, got -1"),
        ([[0.0, 1.0], [1.0, 0.0]], 3, "`edge_index` must hold integers"),
        ([[True], [False]], 3, "`edge_index` must hold integers"),
        ([0, 1], 3, "`edge_index` must have 2 axes"),
        ([[0, 1], [1, 0], [1, 2]], 3, r"`edge_index` must have shape \(2, num_edges\)"),
        ([[0], [1]], 0, "`num_nodes` must be >= 1"),
        ([[0], [1]], 2.0, "`num_nodes` must be an integer"),
    ],
)
def test_malformed_edges_are_refused(edge_index, num_nodes, words):
    with pytest.raises(InvalidParameterError, match=words):
        Adjacency.from_edge_index(edge_index, num_nodes=num_nodes)


@pytest.mark.parametrize(
    ("sources", "indptr"),
    [
        ([2, 1], [0, 2, 2, 2]),  # not sorted by source
        ([1, 1], [0, 2, 2, 2]),  # repeated
        ([0], [0, 1, 1, 1]),  # self-loop
        ([5], [0, 1, 1, 1]),  # no such node
        ([-1], [0, 1, 1, 1]),
        ([1], [0, 1, 1]),  # too short
        ([[1]], [0, 1, 1, 1]),  # too many axes
        ([1, 2], [1, 2, 2, 2]),  # not from the first edge
        ([1, 2], [0, 1, 1, 1]),  # not to the last edge
        ([1, 2], [0, 2, 1, 2]),  # falling
    ],
)
def test_the_constructor_checks_its_invariants(sources, indptr):
    with pytest.raises(InvalidParameterError, match="from_edge_index"):
        Adjacency(num_nodes=3, sources=np.array(sources), indptr=np.array(indptr))


def test_ends_of_edges_are_not_kept_twice():
    graph = Adjacency.from_edge_index([[2, 0, 1, 3], [0, 2, 2, 2]], num_nodes=4)
    assert graph.targets.tolist() == [0, 2, 2, 2]
    assert sum(each.nbytes for each in vars(graph).values() if isinstance(each, np.ndarray)) == 8 * (4 + 5)


@pytest.mark.parametrize("node", [-1, 3])
def test_in_neighbors_of_no_node(node):
    with pytest.raises(InvalidParameterError, match="`node` must be in"):
        Adjacency.from_edge_index([[1], [0]], num_nodes=3).in_neighbors(node)


class Graph:
    def __init__(self, edge_index, num_nodes):
        self.edge_index, self.num_nodes = edge_index, num_nodes


class DeviceTensor:
    """Behaves like a tensor on a GPU: NumPy can read it only after detach and cpu."""

    def __init__(self, values, on_cpu=False):
        self.values, self.on_cpu = values, on_cpu

    def detach(self):
        return self

    def cpu(self):
        return DeviceTensor(self.values, on_cpu=True)

    def __array__(self, dtype=None, copy=None):
        assert self.on_cpu
        return np.array(self.values, dtype=dtype)


def test_all_forms_of_one_graph_agree():
    edges = [[2, 1, 0], [0, 0, 1]]
    matrix = sp.coo_matrix((np.ones(3), edges), shape=(3, 3))
    wanted = Adjacency.from_edge_index(edges, num_nodes=3)
    forms = [
        wanted,
        matrix,
        matrix.tocsr(),
        sp.csc_array(matrix),
        Graph(np.array(edges), 3),
        Graph(DeviceTensor(edges), 3),
    ]
    for form in forms:
        graph = as_adjacency(form)
        assert graph.sources.tolist() == wanted.sources.tolist()
        assert graph.targets.tolist() == wanted.targets.tolist()


def test_a_matrix_with_stored_zeros_and_split_entries():
    matrix = sp.coo_array(([1.0, 1.0, 0.0], ([1, 1, 2], [0, 0, 0])), shape=(3, 3))
    assert as_adjacency(matrix).sources.tolist() == [1]
    assert matrix.nnz == 3  # the user's matrix is left alone


@pytest.mark.parametrize("graph", [None, np.eye(3), Graph(None, 3), Graph(np.zeros((2, 0), int), None)])
def test_what_is_no_graph(graph):
    with pytest.raises(InvalidParameterError, match="`graph` must be an Adjacency"):
        as_adjacency(graph)


def test_a_matrix_that_is_not_square():
    with pytest.raises(InvalidParameterError, match="square"):
        as_adjacency(sp.csr_array((2, 3)))
