"""The directed graph that bounds are computed on: validated once, immutable, sorted by target."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from graycert._types import IntArray
from graycert._validation import check_integer, check_integer_array
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph.edge_order import order_by_target, repeats, rises_strictly


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Edges source -> target without self-loops and without parallel edges.

    Self-loops are left out because a path that visits no node twice never uses one. Build with
    ``from_edge_index``; an undirected edge is given as its two directions.

    Args:
        num_nodes: Number of nodes n; nodes are 0..n-1.
        sources: Source of each edge, shape (num_edges,), sorted by (target, source).
        indptr: In-neighbours of v are ``sources[indptr[v]:indptr[v + 1]]``, shape (num_nodes + 1,).

    Raises:
        InvalidParameterError: If the two arrays do not describe such a graph.

    Example:
        >>> Adjacency.from_edge_index([[1, 2, 0], [0, 1, 0]], num_nodes=3).num_edges
        2
    """

    num_nodes: int
    sources: IntArray
    indptr: IntArray

    def __post_init__(self) -> None:
        """Check the invariants that every algorithm on the graph relies on, and freeze the arrays."""
        shapes_fit = self.indptr.shape == (self.num_nodes + 1,) and self.sources.ndim == 1
        if (
            not shapes_fit
            or (self.indptr[[0, -1]] != [0, self.sources.size]).any()
            or (self.indptr[1:] < self.indptr[:-1]).any()
        ):
            raise InvalidParameterError(
                "`sources` and `indptr` must describe one graph sorted by target, got arrays that do not fit each "
                "other. Build the graph with Adjacency.from_edge_index."
            )
        in_range = not self.sources.size or 0 <= self.sources.min() <= self.sources.max() < self.num_nodes
        targets = self.targets
        if not in_range or not rises_strictly(targets, self.sources) or np.any(self.sources == targets):
            raise InvalidParameterError(
                "`sources` must be nodes, sorted by (target, source), free of repeats and self-loops. Build the graph "
                "with Adjacency.from_edge_index."
            )
        for array in (self.sources, self.indptr):
            array.flags.writeable = False

    @classmethod
    def from_edge_index(cls, edge_index: ArrayLike, *, num_nodes: int) -> Self:
        """Build the graph from PyTorch Geometric's edge list.

        Args:
            edge_index: Integers, shape (2, num_edges): row 0 = source, row 1 = target, in any order.
            num_nodes: Number of nodes, >= 1.

        Raises:
            InvalidParameterError: If the shape, the type or a node index is wrong.
            UnsoundSetupError: ``parallel-edges``, if an edge other than a self-loop occurs twice.
        """
        num_nodes = check_integer("num_nodes", num_nodes, at_least=1)
        edges = check_integer_array(
            "edge_index",
            edge_index,
            ndim=2,
            at_least=0,
            less_than=num_nodes,
            hint=f"It holds node indices of a graph with {num_nodes} nodes: row 0 sources, row 1 targets.",
        )
        if edges.shape[0] != 2:
            raise InvalidParameterError(
                f"`edge_index` must have shape (2, num_edges), got {edges.shape}. Transpose a list of pairs."
            )
        proper = edges[0] != edges[1]
        edges = edges if proper.all() else edges[:, proper]
        order = order_by_target(edges, num_nodes=num_nodes)
        sources, targets = (each.copy() if order is None else each[order] for each in edges)
        repeated = np.flatnonzero(repeats((sources, targets)))
        if repeated.size:
            raise UnsoundSetupError(
                "parallel-edges",
                f"`edge_index` must hold every edge once, got edge ({sources[repeated[0]]}, {targets[repeated[0]]}) "
                "more than once. Each copy would be deleted by its own coin, so messages get through more often "
                "than the bound allows. Coalesce the graph, e.g. with graycert.prepare_graph.",
            )
        indptr = np.searchsorted(targets, np.arange(num_nodes + 1)).astype(np.int64)
        return cls(num_nodes=num_nodes, sources=sources, indptr=indptr)

    @property
    def targets(self) -> IntArray:
        """Target of each edge, shape (num_edges,): not kept, but made each time."""
        found: IntArray = np.repeat(np.arange(self.num_nodes), np.diff(self.indptr))
        found.flags.writeable = False
        return found

    @property
    def num_edges(self) -> int:
        """Number of directed edges, self-loops not counted."""
        return int(self.sources.size)

    def to_csr(self) -> sp.csr_array:
        """Return A with A[w, v] = 1 for each edge w -> v, int64, shape (num_nodes, num_nodes)."""
        ones = np.ones(self.num_edges, dtype=np.int64)
        shape = (self.num_nodes, self.num_nodes)
        return sp.csc_array((ones, self.sources, self.indptr), shape=shape).tocsr()

    def in_neighbors(self, node: int) -> IntArray:
        """Return the sorted sources of edges into ``node``."""
        node = check_integer("node", node, at_least=0, at_most=self.num_nodes - 1)
        return self.sources[self.indptr[node] : self.indptr[node + 1]]
