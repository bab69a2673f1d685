r"""One-sided Clopper-Pearson bounds on a class probability, with and without proof against rounding."""

import functools
import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer, check_open_unit
from graycert.errors import InvalidParameterError
from graycert.statistics.binomial_tail import (
    DOWNWARD,
    UPWARD,
    binomial_coefficients_upper,
    binomial_tail_upper,
    complement,
)

_MAX_STEPS = 64  # each step outward is twice the last one, starting with one unit in the last place
_MAX_NEWTON = 60
_NEWTON_DONE = Decimal("1e-11")

_once = functools.lru_cache(maxsize=2**14)
"""The same few counts are asked for by certificate, page and advice, from below and from above."""


def clopper_pearson_lower(successes: ArrayLike, num_samples: int, *, alpha: float) -> FloatArray:
    r"""Bound a probability from below, given how often the event occurred in independent samples.

    $$\underline{p} = \sup\{p : P(\mathrm{Bin}(n, p) \ge k) \le \alpha\}, \qquad
    \underline{p} = 0 \text{ for } k = 0$$

    Guarantee:
        Over the samples, the result exceeds the true probability with probability at most ``alpha``. This
        includes floating point: each value is checked in directed arithmetic to have a tail of at most
        ``alpha`` (the real number that the float stands for), so it is never above the exact bound. It is
        the nearest double below it, or one next to that.

    Args:
        successes: Occurrences k, integers in [0, num_samples], any shape.
        num_samples: n >= 1.
        alpha: Failure probability of this one bound, in (0, 1).

    Returns:
        Lower bounds in [0, 1), same shape as ``successes``.

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    Example:
        >>> float(clopper_pearson_lower(3_000, 3_000, alpha=0.005).round(6))
        0.998235

    References:
        Clopper and Pearson (1934). Scholten et al. (2022), Section 5, use it for the label probabilities.
    """
    counts, num_samples, alpha = _check(successes, num_samples, alpha)
    return _per_distinct_count(counts, lambda distinct: _lower_limits(distinct, num_samples, alpha))


def clopper_pearson_upper(successes: ArrayLike, num_samples: int, *, alpha: float) -> FloatArray:
    r"""Bound a probability from above, given how often the event occurred in independent samples.

    $$\overline{p} = \inf\{p : P(\mathrm{Bin}(n, p) \le k) \le \alpha\}, \qquad
    \overline{p} = 1 \text{ for } k = n$$

    Guarantee:
        Over the samples, the result falls below the true probability with probability at most ``alpha``. This
        includes floating point, as for ``clopper_pearson_lower``: never below the exact bound.

    Args:
        successes: Occurrences k, integers in [0, num_samples], any shape.
        num_samples: n >= 1.
        alpha: Failure probability of this one bound, in (0, 1).

    Returns:
        Upper bounds in (0, 1], same shape as ``successes``.

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    Example:
        >>> float(clopper_pearson_upper(0, 3_000, alpha=0.005).round(6))
        0.001765

    References:
        Clopper and Pearson (1934).
    """
    counts, num_samples, alpha = _check(successes, num_samples, alpha)
    return _per_distinct_count(counts, lambda distinct: _upper_limits(distinct, num_samples, alpha))


def largest_possible_p_lower(num_samples: int, *, alpha: float) -> float:
    r"""Return the largest lower bound that ``num_samples`` samples can give: all of them agree.

    $$\underline{p} \le \alpha^{1/n}$$

    Args:
        num_samples: n >= 1.
        alpha: Failure probability of this one bound, in (0, 1).

    Returns:
        The bound in (0, 1), rounded downward.

    Example:
        >>> round(largest_possible_p_lower(100, alpha=0.005), 4)
        0.9484
    """
    return float(clopper_pearson_lower(num_samples, num_samples, alpha=alpha))


def unverified_clopper_pearson_lower(successes: ArrayLike, num_samples: int, *, alpha: float) -> FloatArray:
    """Return SciPy's quantile for the lower bound as it is, for comparison with other implementations.

    NOT a bound in floating point: it was above the exact one in 33 of 70 tried cases (by some 1e-16).
    Arguments and shape as in ``clopper_pearson_lower``.
    """
    counts, num_samples, alpha = _check(successes, num_samples, alpha)
    inside = np.maximum(counts, 1)
    return np.where(counts == 0, 0.0, special.betaincinv(inside, num_samples - inside + 1, alpha))


def unverified_clopper_pearson_upper(successes: ArrayLike, num_samples: int, *, alpha: float) -> FloatArray:
    """Return SciPy's quantile for the upper bound as it is, for comparison with other implementations.

    NOT a bound in floating point. Arguments and shape as in ``clopper_pearson_upper``.
    """
    counts, num_samples, alpha = _check(successes, num_samples, alpha)
    inside = np.minimum(counts, num_samples - 1)
    return np.where(counts == num_samples, 1.0, special.betaincinv(inside + 1, num_samples - inside, 1.0 - alpha))


