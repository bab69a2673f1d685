r"""How far flips of binary attributes move a class probability under sparse smoothing: the regions certificate.

A draw flips each 0 to 1 with probability $p_+$ and each 1 to 0 with probability $p_-$, independently. Let the
perturbed input differ from the clean one by $r_a$ additions and $r_d$ deletions. Only these bits matter, and only
through the number q of them that agree with the perturbed input: both inputs have a constant likelihood ratio on
the region "q agree". So the worst classifier that is consistent with what is known fills regions in the order of
this ratio (Neyman-Pearson). docs/proofs/sparse_smoothing.md has the derivation.

All arithmetic is exact: floats are dyadic rationals, so every mass is an integer over one power of two.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._rounding import fraction_up
from graycert._types import IntArray
from graycert._validation import check_integer, check_probability
from graycert.errors import InvalidParameterError


@dataclass(frozen=True, kw_only=True)
class SparseRegions:
    """Probabilities of all regions, ordered by falling likelihood ratio of the clean to the perturbed input.

    Attributes:
        clean: Numerator of each region's probability under the clean input, shape (num_regions,).
        perturbed: Numerator under the perturbed input, same shape.
        clean_up_to: Sums of ``clean`` over each region and those before it.
        perturbed_up_to: Sums of ``perturbed``.
        denominator: Of all of them.
    """

    clean: tuple[int, ...]
    perturbed: tuple[int, ...]
    clean_up_to: tuple[int, ...]
    perturbed_up_to: tuple[int, ...]
    denominator: int


def sparse_regions(*, p_plus: float, p_minus: float, num_additions: int, num_deletions: int) -> SparseRegions:
    r"""Return the regions of constant likelihood ratio for a number of additions and deletions.

    $$P(q \mid x) = P(\mathrm{Bin}(r_a, p_+) + \mathrm{Bin}(r_d, p_-) = q), \qquad
    P(q \mid \tilde x) = P(\mathrm{Bin}(r_a, 1-p_-) + \mathrm{Bin}(r_d, 1-p_+) = q)$$

    Guarantee:
        Exact, for the rational numbers that the floats stand for. The ratio falls with q if $p_+ + p_- < 1$, is 1
        everywhere if the sum is 1, and rises above; also where a probability is 0 or 1 and a region has mass under
        only one of both inputs.

    Args:
        p_plus: Probability $p_+$ of setting a 0 to 1, in [0, 1].
        p_minus: Probability $p_-$ of setting a 1 to 0, in [0, 1].
        num_additions: Number $r_a$ of zeros that the adversary sets, >= 0.
        num_deletions: Number $r_d$ of ones that the adversary deletes, >= 0.

    Returns:
        The r_a + r_d + 1 regions; remembered, so that all targets share them.

    Raises:
        InvalidParameterError: If an argument is out of its domain.

    Example:
        >>> regions = sparse_regions(p_plus=0, p_minus=0.5, num_additions=0, num_deletions=2)
        >>> regions.clean, regions.perturbed, regions.denominator
        ((1, 2, 1), (0, 0, 4), 4)

    References:
        Bojchevski, Klicpera and Günnemann (2020), Section 4; docs/proofs/sparse_smoothing.md.
    """
    return _regions(
        check_probability("p_plus", p_plus, hint="It is the chance of setting a 0 to 1."),
        check_probability("p_minus", p_minus, hint="It is the chance of setting a 1 to 0."),
        check_integer("num_additions", num_additions, at_least=0),
        check_integer("num_deletions", num_deletions, at_least=0),
    )


def perturbed_probability_lower(p_lower: float, regions: SparseRegions) -> float:
    r"""Bound a class probability under the perturbation from below, given a lower bound on the clean one.

    $$\min_{0 \le h \le 1} \sum_q h_q P(q \mid \tilde x)
    \quad\text{such that}\quad \sum_q h_q P(q \mid x) \ge \underline p$$

    Guarantee:
        At most the perturbed probability of every classifier whose clean probability is at least ``p_lower``, and
        attained by one of them before rounding. Rounded downward, once.

    Args:
        p_lower: Lower bound on the clean probability, in [0, 1].
        regions: From `sparse_regions`.

    Returns:
        The bound, in [0, 1].

    Raises:
        InvalidParameterError: If ``p_lower`` is out of range.

    Example:
        >>> perturbed_probability_lower(
        ...     0.9375, sparse_regions(p_plus=0, p_minus=0.5, num_additions=0, num_deletions=1)
        ... )
        0.875

    References:
        Bojchevski, Klicpera and Günnemann (2020), Section 4.
    """
    return -fraction_up(-_least(Fraction(check_probability("p_lower", p_lower)), regions))


def perturbed_probability_upper(p_upper: float, regions: SparseRegions) -> float:
    r"""Bound a class probability under the perturbation from above, given an upper bound on the clean one.

    The largest mass of a classifier is one minus the smallest mass of its complement.

    Guarantee:
        At least the perturbed probability of every classifier whose clean probability is at most ``p_upper``, and
        attained by one of them before rounding. Rounded upward, once.

    Args:
        p_upper: Upper bound on the clean probability, in [0, 1].
        regions: From `sparse_regions`.

    Returns:
        The bound, in [0, 1].

    Raises:
        InvalidParameterError: If ``p_upper`` is out of range.

    Example:
        >>> perturbed_probability_upper(
        ...     0.0625, sparse_regions(p_plus=0, p_minus=0.5, num_additions=0, num_deletions=1)
        ... )
        0.125

    References:
        Bojchevski, Klicpera and Günnemann (2020), Section 4.
    """
    return fraction_up(1 - _least(1 - Fraction(check_probability("p_upper", p_upper)), regions))


def certified_deletions(
    p_lower: ArrayLike,
    p_upper: ArrayLike,
    *,
    p_plus: float,
    p_minus: float,
    max_deletions: int,
    max_additions: int = 0,
) -> IntArray:
    r"""Return how many deletions, together with 0, 1, 2, ... additions, cannot change the predicted class.

    $(r_a, r_d)$ is certified iff the smallest perturbed probability of the predicted class exceeds the largest one
    of every other class.

    Guarantee:
        If the clean probability of the predicted class is at least ``p_lower`` and that of each other class at most
        ``p_upper``, the class is the same for every perturbation of at most a additions and at most ``result[t, a]``
        deletions: what holds against more flips holds against fewer. The comparison is exact.

    Args:
        p_lower: Lower bound for the predicted class, in [0, 1], shape (num_targets,).
        p_upper: Upper bound for each other class, in [0, 1], shape (num_targets,).
        p_plus: Probability of setting a 0 to 1, in [0, 1].
        p_minus: Probability of setting a 1 to 0, in [0, 1].
        max_deletions: Largest number of deletions looked at, >= 0; results are capped there.
        max_additions: Largest number of additions looked at, >= 0.

    Returns:
        Largest number of deletions per target and number of additions, shape (num_targets, max_additions + 1), never
        rising with the additions; -1 if already the additions alone are too many. So column 0 is -1 where there is
        no prediction at all, and ``(result >= 0).sum(axis=1) - 1`` is the largest number of additions alone.

    Raises:
        InvalidParameterError: If an argument is out of its domain.

    Example:
        >>> certified_deletions([0.99, 0.4], [0.01, 0.5], p_plus=0, p_minus=0.6, max_deletions=20).tolist()
        [[7], [-1]]

    References:
        Bojchevski, Klicpera and Günnemann (2020), Section 4, "multi-class certificates".
    """
    last = check_integer("max_deletions", max_deletions, at_least=0)
    columns = check_integer("max_additions", max_additions, at_least=0) + 1
    lower, upper = _check_bounds("p_lower", p_lower), _check_bounds("p_upper", p_upper)
    if lower.shape != upper.shape:
        raise InvalidParameterError(
            f"`p_upper` must have one entry per target, {lower.size}, got {upper.size}. Both bound the same targets."
        )
    pairs, which = np.unique(np.stack([lower, upper], axis=1), axis=0, return_inverse=True)
    table = np.full((len(pairs), columns), -1, dtype=np.int64)
    for row, (low, high) in enumerate(pairs.tolist()):
        found = last
        for additions in range(columns):
            found = _most_deletions(Fraction(low), Fraction(high), p_plus, p_minus, additions, found)
            table[row, additions] = found
            if found < 0:
                break
    return table[which.reshape(-1)]


def _most_deletions(
    lower: Fraction, upper: Fraction, p_plus: float, p_minus: float, additions: int, at_most: int
) -> int:
    """Search the largest number of deletions that is certified, -1 for none; it is not above ``at_most``."""
    holds, fails = -1, at_most + 1
    while fails - holds > 1:
        middle = (holds + fails) // 2
        regions = sparse_regions(p_plus=p_plus, p_minus=p_minus, num_additions=additions, num_deletions=middle)
        if _least(lower, regions) > 1 - _least(1 - upper, regions):
            holds = middle
        else:
            fails = middle
    return holds


def _least(probability: Fraction, regions: SparseRegions) -> Fraction:
    """Return the least perturbed mass of any function on the regions with at least this clean mass."""
    wanted = probability * regions.denominator
    if wanted == 0:
        return Fraction(0)
    last = bisect_left(regions.clean_up_to, wanted)  # the region that is filled in part, or just entirely
    missing = regions.clean_up_to[last] - wanted
    mass = regions.perturbed_up_to[last] - missing * regions.perturbed[last] / regions.clean[last]
    return Fraction(mass) / regions.denominator


@lru_cache(maxsize=1024)
def _regions(p_plus: float, p_minus: float, num_additions: int, num_deletions: int) -> SparseRegions:
    plus, minus = Fraction(p_plus), Fraction(p_minus)
    unit = math.lcm(plus.denominator, minus.denominator)
    set_, unset = int(plus * unit), int(minus * unit)
    clean = _convolve(_binomial(num_additions, set_, unit), _binomial(num_deletions, unset, unit))
    perturbed = _convolve(_binomial(num_additions, unit - unset, unit), _binomial(num_deletions, unit - set_, unit))
    if set_ + unset > unit:  # the ratio rises with the number of bits that agree with the perturbed input
        clean, perturbed = clean[::-1], perturbed[::-1]
    return SparseRegions(
        clean=tuple(clean),
        perturbed=tuple(perturbed),
        clean_up_to=tuple(accumulate(clean)),
        perturbed_up_to=tuple(accumulate(perturbed)),
        denominator=unit ** (num_additions + num_deletions),
    )


def _binomial(trials: int, success: int, unit: int) -> list[int]:
    """Return the probabilities of 0..trials successes, each of probability success / unit, times unit ** trials."""
    failure = unit - success
    return [math.comb(trials, k) * success**k * failure ** (trials - k) for k in range(trials + 1)]


def _convolve(left: list[int], right: list[int]) -> list[int]:
    """Return the distribution of the sum of two independent counts."""
    total = [0] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            total[i + j] += a * b
    return total


def _check_bounds(name: str, values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not ((array >= 0) & (array <= 1)).all():  # also refuses NaN
        raise InvalidParameterError(
            f"`{name}` must hold probabilities in [0, 1], one per target, got shape {array.shape} and values "
            f"{array.reshape(-1)[:3].tolist()}. Use the bounds of a vote rule."
        )
    return array
