"""The order of edges by (target, source), found by counting rather than comparing where they come sorted by source."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graycert._types import BoolArray


def order_by_target(
    edges: NDArray[Any] | tuple[NDArray[Any], NDArray[Any]], *, num_nodes: int
) -> NDArray[np.signedinteger] | None:
    """Return where each edge stands among the columns, in the order by (target, source); equal ones in their order.

    Args:
        edges: Integers, shape (2, num_edges), or two of shape (num_edges,): sources, then targets, in [0, num_nodes).
        num_nodes: Number of nodes.

    Returns:
        Shape (num_edges,), int32 where positions and nodes fit; None if the columns are in this order already.

    Example:
        >>> order_by_target(np.array([[1, 2, 2], [2, 2, 0]]), num_nodes=3).tolist()
        [2, 0, 1]
    """
    sources, targets = edges
    if not _falls(targets, sources).any():
        return None
    index: Any = np.int32 if max(num_nodes, sources.size) <= np.iinfo(np.int32).max else np.int64
    places: NDArray[Any] = np.arange(sources.size, dtype=index)
    if bool((sources[1:] < sources[:-1]).any()):
        places = np.argsort(sources, kind="stable").astype(index)
        targets = targets[places]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=num_nodes))]).astype(index)
    by_source = sp.csr_array((places, targets.astype(index), indptr), shape=(num_nodes, num_nodes))
    order: NDArray[np.signedinteger] = by_source.tocsc().data
    return order


def repeats(edges: tuple[NDArray[Any], NDArray[Any]]) -> BoolArray:
    """Return which edges join the same nodes as the one before them, shape (num_edges - 1,)."""
    sources, targets = edges
    same: BoolArray = sources[1:] == sources[:-1]
    same &= targets[1:] == targets[:-1]
    return same


def rises_strictly(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Return whether pairs are sorted, without repeats, by the first and, where these are equal, by the second."""
    return not bool((_falls(first, second) | repeats((first, second))).any())


def _falls(first: NDArray[Any], second: NDArray[Any]) -> BoolArray:
    falls: BoolArray = second[1:] < second[:-1]
    falls &= first[1:] == first[:-1]
    falls |= first[1:] < first[:-1]
    return falls
