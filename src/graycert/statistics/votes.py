"""Vote counts of the base classifier under the smoothing distribution.

Selection votes (n0 samples) fix which class is reported; estimation votes (n1 independent samples) bound its
probability. A guarantee needs both to be independent, so they are different types and cannot be mixed up.

A draw whose scores single out no class (one is NaN, or the largest is attained twice exactly) is a vote for no class.
Whoever reads it as a vote decides it somehow, so rules count it against the reported class, and for each other class:
what they certify holds however such draws are decided (docs/proofs/statistical_rule.md).
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from graycert._origin import Origin
from graycert._types import NO_CLASS, IntArray
from graycert._validation import check_integer, check_integer_array
from graycert.errors import InvalidParameterError


@dataclass(frozen=True)
class _Votes:
    """Counts per target and class; every row and its votes for no class sum to the number of samples.

    Args:
        counts: Votes per target and class, integers >= 0, shape (num_targets, num_classes), num_classes >= 2.
        num_samples: Samples drawn, >= 1: the sum of every row and its votes for no class.
        origin: What they belong to, if that is known.
        no_class: Votes for no class per target, shape (num_targets,); None if there are none.

    Raises:
        InvalidParameterError: If the counts are no such table.
    """

    argument: ClassVar[str]  # what messages call it

    counts: IntArray
    num_samples: int
    origin: Origin | None = None
    no_class: IntArray | None = None

    def __post_init__(self) -> None:
        name = self.argument
        counts = check_integer_array(name, self.counts, ndim=2, at_least=0, hint="Votes are counts.")
        num_samples = check_integer(f"{name}.num_samples", self.num_samples, at_least=1)
        if counts.shape[1] < 2:
            raise InvalidParameterError(
                f"`{name}` must have one column per class and at least two classes, got shape "
                f"{counts.shape}. A classifier with one class cannot change its prediction."
            )
        no_class = np.zeros(counts.shape[0], dtype=np.int64)
        if self.no_class is not None:
            no_class = check_integer_array(f"{name}.no_class", self.no_class, ndim=1, at_least=0).copy()
            if no_class.shape != counts.shape[:1]:
                raise InvalidParameterError(
                    f"`{name}.no_class` must have one entry per row ({counts.shape[0]}), got shape {no_class.shape}."
                )
        sums = counts.sum(axis=1) + no_class
        wrong = np.flatnonzero(sums != num_samples)
        if wrong.size:
            raise InvalidParameterError(
                f"`{name}` must sum to the same number of samples in every row, got {int(sums[wrong[0]])} "
                f"in row {int(wrong[0])} instead of {num_samples}. Count every sample once for every target."
            )
        counts = counts.copy()
        counts.flags.writeable = no_class.flags.writeable = False
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "num_samples", num_samples)
        object.__setattr__(self, "no_class", no_class)

    @classmethod
    def drawn(cls, counts: ArrayLike, no_class: IntArray | None = None, origin: Origin | None = None) -> Self:
        """Return the votes of as many samples as the first row has.

        Raises:
            InvalidParameterError: If the counts are no such table.
        """
        more = 0 if no_class is None or not np.size(no_class) else int(no_class[0])
        return cls(np.asarray(counts), row_sum(cls.argument, counts, no_class=more), origin, no_class)

    def of(self, chosen: IntArray) -> IntArray:
        """Return the votes of one class per target, shape (num_targets,)."""
        return self.counts[np.arange(self.num_targets), chosen]

    def possible(self) -> IntArray:
        """Return the votes that each class has at most, however draws that single out none are decided."""
        return self.counts if self.no_class is None else self.counts + self.no_class[:, None]

    def most_against(self, chosen: IntArray) -> IntArray:
        """Return the most votes that any other class may have, shape (num_targets,)."""
        others = self.possible().copy()
        others[np.arange(self.num_targets), chosen] = -1
        return np.asarray(others.max(axis=1))

    @property
    def num_targets(self) -> int:
        """Number of rows."""
        return int(self.counts.shape[0])

    @property
    def num_classes(self) -> int:
        """Number of columns."""
        return int(self.counts.shape[1])


@dataclass(frozen=True)
class SelectionVotes(_Votes):
    """Votes of the n0 samples that choose the reported class.

    Args:
        counts: Votes per target and class, integers >= 0, shape (num_targets, num_classes), num_classes >= 2.
        num_samples: n0 >= 1: the sum of every row and its votes for no class.
        origin: What they belong to, if that is known: `certify_votes` then refuses bounds of another set-up.
        no_class: Votes for no class per target, shape (num_targets,); None if there are none.

    Raises:
        InvalidParameterError: If the counts are no such table.

    Example:
        >>> SelectionVotes([[7, 3]], 10).num_classes
        2
    """

    argument: ClassVar[str] = "selection_votes"


@dataclass(frozen=True)
class EstimationVotes(_Votes):
    """Votes of the n1 samples that bound the class probabilities, independent of the selection votes.

    Args:
        counts: Votes per target and class, integers >= 0, shape (num_targets, num_classes), num_classes >= 2.
        num_samples: n1 >= 1: the sum of every row and its votes for no class.
        origin: What they belong to, if that is known: `certify_votes` then refuses bounds of another set-up.
        no_class: Votes for no class per target, shape (num_targets,); None if there are none.

    Raises:
        InvalidParameterError: If the counts are no such table.

    Example:
        >>> EstimationVotes([[70, 30]], 100).num_targets
        1
    """

    argument: ClassVar[str] = "estimation_votes"


def count_classes(classes: ArrayLike, *, num_classes: int) -> tuple[IntArray, IntArray]:
    """Return votes per class, and for no class, from the class of each vote.

    Args:
        classes: In [0, num_classes), or `NO_CLASS`, shape (num_targets, num_samples).
        num_classes: Number C of classes.

    Returns:
        Shapes (num_targets, num_classes) and (num_targets,).

    Example:
        >>> [table.tolist() for table in count_classes([[1, 1, -1, 0]], num_classes=3)]
        [[[1, 2, 0]], [1]]
    """
    table = np.asarray(classes)
    width = num_classes - NO_CLASS
    places = width * np.arange(table.shape[0])[:, None] + (table.astype(np.int64) - NO_CLASS)
    counts = np.bincount(places.ravel(), minlength=width * table.shape[0]).reshape(-1, width)
    return counts[:, -NO_CLASS:], counts[:, 0]


def row_sum(name: str, counts: ArrayLike, *, no_class: int = 0) -> int:
    """Return the number of samples of a vote table: the sum of its first row, with its votes for no class.

    Raises:
        InvalidParameterError: If the table is not an integer table with at least one row and one vote.
    """
    table = check_integer_array(name, counts, ndim=2, at_least=0, hint="Votes are counts.")
    if table.shape[0] == 0:
        raise InvalidParameterError(f"`{name}` must have at least one row, got shape {table.shape}.")
    total = int(table[0].sum()) + no_class
    if total < 1:
        raise InvalidParameterError(f"`{name}` must hold at least one vote per target, got none in row 0.")
    return total
