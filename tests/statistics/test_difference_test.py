import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graycert.errors import InvalidParameterError
from graycert.statistics import clopper_pearson_lower, clopper_pearson_upper
from graycert.statistics.difference_test import _worst_tail_upper, difference_lower, difference_tail_upper
from support.trinomial import difference_law, difference_tail, outcome_probabilities


@pytest.mark.few(3)
@pytest.mark.parametrize("num_samples", [1, 2, 3, 9, 16])
@pytest.mark.parametrize("total", [2.0**-40, 0.25, 0.7, 1 - 2**-20, 1 - 2**-53, 1.0])
def test_tail_is_an_upper_bound_and_tight(num_samples, total):
    for share in (0.0, 0.1, 0.5, 1 - 1e-12, 1.0):
        difference = share * total
        s, t = Fraction(total), Fraction(difference)
        law = difference_law(num_samples, (s + t) / 2, (s - t) / 2)
        for at_least in range(1, num_samples + 1):
            exact = sum(law[num_samples + at_least :])
            bound = Fraction(difference_tail_upper(num_samples, at_least, difference=difference, total=total))
            assert exact <= bound
            # parameters are rounded by up to 2^-52, which matters where a probability is that small
            assert float(bound - exact) <= 1e-12 * float(exact) + 1e-14


def test_tail_of_many_samples_agrees_with_a_sum_over_binomials():
    num_samples, difference, total = 3_000, 0.55, 0.8125
    first, second = (total + difference) / 2, (total - difference) / 2
    lost = np.arange(1_200)
    for at_least in (1_650, 1_730, 1_850):
        given_lost = stats.binom.sf(at_least + lost - 1, num_samples - lost, first / (1.0 - second))
        reference = float((stats.binom.pmf(lost, num_samples, second) * given_lost).sum())
        bound = difference_tail_upper(num_samples, at_least, difference=difference, total=total)
        assert bound == pytest.approx(reference, rel=1e-9)


def coefficients(m, c):
    """Coefficients of (1 + 2cz + z²)^m."""
    found = [Fraction(1)]
    for _ in range(m):
        padded = [Fraction(0), Fraction(0), *found, Fraction(0), Fraction(0)]
        found = [padded[i + 2] + 2 * c * padded[i + 1] + padded[i] for i in range(len(found) + 2)]
    return found


