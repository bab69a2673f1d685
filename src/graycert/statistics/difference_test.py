r"""Lower confidence bounds on the difference of two class probabilities, from the difference of their counts.

Two Clopper-Pearson bounds, one per class, treat the two counts as if each could be at its worst by itself. The
difference of the counts is one number with one law, and tests the difference of the probabilities directly. Its law
also depends on the sum of the two probabilities; docs/proofs/difference_test.md shows that the largest possible sum is
the worst one, so one tail per test is enough.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from graycert._compilation import inlined, kernel
from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer, check_integer_array, check_open_unit, check_probability
from graycert.errors import InvalidParameterError
from graycert.statistics.confidence import clopper_pearson_upper

SUM_SHARE = 1 / 50
"""Part of α that is spent on the bound of the sum of the two probabilities."""

_UNKNOWN = -1.0
_LARGEST_SAMPLE = 2**40  # the rounding error of a tail is proved for fewer samples
_SCALE = 400  # tails are summed in units of a power of two; no intermediate value leaves the normal doubles
_PRECISION = 1e-9


def difference_tail_upper(num_samples: int, at_least: int, *, difference: float, total: float) -> float:
    r"""Bound the probability that one class gets ``at_least`` more votes than another.

    $$P_{t,s}(N_1 - N_2 \ge d),\qquad p_1=\tfrac{s+t}2,\quad p_2=\tfrac{s-t}2$$

    Guarantee:
        The result is at least the exact probability. It is tight: the relative excess is below 10^-10 for
        n <= 10^4 unless the other classes have a share near 0, where it is the tail for a share 2^-52 larger.

    Args:
        num_samples: n, in [1, 2^40].
        at_least: d, in [1, n].
        difference: t = p1 - p2, in [0, total].
        total: s = p1 + p2, in (0, 1].

    Returns:
        The bound in (0, 1].

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    Example:
        >>> round(difference_tail_upper(2, 1, difference=0.0, total=1.0), 12)
        0.25

    References:
        docs/proofs/difference_test.md.
    """
    num_samples = check_integer("num_samples", num_samples, at_least=1, at_most=_LARGEST_SAMPLE)
    at_least = check_integer("at_least", at_least, at_least=1, at_most=num_samples)
    total = check_probability("total", total)
    difference = check_probability("difference", difference)
    if total == 0.0 or difference > total:
        raise InvalidParameterError(
            f"`difference` must be in [0, total] with total > 0, got {difference!r} and {total!r}. "
            "They are p1 - p2 and p1 + p2 of two probabilities."
        )
    return float(_tail_upper(num_samples, at_least, difference, total))


def difference_lower(wins: ArrayLike, losses: ArrayLike, num_samples: int, *, alpha: float) -> FloatArray:
    r"""Bound p1 - p2 from below, given how often each of two exclusive events occurred in independent samples.

    $$\underline{t} = \sup\{t \ge 0 : P_{t,\overline s}(N_1 - N_2 \ge d) \le \alpha - \gamma\},\qquad
    \overline s = CP_{up}(N_1 + N_2; \gamma),\quad \gamma = \alpha/50$$

    Guarantee:
        Over the samples, the result is both >= 0 and at least the true difference with probability at most ``alpha``.
        This includes floating point: the tail at the result is rounded upward, the bound on the sum is verified. The
        exact bound falls with N2, so that of the strongest opponent holds for all. Do not take the larger of this and
        another bound at level ``alpha``: that one fails more often than either.

    Args:
        wins: Occurrences N1 of the first event, integers >= 0, any shape.
        losses: Occurrences N2 of the second event, integers >= 0, same shape, with N1 + N2 <= n.
        num_samples: n, in [1, 2^40].
        alpha: Failure probability of this one bound, in (0, 1).

    Returns:
        Lower bounds in [0, 1), or -1 where not even p1 > p2 is shown; same shape as ``wins``.

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    Example:
        >>> difference_lower([2_100, 1_000], [300, 1_000], 3_000, alpha=0.01).round(3)
        array([ 0.57, -1.  ])

    References:
        Berger and Boos (1994) for the bound on the sum; docs/proofs/difference_test.md.
    """
    num_samples = check_integer("num_samples", num_samples, at_least=1, at_most=_LARGEST_SAMPLE)
    alpha = check_open_unit("alpha", alpha, hint="It is the chance of failure, not the confidence level.")
    first, second = np.asarray(wins), np.asarray(losses)
    shape = first.shape
    first = check_integer_array("wins", first.ravel(), ndim=1, at_least=0, hint="Pass counts, not shares.")
    second = check_integer_array("losses", second.ravel(), ndim=1, at_least=0, hint="Pass counts, not shares.")
    if np.shape(losses) != shape or (first + second > num_samples).any():
        raise InvalidParameterError(
            f"`losses` must have the shape of `wins`, {shape}, and sum with it to at most {num_samples}, got shape "
            f"{np.shape(losses)}. A sample has one class."
        )
    pairs, place = np.unique(np.stack([first, second], axis=1), axis=0, return_inverse=True)
    difference, total = pairs[:, 0] - pairs[:, 1], pairs[:, 0] + pairs[:, 1]
    bounds = np.full(len(pairs), _UNKNOWN)
    ahead = difference > 0
    if ahead.any():
        gamma = alpha * SUM_SHARE
        level = math.nextafter(alpha - gamma, 0.0)  # gamma + level <= alpha also in exact arithmetic
        largest_total = clopper_pearson_upper(total[ahead], num_samples, alpha=gamma)
        bounds[ahead] = _invert(difference[ahead], largest_total, num_samples, level)
    return bounds[place.ravel()].reshape(shape)


@kernel
def _invert(differences: IntArray, totals: FloatArray, num_samples: int, level: float) -> FloatArray:
    """Search the largest rejected t by false position (Illinois); what is returned has been rejected itself."""
    found = np.full(differences.size, _UNKNOWN)
    for index in range(differences.size):
        difference, total = differences[index], totals[index]
        low, high = 0.0, difference / num_samples
        tail = _worst_tail_upper(num_samples, difference, low, total)
        if tail > level:
            continue
        # logarithms only choose where to look next
        below, above, last = math.log(tail / level), -math.log(level), 0
        while high - low > _PRECISION:
            share = min(max(below / (below - above), 0.001), 0.999)
            middle = low + (high - low) * share
            tail = _worst_tail_upper(num_samples, difference, middle, total)
            if tail <= level:
                low, below = middle, math.log(tail / level)
                above = above / 2 if last < 0 else above
                last = -1
            else:
                high, above = middle, math.log(tail / level)
                below = below / 2 if last > 0 else below
                last = 1
        found[index] = low
    return found


@inlined
def _worst_tail_upper(num_samples: int, at_least: int, difference: float, total: float) -> float:
    """Bound the tail for all sums in [difference, total] (docs/proofs/difference_test.md, Corollary)."""
    if difference > total:
        return 1.0
    others = 1.0 - total
    # the slack covers the rounding of both sides
    smooth = num_samples * others * others >= 0.5 * (total * total - difference * difference) * (1.0 + 1e-9) + 1e-300
    if (num_samples - at_least) % 2 == 1 and not smooth:
        at_least -= 1
    if at_least - 1 < num_samples * difference * (1.0 + 1e-15):
        return 1.0
    return _tail_upper(num_samples, at_least, difference, total)


@kernel
def _tail_upper(num_samples: int, at_least: int, difference: float, total: float) -> float:
    """Sum the coefficients of (p1 + p0 z + p2 z²)^n from the top, each from the two before, all terms positive."""
    first = min(max(np.nextafter(0.5 * (total + difference), 2.0), 2.0**-60), 1.0)
    second = min(np.nextafter(0.5 * (total - difference), -1.0), np.nextafter(1.0 - first, -1.0))
    if second < 2.0**-60:
        second = 0.0
    others = (1.0 - first - second) + 2.0**-52  # three roundings of at most 2^-54 each
    before, current, partial, exponent = 0.0, 1.0, 1.0, 0
    for j in range(num_samples - at_least):
        after = (others * (num_samples - j) * current + second * (2 * num_samples - j + 1) * before) / (first * (j + 1))
        before, current = current, max(after, 2.0**-_SCALE)
        partial += current
        if current > 2.0**_SCALE:
            before, current, partial = before * 2.0**-_SCALE, current * 2.0**-_SCALE, partial * 2.0**-_SCALE
            exponent += _SCALE
    mantissa, shift = _power(first, num_samples)
    partial, more = math.frexp(partial)
    exponent += shift + more
    if exponent > 1:  # both mantissas are at least 1/2
        return 1.0
    error = 1.0 + (8.0 * num_samples + 64.0) * 2.0**-53
    return min(math.ldexp(mantissa * partial * error, max(exponent, -1000)), 1.0)


@inlined
def _power(base: float, exponent: int) -> tuple[float, int]:
    """Return base**exponent as a mantissa in [1/2, 1) and a power of two; at most ``exponent`` roundings."""
    result, result_shift = math.frexp(1.0)
    square, square_shift = math.frexp(base)
    while exponent > 0:
        if exponent % 2 == 1:
            result, more = math.frexp(result * square)
            result_shift += square_shift + more
        square, more = math.frexp(square * square)
        square_shift = 2 * square_shift + more
        exponent //= 2
    return result, result_shift
