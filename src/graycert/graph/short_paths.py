"""Simple paths of up to four edges from numbers of walks; the derivation is in docs/proofs/simple_paths.md.

A target is handled on its own, in memory for its field: walks that do not return to the target are counted by
pushing numbers backwards along edges, and the ones that meet any other node twice are subtracted.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from graycert._compilation import kernel
from graycert._types import IntArray
from graycert.graph.adjacency import Adjacency
from graycert.graph.receptive_field import ReceptiveFields


@dataclass(frozen=True, eq=False)
class ClosedWalks:
    """Closed walks of two and three edges: what turns numbers of walks into numbers of paths.

    Args:
        pairs_of_edge: How many closed walks of two edges start with each edge: 1 if its reverse exists, else 0,
            shape (num_edges,); zeros if ``length`` is at most 2.
        pairs: Number of closed walks of two edges that start at each node, shape (num_nodes,).
        triples_of_edge: How many closed walks of three edges start with each edge; zeros if ``length`` is at most 3.
        triples: Number of closed walks of three edges that start at each node.
    """

    pairs_of_edge: IntArray
    pairs: IntArray
    triples_of_edge: IntArray
    triples: IntArray

    @classmethod
    def count(cls, adjacency: Adjacency, *, length: int) -> Self:
        """Count what paths of up to ``length`` edges need."""
        pairs, triples = np.zeros((2, adjacency.num_edges), dtype=np.int64)
        if length >= 3:
            out = adjacency.to_csr()
            out_indptr, receivers = out.indptr.astype(np.int64), out.indices.astype(np.int64)
            _close(
                adjacency.indptr,
                adjacency.sources,
                adjacency.targets,
                out_indptr,
                receivers,
                pairs,
                triples,
                length >= 4,
            )
        return cls(
            pairs_of_edge=pairs,
            pairs=_sum_at_source(adjacency, pairs),
            triples_of_edge=triples,
            triples=_sum_at_source(adjacency, triples),
        )


def count_short_paths(adjacency: Adjacency, field: ReceptiveFields, closed: ClosedWalks, *, length: int) -> IntArray:
    """Return the numbers of simple paths of 1..length edges, int64, shape (num_entries_of_field, length).

    Args:
        adjacency: The graph.
        field: Receptive fields for ``length`` layers or more.
        closed: Closed walks of the graph, counted for this ``length``.
        length: Longest paths to count, in 1..4.
    """
    counts = np.zeros((field.nodes.size, length), dtype=np.int64)
    _fill(
        adjacency.indptr,
        adjacency.sources,
        closed.pairs_of_edge,
        closed.pairs,
        closed.triples_of_edge,
        closed.triples,
        field.indptr,
        field.nodes,
        field.distances,
        counts,
    )
    return counts


def _sum_at_source(adjacency: Adjacency, numbers: IntArray) -> IntArray:
    totals = np.zeros(adjacency.num_nodes, dtype=np.int64)
    np.add.at(totals, adjacency.sources, numbers)
    return totals


@kernel
def _fill(
    indptr: IntArray,
    sources: IntArray,
    pairs_of_edge: IntArray,
    pairs: IntArray,
    triples_of_edge: IntArray,
    triples: IntArray,
    field_indptr: IntArray,
    nodes: IntArray,
    distances: IntArray,
    counts: IntArray,
) -> None:
    length = counts.shape[1]
    slot = np.empty(indptr.size - 1, dtype=np.int64)  # where a node of the field stands in it
    for row in range(field_indptr.size - 1):
        part = slice(field_indptr[row], field_indptr[row + 1])
        field, found = nodes[part], counts[part]
        for position in range(field.size):
            slot[field[position]] = position
        _count_walks(indptr, sources, field, distances[part], slot, found)
        if length >= 3:
            _subtract_from_three(indptr, sources, pairs_of_edge, pairs, field, slot, found)
        if length == 4:
            _subtract_from_four(indptr, sources, pairs_of_edge, pairs, triples_of_edge, triples, field, slot, found)


@kernel
def _count_walks(
    indptr: IntArray, sources: IntArray, field: IntArray, hops: IntArray, slot: IntArray, found: IntArray
) -> None:
    """Count the walks to the target v, ``field[0]``, that do not visit it before their end."""
    for source in sources[indptr[field[0]] : indptr[field[0] + 1]]:
        found[slot[source], 0] = 1
    for column in range(1, found.shape[1]):
        for position in range(1, field.size):
            if hops[position] > column:
                break
            walks = found[position, column - 1]
            if walks:
                node = field[position]
                for source in sources[indptr[node] : indptr[node + 1]]:
                    found[slot[source], column] += walks
        found[0, column] = 0


@kernel
def _subtract_from_three(
    indptr: IntArray,
    sources: IntArray,
    pairs_of_edge: IntArray,
    pairs: IntArray,
    field: IntArray,
    slot: IntArray,
    found: IntArray,
) -> None:
    """Subtract the walks w -> x -> w -> v."""
    for edge in range(indptr[field[0]], indptr[field[0] + 1]):
        node = sources[edge]
        found[slot[node], 2] -= pairs[node] - pairs_of_edge[edge]


@kernel
def _subtract_from_four(
    indptr: IntArray,
    sources: IntArray,
    pairs_of_edge: IntArray,
    pairs: IntArray,
    triples_of_edge: IntArray,
    triples: IntArray,
    field: IntArray,
    slot: IntArray,
    found: IntArray,
) -> None:
    """Subtract the walks w -> x -> w -> z -> v and w -> x -> y -> x -> v, once if both, and w -> x -> y -> w -> v."""
    for position in range(1, field.size):
        if found[position, 1]:
            found[position, 3] -= pairs[field[position]] * found[position, 1]
    for edge in range(indptr[field[0]], indptr[field[0] + 1]):
        node = sources[edge]
        place = slot[node]
        # Closed walks through the target are no part of the walks counted: hence the corrections by this edge.
        found[place, 3] += pairs_of_edge[edge] * found[place, 1]
        found[place, 3] -= triples[node] - triples_of_edge[edge] - pairs_of_edge[edge] * found[place, 1]
        returns = pairs[node] - pairs_of_edge[edge]
        for before in range(indptr[node], indptr[node + 1]):
            found[slot[sources[before]], 3] -= returns - pairs_of_edge[before]
    found[0, 3] = 0


@kernel
def _close(
    indptr: IntArray,
    sources: IntArray,
    targets: IntArray,
    out_indptr: IntArray,
    receivers: IntArray,
    pairs: IntArray,
    triples: IntArray,
    with_triples: bool,
) -> None:
    """Count for each edge u -> v whether v -> u exists, and the nodes x with v -> x -> u."""
    for edge in range(sources.size):
        into = sources[indptr[sources[edge]] : indptr[sources[edge] + 1]]
        pairs[edge] = _holds(into, targets[edge])
        if with_triples:
            out_of = receivers[out_indptr[targets[edge]] : out_indptr[targets[edge] + 1]]
            few, many = (into, out_of) if into.size < out_of.size else (out_of, into)
            for node in few:  # so a hub costs each of its neighbours a look, not a scan
                triples[edge] += _holds(many, node)


@kernel
def _holds(nodes: IntArray, wanted: int) -> bool:
    """Return whether the sorted ``nodes`` hold ``wanted``."""
    place = np.searchsorted(nodes, wanted)
    return bool(place < nodes.size and nodes[place] == wanted)