def _check(successes: ArrayLike, num_samples: int, alpha: float) -> tuple[IntArray, int, float]:
    counts = np.asarray(successes)
    if counts.dtype.kind not in "iu":
        raise InvalidParameterError(
            f"`successes` must hold integers, got dtype {counts.dtype}. Pass counts, not shares."
        )
    num_samples = check_integer("num_samples", num_samples, at_least=1)
    alpha = check_open_unit("alpha", alpha, hint="It is the chance of failure, not the confidence level.")
    if counts.size and not 0 <= counts.min() <= counts.max() <= num_samples:
        outside = counts.min() if counts.min() < 0 else counts.max()
        raise InvalidParameterError(
            f"`successes` must be in [0, {num_samples}], got {int(outside)}. "
            "An event cannot occur more often than there are samples."
        )
    return counts.astype(np.int64), num_samples, alpha


def _per_distinct_count(counts: IntArray, limits: Callable[[list[int]], list[float]]) -> FloatArray:
    distinct, position = np.unique(counts, return_inverse=True)
    values = np.array(limits(distinct.tolist()), dtype=np.float64)
    return values[position].reshape(counts.shape)


def _lower_limits(counts: list[int], num_samples: int, alpha: float) -> list[float]:
    coefficients = binomial_coefficients_upper(num_samples, counts)
    return [_lower_limit(k, num_samples, alpha, coefficients[k]) if k else 0.0 for k in counts]


def _upper_limits(counts: list[int], num_samples: int, alpha: float) -> list[float]:
    # P(Bin(n, p) <= k) = P(Bin(n, 1 - p) >= n - k): the same tail, for failures
    failures = {k: num_samples - k for k in counts}
    coefficients = binomial_coefficients_upper(num_samples, failures.values())
    return [
        _upper_limit(failures[k], num_samples, alpha, coefficients[failures[k]]) if failures[k] else 1.0 for k in counts
    ]


@_once
def _lower_limit(successes: int, num_samples: int, alpha: float, coefficient: Decimal) -> float:
    def tail(p: float) -> Decimal:
        success, failure = Decimal(p), complement(p)
        return binomial_tail_upper(num_samples, successes, success=success, failure=failure, coefficient=coefficient)[0]

    guess = _below(_approximate_limit(successes, num_samples, alpha, coefficient))
    return _first_proved(guess, tail, alpha, outward=-1.0, certain=0.0)


@_once
def _upper_limit(failures: int, num_samples: int, alpha: float, coefficient: Decimal) -> float:
    def tail(p: float) -> Decimal:
        success, failure = complement(p), Decimal(p)
        return binomial_tail_upper(num_samples, failures, success=success, failure=failure, coefficient=coefficient)[0]

    limit = _approximate_limit(failures, num_samples, alpha, coefficient)
    return _first_proved(_above(UPWARD.subtract(Decimal(1), limit)), tail, alpha, outward=1.0, certain=1.0)


def _first_proved(
    candidate: float, tail: Callable[[float], Decimal], alpha: float, *, outward: float, certain: float
) -> float:
    """Step outward until the tail at the candidate is proved to be at most alpha; ``certain`` needs no proof."""
    for step in range(_MAX_STEPS):
        if not 0.0 < candidate < 1.0:
            break
        if tail(candidate) <= Decimal(alpha):
            return candidate
        candidate += outward * math.ulp(candidate) * 2.0**step
    return certain


@_once
def _approximate_limit(successes: int, num_samples: int, alpha: float, coefficient: Decimal) -> Decimal:
    """Solve P(Bin(n, s) >= k) = alpha to about 30 digits: SciPy's quantile, then Newton steps.

    Nothing relies on this value: it only decides how tight the bound is that is checked afterwards.
    """
    guess = float(special.betaincinv(successes, num_samples - successes + 1, alpha))
    if not 0.0 < guess < 1.0:
        guess = min(max(alpha ** (1.0 / successes) * successes / num_samples, 1e-300), 0.5)
    limit = Decimal(guess)
    for _ in range(_MAX_NEWTON):
        tail, first = binomial_tail_upper(
            num_samples,
            successes,
            success=limit,
            failure=DOWNWARD.subtract(Decimal(1), limit),
            coefficient=coefficient,
        )
        # d/ds P(Bin(n, s) >= k) = P(Bin(n, s) = k) k / s
        slope = DOWNWARD.divide(DOWNWARD.multiply(first, Decimal(successes)), limit)
        change = DOWNWARD.divide(DOWNWARD.subtract(tail, Decimal(alpha)), slope)
        improved = DOWNWARD.subtract(limit, change)
        if not 0 < improved < 1:  # overshot from a bad guess: go half the way to the end
            improved = DOWNWARD.divide(limit if improved <= 0 else limit + 1, Decimal(2))
        limit = improved
        if abs(change) < limit * _NEWTON_DONE:  # the error after this step is of the order of its square
            break
    return limit


def _below(value: Decimal) -> float:
    nearest = float(value)
    return nearest if Decimal(nearest) <= value else math.nextafter(nearest, 0.0)


def _above(value: Decimal) -> float:
    nearest = float(value)
    return nearest if Decimal(nearest) >= value else math.nextafter(nearest, 1.0)