@pytest.mark.parametrize("m", [1, 2, 3, 4, 7, 12, 25])
def test_theorem_on_coefficients(m):
    """docs/proofs/difference_test.md: log-concave at even places always, at odd ones if 2(m+1)c² >= 1."""
    at_the_limit = Fraction(math.isqrt(10**24 // (2 * (m + 1))) + 1, 10**12)
    below = at_the_limit - Fraction(1, 10**9)
    values = [
        Fraction(0),
        Fraction(1, 10**4),
        Fraction(1, 50),
        Fraction(1, 9),
        Fraction(1, 4),
        Fraction(2, 3),
        Fraction(3),
    ]
    for c in [*values, below, at_the_limit]:
        g = coefficients(m, c)
        turan = [g[j] ** 2 - g[j - 1] * g[j + 1] for j in range(1, 2 * m)]
        assert all(value >= 0 for value in turan[1::2])
        if 2 * (m + 1) * c * c >= 1:
            assert all(value >= 0 for value in turan)
        else:
            assert turan[0] < 0  # so the condition cannot be weakened


@pytest.mark.parametrize("num_samples", [1, 2, 3, 6, 11])
def test_the_largest_sum_is_the_worst(num_samples):
    """The bound covers every sum up to the largest one and every smaller difference, in exact arithmetic."""
    leads = range(1, num_samples + 1)
    for t, largest in itertools.product((0.0, 0.125, 0.5), (0.5, 0.75, 0.9375, 1.0)):
        worst = [Fraction(0)] * num_samples
        for total, smaller in itertools.product(
            [Fraction(largest) * k / 16 for k in range(17)], (Fraction(t), Fraction(t) / 2, Fraction(-1, 4))
        ):
            if abs(smaller) <= total:
                law = difference_law(num_samples, (total + smaller) / 2, (total - smaller) / 2)
                worst = [max(w, sum(law[num_samples + d :])) for w, d in zip(worst, leads, strict=True)]
        for exact, at_least in zip(worst, leads, strict=True):
            assert exact <= Fraction(_worst_tail_upper(num_samples, at_least, t, largest))


def test_without_the_parity_step_the_bound_would_fail():
    """n = 3, d = 2, t = 0: the tail falls near s = 1, so the tail at the largest sum is not the worst."""
    at_one, before = (difference_tail(3, 2, s / 2, s / 2) for s in (Fraction(1), Fraction(15, 16)))
    assert at_one < before <= _worst_tail_upper(3, 2, 0.0, 1.0)


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("num_samples", [5, 12, 40])
def test_exact_size(num_samples, alpha):
    """All outcomes of n samples of three classes, on a grid of the parameters with p1 - p2 <= t."""
    won, lost = np.array([(i, j) for i in range(num_samples + 1) for j in range(num_samples + 1 - i)]).T
    bounds = difference_lower(won, lost, num_samples, alpha=alpha)
    largest = 0.0
    for t in (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95):
        rejected = bounds >= t
        for s in np.linspace(t, 1.0, 41):
            p = outcome_probabilities(num_samples, won, lost, (s + t) / 2, (s - t) / 2)
            assert p.sum() == pytest.approx(1.0, abs=1e-9)
            size = float(p[rejected].sum())
            assert size <= alpha + 1e-12
            largest = max(largest, size)
    assert largest >= 0.5 * alpha or num_samples < 12  # the check has power: the test spends most of its level


def test_values_of_the_theory():
    """n1 = 3,000, p = (.7, .1): a lead of .6 of which two bounds show .563 and one test .570."""
    one = difference_lower([2_100], [300], 3_000, alpha=0.01)[0]
    two = clopper_pearson_lower([2_100], 3_000, alpha=0.005)[0] - clopper_pearson_upper([300], 3_000, alpha=0.005)[0]
    assert one == pytest.approx(0.570, abs=5e-4)
    assert two == pytest.approx(0.563, abs=5e-4)


def test_one_test_is_tighter_than_two_bounds():
    rng = np.random.default_rng(0)
    for num_samples in (100, 1_000, 3_000):
        votes = rng.multinomial(num_samples, rng.dirichlet([3, 1, 1], size=60))
        one = difference_lower(votes[:, 0], votes[:, 1], num_samples, alpha=0.01)
        two = clopper_pearson_lower(votes[:, 0], num_samples, alpha=0.005) - clopper_pearson_upper(
            votes[:, 1], num_samples, alpha=0.005
        )
        shown = two > 0
        assert shown.sum() >= 20
        assert (one[shown] > two[shown]).all()


@pytest.mark.parametrize("num_samples", [1, 7, 1_000, 100_000])
def test_extreme_counts(num_samples):
    wins = [num_samples, 0, 0, num_samples // 2]
    losses = [0, num_samples, 0, num_samples // 2]
    best, *rest = difference_lower(wins, losses, num_samples, alpha=0.01).tolist()
    assert rest == [-1.0, -1.0, -1.0]
    # all votes for one class: P = p1^n with p1 = (1 + t)/2
    exact = 2 * (0.01 * 49 / 50) ** (1 / num_samples) - 1
    assert best == -1.0 if exact < 0 else exact - 2e-9 <= best <= exact


def test_shape_is_kept_and_ties_show_nothing():
    assert difference_lower([[5, 4], [0, 9]], [[5, 5], [0, 0]], 10, alpha=0.05).shape == (2, 2)
    assert difference_lower(5, 5, 10, alpha=0.05).tolist() == -1.0
    assert difference_lower(np.zeros((0,), np.int64), np.zeros((0,), np.int64), 10, alpha=0.05).shape == (0,)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), num_samples=st.integers(1, 300))
def test_the_bound_falls_with_losses_and_rises_with_wins_and_level(data, num_samples):
    wins = data.draw(st.integers(1, num_samples))
    losses = data.draw(st.integers(0, num_samples - wins))
    bound = float(difference_lower(wins, losses, num_samples, alpha=0.05))
    assert -1.0 <= bound < max((wins - losses) / num_samples, 0.0)
    assert float(difference_lower(wins, losses, num_samples, alpha=0.01)) <= bound
    if losses:
        assert float(difference_lower(wins, losses - 1, num_samples, alpha=0.05)) >= bound - 2e-9


@pytest.mark.parametrize(
    ("wins", "losses", "message"),
    [([1.0], [0], "integers"), ([-1], [0], ">= 0"), ([6], [5], "sum with it"), ([1, 2], [0], "shape")],
)
def test_counts_are_checked(wins, losses, message):
    with pytest.raises((InvalidParameterError, ValueError), match=message):
        difference_lower(wins, losses, 10, alpha=0.05)


@pytest.mark.parametrize(("difference", "total"), [(0.5, 0.4), (0.0, 0.0), (-0.1, 0.5), (0.1, 1.1)])
def test_probabilities_are_checked(difference, total):
    with pytest.raises(InvalidParameterError, match=r"`(difference|total)` must be"):
        difference_tail_upper(10, 1, difference=difference, total=total)


@pytest.mark.parametrize("at_least", [0, 11])
def test_the_lead_is_checked(at_least):
    with pytest.raises(InvalidParameterError, match="`at_least` must be"):
        difference_tail_upper(10, at_least, difference=0.1, total=0.5)
