"""Edges that come in pieces, as a long file is read, brought into the order and form that a prepared graph has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graycert.data.on_disk import new_array, pieces
from graycert.errors import InvalidFileError

Pieces = Callable[[], Iterator[tuple[NDArray[Any], NDArray[Any]]]]
"""Reads a file from its beginning: sources and targets of some edges, again and again."""


@dataclass(frozen=True, kw_only=True)
class EdgeFile:
    """A file of edges between numbered nodes.

    Args:
        name: What it is called in messages.
        num_nodes: Number of nodes.
        read: See `Pieces`; called twice.
    """

    name: str
    num_nodes: int
    read: Pieces

    def prepared(self, *, undirected: bool, drop_self_loops: bool, notes: list[str]) -> NDArray[np.int64]:
        """Return the edges sorted by (source, target), each once: what `prepare_graph` makes of them.

        Edges are counted per source in a first reading, and put in place in a second one: in memory are a column of
        targets, int32 where node numbers fit, and one byte per edge, then the same of the reverse edges, and of both;
        no list of pairs. The result lies on disk if it is large.

        Args:
            undirected: Add the reverse of every edge.
            drop_self_loops: Leave out edges from a node to itself.
            notes: Where what was done is added, in the words of `prepare_graph`.

        Returns:
            Shape (2, num_edges), row 0 = sources.

        Raises:
            InvalidFileError: If an edge names no node.
        """
        counts, loops = self._counts(drop_self_loops)
        matrix = self._placed(counts, drop_self_loops)
        listed = int(matrix.nnz)
        if loops:
            notes.append(f"dropped self-loops: {loops:,}")
        matrix.sum_duplicates()
        matrix.data[:] = 1
        if matrix.nnz < listed:
            notes.append(f"merged parallel edges: {listed - matrix.nnz:,}")
        if undirected:
            before = int(matrix.nnz)
            matrix = matrix + matrix.T.tocsr()
            if matrix.nnz > before:
                notes.append(f"made undirected: {before:,} became {matrix.nnz:,} directed edges")
            matrix.sort_indices()
        return _as_columns(matrix)

    def _counts(self, drop_self_loops: bool) -> tuple[NDArray[np.int64], int]:
        counts, loops = np.zeros(self.num_nodes, dtype=np.int64), 0
        for sources, targets in self.read():
            for ends in (sources, targets):
                if ends.size and not 0 <= int(ends.min()) <= int(ends.max()) < self.num_nodes:
                    wrong = int(ends.min()) if int(ends.min()) < 0 else int(ends.max())
                    raise InvalidFileError(
                        f"'{self.name}' must name nodes by numbers in [0, {self.num_nodes - 1}], as many as there are "
                        f"rows of features, got {wrong}."
                    )
            own = sources == targets
            counts += np.bincount(sources[~own] if drop_self_loops else sources, minlength=self.num_nodes)
            loops += int(own.sum()) if drop_self_loops else 0
        return counts, loops

    def _placed(self, counts: NDArray[np.int64], drop_self_loops: bool) -> sp.csr_array:
        number = int(counts.sum())
        index: Any = np.int32 if max(self.num_nodes, 2 * number) <= np.iinfo(np.int32).max else np.int64
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(index)
        found: NDArray[Any] = np.empty(number, dtype=index)
        free: NDArray[Any] = indptr[:-1].copy()
        for sources, targets in self.read():
            kept = sources != targets if drop_self_loops else slice(None)
            order = np.argsort(sources[kept], kind="stable")
            own, ends = sources[kept][order], targets[kept][order]
            first = np.searchsorted(own, own)
            found[free[own] + np.arange(own.size) - first] = ends
            free += np.bincount(own, minlength=self.num_nodes).astype(index)
        ones = np.ones(number, dtype=np.int8)
        return sp.csr_array((ones, found, indptr), shape=(self.num_nodes, self.num_nodes))


def _as_columns(matrix: sp.csr_array) -> NDArray[np.int64]:
    edges = new_array((2, int(matrix.nnz)), np.int64)
    degrees = np.diff(matrix.indptr)
    for rows in pieces(matrix.shape[0], 8 * max(1, int(matrix.nnz) // matrix.shape[0])):
        start, stop = int(matrix.indptr[rows.start]), int(matrix.indptr[rows.stop])
        edges[0, start:stop] = np.repeat(np.arange(rows.start, rows.stop), degrees[rows])
        edges[1, start:stop] = matrix.indices[start:stop]
    return edges
