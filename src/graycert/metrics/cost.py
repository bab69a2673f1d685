"""What a guarantee costs: correct as trained, correct when smoothed, correct and certified, by group of targets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graycert._types import NO_CLASS, BoolArray, IntArray
from graycert.errors import InvalidParameterError

COST_RADII = (1, 3)
"""Budgets ρ at which groups are counted."""


@dataclass(frozen=True, kw_only=True)
class GroupCost:
    """Counts of the targets of one group, so that a share is never rounded before it is shown.

    Correct is what equals the true class; where no label is known at all, what equals the class as trained.

    Attributes:
        group: A class, the smallest in-degree of a bin, or 0 for all targets.
        targets: Targets that are counted: those whose true class is known, where any is.
        as_trained: Those that the model as trained predicts correctly; None where it was not evaluated.
        smoothed: Those that the smoothed classifier predicts correctly; abstaining is wrong.
        certified: Those that are correct and certified at each of `COST_RADII`.
        whole_field: The same, with those of fewer eligible nodes that hold whatever all of these do.
        without_messages: Those that the same model predicts correctly on the graph without edges, or None.
    """

    group: int
    targets: int
    as_trained: int | None
    smoothed: int
    certified: tuple[int, ...]
    whole_field: tuple[int, ...]
    without_messages: int | None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What the guarantee costs.

    Attributes:
        labelled: Whether true classes are known; else correct means: as the model as trained.
        total: All targets that are counted.
        classes: By true class (class as trained, without labels); those that no target has are left out.
        degrees: By in-degree: 0, 1, 2 to 3, 4 to 7, ...; empty bins are left out.
        distances: Correct and certified, or the whole field, at each of `COST_RADII` if hostile nodes are farther
            and farther away, the distance of the threat first; empty where that is not known.
        same_as_trained: Targets whose smoothed prediction is that of the model as trained, of all targets; or None.
        num_targets: All targets.
    """

    labelled: bool
    total: GroupCost
    classes: tuple[GroupCost, ...]
    degrees: tuple[GroupCost, ...]
    distances: tuple[tuple[int, ...], ...]
    same_as_trained: int | None
    num_targets: int

    def balanced(self, counts: Sequence[int | None]) -> float | None:
        """Return the mean recall over classes, from counts per class; None where one of them is unknown.

        Example:
            >>> labels = np.array([0, 0, 0, 1])
            >>> cost = cost_of(labels, labels, np.ones(4, int), np.ones(4, int), num_classes=2)
            >>> cost.balanced([3, 0])
            0.5
        """
        return balanced_share(self.classes, counts)

    @property
    def is_unequal(self) -> bool:
        """Whether one class has more than twice the targets of another one."""
        sizes = [each.targets for each in self.classes]
        return len(sizes) > 1 and max(sizes) > 2 * min(sizes)


def balanced_share(groups: Sequence[GroupCost], counts: Sequence[int | None]) -> float | None:
    """Return the mean over groups of a count as a share of the group's targets; None where one of them is unknown."""
    known = [count / each.targets for count, each in zip(counts, groups, strict=True) if count is not None]
    return float(np.mean(known)) if known and len(known) == len(groups) else None


def cost_of(
    prediction: IntArray,
    labels: IntArray | None,
    radius: IntArray,
    num_eligible: IntArray,
    *,
    num_classes: int,
    as_trained: IntArray | None = None,
    without_messages: IntArray | None = None,
    in_degree: IntArray | None = None,
    radius_by_distance: IntArray | None = None,
) -> Cost:
    """Count, for all targets and by class and degree, what is correct as trained, smoothed and certified.

    Args:
        prediction: Reported class per target, shape (num_targets,).
        labels: True class per target, -1 where unknown; None, or all unknown, counts agreement with ``as_trained``.
        radius: Certified radius, -1 where the classifier abstains.
        num_eligible: Nodes that may be hostile to the target.
        num_classes: Number of classes, >= 2.
        as_trained: Class by the model without smoothing, -1 where its scores single out none.
        without_messages: The same on the graph without edges.
        in_degree: Nodes with an edge into the target.
        radius_by_distance: Radius if hostile nodes are farther away, beyond their number where all of them may be
            hostile, shape (num_targets, num_distances).

    Raises:
        InvalidParameterError: If arrays differ in length.

    Example:
        >>> found = cost_of(np.array([0, 0]), np.array([0, 1]), np.array([3, 1]), np.array([9, 9]), num_classes=2)
        >>> found.total.smoothed, found.total.certified, [(each.group, each.smoothed) for each in found.classes]
        (1, (1, 1), [(0, 1), (1, 0)])
    """
    given = (labels, radius, num_eligible, as_trained, without_messages, in_degree)
    if any(each is not None and each.shape != prediction.shape for each in given):
        raise InvalidParameterError(f"Every array must have one entry per target ({prediction.size}).")
    labelled = labels is not None and bool((labels >= 0).any())
    reference = labels if labelled else as_trained
    truth = np.full(prediction.shape, NO_CLASS) if reference is None else reference
    counted = truth >= 0 if reference is not None else np.ones(prediction.shape, dtype=np.bool_)
    correct = (prediction == truth) & (radius >= 0) if reference is not None else radius >= 0

    def group(number: int, members: BoolArray) -> GroupCost:
        members = members & counted
        right = members & correct

        def equal(other: IntArray | None) -> int | None:
            return None if other is None or reference is None else int(np.count_nonzero(members & (other == truth)))

        return GroupCost(
            group=number,
            targets=int(np.count_nonzero(members)),
            as_trained=equal(as_trained) if labelled else None,
            smoothed=int(np.count_nonzero(right)),
            certified=tuple(
                int(np.count_nonzero(right & (radius >= rho) & (num_eligible >= rho))) for rho in COST_RADII
            ),
            whole_field=tuple(
                int(np.count_nonzero(right & (radius >= np.minimum(rho, num_eligible)))) for rho in COST_RADII
            ),
            without_messages=equal(without_messages),
        )

    everything = np.ones(prediction.shape, dtype=np.bool_)
    by_class = [group(number, truth == number) for number in range(num_classes)]
    by_degree = [] if in_degree is None else [group(low, _in_bin(in_degree, low)) for low in _bins(in_degree)]
    same = None if as_trained is None else int(np.count_nonzero((prediction == as_trained) & (radius >= 0)))
    return Cost(
        labelled=labelled,
        total=group(0, everything),
        classes=tuple(each for each in by_class if each.targets),
        degrees=tuple(each for each in by_degree if each.targets),
        distances=()
        if radius_by_distance is None
        else _by_distance(correct & counted, radius, num_eligible, radius_by_distance),
        same_as_trained=same,
        num_targets=int(prediction.size),
    )


def _by_distance(
    correct: BoolArray, radius: IntArray, num_eligible: IntArray, farther: IntArray
) -> tuple[tuple[int, ...], ...]:
    holds = [[radius >= np.minimum(rho, num_eligible) for rho in COST_RADII]]
    holds += [[radii >= rho for rho in COST_RADII] for radii in farther.T]
    return tuple(tuple(int(np.count_nonzero(correct & each)) for each in row) for row in holds)


def _bins(in_degree: IntArray) -> list[int]:
    """Return the smallest degree of each bin: 0, 1, 2, 4, 8, ..."""
    bins = [0, 1]
    while bins[-1] < int(in_degree.max(initial=0)):
        bins.append(2 * bins[-1])
    return bins


def _in_bin(in_degree: IntArray, low: int) -> BoolArray:
    return np.asarray((in_degree >= low) & (in_degree < max(1, 2 * low)))
