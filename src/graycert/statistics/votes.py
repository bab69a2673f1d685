"""Vote counts of the base classifier under the smoothing distribution.

Selection votes (n0 samples) fix which class is reported; estimation votes (n1 independent samples) bound its
probability. A guarantee needs both to be independent, so they are different types and cannot be mixed up.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from graycert._origin import Origin
from graycert._types import IntArray
from graycert._validation import check_integer, check_integer_array
from graycert.errors import InvalidParameterError


@dataclass(frozen=True)
class _Votes:
    """Counts per target and class; every row sums to the number of samples.

    Args:
        counts: Votes per target and class, integers >= 0, shape (num_targets, num_classes), num_classes >= 2.
        num_samples: Samples drawn, >= 1: the sum of every row.
        origin: What they belong to, if that is known.

    Raises:
        InvalidParameterError: If the counts are no such table.
    """

    argument: ClassVar[str]  # what messages call it

    counts: IntArray
    num_samples: int
    origin: Origin | None = None

    def __post_init__(self) -> None:
        name = self.argument
        counts = check_integer_array(name, self.counts, ndim=2, at_least=0, hint="Votes are counts.")
        num_samples = check_integer(f"{name}.num_samples", self.num_samples, at_least=1)
        if counts.shape[1] < 2:
            raise InvalidParameterError(
                f"`{name}` must have one column per class and at least two classes, got shape "
                f"{counts.shape}. A classifier with one class cannot change its prediction."
            )
        sums = counts.sum(axis=1)
        wrong = np.flatnonzero(sums != num_samples)
        if wrong.size:
            raise InvalidParameterError(
                f"`{name}` must sum to the same number of samples in every row, got {int(sums[wrong[0]])} "
                f"in row {int(wrong[0])} instead of {num_samples}. Count every sample once for every target."
            )
        counts = counts.copy()
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "num_samples", num_samples)

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
        num_samples: n0 >= 1: the sum of every row.
        origin: What they belong to, if that is known: `certify_votes` then refuses bounds of another set-up.

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
        num_samples: n1 >= 1: the sum of every row.
        origin: What they belong to, if that is known: `certify_votes` then refuses bounds of another set-up.

    Raises:
        InvalidParameterError: If the counts are no such table.

    Example:
        >>> EstimationVotes([[70, 30]], 100).num_targets
        1
    """

    argument: ClassVar[str] = "estimation_votes"


def row_sum(name: str, counts: ArrayLike) -> int:
    """Return the number of samples of a vote table: the sum of its first row.

    Raises:
        InvalidParameterError: If the table is not an integer table with at least one row and one vote.
    """
    table = check_integer_array(name, counts, ndim=2, at_least=0, hint="Votes are counts.")
    if table.shape[0] == 0:
        raise InvalidParameterError(f"`{name}` must have at least one row, got shape {table.shape}.")
    total = int(table[0].sum())
    if total < 1:
        raise InvalidParameterError(f"`{name}` must hold at least one vote per target, got none in row 0.")
    return total
