"""What every method needs of a few targets, and what it returns."""

from dataclasses import dataclass
from functools import cache, cached_property
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from graycert._types import FloatArray, IntArray
from graycert.graph import Adjacency, ReceptiveFields, SimplePathCounter

MOST_RADII, MOST_SETS, _FEWEST = 2_048, 512, 20
_ENTRIES = 2**24  # of a table over all targets: 128 MiB of float64


def memory_limits(num_targets: int) -> dict[str, int]:
    """Return how far radii go where no largest one is asked for, and how many worst sets are kept per target.

    Both keep what is returned for all targets within some hundred megabytes; neither is below 20.

    Example:
        >>> memory_limits(253), memory_limits(20_001)
        ({'farthest': 2048, 'most_sets': 364}, {'farthest': 838, 'most_sets': 40})
    """
    farthest, sets = _ENTRIES // num_targets, isqrt(2 * _ENTRIES // num_targets)
    return {"farthest": min(MOST_RADII, max(_FEWEST, farthest)), "most_sets": min(MOST_SETS, max(_FEWEST, sets))}


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """The graph with everything that Δ depends on besides the target.

    Args:
        adjacency: The graph.
        p_delete: One number, or one per edge in the order of ``adjacency``, shape (num_edges,).
        p_ablate: One number, or one per node, shape (num_nodes,).
        num_layers: k >= 1.
        budget: Work per target, in products, for methods that search.
        farthest: Largest radius looked at where none is asked for, see `memory_limits`.
        most_sets: Worst sets that are kept per target, see `memory_limits`.
    """

    adjacency: Adjacency
    p_delete: float | FloatArray
    p_ablate: float | FloatArray
    num_layers: int
    budget: int
    farthest: int = MOST_RADII
    most_sets: int = MOST_SETS

    @cached_property
    def path_counter(self) -> SimplePathCounter:
        """What counts simple paths; shared by all blocks."""
        return SimplePathCounter(self.adjacency, num_layers=self.num_layers)

    @property
    def p_delete_per_edge(self) -> FloatArray:
        """p_d of every edge, shape (num_edges,)."""
        return np.ascontiguousarray(np.broadcast_to(self.p_delete, (self.adjacency.num_edges,)), dtype=np.float64)

    @property
    def p_ablate_per_node(self) -> FloatArray:
        """p_a of every node, shape (num_nodes,)."""
        return np.ascontiguousarray(np.broadcast_to(self.p_ablate, (self.adjacency.num_nodes,)), dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Receptive fields of a few targets, and which of their nodes may be hostile (same shape as ``fields.nodes``)."""

    fields: ReceptiveFields
    eligible: NDArray[np.bool_]

    @property
    def num_targets(self) -> int:
        """How many targets the block has."""
        return int(self.fields.targets.size)

    @property
    def num_eligible(self) -> IntArray:
        """Number of eligible nodes per target, shape (num_targets,)."""
        return np.add.reduceat(self.eligible, self.fields.indptr[:-1], dtype=np.int64)

    def field(self, row: int) -> tuple[IntArray, NDArray[np.bool_]]:
        """Return the nodes of one receptive field, the target first, and which of them are eligible."""
        entries = slice(self.fields.indptr[row], self.fields.indptr[row + 1])
        return self.fields.nodes[entries], self.eligible[entries]


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetDeltas:
    """What a method found for one target.

    Args:
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, shape (max_radius,).
        proved: Whether no tighter bound of this kind exists, shape (max_radius,).
        attackers: The worst set per ρ up to the first with Δ̄ >= 1/2, as far as sets are kept and differ, padded with
            -1, shape (num_sets, num_sets). The last one is also that of every larger ρ.
        method: The method, as recorded.
        path_counts_exact: Whether simple paths were counted rather than over-counted by walks.
    """

    delta_upper: FloatArray
    proved: NDArray[np.bool_]
    attackers: NDArray[np.int32]
    method: str
    path_counts_exact: bool = True


def up_to_one_half(delta_upper: FloatArray) -> int:
    """Return how many radii a certificate can be asked for: those with Δ̄ < 1/2 and the next."""
    return min(delta_upper.size, int(np.count_nonzero(delta_upper < 0.5)) + 1)


def nested(chain: IntArray, size: int) -> NDArray[np.int32]:
    """Return the first 1, 2, ..., ``size`` nodes of a chain, or all if fewer: a set per row, padded with -1."""
    known = chain[:size].astype(np.int32)
    return np.where(_below_diagonal(known.size), known, np.int32(-1))


def while_they_differ(sets: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a copy of the sets, a row each, without those at the end that only repeat the one before."""
    size = len(sets)
    if size and sets[-1, -1] < 0:  # fewer nodes than rows: these are all that do harm
        others = np.flatnonzero((sets != sets[-1]).any(axis=1))
        size = int(others[-1]) + 2 if others.size else 1
    return sets[:size, :size].copy()


@cache
def _below_diagonal(size: int) -> NDArray[np.bool_]:
    return np.tri(size, dtype=np.bool_)
