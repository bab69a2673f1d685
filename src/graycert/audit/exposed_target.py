"""Skip connections show the target's own features in every draw: nothing intercepts them."""

from typing import Any

from graycert._types import IntArray
from graycert.errors import UnsoundSetupError
from graycert.models.protocol import has_skip


def refuse_exposed_target(model: Any, threat: Any, targets: IntArray) -> None:
    """Refuse a model with a skip connection if a target may be hostile itself.

    Args:
        model: The model.
        threat: Who may be hostile.
        targets: Node indices, shape (num_targets,).

    Raises:
        UnsoundSetupError: ``skip-exposes-target``.
    """
    if not has_skip(model) or not threat.includes_target:
        return
    trusted = getattr(threat, "trusted", None)
    if trusted is not None and trusted.size > targets.max() and bool(trusted[targets].all()):
        return
    raise UnsoundSetupError(
        "skip-exposes-target",
        "The model has a skip connection, so the target's own features reach its output in every draw, and a threat "
        "that contains the target cannot be certified. Use NodeFeatureThreat(min_distance=1) (`--min-distance 1`), or "
        "a model without skip connection (`--no-skip`).",
    )
