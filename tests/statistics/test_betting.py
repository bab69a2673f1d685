import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.statistics.betting import STAKES, log_wealth_lower, stake_weights

THRESHOLDS = [-0.999, -0.3, 0.0, 0.1, 0.4, 0.8, 0.96, 1 - 2**-53]
EQUAL = np.full(STAKES.size, 1 / STAKES.size) * (1 - 1e-12)


def exact_wealth(wins, losses, num_samples, threshold, weights):
    """The wealth of the formula with the stakes that floating point arrives at, without further rounding."""
    total, t = Decimal(0), Decimal(threshold)
    stakes = STAKES / (1.0 + threshold)
    for stake, weight in zip(map(Decimal, stakes.tolist()), map(Decimal, weights.tolist()), strict=True):
        factors = (1 + stake * (1 - t)) ** wins * (1 - stake * (1 + t)) ** losses
        total += weight * factors * (1 - stake * t) ** (num_samples - wins - losses)
    return total


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_log_wealth_is_a_lower_bound_and_tight(threshold):
    with localcontext(prec=60):
        for wins, losses, num_samples in [(0, 0, 0), (1, 0, 1), (0, 1, 1), (0, 0, 3), (7, 2, 30), (2_500, 300, 3_000)]:
            weights = stake_weights(4, 1, 8, threshold=threshold)
            bound = float(log_wealth_lower(wins, losses, num_samples, threshold=threshold, weights=weights))
            exact = exact_wealth(wins, losses, num_samples, threshold, weights).ln()
            assert Decimal(bound) <= exact
            assert float(exact) - bound <= 1e-9 + 1e-12 * abs(float(exact))


@given(
    threshold=st.floats(-0.9, 1.0, exclude_max=True),
    earlier=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)),
)
def test_weights_sum_to_at_most_one_exactly(threshold, earlier):
    weights = stake_weights(earlier[0], earlier[1], sum(earlier), threshold=threshold)
    assert sum(map(Fraction, weights.tolist())) <= 1
    assert weights.min() >= 0.09 / STAKES.size
    assert weights.sum() >= 1 - 1e-9


def one_step_mean(threshold, p1, p2, stake):
    """Mean factor of one gambler in one sample, in exact arithmetic."""
    t, f = Fraction(threshold), Fraction(stake)
    factors = (1 + f * (1 - t), 1 - f * (1 + t), 1 - f * t)
    return sum(p * factor for p, factor in zip((p1, p2, 1 - p1 - p2), factors, strict=True)), factors


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_no_gambler_gains_in_the_mean_or_goes_broke(threshold):
    """With the very stakes that are used: the floating point division may not push a factor below 0."""
    t = Fraction(threshold)
    for stake, share in itertools.product((STAKES / (1.0 + threshold)).tolist(), (0, Fraction(1, 3), 1)):
        p2 = share * min((1 - t) / 2, 1)
        mean, factors = one_step_mean(threshold, p2 + t, p2, stake)
        assert mean == 1
        assert min(factors) >= 0


def largest_crossing_probability(num_samples, batch, threshold, p1, p2, *, alpha):
    """Exact P(the wealth reaches 1/α by some batch): the law of the counts, stopped where the wealth is enough."""
    weights = stake_weights(5, 1, 10, threshold=threshold)
    p0 = max(1.0 - p1 - p2, 0.0)
    law = np.zeros((num_samples + 1, num_samples + 1))
    law[0, 0] = 1.0
    crossed = 0.0
    won, lost = np.meshgrid(np.arange(num_samples + 1), np.arange(num_samples + 1), indexing="ij")
    for drawn in range(1, num_samples + 1):
        after = p0 * law
        after[1:] += p1 * law[:-1]
        after[:, 1:] += p2 * law[:, :-1]
        law = after
        if drawn % batch == 0:
            inside = won + lost <= drawn
            wealth = np.full(law.shape, -np.inf)
            wealth[inside] = log_wealth_lower(won[inside], lost[inside], drawn, threshold=threshold, weights=weights)
            enough = wealth >= -math.log(alpha)
            crossed += float(law[enough].sum())
            law[enough] = 0.0
    return crossed


@pytest.mark.few(1)
@pytest.mark.parametrize(("num_samples", "batch"), [(80, 1), (150, 10)])
@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.6])
def test_exact_anytime_size(num_samples, batch, threshold):
    """All paths of n samples of three classes with p1 - p2 = t: the chance of ever reaching 1/α is at most α."""
    alpha, sizes = 0.3, []
    for total in np.linspace(threshold, 1.0, 9):
        p1, p2 = (total + threshold) / 2, (total - threshold) / 2
        sizes.append(largest_crossing_probability(num_samples, batch, threshold, p1, p2, alpha=alpha))
    assert max(sizes) <= alpha
    assert max(sizes) >= alpha / 8  # the check has power


def test_a_true_lead_is_found_and_a_false_one_is_not():
    found = log_wealth_lower([700, 700], [100, 100], 1_000, threshold=[0.5, 0.65], weights=EQUAL)
    assert found[0] > math.log(100) > 0 > found[1]


def test_broadcasting():
    weights = stake_weights(np.ones((2, 1, 3), int), 0, 5, threshold=np.zeros((4, 1)))
    assert weights.shape == (2, 4, 3, STAKES.size)
    assert log_wealth_lower(1, np.zeros(3, int), 5, threshold=0.2, weights=weights).shape == (2, 4, 3)
