"""The most dangerous nodes of models of one or two layers, target by target, without a list of its receptive field.

One walk over the edges that lead to a target counts the paths of one and of two edges from every node. With one p_d and
one p_a, Theorem 2 depends on these two numbers alone, so it is looked up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._types import BoolArray, FloatArray, IntArray
from graycert.bounds.block import nested
from graycert.bounds.single_source import single_source_bounds, target_bound
from graycert.graph import Adjacency

_DIRECT = np.int32(2**30)  # marks an in-neighbour of the target beside its number of paths of two edges
_BEYOND = np.int64(2**62)


@dataclass(frozen=True, kw_only=True, eq=False)
class WorstNodes:
    """The nodes whose messages reach each target most probably, most dangerous first.

    Args:
        single: Theorem 2 of each, padded with 0, shape (num_targets, max_radius).
        nodes: Which, padded with -1, int32, same shape; of nodes with the same bound those first that come first by
            distance and number.
        num_eligible: Number of nodes of the field that may be hostile, shape (num_targets,).
        field_size: Number of nodes of the field, target included, shape (num_targets,).
    """

    single: FloatArray
    nodes: NDArray[np.int32]
    num_eligible: IntArray
    field_size: IntArray


@dataclass(frozen=True, eq=False)
class TwoHops:
    """Looks for the worst nodes within one or two hops of targets.

    Args:
        adjacency: The graph.
        table: Theorem 2 by number of paths: ``table[0, c]`` for c paths of two edges, ``table[1, c]`` for one edge
            besides.
        shown: The same of the target itself.
        hostile: Which nodes may be hostile at all, shape (num_nodes,); empty if all may.
        nearest: Smallest distance of a hostile node.
        num_layers: 1 or 2.
    """

    adjacency: Adjacency
    table: FloatArray
    shown: float
    hostile: BoolArray
    nearest: int
    num_layers: int

    @classmethod
    def of(
        cls,
        adjacency: Adjacency,
        *,
        p_delete: float,
        p_ablate: float,
        trusted: BoolArray | None,
        nearest: int,
        num_layers: int,
    ) -> "TwoHops":
        """Tabulate Theorem 2; there are no more paths of two edges than edges into the target."""
        most = int(np.diff(adjacency.indptr).max(initial=0)) if num_layers > 1 else 0
        numbers = np.arange(most + 1, dtype=np.float64)
        rows = np.stack([np.repeat([0.0, 1.0], most + 1), np.tile(numbers, 2)], axis=1)
        table = single_source_bounds(rows, p_delete=p_delete, p_ablate=p_ablate).reshape(2, most + 1)
        hostile = np.empty(0, dtype=np.bool_) if trusted is None else ~trusted
        return cls(adjacency, table, target_bound(p_ablate=p_ablate), hostile, nearest, num_layers)

    def worst(self, targets: IntArray, *, max_radius: int) -> WorstNodes:
        """Return the ``max_radius`` worst nodes of each target."""
        shape = (targets.size, max_radius)
        found = WorstNodes(
            single=np.zeros(shape),
            nodes=np.full(shape, -1, dtype=np.int32),
            num_eligible=np.zeros(targets.size, dtype=np.int64),
            field_size=np.zeros(targets.size, dtype=np.int64),
        )
        _search(
            self.adjacency.indptr,
            self.adjacency.sources,
            targets,
            self.table,
            self.shown,
            self.hostile,
            self.nearest,
            self.num_layers,
            found.single,
            found.nodes,
            found.num_eligible,
            found.field_size,
        )
        return found


class Chains(Sequence[NDArray[np.int32]]):
    """Worst sets of which each holds the one before, as `graycert.bounds.DeltaBounds` gives them, kept as one row.

    Args:
        nodes: Most dangerous first, padded with -1, int32 (num_targets, max_radius).
        sizes: How many sets there are of each target, shape (num_targets,).
    """

    def __init__(self, nodes: NDArray[np.int32], sizes: IntArray) -> None:
        self._nodes, self._sizes = nodes, sizes

    def __len__(self) -> int:
        """Return the number of targets."""
        return int(self._sizes.size)

    @overload
    def __getitem__(self, row: int) -> NDArray[np.int32]: ...
    @overload
    def __getitem__(self, row: slice) -> "Chains": ...
    def __getitem__(self, row: int | slice) -> "NDArray[np.int32] | Chains":
        """Return the sets of a target, shape (num_radii, num_radii)."""
        if isinstance(row, slice):
            return Chains(self._nodes[row], self._sizes[row])
        chain, size = self._nodes[row], int(self._sizes[row])
        return nested(chain[chain >= 0], size)

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        """Yield the sets of each target."""
        return (self[row] for row in range(len(self)))


@kernel
def _search(
    indptr: IntArray,
    sources: IntArray,
    targets: IntArray,
    table: FloatArray,
    shown: float,
    hostile: BoolArray,
    nearest: int,
    num_layers: int,
    single: FloatArray,
    nodes: NDArray[np.int32],
    num_eligible: IntArray,
    field_size: IntArray,
) -> None:
    num_nodes, last = indptr.size - 1, single.shape[1] - 1
    paths = np.zeros(num_nodes, dtype=np.int32)
    found = np.empty(num_nodes, dtype=np.int32)
    places = np.empty(last + 1, dtype=np.int64)  # of the nodes kept so far in the order by distance and number
    for row in range(targets.size):
        target, size = targets[row], 0
        into = sources[indptr[target] : indptr[target + 1]]
        for node in into:
            paths[node] = _DIRECT
            found[size] = node
            size += 1
        if num_layers > 1:
            paths[target] = _DIRECT  # it is not found again
            for node in into:
                for edge in range(indptr[node], indptr[node + 1]):
                    source = sources[edge]
                    if paths[source] == 0:
                        found[size] = source
                        size += 1
                    paths[source] += 1
            paths[target] = 0
        field_size[row] = size + 1
        kept, who, eligible = single[row], nodes[row], 0
        places[:] = _BEYOND
        if nearest == 0 and (hostile.size == 0 or hostile[target]):
            eligible += 1
            _keep(kept, who, places, last, shown, target, 0)
        for index in range(size):
            node = found[index]
            count, direct, distance = paths[node], 0, 2
            paths[node] = 0
            if count >= _DIRECT:
                count, direct, distance = count - _DIRECT, 1, 1
            if distance < nearest or (hostile.size > 0 and not hostile[node]):
                continue
            eligible += 1
            value = table[direct, count]
            if value >= kept[last]:
                _keep(kept, who, places, last, value, node, distance * num_nodes + node)
        num_eligible[row] = eligible


@kernel
def _keep(
    kept: FloatArray, who: NDArray[np.int32], places: IntArray, last: int, value: float, node: int, place: int
) -> None:
    """Insert a node where it belongs among the worst ones, if it does: by falling value, then by rising place."""
    if value <= 0.0 or not (value > kept[last] or (value == kept[last] and place < places[last])):
        return
    at = last
    while at > 0 and (kept[at - 1] < value or (kept[at - 1] == value and places[at - 1] > place)):
        kept[at], who[at], places[at] = kept[at - 1], who[at - 1], places[at - 1]
        at -= 1
    kept[at], who[at], places[at] = value, node, place
