"""Clean accuracy, abstain ratio, certified ratio and certified accuracy, with the denominators by name.

A target with fewer than ρ nodes in reach of the adversary cannot be attacked by ρ nodes at all. How it
counts at radius ρ is a convention, and published curves differ in it:

- ``"all"`` (default, strictest): of all targets, those certified at ρ that at least ρ nodes could attack.
- ``"whole_field"``: of all targets, those with radius >= min(ρ, number of eligible nodes). Targets that hold
  whatever all their eligible nodes do count at every radius.
- ``"paper"``: the ratio is taken among targets with at least ρ eligible nodes only, the accuracy among all
  targets (then with the same numerator as "all"), as in the authors' implementation.

Counts are integers, so a ratio is never rounded before it is shown.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._types import IntArray
from graycert._validation import check_choice, check_integer, check_integer_array
from graycert.errors import InvalidParameterError

DENOMINATORS = ("all", "whole_field", "paper")


@dataclass(frozen=True, kw_only=True)
class RatioCurve:
    """Shares of targets at the radii 0..max_radius, as counts.

    Attributes:
        counts: Targets that count at each radius, shape (max_radius + 1,).
        totals: Targets they are divided by, shape (max_radius + 1,).
        denominator: Name of the convention.
    """

    counts: IntArray
    totals: IntArray
    denominator: str

    @property
    def values(self) -> NDArray[np.float64]:
        """Counts divided by totals; 0 where nothing is divided."""
        return np.divide(
            self.counts, self.totals, out=np.zeros(self.counts.shape), where=self.totals > 0, dtype=np.float64
        )


def certified_ratio(
    radius: ArrayLike, num_eligible: ArrayLike, *, max_radius: int, denominator: str = "all"
) -> RatioCurve:
    r"""Count the targets whose prediction is certified at each radius.

    Args:
        radius: Certified radius per target, -1 where the classifier abstains, shape (num_targets,).
        num_eligible: Nodes that may be hostile to the target, >= 0, shape (num_targets,).
        max_radius: Last radius of the curve, >= 0. Beyond the cap of ``radius`` the curve would be too low.
        denominator: "all", "whole_field" or "paper"; see the module.

    Returns:
        The curve for ρ = 0..max_radius; at ρ = 0 it counts the targets with a prediction.

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    Example:
        >>> certified_ratio([3, 1, -1], [1, 8, 8], max_radius=2).counts.tolist()
        [2, 2, 0]
        >>> certified_ratio([3, 1, -1], [1, 8, 8], max_radius=2, denominator="whole_field").counts.tolist()
        [2, 2, 1]
        >>> certified_ratio([3, 1, -1], [1, 8, 8], max_radius=2, denominator="paper").totals.tolist()
        [3, 3, 2]

    References:
        Scholten et al. (2022), Section 7.
    """
    radii, eligible = check_targets_of_curve(radius, num_eligible)
    return _curve(radii, eligible, np.ones(radii.shape, dtype=np.bool_), max_radius, denominator)


def certified_accuracy(
    radius: ArrayLike,
    num_eligible: ArrayLike,
    *,
    prediction: ArrayLike,
    labels: ArrayLike,
    max_radius: int,
    denominator: str = "all",
) -> RatioCurve:
    """Count the targets that are predicted correctly and certified at each radius.

    Args:
        radius: Certified radius per target, -1 where the classifier abstains, shape (num_targets,).
        num_eligible: Nodes that may be hostile to the target, >= 0, shape (num_targets,).
        prediction: Reported class per target.
        labels: True class per target; -1 (unknown) is never correct.
        max_radius: Last radius of the curve, >= 0.
        denominator: "all", "whole_field" or "paper"; see the module. All of them divide by all targets.

    Returns:
        The curve for ρ = 0..max_radius; at ρ = 0 it is the clean accuracy.

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    Example:
        >>> certified_accuracy([3, 1], [8, 8], prediction=[0, 1], labels=[0, 0], max_radius=1).values.tolist()
        [0.5, 0.5]

    References:
        Scholten et al. (2022), Section 7.
    """
    radii, eligible = check_targets_of_curve(radius, num_eligible)
    correct = check_correct(prediction, labels, radii.size)
    curve = _curve(radii, eligible, correct, max_radius, denominator)
    return RatioCurve(
        counts=curve.counts, totals=np.full(curve.totals.shape, radii.size), denominator=curve.denominator
    )


def clean_accuracy(radius: ArrayLike, *, prediction: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of targets predicted correctly; abstaining counts as wrong.

    Example:
        >>> clean_accuracy([0, -1], prediction=[1, 1], labels=[1, 1])
        0.5
    """
    radii = check_integer_array("radius", radius, ndim=1, at_least=-1)
    correct = check_correct(prediction, labels, radii.size)
    return int(np.count_nonzero(correct & (radii >= 0))) / _at_least_one(radii)


def abstain_ratio(radius: ArrayLike) -> float:
    """Return the share of targets without a prediction.

    Example:
        >>> abstain_ratio([0, -1])
        0.5
    """
    radii = check_integer_array("radius", radius, ndim=1, at_least=-1)
    return int(np.count_nonzero(radii < 0)) / _at_least_one(radii)


def _curve(
    radii: IntArray, eligible: IntArray, counted: NDArray[np.bool_], max_radius: int, denominator: str
) -> RatioCurve:
    last = check_integer("max_radius", max_radius, at_least=0)
    denominator = check_choice("denominator", denominator, DENOMINATORS)
    steps = np.arange(last + 1)[:, None]
    reachable = eligible[None, :] >= steps
    if denominator == "whole_field":
        holds = radii[None, :] >= np.minimum(steps, eligible[None, :])
    else:
        holds = (radii[None, :] >= steps) & reachable
    totals = reachable.sum(axis=1) if denominator == "paper" else np.full(last + 1, radii.size)
    return RatioCurve(
        counts=(holds & counted[None, :]).sum(axis=1, dtype=np.int64),
        totals=totals.astype(np.int64),
        denominator=denominator,
    )


def check_targets_of_curve(radius: ArrayLike, num_eligible: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return radius and number of eligible nodes per target, checked, at least one target."""
    radii = check_integer_array("radius", radius, ndim=1, at_least=-1)
    eligible = check_integer_array("num_eligible", num_eligible, ndim=1, at_least=0)
    if radii.shape != eligible.shape:
        raise InvalidParameterError(
            f"`num_eligible` must have one entry per target ({radii.size}), got {eligible.size}."
        )
    _at_least_one(radii)
    return radii, eligible


def _at_least_one(radii: IntArray) -> int:
    if radii.size == 0:
        raise InvalidParameterError(
            "`radius` must have at least one target, got none. A share of nothing is undefined."
        )
    return int(radii.size)


def check_correct(prediction: ArrayLike, labels: ArrayLike, num_targets: int) -> NDArray[np.bool_]:
    """Return which targets are predicted correctly, shape (num_targets,)."""
    predicted = check_integer_array("prediction", prediction, ndim=1, at_least=0)
    true = check_integer_array("labels", labels, ndim=1, at_least=-1, hint="-1 stands for an unknown label.")
    if predicted.size != num_targets or true.size != num_targets:
        raise InvalidParameterError(
            f"`prediction` and `labels` must have one entry per target ({num_targets}), got {predicted.size} "
            f"and {true.size}."
        )
    return np.equal(predicted, true)
