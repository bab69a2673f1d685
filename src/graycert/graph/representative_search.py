"""Depth-first search through reduced representatives: every one once, and no branch without any."""

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._types import IntArray

Flags = NDArray[np.bool_]


@kernel
def count_representatives(indptr: IntArray, sources: IntArray, num_kept: int, hops: int, limit: int) -> IntArray:
    """Return how many representatives there are, and how many members they have together; stop after ``limit``.

    Args:
        indptr: In-neighbours of position u are ``sources[indptr[u]:indptr[u + 1]]``, shape (num_field + 1,).
        sources: Positions in the field; the target has position 0.
        num_kept: Number k of further nodes that stay, <= num_field - 1.
        hops: A kept node counts as connected up to this distance inside the kept set.
        limit: Largest number of representatives to look at.
    """
    nothing = np.empty(0, dtype=np.int64)
    return _search(indptr, sources, num_kept, hops, limit, False, nothing, nothing, nothing, nothing)


@kernel
def fill_representatives(
    indptr: IntArray,
    sources: IntArray,
    num_kept: int,
    hops: int,
    class_indptr: IntArray,
    members: IntArray,
    distances: IntArray,
    frontier_sizes: IntArray,
) -> None:
    """Write the first ``frontier_sizes.size`` representatives: members by distance, distances, in-neighbours outside.

    Representative i takes ``class_indptr[i]:class_indptr[i + 1]`` of ``members`` and ``distances``.
    """
    class_indptr[0] = 0
    limit = frontier_sizes.size
    _search(indptr, sources, num_kept, hops, limit, True, class_indptr, members, distances, frontier_sizes)


@kernel
def _search(
    indptr: IntArray,
    sources: IntArray,
    num_kept: int,
    hops: int,
    limit: int,
    store: bool,
    class_indptr: IntArray,
    members: IntArray,
    distances: IntArray,
    frontier_sizes: IntArray,
) -> IntArray:
    """Walk through all S; ``listed`` holds what can join S, in the order in which it came up.

    S takes nodes of this list from left to right, so each S is built in one order only. A node that was passed over is
    excluded from the branch. It stays an in-neighbour as S grows, so the kept sets of the branch are those that
    contain S and avoid the excluded nodes: there is one iff k nodes are left.
    """
    num_field = indptr.size - 1
    most_outside = num_field - 1 - num_kept
    chosen, is_listed = np.zeros(num_field, dtype=np.bool_), np.zeros(num_field, dtype=np.bool_)
    order, distance = np.empty(num_field, dtype=np.int64), np.full(num_field, -1, dtype=np.int64)
    listed = np.empty(num_field, dtype=np.int64)
    added, following = np.zeros(num_kept + 1, dtype=np.int64), np.zeros(num_kept + 1, dtype=np.int64)
    num_listed = np.zeros(num_kept + 1, dtype=np.int64)
    found = np.zeros(2, dtype=np.int64)
    is_listed[0] = True  # the target is in S from the beginning
    depth, entering = 0, True
    needs_distances = store or hops < num_field
    while depth >= 0 and found[0] < limit:
        if entering:
            chosen[added[depth]] = True
            before = num_listed[depth - 1] if depth else 0
            if needs_distances:
                num_listed[depth] = _explore(
                    indptr, sources, hops, added[: depth + 1], chosen, order, distance, listed, is_listed, before
                )
            else:
                num_listed[depth] = _append_sources(indptr, sources, added[depth], listed, is_listed, before)
            num_outside = num_listed[depth] - depth
            if num_outside <= most_outside:
                start, stop = found[1], found[1] + depth + 1
                if store:
                    for place in range(depth + 1):
                        members[start + place], distances[start + place] = order[place], distance[order[place]]
                    class_indptr[found[0] + 1], frontier_sizes[found[0]] = stop, num_outside
                found[0], found[1] = found[0] + 1, stop
        place = following[depth]
        if depth < num_kept and place < num_listed[depth] and place - depth <= most_outside:
            following[depth] = place + 1
            depth += 1
            added[depth], following[depth] = listed[place], place + 1
            entering = True
        else:
            chosen[added[depth]] = False
            if depth:
                for node in listed[num_listed[depth - 1] : num_listed[depth]]:
                    is_listed[node] = False
            depth -= 1
            entering = False
    return found


@kernel
def _explore(
    indptr: IntArray,
    sources: IntArray,
    hops: int,
    added: IntArray,
    chosen: Flags,
    order: IntArray,
    distance: IntArray,
    listed: IntArray,
    is_listed: Flags,
    num_listed: int,
) -> int:
    """Measure distances to the target inside S, append in-neighbours that came up; return the new length of the list.

    In-neighbours of nodes at distance ``hops`` are no part: if they were kept, they would not be connected.
    """
    for node in added:
        distance[node] = -1
    order[0], distance[0] = 0, 0
    start, stop = 0, 1
    while start < stop:
        node = order[start]
        start += 1
        if distance[node] == hops:
            continue
        num_listed = _append_sources(indptr, sources, node, listed, is_listed, num_listed)
        for source in sources[indptr[node] : indptr[node + 1]]:
            if chosen[source] and distance[source] == -1:
                distance[source] = distance[node] + 1
                order[stop] = source
                stop += 1
    return num_listed


@kernel
def _append_sources(
    indptr: IntArray, sources: IntArray, node: int, listed: IntArray, is_listed: Flags, num_listed: int
) -> int:
    """Append in-neighbours of ``node`` that came up for the first time; return the new length of the list."""
    for source in sources[indptr[node] : indptr[node + 1]]:
        if not is_listed[source]:
            is_listed[source] = True
            listed[num_listed] = source
            num_listed += 1
    return num_listed
