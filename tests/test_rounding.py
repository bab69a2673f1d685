"""Directed rounding: never below the exact result, and no further above than docs/proofs/rounding.md says."""

from decimal import Context, Decimal
from fractions import Fraction

import numba
import numpy as np
import pytest

from graycert._rounding import (
    add_up,
    complement_up,
    decimal_up,
    fraction_up,
    integers_up,
    multiply_up,
    next_up,
    one_minus_exp_up,
)

ROUNDOFF = Fraction(1, 2**53)


def operands(seed, size=4000):
    """Return positive floats over the whole range of exponents that bounds meet, subnormals included."""
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [
            rng.random(size),
            rng.random(size) * 10.0 ** rng.uniform(-320, 0, size),
            1 - 10.0 ** rng.uniform(-17, -1, size),
        ]
    )


def test_add_up_is_the_smallest_float_not_below_the_exact_sum():
    left, right = operands(0), np.random.default_rng(1).permutation(operands(2))
    right[::3] *= -1
    for a, b, total in zip(left.tolist(), right.tolist(), add_up(left, right).tolist(), strict=True):
        exact = Fraction(a) + Fraction(b)
        assert Fraction(total) >= exact
        assert Fraction(float(np.nextafter(total, -np.inf))) < exact


def test_adding_zero_changes_nothing_and_infinity_stays():
    values = np.array([0.0, 0.1, 1.0, np.inf])
    np.testing.assert_array_equal(add_up(values, 0.0), values)
    np.testing.assert_array_equal(add_up(np.inf, np.inf), np.inf)


def test_multiply_up_is_not_below_the_exact_product():
    left, right = operands(3), np.random.default_rng(4).permutation(operands(5))
    for a, b, product in zip(left.tolist(), right.tolist(), multiply_up(left, right).tolist(), strict=True):
        exact = Fraction(a) * Fraction(b)
        assert exact <= Fraction(product) <= exact * (1 + 4 * ROUNDOFF) + Fraction(2, 2**1074)


def test_zero_times_anything_is_zero():
    np.testing.assert_array_equal(multiply_up([0.0, np.inf, 0.0], [np.inf, 0.0, 0.5]), 0.0)
    assert multiply_up(5e-324, 5e-324) == 5e-324  # an exact product above zero never becomes zero


def test_complement_is_exact_where_it_can_be():
    assert complement_up(0.75) == 0.25
    assert Fraction(float(complement_up(0.1))) >= 1 - Fraction(0.1)
    assert complement_up(1.0) == 0.0
    assert complement_up(1e-30) == 1.0


def exact_one_minus_exp(x, digits=60):
    context = Context(prec=400 if x < 1e-30 else digits)
    return context.subtract(Decimal(1), context.exp(context.minus(Decimal(x))))


@pytest.mark.parametrize("stride", [1, 3])  # NumPy uses other code for data that is not contiguous
def test_expm1_is_as_accurate_as_the_proof_assumes(stride):
    rng = np.random.default_rng(6)
    x = np.concatenate([rng.uniform(0, 40, 3000), 10.0 ** rng.uniform(-18, 2.8, 6000), rng.uniform(0, 1, 3000)])
    values = -np.expm1(-x[::stride])
    for point, value in zip(x[::stride].tolist(), values.tolist(), strict=True):
        exact = Fraction(exact_one_minus_exp(point))
        assert abs(Fraction(value) - exact) <= 8 * ROUNDOFF * exact  # 4 units in the last place


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["log1p", "log"])
def test_logarithms_are_as_accurate_as_the_proofs_assume(name, compiled):
    """4 ulp: docs/proofs/two_level.md (log, in kernels), sequential.md and collective.md (log1p)."""
    function = getattr(np, name)
    rng = np.random.default_rng(8)
    if name == "log1p":
        x = np.concatenate([-rng.random(2000), 1 - 2 * rng.random(2000), 10.0 ** rng.uniform(-17, 1, 2000)])
    else:
        x = np.concatenate([1 + rng.random(2000), 1 + 10.0 ** rng.uniform(-15, 3, 2000), rng.random(2000)])
    values = numba.njit(lambda points: function(points))(x) if compiled else function(x)
    context = Context(prec=60)
    for point, value in zip(x.tolist(), values.tolist(), strict=True):
        exact = context.ln(context.add(Decimal(point), Decimal(1) if name == "log1p" else Decimal(0)))
        assert abs(Fraction(value) - Fraction(exact)) <= 8 * ROUNDOFF * abs(Fraction(exact))


def test_one_minus_exp_up_encloses_tightly():
    rng = np.random.default_rng(7)
    x = np.concatenate([10.0 ** rng.uniform(-100, 2.5, 3000), rng.uniform(0, 3, 3000)])
    for point, value in zip(x.tolist(), one_minus_exp_up(x).tolist(), strict=True):
        exact = Fraction(exact_one_minus_exp(point))
        assert exact <= Fraction(value) <= min(1, exact * (1 + 28 * ROUNDOFF))


def test_one_minus_exp_up_at_the_ends():
    np.testing.assert_array_equal(one_minus_exp_up([0.0, np.inf, 800.0, 5e-324]), [0.0, 1.0, 1.0, 5e-324])


def test_conversions_round_up():
    assert integers_up([3, 2**53, 2**53 + 1, 2**62 + 1]).tolist() == [3.0, 2.0**53, 2.0**53 + 2, 2.0**62 + 1024]
    assert fraction_up(Fraction(1, 2)) == 0.5
    assert Fraction(fraction_up(Fraction(1, 3))) > Fraction(1, 3) > Fraction(1, 3) - ROUNDOFF
    for numerator in range(1, 200):
        exact = Fraction(numerator, 257)
        assert exact <= Fraction(fraction_up(exact)) < exact * (1 + 2 * ROUNDOFF)
        assert Decimal(decimal_up(Decimal(numerator) / 257)) >= Decimal(numerator) / 257
    assert decimal_up(Decimal("1e-400")) == 5e-324
    assert decimal_up(Decimal("Infinity")) == np.inf
    assert next_up(0.0) == 5e-324
