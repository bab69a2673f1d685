"""The smallest pair of hostile nodes and values that shows a leak."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graycert.audit.influence import rows_with_same_bits

Outputs = Callable[[Tensor, Tensor], Tensor]
_MOST_PASSES = 60


@dataclass(frozen=True)
class Attack:
    """Features before and after, which rows are hostile, and under which edges an output must not change.

    Args:
        clean: Features, shape (num_rows, num_features).
        attacked: The same with hostile rows changed.
        hostile: bool (num_rows,).
        edges: int64 (2, num_edges).
        unreached: Rows that no message of a hostile row reaches, bool (num_rows,).
        original: Node of the graph per row.
    """

    clean: Tensor
    attacked: Tensor
    hostile: Tensor
    edges: Tensor
    unreached: Tensor
    original: Tensor


def smallest_witness(outputs: Outputs, attack: Attack, victim: int) -> str:
    """Say which hostile node, with which value, changes the output of the victim: as few of both as can be found.

    Args:
        outputs: What the model returns for features and edges.
        attack: What was seen to change the victim.
        victim: Row whose output changed.
    """
    before = outputs(attack.clean, attack.edges)[victim : victim + 1]
    left = _MOST_PASSES

    def changes(x: Tensor) -> bool:
        nonlocal left
        left -= 1
        try:
            return not bool(rows_with_same_bits(outputs(x, attack.edges)[victim : victim + 1], before).all())
        except Exception:  # foreign code: what it cannot compute shows nothing
            return False

    def with_rows(rows: Tensor) -> Tensor:
        x = attack.clean.clone()
        x[rows] = attack.attacked[rows]
        return x

    rows = _fewest(
        attack.hostile.nonzero()[:, 0], lambda some: changes(with_rows(some)), lambda: left > _MOST_PASSES // 2
    )
    who = ", ".join(str(int(node)) for node in attack.original[rows][:3])
    what = f"node {who}" if rows.numel() == 1 else f"{rows.numel()} nodes ({who}{', ...' if rows.numel() > 3 else ''})"
    values = "their features"
    if rows.numel() == 1:
        values = _fewest_entries(attack, int(rows[0]), changes, lambda: left > 0)
    return f"{what} changed {values}, and the output of node {int(attack.original[victim])} changed"


def _fewest(items: Tensor, holds: Callable[[Tensor], bool], may_go_on: Callable[[], bool]) -> Tensor:
    """Return a small part of the items for which the statement still holds, by halving."""
    parts = 2
    while items.numel() > 1 and may_go_on():
        found = None
        chunks = torch.tensor_split(items, min(parts, items.numel()))
        for number, chunk in enumerate(chunks):
            rest = torch.cat([each for other, each in enumerate(chunks) if other != number])
            found = next((some for some in (chunk, rest) if 0 < some.numel() < items.numel() and holds(some)), None)
            if found is not None or not may_go_on():
                break
        if found is not None:
            items, parts = found, 2
        elif parts >= items.numel():
            break
        else:
            parts *= 2
    return items


def _fewest_entries(attack: Attack, row: int, changes: Callable[[Tensor], bool], may_go_on: Callable[[], bool]) -> str:
    clean, attacked = attack.clean[row], attack.attacked[row]
    another = (clean != attacked) | (clean.signbit() != attacked.signbit())  # 0 and -0 are two features
    differing = (another & ~(clean.isnan() & attacked.isnan())).nonzero()[:, 0]

    def holds(entries: Tensor) -> bool:
        x = attack.clean.clone()
        x[row, entries] = attacked[entries]
        return changes(x)

    entries = _fewest(differing, holds, may_go_on)
    first = int(entries[0])
    change = f"feature {first} from {float(clean[first]):g} to {float(attacked[first]):g}"
    return change if entries.numel() == 1 else f"{entries.numel()} features, {change} among them"
