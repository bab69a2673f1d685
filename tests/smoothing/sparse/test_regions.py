"""The regions certificate against every bit pattern and every classifier, in exact arithmetic."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from graycert.errors import InvalidParameterError
from graycert.smoothing.sparse.regions import (
    certified_deletions,
    perturbed_probability_lower,
    perturbed_probability_upper,
    sparse_regions,
)

SETTINGS = [
    (0.01, 0.6),
    (0.0, 0.6),
    (0.3, 0.0),
    (0.4, 0.6),  # not quite 1 in binary
    (0.25, 0.75),
    (0.7, 0.8),
    (1.0, 0.3),
    (0.2, 1.0),
    (0.0, 0.0),
    (1.0, 1.0),
    (0.0, 1.0),
    (1.0, 0.0),
]
FLIPS = [(0, 1), (1, 0), (0, 3), (3, 0), (2, 1), (1, 2), (2, 2)]


def pattern_masses(p_plus, p_minus, additions, deletions):
    """Exact probability of every pattern of the touched bits under the clean and the perturbed input."""
    chance = {0: Fraction(p_plus), 1: 1 - Fraction(p_minus)}  # of a 1 in the draw
    clean = [0] * additions + [1] * deletions
    masses = []
    for pattern in itertools.product((0, 1), repeat=len(clean)):
        pair = [Fraction(1), Fraction(1)]
        for bit, drawn in zip(clean, pattern, strict=True):
            for side, value in enumerate((bit, 1 - bit)):
                pair[side] *= chance[value] if drawn else 1 - chance[value]
        masses.append(tuple(pair))
    return masses


def exact_least(masses, probability):
    """Fractional knapsack over patterns: the cheapest perturbed mass with at least this clean mass."""
    useful = sorted((m for m in masses if m[0] > 0), key=lambda m: m[1] / m[0])
    cost, missing = Fraction(0), Fraction(probability)
    for clean, perturbed in useful:
        taken = min(missing, clean)
        cost, missing = cost + perturbed * taken / clean, missing - taken
    assert missing == 0
    return cost


@pytest.mark.parametrize(("p_plus", "p_minus"), SETTINGS)
@pytest.mark.parametrize(("additions", "deletions"), FLIPS)
def test_bounds_equal_the_exact_optimum_over_patterns_and_never_pass_it(p_plus, p_minus, additions, deletions):
    masses = pattern_masses(p_plus, p_minus, additions, deletions)
    regions = sparse_regions(p_plus=p_plus, p_minus=p_minus, num_additions=additions, num_deletions=deletions)
    assert sum(regions.clean) == sum(regions.perturbed) == regions.denominator
    for probability in (0.0, 1e-9, 0.1, 1 / 3, 0.6, 0.97, 1 - 1e-12, 1.0):
        exact = exact_least(masses, probability)
        found = Fraction(perturbed_probability_lower(probability, regions))
        assert 0 <= exact - found <= Fraction(1, 10**15)
        exact = 1 - exact_least(masses, 1 - Fraction(probability))
        found = Fraction(perturbed_probability_upper(probability, regions))
        assert 0 <= found - exact <= Fraction(1, 10**15)


@pytest.mark.parametrize(("p_plus", "p_minus"), [(0.01, 0.6), (0.0, 0.6), (0.7, 0.8)])
def test_bounds_are_the_optimum_of_the_linear_programme(p_plus, p_minus):
    masses = np.array(pattern_masses(p_plus, p_minus, 2, 3), dtype=np.float64)
    regions = sparse_regions(p_plus=p_plus, p_minus=p_minus, num_additions=2, num_deletions=3)
    for probability in (0.2, 0.9, 0.99):
        least = linprog(masses[:, 1], A_ub=-masses[:, :1].T, b_ub=[-probability], bounds=(0, 1)).fun
        most = -linprog(-masses[:, 1], A_ub=masses[:, :1].T, b_ub=[probability], bounds=(0, 1)).fun
        assert perturbed_probability_lower(probability, regions) == pytest.approx(least, abs=1e-7)
        assert perturbed_probability_upper(probability, regions) == pytest.approx(most, abs=1e-7)


@pytest.mark.few(17)
@pytest.mark.parametrize(("p_plus", "p_minus"), SETTINGS)
@pytest.mark.parametrize(("additions", "deletions"), [(1, 2), (0, 3), (3, 0)])
def test_no_deterministic_classifier_passes_the_bounds(p_plus, p_minus, additions, deletions):
    """All 256 sets of patterns of three bits, each at its own clean probability, rounded outward."""
    masses = pattern_masses(p_plus, p_minus, additions, deletions)
    regions = sparse_regions(p_plus=p_plus, p_minus=p_minus, num_additions=additions, num_deletions=deletions)
    attained = 0
    for chosen in itertools.product((0, 1), repeat=len(masses)):
        clean = sum((m[0] for m, taken in zip(masses, chosen, strict=True) if taken), Fraction(0))
        perturbed = sum((m[1] for m, taken in zip(masses, chosen, strict=True) if taken), Fraction(0))
        below = max(0.0, float(np.nextafter(float(clean), -1)))
        above = min(1.0, float(np.nextafter(float(clean), 2)))
        assert Fraction(perturbed_probability_lower(below, regions)) <= perturbed
        assert Fraction(perturbed_probability_upper(above, regions)) >= perturbed
        attained += perturbed - Fraction(perturbed_probability_lower(below, regions)) < Fraction(1, 10**12)
    assert attained >= 2  # the bounds are not merely 0 and 1


@pytest.mark.parametrize("p_minus", [0.25, 0.6, 1.0])
@pytest.mark.parametrize("deletions", [0, 1, 4, 11])
def test_without_additions_in_draws_the_bounds_have_a_closed_form(p_minus, deletions):
    """Only the draws in which all deleted ones are gone are draws of both inputs."""
    shared = Fraction(p_minus) ** deletions
    regions = sparse_regions(p_plus=0, p_minus=p_minus, num_additions=0, num_deletions=deletions)
    for probability in (0.0, 0.001, 0.3, 0.999, 1.0):
        p = Fraction(probability)
        lower, upper = max(Fraction(0), p - (1 - shared)) / shared, min(Fraction(1), p / shared)
        assert 0 <= lower - Fraction(perturbed_probability_lower(probability, regions)) <= Fraction(1, 10**15)
        assert 0 <= Fraction(perturbed_probability_upper(probability, regions)) - upper <= Fraction(1, 10**15)


def test_inputs_that_share_no_draw_tell_nothing_about_each_other():
    regions = sparse_regions(p_plus=0, p_minus=0, num_additions=0, num_deletions=1)
    assert perturbed_probability_lower(1.0, regions) == 0.0
    assert perturbed_probability_upper(0.0, regions) == 1.0


@pytest.mark.parametrize(("p_plus", "p_minus"), SETTINGS)
def test_more_flips_never_help(p_plus, p_minus):
    def bounds(additions, deletions):
        regions = sparse_regions(p_plus=p_plus, p_minus=p_minus, num_additions=additions, num_deletions=deletions)
        return perturbed_probability_lower(0.9, regions), perturbed_probability_upper(0.08, regions)

    for additions, deletions in itertools.product(range(5), repeat=2):
        lower, upper = bounds(additions, deletions)
        for more in (bounds(additions + 1, deletions), bounds(additions, deletions + 1)):
            assert more[0] <= lower
            assert more[1] >= upper


@pytest.mark.parametrize(("p_plus", "p_minus"), SETTINGS)
def test_the_search_finds_what_checking_every_pair_finds(p_plus, p_minus):
    p_lower, p_upper = np.array([0.999, 0.9, 0.5, 0.3, 1.0]), np.array([0.001, 0.08, 0.2, 0.3, 0.0])
    found = certified_deletions(p_lower, p_upper, p_plus=p_plus, p_minus=p_minus, max_deletions=4, max_additions=2)
    for additions in range(3):
        patterns = [pattern_masses(p_plus, p_minus, additions, deletions) for deletions in range(5)]
        for target, (low, high) in enumerate(zip(p_lower, p_upper, strict=True)):
            holds = [exact_least(masses, low) > 1 - exact_least(masses, 1 - Fraction(high)) for masses in patterns]
            largest = max((deletions for deletions in range(5) if holds[deletions]), default=-1)
            assert found[target, additions] == largest


def test_a_smoothing_that_forgets_the_input_is_certified_against_everything():
    found = certified_deletions([0.51], [0.49], p_plus=0.25, p_minus=0.75, max_deletions=30, max_additions=30)
    assert (found == 30).all()


def test_deletions_of_the_papers_setting_stop_at_the_limit_of_the_samples():
    """p_lower - p_upper > 1 - 0.6^r: with 10^5 equal votes and alpha = 0.01 no more than 17 deletions."""
    best = 0.005 ** (1 / 100_000)
    found = certified_deletions([best, 1.0], [1 - best, 0.0], p_plus=0, p_minus=0.6, max_deletions=300)
    assert found.tolist() == [[17], [300]]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"p_plus": 1.5}, "p_plus"),
        ({"p_minus": -0.1}, "p_minus"),
        ({"max_deletions": -1}, "max_deletions"),
        ({"max_additions": 0.5}, "max_additions"),
        ({"p_lower": [1.1]}, "p_lower"),
        ({"p_lower": [float("nan")]}, "p_lower"),
        ({"p_upper": [0.1, 0.2]}, "p_upper"),
        ({"p_upper": 0.1}, "p_upper"),
    ],
)
def test_refuses_what_is_out_of_range(changes, name):
    arguments = {"p_lower": [0.9], "p_upper": [0.1], "p_plus": 0.1, "p_minus": 0.6, "max_deletions": 3} | changes
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        certified_deletions(arguments.pop("p_lower"), arguments.pop("p_upper"), **arguments)
