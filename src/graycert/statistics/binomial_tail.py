r"""An upper bound on a binomial tail that holds in exact arithmetic.

Every confidence bound of graycert is checked with this function before it is used, so that neither a quantile
routine nor a rounding error can make a certificate wrong. Only additions, multiplications and divisions of
the ``decimal`` module are used: they are correctly rounded by specification, here always upward.
"""

import decimal
from collections.abc import Iterable
from decimal import Decimal

_DIGITS = 38  # two machine words of libmpdec; errors of n ~ 10^6 steps stay below 10^-30
_NEGLIGIBLE = Decimal("1e-24")
_TRAPS: list[type[decimal.DecimalException]] = [
    decimal.InvalidOperation,
    decimal.DivisionByZero,
    decimal.Overflow,
]


def _context(digits: int, rounding: str, *traps: type[decimal.DecimalException]) -> decimal.Context:
    return decimal.Context(
        prec=digits, rounding=rounding, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[*_TRAPS, *traps]
    )


UPWARD = _context(_DIGITS, decimal.ROUND_CEILING)
DOWNWARD = _context(_DIGITS, decimal.ROUND_FLOOR)
# 1 - p is exact here: the smallest positive double has 1,074 decimal places.
_EXACT = _context(1_200, decimal.ROUND_HALF_EVEN, decimal.Inexact)


def complement(probability: float) -> Decimal:
    """Return 1 - ``probability``, exactly."""
    return _EXACT.subtract(Decimal(1), Decimal(probability))


def binomial_coefficients_upper(num_trials: int, selected: Iterable[int]) -> dict[int, Decimal]:
    """Bound binomial coefficients from above, all of them in one pass.

    Guarantee:
        Each value is at least C(n, k) and exceeds it by a factor of at most 1 + 2n·10^-37.

    Args:
        num_trials: n >= 0.
        selected: The wanted k, each in [0, n].

    Returns:
        Upper bound on C(n, k) for each k.
    """
    wanted = set(selected)
    nearest = {min(k, num_trials - k) for k in wanted}
    found: dict[int, Decimal] = {}
    with decimal.localcontext(UPWARD):
        value = Decimal(1)
        for k in range(max(nearest, default=-1) + 1):
            if k in nearest:
                found[k] = value
            value = value * (num_trials - k) / (k + 1)
    return {k: found[min(k, num_trials - k)] for k in wanted}


def binomial_tail_upper(
    num_trials: int, at_least: int, *, success: Decimal, failure: Decimal, coefficient: Decimal
) -> tuple[Decimal, Decimal]:
    r"""Bound P(Bin(n, s) >= k) from above.

    $$P(\mathrm{Bin}(n, s) \ge k) = \sum_{j=k}^{n} \binom{n}{j} s^j (1-s)^{n-j}$$

    The first term comes from powers by repeated squaring, each further one from the ratio of neighbouring
    terms, $\frac{n-j}{j+1}\cdot\frac{s}{1-s}$. The ratio falls with j, so a geometric series bounds the rest.

    Guarantee:
        The result is at least the exact tail: all terms are positive and every operation is rounded upward
        (divisors downward). It exceeds the tail by a factor of at most about 1 + 10^-23.

    Args:
        num_trials: n >= 1.
        at_least: k in [0, n].
        success: s in (0, 1), exact.
        failure: 1 - s, exact.
        coefficient: Upper bound on C(n, k).

    Returns:
        The bound on the tail, and the one on its first term.
    """
    with decimal.localcontext(UPWARD):
        first = coefficient * _power_upper(+success, at_least) * _power_upper(+failure, num_trials - at_least)
        odds = +success / DOWNWARD.plus(failure)
        cutoff = first * _NEGLIGIBLE
        total = term = first
        for j in range(at_least, num_trials):
            ratio = odds * (num_trials - j) / (j + 1)
            if term < cutoff and ratio < 1:
                # -(ratio - 1) rounds 1 - ratio downward while the context rounds upward
                return total + term * ratio / -(ratio - 1), first
            term *= ratio
            total += term
        return total, first


def _power_upper(base: Decimal, exponent: int) -> Decimal:
    """Return base**exponent rounded upward; called with the upward context."""
    result = Decimal(1)
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result
