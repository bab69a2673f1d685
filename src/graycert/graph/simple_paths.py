"""How many simple paths of each length lead from each node of a receptive field to its target.

Theorem 2 needs only these numbers. Up to four edges: count walks, subtract those that revisit a node. Longer paths
are enumerated.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._rounding import integers_up
from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer, check_targets
from graycert.errors import InvalidParameterError
from graycert.graph.adjacency import Adjacency
from graycert.graph.receptive_field import ReceptiveFields, receptive_fields, target_blocks

LONGEST_CLOSED_FORM = 4
DEFAULT_MAX_PATHS = 1_000_000  # about a hundredth of a second per target


@dataclass(frozen=True, eq=False)
class SimplePathCounts:
    """Numbers of simple paths, one row for each node of each receptive field.

    Args:
        targets: Node indices, shape (num_targets,).
        indptr: Rows of ``targets[i]`` are ``indptr[i]:indptr[i + 1]``, shape (num_targets + 1,).
        sources: Nodes of the receptive fields, each field sorted by (distance, node); the target itself comes first,
            at distance 0 and without paths.
        distances: Hops from source to target, same shape as ``sources``.
        counts: ``counts[j, l - 1]`` is the number of simple paths of l edges from ``sources[j]`` to its target,
            shape (num_sources, num_layers); exact up to 2^53, rounded up above.
        exact: Whether the counts of a target are numbers of simple paths; if not, those of five edges and more are
            numbers of walks, which are at least as large. Shape (num_targets,).
    """

    targets: IntArray
    indptr: IntArray
    sources: IntArray
    distances: IntArray
    counts: FloatArray
    exact: NDArray[np.bool_]

    @property
    def rows(self) -> IntArray:
        """Position in ``targets`` that each entry of ``sources`` belongs to."""
        return np.repeat(np.arange(self.targets.size), np.diff(self.indptr))


def count_simple_paths(
    adjacency: Adjacency, targets: ArrayLike, *, num_layers: int, max_paths: int = DEFAULT_MAX_PATHS
) -> SimplePathCounts:
    """Count the simple paths of 1..num_layers edges that end at each target.

    Guarantee:
        Counts are never too small. They are exact for paths of up to four edges, and for longer ones unless a target
        has more than ``max_paths`` simple paths; then walks that do not return to the target are counted, and
        ``exact`` is False for it. Bounds that rise with the counts (Theorems 2 and 3) stay valid.

    Args:
        adjacency: The graph.
        targets: Distinct node indices, shape (num_targets,).
        num_layers: Number of message-passing steps k, >= 1.
        max_paths: How many simple paths to enumerate per target before counting walks instead, >= 1; used only if
            ``num_layers`` > 4.

    Raises:
        InvalidParameterError: If an argument is out of range, or counts could overflow 64-bit integers.

    Example:
        >>> from graycert.graph.toy_graphs import shared_edge_graph
        >>> paths = count_simple_paths(shared_edge_graph(), [0], num_layers=3)
        >>> dict(zip(paths.sources.tolist(), paths.counts.tolist(), strict=True))[4]
        [0.0, 0.0, 2.0]

    References:
        Scholten et al. (2022), Theorem 2 (what is counted); docs/proofs/simple_paths.md (the formulae).
    """
    blocks = list(simple_path_blocks(adjacency, targets, num_layers=num_layers, max_paths=max_paths))
    sizes = np.concatenate([np.diff(block.indptr) for block in blocks])
    return SimplePathCounts(
        targets=np.concatenate([block.targets for block in blocks]),
        indptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        sources=np.concatenate([block.sources for block in blocks]),
        distances=np.concatenate([block.distances for block in blocks]),
        counts=np.concatenate([block.counts for block in blocks]),
        exact=np.concatenate([block.exact for block in blocks]),
    )


def simple_path_blocks(
    adjacency: Adjacency, targets: ArrayLike, *, num_layers: int, max_paths: int = DEFAULT_MAX_PATHS
) -> Iterator[SimplePathCounts]:
    """Yield the result of ``count_simple_paths`` for a few targets at a time, in order, in bounded memory.

    Besides numbers per node and edge of the graph, memory holds one block: ``BLOCK_ENTRIES`` nodes of receptive
    fields, or a single field if that is larger. Arguments and errors are those of ``count_simple_paths``.
    """
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    counter = SimplePathCounter(adjacency, num_layers=num_layers, max_paths=max_paths)
    for block in target_blocks(adjacency, targets, num_layers=num_layers):
        yield counter.count(receptive_fields(adjacency, block, num_layers=num_layers))


class SimplePathCounter:
    """Counts the simple paths within receptive fields of one graph; what all fields need of it is computed once.

    Args:
        adjacency: The graph.
        num_layers: Number of message-passing steps k, >= 1.
        max_paths: See `count_simple_paths`.

    Raises:
        InvalidParameterError: If an argument is out of range, or counts could overflow 64-bit integers.
    """

    def __init__(self, adjacency: Adjacency, *, num_layers: int, max_paths: int = DEFAULT_MAX_PATHS) -> None:
        self._adjacency = adjacency
        self._num_layers = check_integer("num_layers", num_layers, at_least=1)
        self._max_paths = check_integer("max_paths", max_paths, at_least=1)
        _check_no_overflow(adjacency, num_layers)
        from graycert.graph.short_paths import ClosedWalks  # Numba takes a while to load

        self._short = min(num_layers, LONGEST_CLOSED_FORM)
        self._closed = ClosedWalks.count(adjacency, length=self._short)

    def count(self, field: ReceptiveFields) -> SimplePathCounts:
        """Return the counts of some fields for k steps."""
        from graycert.graph.short_paths import count_short_paths

        counts = np.zeros((field.nodes.size, self._num_layers))
        integers = count_short_paths(self._adjacency, field, self._closed, length=self._short)
        counts[:, : self._short] = integers if integers.max() <= 2**53 else integers_up(integers)
        exact = np.ones(field.targets.size, dtype=np.bool_)
        if self._num_layers > self._short:
            from graycert.graph.path_enumeration import count_long_paths

            exact = count_long_paths(self._adjacency, field, counts, max_paths=self._max_paths)
        return SimplePathCounts(
            targets=field.targets,
            indptr=field.indptr,
            sources=field.nodes,
            distances=field.distances,
            counts=counts,
            exact=exact,
        )


def _check_no_overflow(adjacency: Adjacency, num_layers: int) -> None:
    """Refuse graphs whose intermediate sums could leave int64.

    With d the largest in-degree, walks of l edges between two nodes number at most d^(l - 1), closed ones at most
    d^(l - 1) too; the formulae add fewer than twelve terms of at most that size.
    """
    largest = int(np.diff(adjacency.indptr).max(initial=0))
    length = min(num_layers, LONGEST_CLOSED_FORM)
    if 12 * largest ** (length - 1) >= 2**63:
        raise InvalidParameterError(
            f"`num_layers` must be smaller for this graph, got {num_layers}: a node with {largest} in-neighbours has "
            "more paths than 64-bit integers can count. Use fewer layers or sparsify the graph."
        )
