"""Rounding: every bound against its formula in rational numbers, at zero tolerance below and 1e-12 above."""

from fractions import Fraction

import numpy as np

from graycert.bounds import multiplicative_bound, single_source_bounds, target_bound, union_bound
from support.exact_bounds import exact_multiplicative, exact_single_source

TIGHT = Fraction(1, 10**12)


def random_probability(rng):
    """Draw plain values, the ends, and values as close to 0 and 1 as floats come."""
    kind = rng.integers(6)
    if kind == 0:
        return float(rng.choice([0.0, 1.0, 0.5, 0.31, 0.794]))
    if kind == 1:
        return float(10.0 ** rng.uniform(-300, -1))
    if kind == 2:
        return float(1.0 - 10.0 ** rng.uniform(-16, -1))
    return float(rng.random())


def test_theorem_2_is_never_below_and_tight():
    rng = np.random.default_rng(0)
    for _ in range(700):
        p_delete, p_ablate = random_probability(rng), random_probability(rng)
        counts = rng.integers(0, rng.choice([2, 5, 30]), size=(5, int(rng.integers(1, 5))))
        if 1e-20 < p_delete < 1:
            counts[0] *= 10
        bounds = single_source_bounds(counts, p_delete=p_delete, p_ablate=p_ablate)
        for row, bound in zip(counts.tolist(), bounds.tolist(), strict=True):
            exact = exact_single_source(row, p_delete, p_ablate)
            assert exact <= Fraction(bound) <= exact + TIGHT
            assert 0.0 <= bound <= 1.0


def test_theorem_2_with_thousands_of_paths_that_seldom_survive():
    # 1 - q^l is next to 1 and its power next to e^-x: multiplying factors would lose digits here.
    rng = np.random.default_rng(1)
    for _ in range(12):
        p_delete = float(1.0 - 10.0 ** rng.uniform(-4, -3))
        counts = rng.integers(1, 4000, size=2)
        bound = single_source_bounds([counts], p_delete=p_delete, p_ablate=0.3)[0]
        exact = exact_single_source(counts.tolist(), p_delete, 0.3)
        assert exact <= Fraction(float(bound)) <= exact + 40 * Fraction(1, 2**53)


def test_rounding_stays_within_the_proved_limit():
    rng = np.random.default_rng(2)
    for _ in range(400):
        p_delete, p_ablate = float(rng.random()), float(rng.random())
        row = rng.integers(0, 8, size=3)
        bound = Fraction(float(single_source_bounds([row], p_delete=p_delete, p_ablate=p_ablate)[0]))
        exact = exact_single_source(row.tolist(), p_delete, p_ablate)
        assert exact <= bound <= exact + 37 * Fraction(1, 2**53)


def test_a_library_that_errs_as_far_as_assumed_cannot_break_the_bound(monkeypatch):
    # docs/proofs/rounding.md assumes 4 units in the last place of numpy.expm1; this one takes almost all of them.
    accurate = np.expm1
    monkeypatch.setattr(np, "expm1", lambda x: accurate(x) * (1.0 - 6 * 2.0**-53))
    rng = np.random.default_rng(6)
    for _ in range(400):
        p_delete, p_ablate = float(rng.random()), float(rng.choice([0.0, rng.random()]))
        row = rng.integers(0, 12, size=2)
        bound = Fraction(float(single_source_bounds([row], p_delete=p_delete, p_ablate=p_ablate)[0]))
        assert bound >= exact_single_source(row.tolist(), p_delete, p_ablate)


def test_theorem_3_is_never_below_and_tight():
    rng = np.random.default_rng(3)
    for _ in range(250):
        p_delete, p_ablate = random_probability(rng), random_probability(rng)
        counts = rng.integers(0, 4, size=(int(rng.integers(1, 12)), 2))
        bounds = single_source_bounds(counts, p_delete=p_delete, p_ablate=p_ablate)
        singles = [exact_single_source(row, p_delete, p_ablate) for row in counts.tolist()]
        multiplicative = multiplicative_bound(bounds, max_radius=12)
        union = union_bound(bounds, max_radius=12)
        for radius in range(1, 13):
            exact = exact_multiplicative(singles, radius)
            assert exact <= Fraction(float(multiplicative[radius - 1])) <= exact + TIGHT
            exact_sum = min(Fraction(1), sum(sorted(singles, reverse=True)[:radius], start=Fraction(0)))
            assert exact_sum <= Fraction(float(union[radius - 1])) <= exact_sum + TIGHT


def test_theorem_3_on_arbitrary_values_stays_within_the_proved_limit():
    rng = np.random.default_rng(4)
    for _ in range(150):
        values = rng.random(40) * 10.0 ** rng.uniform(-12, 0, 40)
        bounds = multiplicative_bound(values, max_radius=30)
        singles = [Fraction(value) for value in values.tolist()]
        for radius in (1, 2, 10, 30):
            exact = exact_multiplicative(singles, radius)
            assert exact <= Fraction(float(bounds[radius - 1])) <= exact + (2 * radius + 6) * Fraction(1, 2**53)


def test_the_targets_own_bound():
    rng = np.random.default_rng(5)
    for _ in range(500):
        p_ablate = random_probability(rng)
        exact = 1 - Fraction(p_ablate)
        assert exact <= Fraction(target_bound(p_ablate=p_ablate)) <= exact + Fraction(1, 2**53)
