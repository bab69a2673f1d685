"""What users hand in as a graph, turned into an Adjacency."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graycert.errors import InvalidParameterError
from graycert.graph.adjacency import Adjacency


def as_adjacency(graph: Any) -> Adjacency:
    """Return the graph as an ``Adjacency``.

    Args:
        graph: An ``Adjacency``; a square SciPy sparse matrix or array with a nonzero entry [w, v] for each edge
            w -> v; or an object with ``edge_index`` (shape (2, num_edges), array or tensor on any device) and
            ``num_nodes``, such as PyTorch Geometric's ``Data``.

    Raises:
        InvalidParameterError: If it is none of these, or its edges are malformed.
        UnsoundSetupError: ``parallel-edges``, see ``Adjacency.from_edge_index``.

    Example:
        >>> as_adjacency(sp.csr_array([[0, 1], [0, 0]])).sources
        array([0])
    """
    if isinstance(graph, Adjacency):
        return graph
    if sp.issparse(graph):
        return _from_sparse(graph)
    edge_index, num_nodes = edge_list(graph)
    return Adjacency.from_edge_index(edge_index, num_nodes=num_nodes)


def edge_list(graph: Any) -> tuple[NDArray[Any], Any]:
    """Return ``edge_index`` as an array, as it is, and ``num_nodes`` of a graph that has both.

    Raises:
        InvalidParameterError: If it does not have both.
    """
    edge_index = getattr(graph, "edge_index", None)
    num_nodes = getattr(graph, "num_nodes", None)
    if edge_index is None or num_nodes is None:
        raise InvalidParameterError(
            "`graph` must be an Adjacency, a SciPy sparse matrix, or have `edge_index` and `num_nodes` "
            f"(PyTorch Geometric Data), got {type(graph).__name__}."
        )
    return as_array(edge_index), num_nodes


def simple_adjacency(edge_index: Any, *, num_nodes: int) -> Adjacency:
    """Return the graph with parallel edges merged, which changes no distance; for where no edge has a coin to repeat.

    Args:
        edge_index: Array or tensor of shape (2, num_edges).
        num_nodes: Number of nodes.
    """
    return Adjacency.from_edge_index(np.unique(as_array(edge_index), axis=1), num_nodes=num_nodes)


def as_array(values: Any) -> NDArray[Any]:
    """Return an array, or a tensor on any device, as an array; torch itself is not imported here."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _from_sparse(matrix: Any) -> Adjacency:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidParameterError(
            f"`graph` must be a square matrix of shape (num_nodes, num_nodes), got {matrix.shape}."
        )
    canonical = sp.coo_array(matrix.tocsr(copy=True))  # a copy, because summing entries would change the user's
    canonical.sum_duplicates()
    present = canonical.data != 0
    edge_index = np.stack([canonical.row[present], canonical.col[present]]).astype(np.int64)
    return Adjacency.from_edge_index(edge_index, num_nodes=int(matrix.shape[0]))
