"""Theorems 2 and 3, and the union bound: each node on its own, by its simple paths, then the worst nodes together."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graycert._types import FloatArray, IntArray
from graycert.bounds.block import Block, Setting, TargetDeltas, nested, up_to_one_half
from graycert.bounds.multiplicative import multiplicative_bound
from graycert.bounds.single_source import single_source_bounds, target_bound
from graycert.bounds.union import union_bound

Rule = Callable[..., FloatArray]

RULES: dict[str, Rule] = {"multiplicative": multiplicative_bound, "union": union_bound}


class PathBounds:
    """Δ̄_w of the nodes of some receptive fields; 0 for nodes that may not be hostile, which changes no bound."""

    def __init__(self, setting: Setting, block: Block, *, bound: str) -> None:
        self._setting = setting
        self._block = block
        self._method = bound
        self._single, self._exact = single_sources(setting, block)
        self._single[~block.eligible] = 0.0

    def reach(self) -> int:
        """Return the first radius at which each Δ̄ is 1/2 or more, all eligible nodes are hostile, or memory ends."""
        num_eligible = np.minimum(self._block.num_eligible, self._setting.farthest)
        radius, farthest, rows = 1, 1, np.arange(num_eligible.size)
        while rows.size:  # rows with at least radius / 2 eligible nodes, so the table is no larger than the fields
            table, _ = self._worst(rows, radius)
            below = np.count_nonzero(table < 0.5, axis=1)
            is_open = (below == radius) & (num_eligible[rows] > radius)
            needed = np.minimum(below + 1, num_eligible[rows])[~is_open]
            farthest = max(farthest, int(needed.max(initial=0)))
            radius, rows = min(2 * radius, self._setting.farthest), rows[is_open]
        return farthest

    def table(self, rows: IntArray, *, max_radius: int) -> FloatArray:
        """Return Δ̄(ρ) of some targets for ρ = 1..max_radius, shape (rows.size, max_radius)."""
        return self._worst(rows, max_radius)[0]

    def of(self, rows: IntArray, *, max_radius: int) -> list[TargetDeltas]:
        """Return the bounds of some targets with their worst nodes, most dangerous first."""
        table, places = self._worst(rows, max_radius)
        found = []
        for row, delta_upper, positions in zip(rows.tolist(), table, places, strict=True):
            nodes, eligible = self._block.field(row)
            size = min(self._setting.most_sets, up_to_one_half(delta_upper))
            chosen = nodes[positions[:size][positions[:size] >= 0]]
            found.append(
                TargetDeltas(
                    delta_upper=delta_upper,
                    proved=np.zeros(max_radius, dtype=np.bool_) | (not eligible.any()),
                    attackers=nested(chosen, size),
                    method=self._method,
                    path_counts_exact=bool(self._exact[row]),
                )
            )
        return found

    def _worst(self, rows: IntArray, max_radius: int) -> tuple[FloatArray, IntArray]:
        from graycert.bounds.worst_nodes import largest_per_group

        indptr = self._block.fields.indptr
        worst, places = largest_per_group(self._single, indptr[rows], indptr[rows + 1], max_radius=max_radius)
        return RULES[self._method](worst, max_radius=max_radius), places


def single_sources(setting: Setting, block: Block) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Apply Theorem 2 to each node, and say for which targets simple paths were counted."""
    if not isinstance(setting.p_delete, float) or not isinstance(setting.p_ablate, float):
        from graycert.bounds.weighted_paths import weighted_single_source_bounds

        return weighted_single_source_bounds(
            setting.adjacency,
            block.fields,
            p_delete=setting.p_delete_per_edge,
            p_ablate=setting.p_ablate_per_node,
            num_layers=setting.num_layers,
        )
    from graycert.bounds.repeated_counts import distinct_rows  # Numba takes a while to load

    paths = setting.path_counter.count(block.fields)
    first, which = distinct_rows(paths.counts)
    single = single_source_bounds(paths.counts[first], p_delete=setting.p_delete, p_ablate=setting.p_ablate)[which]
    # A target, the first of its field, needs no edge to see its own features.
    single[block.fields.indptr[:-1]] = target_bound(p_ablate=setting.p_ablate)
    return single, paths.exact
