"""A graph in the one order of edges that everything is computed and stored in: by (target, source)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graycert._types import BoolArray, FloatArray
from graycert.errors import InvalidParameterError
from graycert.graph.adjacency import Adjacency
from graycert.graph.conversion import as_adjacency, edge_list, simple_adjacency
from graycert.graph.edge_order import order_by_target, repeats
from graycert.graph.fingerprint import adjacency_fingerprint
from graycert.smoothing.interception.parameters import InterceptionSmoothing


@dataclass(frozen=True, kw_only=True, eq=False)
class CanonicalGraph:
    """A checked graph, and the order in which values per edge come, from where they are handed in to where they lie.

    Self-loops are included. The fingerprint of a graph does not know the order of columns, so neither may what is
    stored.

    Args:
        adjacency: The graph without self-loops, whose order is this one with self-loops left out.
        order: Which column of ``edge_index`` is where in this order, int32 where positions fit, shape (num_edges,).
        is_proper: Whether each edge in this order is no self-loop and the first between its nodes, shape (num_edges,).
        is_repeated: Whether each edge in this order joins the same nodes as the one before it, shape (num_edges,).
        handed_in: What values per edge are handed in for, in words; empty where they cannot be, because nothing says in
            which order they would come.
    """

    adjacency: Adjacency
    order: NDArray[np.signedinteger]
    is_proper: BoolArray
    is_repeated: BoolArray
    handed_in: str = "column of `edge_index`"

    @classmethod
    def of(cls, graph: Any, *, merge_parallel: bool = False) -> "CanonicalGraph":
        """Check and sort a graph.

        Args:
            graph: What ``as_adjacency`` takes. Values per edge are one per column of ``edge_index``, or per edge of an
                ``Adjacency`` in its order; a sparse matrix has none.
            merge_parallel: Merge parallel edges in ``adjacency`` rather than refuse them, for where no edge has a coin,
                or one for all edges between two nodes.

        Raises:
            InvalidParameterError: If its edges are malformed.
            UnsoundSetupError: ``parallel-edges``, unless they are merged.

        Example:
            >>> from types import SimpleNamespace
            >>> graph = CanonicalGraph.of(SimpleNamespace(edge_index=[[1, 2, 2], [2, 2, 0]], num_nodes=3))
            >>> graph.order, graph.proper(np.array([0.3, 0.1, 0.2]))
            (array([2, 0, 1], dtype=int32), array([0.3, 0.1]))
        """
        if isinstance(graph, Adjacency) or sp.issparse(graph):
            adjacency = as_adjacency(graph)
            everything = _as_they_are(adjacency.num_edges)
            return cls(
                adjacency=adjacency,
                order=everything,
                is_proper=np.broadcast_to(np.True_, everything.shape),
                is_repeated=np.broadcast_to(np.False_, everything.shape),
                handed_in="" if sp.issparse(graph) else "edge of the Adjacency",
            )
        edges, num_nodes = edge_list(graph)
        adjacency = simple_adjacency(edges, num_nodes=num_nodes) if merge_parallel else as_adjacency(graph)
        found = order_by_target(edges, num_nodes=adjacency.num_nodes)
        order = _as_they_are(edges.shape[1]) if found is None else found
        repeated, proper = (np.broadcast_to(value, order.shape) for value in (np.False_, np.True_))
        if adjacency.num_edges < order.size:
            sources, targets = edges[:, order]
            repeated = np.concatenate([[False], repeats((sources, targets))])
            proper = (sources != targets) & ~repeated
        return cls(adjacency=adjacency, order=order, is_proper=proper, is_repeated=repeated)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.adjacency.num_nodes

    @property
    def num_edges(self) -> int:
        """Number of directed edges, self-loops included."""
        return int(self.order.size)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the edges, self-loops left out."""
        return adjacency_fingerprint(self.adjacency)

    def sorted(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring values per column of ``edge_index`` into this order.

        Raises:
            InvalidParameterError: If there are more or fewer than columns, or the graph was a sparse matrix.
        """
        if not self.handed_in:
            raise InvalidParameterError(
                "`p_delete` must be a number if the graph is a sparse matrix, got one per edge. Pass PyTorch Geometric "
                "Data, or an Adjacency and probabilities in its order."
            )
        if values.shape != (self.num_edges,):
            raise InvalidParameterError(
                f"`p_delete` must be a number or have one entry per {self.handed_in} ({self.num_edges:,}), got "
                f"{values.size:,} entries. Was the graph prepared or split after they were chosen?"
            )
        in_order: NDArray[Any] = values[self.order]
        return in_order

    def proper(self, values: NDArray[Any]) -> NDArray[Any]:
        """Leave out self-loops and all but one of parallel edges: from this order to that of ``adjacency``.

        Raises:
            InvalidParameterError: If parallel edges, which share a coin, have different values.
        """
        differing = np.flatnonzero(values[1:][self.is_repeated[1:]] != values[:-1][self.is_repeated[1:]])
        if differing.size:
            place = int(np.flatnonzero(self.is_repeated)[differing[0]])
            raise InvalidParameterError(
                f"`p_delete` must be the same for parallel edges, which share a coin, got {values[place - 1]} and "
                f"{values[place]} for two edges between the same nodes. Give both the same probability."
            )
        return values[self.is_proper]

    def in_columns(self, values: NDArray[Any]) -> NDArray[Any]:
        """Undo `sorted`: from this order to the columns of ``edge_index``."""
        columns = np.empty_like(values)
        columns[self.order] = values
        return columns


def _as_they_are(number: int) -> NDArray[np.signedinteger]:
    index: Any = np.int32 if number <= np.iinfo(np.int32).max else np.int64
    places: NDArray[np.signedinteger] = np.arange(number, dtype=index)
    return places


def probability_arrays(adjacency: Adjacency, smoothing: InterceptionSmoothing) -> tuple[FloatArray, FloatArray]:
    """Return p_d per edge, float64 (num_edges,), and p_a per node, float64 (num_nodes,), in the order of ``adjacency``.

    Raises:
        InvalidParameterError: If an array has another length.
    """
    smoothing.check_lengths(num_edges=adjacency.num_edges, num_nodes=adjacency.num_nodes, edges="edge of the Adjacency")
    return (
        np.broadcast_to(np.asarray(smoothing.p_delete), (adjacency.num_edges,)).copy(),
        np.broadcast_to(np.asarray(smoothing.p_ablate), (adjacency.num_nodes,)).copy(),
    )
