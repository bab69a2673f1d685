"""Probabilities per edge follow the edges: from the columns of ``edge_index`` to the orders that others use."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from graycert._types import FloatArray, IntArray
from graycert.errors import InvalidParameterError
from graycert.graph.adjacency import Adjacency
from graycert.graph.conversion import as_adjacency, edge_list
from graycert.smoothing.interception.parameters import InterceptionSmoothing


def smoothing_on(graph: Any, smoothing: InterceptionSmoothing) -> InterceptionSmoothing:
    """Return the smoothing with p_d in the order of ``as_adjacency(graph)``, as bounds and arrival records need it.

    Args:
        graph: What ``as_adjacency`` takes.
        smoothing: An array of p_d has one entry per column of ``graph.edge_index``, or per edge of an ``Adjacency`` in
            its order; for a sparse matrix it must be a number. An array of p_a has one entry per node.

    Returns:
        The same object if p_d and p_a are numbers.

    Raises:
        InvalidParameterError: If an array has another length.

    Example:
        >>> from types import SimpleNamespace
        >>> graph = SimpleNamespace(edge_index=[[1, 2, 2], [2, 2, 0]], num_nodes=3)
        >>> smoothing_on(graph, InterceptionSmoothing(p_delete=[0.1, 0.2, 0.3], p_ablate=0.5)).p_delete
        array([0.3, 0.1])
    """
    if smoothing.is_uniform:
        return smoothing
    if isinstance(graph, Adjacency):
        smoothing.check_lengths(num_edges=graph.num_edges, num_nodes=graph.num_nodes, edges="edge of the Adjacency")
        return smoothing
    if sp.issparse(graph):
        if not isinstance(smoothing.p_delete, float):
            raise InvalidParameterError(
                "`p_delete` must be a number if the graph is a sparse matrix, got one per edge. Pass PyTorch Geometric "
                "Data, or an Adjacency and probabilities in its order."
            )
        smoothing.check_lengths(num_edges=0, num_nodes=as_adjacency(graph).num_nodes)
        return smoothing
    edges = _checked_edges(graph, smoothing)
    if isinstance(smoothing.p_delete, float):
        return smoothing
    proper = np.flatnonzero(edges[0] != edges[1])
    order = proper[_stored_order(edges[:, proper])]
    return InterceptionSmoothing(p_delete=smoothing.p_delete[order], p_ablate=smoothing.p_ablate)


def probability_arrays(adjacency: Adjacency, smoothing: InterceptionSmoothing) -> tuple[FloatArray, FloatArray]:
    """Return p_d per edge, float64 (num_edges,), and p_a per node, float64 (num_nodes,), of a smoothing in that order.

    Raises:
        InvalidParameterError: If an array has another length.
    """
    smoothing = smoothing_on(adjacency, smoothing)
    return (
        np.broadcast_to(np.asarray(smoothing.p_delete), (adjacency.num_edges,)).copy(),
        np.broadcast_to(np.asarray(smoothing.p_ablate), (adjacency.num_nodes,)).copy(),
    )


def smoothing_in_stored_order(graph: Any, smoothing: InterceptionSmoothing) -> InterceptionSmoothing:
    """Return the smoothing as results store it: p_d by (target, source) of the edges, self-loops included.

    The fingerprint of a graph does not know the order of its columns, so a stored array must not depend on it.

    Args:
        graph: Has ``edge_index`` and ``num_nodes``.
        smoothing: An array of p_d has one entry per column of ``graph.edge_index``.

    Raises:
        InvalidParameterError: If an array has another length.
    """
    if smoothing.is_uniform:
        return smoothing
    edges = _checked_edges(graph, smoothing)
    if isinstance(smoothing.p_delete, float):
        return smoothing
    return InterceptionSmoothing(p_delete=smoothing.p_delete[_stored_order(edges)], p_ablate=smoothing.p_ablate)


def smoothing_from_stored_order(graph: Any, stored: InterceptionSmoothing) -> InterceptionSmoothing:
    """Undo ``smoothing_in_stored_order`` for a graph whose columns may come in another order than when it was stored.

    Raises:
        InvalidParameterError: If an array has another length.
    """
    if stored.is_uniform:
        return stored
    edges = _checked_edges(graph, stored)
    if isinstance(stored.p_delete, float):
        return stored
    p_delete = np.empty(edges.shape[1])
    p_delete[_stored_order(edges)] = stored.p_delete
    return InterceptionSmoothing(p_delete=p_delete, p_ablate=stored.p_ablate)


def _stored_order(edges: IntArray) -> IntArray:
    return np.lexsort((edges[0], edges[1]))


def _checked_edges(graph: Any, smoothing: InterceptionSmoothing) -> IntArray:
    """Return ``edge_index`` if the arrays of the smoothing fit it."""
    edges, num_nodes = edge_list(graph)
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise InvalidParameterError(f"`edge_index` must have shape (2, num_edges), got {edges.shape}.")
    smoothing.check_lengths(num_edges=edges.shape[1], num_nodes=int(num_nodes))
    return edges
