from decimal import Decimal
from fractions import Fraction
from math import comb

import pytest

from graycert.statistics.binomial_tail import binomial_coefficients_upper, binomial_tail_upper, complement
from support.exact_binomial import upper_tail


@pytest.mark.parametrize("num_trials", [1, 2, 7, 100, 301])
def test_coefficients_are_upper_bounds_and_tight(num_trials):
    bounds = binomial_coefficients_upper(num_trials, range(num_trials + 1))
    assert set(bounds) == set(range(num_trials + 1))
    for k, bound in bounds.items():
        exact = comb(num_trials, k)
        assert exact <= Fraction(bound) <= exact * (1 + Fraction(1, 10**30))


@pytest.mark.parametrize("probability", [1e-300, 1e-12, 0.003, 0.1, 0.3, 0.5, 0.77, 0.999, 1 - 2**-53])
@pytest.mark.parametrize(
    ("num_trials", "at_least"), [(1, 1), (5, 2), (40, 0), (40, 17), (40, 40), (200, 3), (200, 150)]
)
def test_tail_is_an_upper_bound_and_tight(num_trials, at_least, probability):
    coefficient = binomial_coefficients_upper(num_trials, [at_least])[at_least]
    bound, first = binomial_tail_upper(
        num_trials,
        at_least,
        success=Decimal(probability),
        failure=complement(probability),
        coefficient=coefficient,
    )
    p = Fraction(probability)
    exact = upper_tail(num_trials, at_least, p)
    assert exact <= Fraction(bound) <= exact * (1 + Fraction(1, 10**20))
    assert Fraction(first) >= comb(num_trials, at_least) * p**at_least * (1 - p) ** (num_trials - at_least)


def test_the_remainder_of_a_cut_off_series_is_counted():
    """The ratio of neighbouring terms is close to one here, so the terms that are left out matter most."""
    num_trials, at_least, probability = 3_000, 1_480, 0.5
    bound, _ = binomial_tail_upper(
        num_trials,
        at_least,
        success=Decimal(probability),
        failure=complement(probability),
        coefficient=binomial_coefficients_upper(num_trials, [at_least])[at_least],
    )
    exact = upper_tail(num_trials, at_least, Fraction(probability))
    assert exact <= Fraction(bound) <= exact * (1 + Fraction(1, 10**20))


@pytest.mark.parametrize("probability", [5e-324, 1e-300, 0.1, 0.5, 1 - 2**-53])
def test_complement_is_exact(probability):
    assert Fraction(complement(probability)) == 1 - Fraction(probability)
