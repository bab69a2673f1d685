"""The worst set of nodes itself: exact for two layers and on trees, otherwise for the two-level surrogate."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from graycert.bounds.block import Block, Setting, TargetDeltas, nested, up_to_one_half, while_they_differ
from graycert.errors import InvalidParameterError
from graycert.graph import tree_shaped

if TYPE_CHECKING:
    from graycert.bounds.two_level import WorstSets


class SearchBounds:
    """Worst sets, target by target; those whose walks exceed the budget are left to Theorem 3 (``None``)."""

    def __init__(self, setting: Setting, block: Block, *, bound: str) -> None:
        from graycert.bounds.two_level import TwoLevelSearch  # Numba takes a while to load

        self._setting = setting
        self._block = block
        self._search = TwoLevelSearch(
            setting.adjacency,
            p_delete=setting.p_delete_per_edge,
            p_ablate=setting.p_ablate_per_node,
            num_layers=setting.num_layers,
            budget=setting.budget,
        )
        wants_trees = bound == "tree" or (bound == "auto" and setting.num_layers > 2)
        targets = block.fields.targets
        self._is_tree = np.zeros(targets.size, dtype=np.bool_)
        if wants_trees:
            self._is_tree = tree_shaped(setting.adjacency, targets, num_layers=setting.num_layers)
        if bound == "tree" and not self._is_tree.all():
            raise InvalidParameterError(
                f"`bound` 'tree' needs exactly one simple path from each node to the target, but "
                f"{np.count_nonzero(~self._is_tree):,} of {targets.size:,} targets, such as node "
                f"{targets[~self._is_tree][0]}, have more. Use 'auto', or run the model on a graph sparsified with "
                "graycert.graph.sparsify_to_trees."
            )
        self._name = "exact" if setting.num_layers <= 2 else "surrogate"

    def of_all(self, *, max_radius: int | None) -> list[TargetDeltas | None]:
        """Return the bounds of all targets; ``max_radius`` None goes as far as a certificate can, or memory allows."""
        rows = range(self._block.num_targets)
        if max_radius is None:
            return [self._far(row) for row in rows]
        if self._is_tree.any():
            return [self._of(row, max_radius) for row in rows]
        fields = self._block.fields
        together = self._search.worst_sets_of(
            fields.indptr,
            fields.nodes,
            self._block.eligible,
            max_radius=max_radius,
            most_sets=self._setting.most_sets,
        )
        return [self._deltas(worst) for worst in together]

    def _far(self, row: int) -> TargetDeltas | None:
        """Return the bounds of one target as far as a certificate can go."""
        radius, most = 8, min(self._setting.farthest, max(1, int(self._block.field(row)[1].sum())))
        while True:
            found = self._of(row, min(radius, most))
            if found is None:
                return None
            if radius >= most or found.delta_upper[-1] >= 0.5:
                size = up_to_one_half(found.delta_upper)
                return replace(found, delta_upper=found.delta_upper[:size], proved=found.proved[:size])
            radius *= 2

    def _of(self, row: int, max_radius: int) -> TargetDeltas | None:
        if self._is_tree[row]:
            return self._on_tree(row, max_radius)
        nodes, eligible = self._block.field(row)
        most_sets = self._setting.most_sets
        return self._deltas(self._search.worst_sets(nodes, eligible, max_radius=max_radius, most_sets=most_sets))

    def _deltas(self, worst: "WorstSets | None") -> TargetDeltas | None:
        if worst is None:
            return None
        size = up_to_one_half(worst.delta_upper)
        return TargetDeltas(
            delta_upper=worst.delta_upper,
            proved=worst.proved,
            attackers=while_they_differ(worst.attackers[:size, :size]),
            method=self._name if worst.proved[:size].all() else "prefix",
        )

    def _on_tree(self, row: int, max_radius: int) -> TargetDeltas:
        from graycert.bounds.tree import tree_delta

        nodes, eligible = self._block.field(row)
        mask = np.zeros(self._setting.adjacency.num_nodes, dtype=np.bool_)
        mask[nodes[eligible]] = True
        found = tree_delta(
            self._setting.adjacency,
            int(nodes[0]),
            p_delete=self._search.p_delete,
            p_ablate=self._search.p_ablate,
            eligible=mask,
            num_layers=self._setting.num_layers,
            max_radius=max_radius,
        )
        return TargetDeltas(
            delta_upper=found.delta_upper,
            proved=np.ones(max_radius, dtype=np.bool_),
            attackers=nested(found.attackers, min(self._setting.most_sets, up_to_one_half(found.delta_upper))),
            method="tree",
        )
