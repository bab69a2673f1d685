"""Arithmetic that only errs upward; the derivations are in docs/proofs/rounding.md.

A bound on Δ that floating point pushes below the exact value would certify too much. Each function here returns
a float64 that is at least the exact real result of its operation on the given floats, so a composition of
operations that increase in every argument is an upper bound without any further error analysis.
"""

import decimal
import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from graycert._types import FloatArray

# Assumed of numpy.expm1 on this platform, checked by tests/test_rounding.py: at most 4 units in the last place off
# (NumPy's own limit for its vector loops; the C libraries state 1 or 2). The factor allows eight.
_EXPM1_SLACK = 1.0 + 8 * 2.0**-52

_LARGEST_EXACT_INTEGER = 2**53


def next_up(values: ArrayLike) -> FloatArray:
    """Return the smallest float64 above each value."""
    return np.asarray(np.nextafter(values, np.inf), dtype=np.float64)


def add_up(left: ArrayLike, right: ArrayLike) -> FloatArray:
    """Return ``left + right`` rounded up: the smallest float64 that is at least the exact sum.

    Knuth's two-sum recovers the rounding error exactly, so exact sums (such as x + 0) stay as they are.
    """
    a, b = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # inf - inf in the error term: the sum is inf already
        total = a + b
        b_seen = total - a
        error = (a - (total - b_seen)) + (b - b_seen)
        return np.asarray(np.where(error > 0.0, next_up(total), total), dtype=np.float64)


def multiply_up(left: ArrayLike, right: ArrayLike) -> FloatArray:
    """Return an upper bound of ``left * right`` for values in [0, inf]; zero times anything is exactly zero.

    0 · inf is 0 because a factor 0 stands for "no path of this length", whatever such a path would weigh.
    """
    a, b = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    zero = (a == 0.0) | (b == 0.0)
    with np.errstate(invalid="ignore", under="ignore", over="ignore"):
        return np.asarray(np.where(zero, 0.0, next_up(a * b)), dtype=np.float64)


def complement_up(values: ArrayLike) -> FloatArray:
    """Return ``1 - values`` rounded up, for values in [0, 1]."""
    return add_up(1.0, -np.asarray(values, dtype=np.float64))


def one_minus_exp_up(exponents: ArrayLike) -> FloatArray:
    """Return an upper bound in [0, 1] of ``1 - exp(-x)`` for x in [0, inf]; exactly 0 at 0."""
    x = np.asarray(exponents, dtype=np.float64)
    with np.errstate(under="ignore"):
        estimate = multiply_up(-np.expm1(-x), _EXPM1_SLACK)
    return np.minimum(np.minimum(estimate, x), 1.0)  # 1 - exp(-x) <= x for every x >= 0


def integers_up(values: ArrayLike) -> FloatArray:
    """Return non-negative int64 values as float64, rounded up; exact up to 2^53."""
    integers = np.asarray(values, dtype=np.int64)
    floats = integers.astype(np.float64)
    return np.asarray(np.where(integers > _LARGEST_EXACT_INTEGER, next_up(floats), floats), dtype=np.float64)


def fraction_up(value: Fraction) -> float:
    """Return the smallest float64 that is at least the rational ``value``."""
    nearest = value.numerator / value.denominator  # Python rounds this quotient correctly
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def decimal_up(value: decimal.Decimal) -> float:
    """Return the smallest float64 that is at least the decimal ``value`` in [0, inf]."""
    nearest = float(value)
    if math.isinf(nearest) or decimal.Decimal(nearest) >= value:
        return nearest
    return math.nextafter(nearest, math.inf)
