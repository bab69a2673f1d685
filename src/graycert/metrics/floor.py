"""The floor of a certificate: what models that see single nodes are right about, at every ρ."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from graycert._types import IntArray
from graycert.errors import InvalidParameterError


@dataclass(frozen=True, kw_only=True)
class Floor:
    """What the best known model of single nodes predicts correctly, as counts, beside what is certified.

    Nothing done to other nodes or to edges changes its predictions, so where the target is not hostile the share that
    is correct is correct at every ρ.

    Attributes:
        source: Which model it is.
        targets: Targets whose true class is known.
        correct: Those of them that it predicts correctly.
        certified: Those of them that are correct and certified, or hold against their whole field, at ρ = 0, 1, 2, ...
    """

    source: str
    targets: int
    correct: int
    certified: tuple[int, ...]

    @property
    def beats_from(self) -> int | None:
        """The smallest ρ from which on it is right more often than what is certified; None if at none."""
        return next((radius for radius, count in enumerate(self.certified) if count < self.correct), None)


def best_floor(
    candidates: Mapping[str, IntArray | None],
    *,
    labels: IntArray | None,
    prediction: IntArray,
    radius: IntArray,
    num_eligible: IntArray,
    max_radius: int,
) -> Floor | None:
    """Return the floor that is right most often, the first one of several; None where no label or no floor is known.

    Args:
        candidates: Class per target by each model of single nodes, -1 where it singles out none; None if not at hand.
        labels: True class per target, -1 where unknown, shape (num_targets,).
        prediction: Reported class per target.
        radius: Certified radius, -1 where the classifier abstains.
        num_eligible: Nodes that may be hostile to the target.
        max_radius: Largest ρ that is counted, >= 0.

    Raises:
        InvalidParameterError: If arrays differ in length.

    Example:
        >>> ones = np.ones(3, dtype=np.int64)
        >>> floor = best_floor(
        ...     {"distilled": np.array([1, 1, 0])}, labels=ones, prediction=ones, radius=np.array([0, 1, 2]),
        ...     num_eligible=9 * ones, max_radius=3,
        ... )
        >>> floor.correct, floor.certified, floor.beats_from
        (2, (3, 2, 1, 0), 2)
    """
    known = {source: classes for source, classes in candidates.items() if classes is not None}
    if any(each.shape != prediction.shape for each in (radius, num_eligible, *known.values())):
        raise InvalidParameterError(f"Every array must have one entry per target ({prediction.size}).")
    if labels is None or not bool((labels >= 0).any()) or not known:
        return None
    counted = labels >= 0
    correct = {source: int(np.count_nonzero(counted & (classes == labels))) for source, classes in known.items()}
    source = max(correct, key=lambda name: correct[name])
    right = counted & (prediction == labels) & (radius >= 0)
    return Floor(
        source=source,
        targets=int(np.count_nonzero(counted)),
        correct=correct[source],
        certified=tuple(
            int(np.count_nonzero(right & (radius >= np.minimum(rho, num_eligible)))) for rho in range(max_radius + 1)
        ),
    )
