import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import graycert.statistics.confidence as confidence
from graycert.errors import InvalidParameterError
from graycert.statistics import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    largest_possible_p_lower,
    unverified_clopper_pearson_lower,
    unverified_clopper_pearson_upper,
)
from support.exact_binomial import lower_tail_is_at_most, upper_tail_is_at_most

ALPHAS = [0.5, 0.05, 0.01, 0.005, 0.01 / 7, 1e-6, 1e-30, 0.9]
SIZES = [1, 2, 3, 10, 37, 100, 251]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("num_samples", SIZES)
def test_bounds_hold_in_rational_arithmetic_and_are_tight(num_samples, alpha):
    level = Fraction(alpha)
    counts = np.unique(np.linspace(0, num_samples, 12).astype(int))
    lower = clopper_pearson_lower(counts, num_samples, alpha=alpha)
    upper = clopper_pearson_upper(counts, num_samples, alpha=alpha)
    for k, low, high in zip(counts.tolist(), lower.tolist(), upper.tolist(), strict=True):
        if k == 0:
            assert low == 0.0
        else:
            assert upper_tail_is_at_most(num_samples, k, Fraction(low), level)
            inside = low + 3 * math.ulp(low)
            assert not upper_tail_is_at_most(num_samples, k, Fraction(inside), level)
        if k == num_samples:
            assert high == 1.0
        else:
            assert lower_tail_is_at_most(num_samples, k, Fraction(high), level)
            inside = high - 3 * math.ulp(high)
            assert not lower_tail_is_at_most(num_samples, k, Fraction(inside), level)


@pytest.mark.parametrize("count", [1, 37, 1_500, 2_900, 2_999, 3_000])
def test_bounds_hold_for_the_default_number_of_samples(count):
    alpha = 0.01 / 2
    low = float(clopper_pearson_lower(count, 3_000, alpha=alpha))
    high = float(clopper_pearson_upper(3_000 - count, 3_000, alpha=alpha))
    assert upper_tail_is_at_most(3_000, count, Fraction(low), Fraction(alpha))
    assert not upper_tail_is_at_most(3_000, count, Fraction(low + 3 * math.ulp(low)), Fraction(alpha))
    assert lower_tail_is_at_most(3_000, 3_000 - count, Fraction(high), Fraction(alpha))


@pytest.mark.parametrize("error", [-1e-3, -1e-13, 1e-13, 1e-6, 1e-3, 0.3])
def test_a_wrong_quantile_routine_cannot_make_a_bound_wrong(monkeypatch, error):
    """The first guess and the Newton steps are not trusted: the check alone decides."""
    correct = confidence._approximate_limit
    monkeypatch.setattr(
        confidence, "_approximate_limit", lambda *args: correct(*args) * (1 + confidence.Decimal(error))
    )
    counts = np.array([1, 20, 60, 99, 100])
    level = Fraction(0.005)
    for k, low in zip(counts, clopper_pearson_lower(counts, 100, alpha=0.005).tolist(), strict=True):
        assert upper_tail_is_at_most(100, int(k), Fraction(low), level)
    for k, high in zip(counts[:-1], clopper_pearson_upper(counts[:-1], 100, alpha=0.005).tolist(), strict=True):
        assert lower_tail_is_at_most(100, int(k), Fraction(high), level)


@pytest.mark.parametrize("guess", [0.0, 1.0, math.nan])
def test_a_useless_first_guess_costs_neither_soundness_nor_tightness(monkeypatch, guess):
    counts = np.array([1, 50, 99, 100])
    expected = clopper_pearson_lower(counts, 100, alpha=0.01)
    monkeypatch.setattr(confidence.special, "betaincinv", lambda *args: guess)
    np.testing.assert_allclose(clopper_pearson_lower(counts, 100, alpha=0.01), expected, rtol=1e-15)


@pytest.mark.parametrize("alpha", [0.05, 0.01 / 7, 1e-6])
@pytest.mark.parametrize("num_samples", [10, 3_000])
def test_values_agree_with_scipy(num_samples, alpha):
    counts = np.unique(np.linspace(0, num_samples, 15).astype(int))
    for k in counts.tolist():
        interval = stats.binomtest(k, num_samples).proportion_ci(1 - 2 * alpha, method="exact")
        assert float(clopper_pearson_lower(k, num_samples, alpha=alpha)) == pytest.approx(interval.low, rel=1e-11)
        assert float(clopper_pearson_upper(k, num_samples, alpha=alpha)) == pytest.approx(interval.high, rel=1e-11)
        plain = unverified_clopper_pearson_lower(k, num_samples, alpha=alpha)
        assert float(plain) == pytest.approx(interval.low, rel=1e-11)
        plain = unverified_clopper_pearson_upper(k, num_samples, alpha=alpha)
        assert float(plain) == pytest.approx(interval.high, rel=1e-11)


def test_verification_matters():
    """Some of SciPy's quantiles are inside the exact bound; ours never are (see the tests above)."""
    inside = 0
    for k in range(1, 60):
        value = float(unverified_clopper_pearson_lower(k, 60, alpha=0.005))
        inside += not upper_tail_is_at_most(60, k, Fraction(value), Fraction(0.005))
    assert inside > 0


def test_known_values():
    assert largest_possible_p_lower(1, alpha=0.25) == 0.25
    assert largest_possible_p_lower(3_000, alpha=0.01 / 7) == pytest.approx((0.01 / 7) ** (1 / 3_000), rel=1e-14)
    assert float(clopper_pearson_lower(1, 1, alpha=0.5)) == 0.5
    assert float(clopper_pearson_upper(0, 2, alpha=0.25)) == 0.5


def test_bounds_rise_with_the_count_and_keep_the_shape():
    counts = np.arange(0, 401).reshape(1, 401)
    for bound in (clopper_pearson_lower, clopper_pearson_upper):
        values = bound(counts, 400, alpha=0.01)
        assert values.shape == counts.shape
        assert (np.diff(values[0]) > 0).all()
        assert bound(np.int64(7), 400, alpha=0.01).shape == ()
        assert bound(np.array([], dtype=int), 400, alpha=0.01).shape == (0,)


def test_extreme_levels_and_many_samples_stay_bounds():
    """A million samples need thousands of terms; the value is checked against SciPy's independent routine."""
    low = float(clopper_pearson_lower(700_000, 1_000_000, alpha=1e-12))
    assert low == pytest.approx(stats.beta.ppf(1e-12, 700_000, 300_001), rel=1e-11)
    assert 0.0 <= float(clopper_pearson_lower(1, 1_000_000, alpha=1e-300)) < 1e-300
    assert float(clopper_pearson_upper(999_999, 1_000_000, alpha=1e-300)) <= 1.0


@pytest.mark.parametrize(
    ("successes", "num_samples", "alpha", "message"),
    [
        ([0.5], 10, 0.01, "`successes` must hold integers"),
        ([11], 10, 0.01, r"`successes` must be in \[0, 10\], got 11"),
        ([-1], 10, 0.01, r"`successes` must be in \[0, 10\], got -1"),
        ([1], 0, 0.01, "`num_samples` must be >= 1"),
        ([1], 10, 0.0, r"`alpha` must be in \(0, 1\)"),
        ([1], 10, math.nan, r"`alpha` must be in \(0, 1\)"),
    ],
)
def test_wrong_arguments_are_refused(successes, num_samples, alpha, message):
    for bound in (clopper_pearson_lower, clopper_pearson_upper, unverified_clopper_pearson_lower):
        with pytest.raises(InvalidParameterError, match=message):
            bound(successes, num_samples, alpha=alpha)
