"""Breadth-first search against the edges, one target after another: the scratch memory is that of one target."""

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._types import IntArray

Hops = NDArray[np.int32]


@kernel
def field_sizes(indptr: IntArray, sources: IntArray, targets: IntArray, num_layers: int) -> IntArray:
    """Return how many nodes lie within ``num_layers`` hops of each target, the target included."""
    num_nodes = indptr.size - 1
    hops = np.full(num_nodes, -1, dtype=np.int32)
    found = np.empty(num_nodes, dtype=np.int64)
    sizes = np.empty(targets.size, dtype=np.int64)
    for row in range(targets.size):
        sizes[row] = _search(indptr, sources, targets[row], num_layers, hops, found)
        for node in found[: sizes[row]]:
            hops[node] = -1
    return sizes


@kernel
def fill_fields(
    indptr: IntArray,
    sources: IntArray,
    targets: IntArray,
    num_layers: int,
    field_indptr: IntArray,
    nodes: IntArray,
    distances: IntArray,
) -> None:
    """Write the field of each target into its part of ``nodes`` and ``distances``, sorted by (distance, node)."""
    hops = np.full(indptr.size - 1, -1, dtype=np.int32)
    for row in range(targets.size):
        field = nodes[field_indptr[row] : field_indptr[row + 1]]
        _search(indptr, sources, targets[row], num_layers, hops, field)
        start = 0
        while start < field.size:
            hop, stop = hops[field[start]], start + 1
            while stop < field.size and hops[field[stop]] == hop:
                stop += 1
            _sort_level(field[start:stop], hop, hops)
            distances[field_indptr[row] + start : field_indptr[row] + stop] = hop
            start = stop
        for node in field:
            hops[node] = -1


@kernel
def _search(indptr: IntArray, sources: IntArray, target: int, num_layers: int, hops: Hops, found: IntArray) -> int:
    """List the nodes of a field in ``found`` by distance, mark their ``hops`` (all -1 before), return their number."""
    found[0], hops[target] = target, 0
    start, stop = 0, 1
    for hop in range(1, num_layers + 1):
        end = stop
        for node in found[start:stop]:
            for source in sources[indptr[node] : indptr[node + 1]]:
                if hops[source] < 0:
                    hops[source] = hop
                    found[end] = source
                    end += 1
        start, stop = stop, end
    return stop


@kernel
def _sort_level(level: IntArray, hop: int, hops: Hops) -> None:
    """Sort the nodes at distance ``hop``; where they are many, by reading ``hops`` from end to end."""
    if level.size < hops.size // 32:
        level.sort()
        return
    position = 0
    for node in range(hops.size):
        if hops[node] == hop:
            level[position] = node
            position += 1
