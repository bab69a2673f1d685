"""Who votes on a target: the nodes that are closest to it by the structure alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._types import FloatArray, IntArray
from graycert.errors import InvalidParameterError
from graycert.graph import Adjacency
from graycert.smoothing.bounded_votes.largest import largest_first

Voters = NDArray[np.int32]
"""Nodes per target, heaviest first, padded with -1, int32, shape (num_targets, num_voters)."""


MOST_PLACES = 2**30
"""Of more places in a list of all in-neighbours none is made."""


def voters_by_edges(adjacency: Adjacency, targets: IntArray) -> Voters:
    """Return all in-neighbours of each target, the lowest first: however many there are, and no other node.

    Args:
        adjacency: The graph, whose edges are there once; loops do not count.
        targets: Node indices, shape (num_targets,).

    Raises:
        InvalidParameterError: If the list would have more than 2^30 places, as next to a very large hub.

    Example:
        >>> from graycert.graph.toy_graphs import path_graph
        >>> voters_by_edges(path_graph(4), np.array([0, 1]))
        array([[ 1, -1],
               [ 0,  2]], dtype=int32)
    """
    first, last = adjacency.indptr[targets], adjacency.indptr[targets + 1]
    most = max(int((last - first).max(initial=0)), 1)
    if targets.size * most > MOST_PLACES:
        raise InvalidParameterError(
            f"`targets` must have few enough in-neighbours together: {targets.size:,} targets, one with {most:,}, "
            "would need more than 2^30 places. Certify large hubs on their own."
        )
    places = first[:, None] + np.arange(most)
    there = places < last[:, None]
    chosen: Voters = np.full(places.shape, -1, dtype=np.int32)
    chosen[there] = adjacency.sources[places[there]]
    return chosen


def voters_by_walks(
    adjacency: Adjacency, targets: IntArray, *, num_voters: int, walk_length: int, decay: float
) -> Voters:
    r"""Return for each target the nodes with the largest truncated walk weight.

    $$t_v = \sum_{k=1}^{K} \beta^{k-1} \bigl[A (D^{-1} A)^{k-1}\bigr]_v, \qquad A_{vw} = [w \to v]$$

    Walks go from the target against the edges, as messages come to it. The target itself does not count; at a tie the
    lower index comes first. Computed in float64, in a fixed order.

    Args:
        adjacency: The graph.
        targets: Node indices, shape (num_targets,).
        num_voters: Most voters of a target, >= 1.
        walk_length: K >= 1.
        decay: β in (0, 1].

    Example:
        >>> from graycert.graph.toy_graphs import path_graph
        >>> voters_by_walks(path_graph(4), np.array([0]), num_voters=2, walk_length=2, decay=0.9)
        array([[1, 2]], dtype=int32)
    """
    chosen = _empty(adjacency, targets, num_voters)
    _choose_by_walks(adjacency.indptr, adjacency.sources, targets.copy(), walk_length, decay, chosen)
    return chosen


def voters_by_pagerank(
    adjacency: Adjacency, targets: IntArray, *, num_voters: int, decay: float, tolerance: float
) -> Voters:
    r"""Return for each target the nodes with the largest approximate personalised PageRank, for large graphs.

    The mass at a node is pushed while it is at least ``tolerance`` times its in-degree: a share 1 - β stays, the rest
    goes to its in-neighbours alike. The work per target is bounded by 1 / ((1 - β) · tolerance), whatever the size of
    the graph. Ranked by what has stayed and what the rest would leave at once; ties as in `voters_by_walks`.

    Args:
        adjacency: The graph.
        targets: Node indices, shape (num_targets,).
        num_voters: Most voters of a target, >= 1.
        decay: β in (0, 1).
        tolerance: Mass per in-degree that is no longer pushed, > 0.

    References:
        Andersen, Chung and Lang (2006); Bojchevski et al. (2020), PPRGo, for neighbours by PageRank.
    """
    chosen = _empty(adjacency, targets, num_voters)
    _choose_by_pushes(adjacency.indptr, adjacency.sources, targets.copy(), decay, tolerance, chosen)
    return chosen


def voters_by_weights(triples: FloatArray, targets: IntArray, *, num_nodes: int, num_voters: int) -> Voters:
    """Return for each target the nodes with the largest weights of the user's own, which must be positive.

    Args:
        triples: Target, node and weight of each entry, float64, shape (3, num_entries), sorted by target and node.
        targets: Node indices, shape (num_targets,).
        num_nodes: Number of nodes.
        num_voters: Most voters of a target, >= 1.
    """
    rows, nodes = triples[:2].astype(np.int64)
    weights = triples[2]
    kept = (rows != nodes) & (weights > 0)
    order = np.lexsort((nodes[kept], -weights[kept], rows[kept]))
    rows, nodes = rows[kept][order], nodes[kept][order]
    starts = np.searchsorted(rows, np.arange(num_nodes + 1))
    chosen = np.full((targets.size, min(num_voters, num_nodes)), -1, dtype=np.int32)
    for row, target in enumerate(targets.tolist()):
        found = nodes[starts[target] : starts[target + 1]][: chosen.shape[1]]
        chosen[row, : found.size] = found
    return chosen


def _empty(adjacency: Adjacency, targets: IntArray, num_voters: int) -> Voters:
    return np.full((targets.size, min(num_voters, adjacency.num_nodes)), -1, dtype=np.int32)


@kernel
def _choose_by_walks(
    indptr: IntArray, sources: IntArray, targets: IntArray, walk_length: int, decay: float, chosen: Voters
) -> None:
    size = indptr.size - 1
    total, now, after = np.zeros(size), np.zeros(size), np.zeros(size)
    touched, is_touched = np.empty(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
    active, following = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    is_following = np.zeros(size, dtype=np.bool_)
    for row in range(targets.size):
        active[0], num_active, num_touched = targets[row], 1, 0
        now[targets[row]], factor = 1.0, 1.0
        for _ in range(walk_length):
            num_following = 0
            for node in active[:num_active]:
                degree = indptr[node + 1] - indptr[node]
                for source in sources[indptr[node] : indptr[node + 1]]:
                    if not is_following[source]:
                        is_following[source] = True
                        following[num_following] = source
                        num_following += 1
                    after[source] += now[node] / degree
                now[node] = 0.0
            for node in following[:num_following]:
                if not is_touched[node]:
                    is_touched[node] = True
                    touched[num_touched] = node
                    num_touched += 1
                total[node] += factor * after[node]
                is_following[node] = False
            now, after = after, now
            active, following, num_active = following, active, num_following
            factor *= decay
        for node in active[:num_active]:
            now[node] = 0.0
        _choose_heaviest(touched[:num_touched], total, targets[row], chosen[row])
        for node in touched[:num_touched]:
            total[node], is_touched[node] = 0.0, False


@kernel
def _choose_by_pushes(
    indptr: IntArray, sources: IntArray, targets: IntArray, decay: float, tolerance: float, chosen: Voters
) -> None:
    size = indptr.size - 1
    total, rest = np.zeros(size), np.zeros(size)
    touched, is_touched = np.empty(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
    queue, is_queued = np.empty(size + 1, dtype=np.int64), np.zeros(size, dtype=np.bool_)
    for row in range(targets.size):
        target = targets[row]
        rest[target], queue[0], is_queued[target] = 1.0, target, True
        touched[0], is_touched[target], num_touched = target, True, 1
        first, last = 0, 1
        while first != last:
            node = queue[first]
            first = (first + 1) % queue.size
            is_queued[node] = False
            mass, degree = rest[node], indptr[node + 1] - indptr[node]
            rest[node] = 0.0
            total[node] += (1.0 - decay) * mass
            for source in sources[indptr[node] : indptr[node + 1]]:
                rest[source] += decay * mass / degree
                if not is_touched[source]:
                    is_touched[source] = True
                    touched[num_touched] = source
                    num_touched += 1
                enough = tolerance * max(indptr[source + 1] - indptr[source], 1)
                if not is_queued[source] and rest[source] >= enough:
                    is_queued[source] = True
                    queue[last] = source
                    last = (last + 1) % queue.size
        for node in touched[:num_touched]:
            total[node] += (1.0 - decay) * rest[node]
            rest[node] = 0.0
        _choose_heaviest(touched[:num_touched], total, target, chosen[row])
        for node in touched[:num_touched]:
            total[node], is_touched[node] = 0.0, False


@kernel
def _choose_heaviest(touched: IntArray, total: FloatArray, target: int, chosen: Any) -> None:
    """Write the touched nodes with the largest total, the target left out, heaviest first, into ``chosen``."""
    found, number = np.empty(touched.size, dtype=np.int64), 0
    for node in touched:
        if node != target and total[node] > 0.0:
            found[number] = node
            number += 1
    kept = np.empty(chosen.size, dtype=np.int64)
    for place in range(largest_first(found[:number], total, kept)):
        chosen[place] = kept[place]
