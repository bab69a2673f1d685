import numpy as np
import pytest

from graycert.rules import binary_margin, certified_radius, certify_votes
from graycert.rules.binary import binary_bounds
from graycert.rules.difference import difference_leads_lower, difference_margin_lower
from graycert.statistics import EstimationVotes
from support.outcomes import all_outcomes, critical_laws, probabilities

LEADS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)


def margins_of(outcomes, alpha):
    votes = EstimationVotes(outcomes, int(outcomes[0].sum()))
    return difference_margin_lower(votes, np.zeros(len(outcomes), np.int64), alpha=alpha)


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("num_samples", [8, 25, 40])
def test_exact_size_with_three_classes(num_samples, alpha):
    """All outcomes, on laws where one or both other classes trail by exactly the threshold."""
    outcomes = all_outcomes(num_samples)
    margins = margins_of(outcomes, alpha)
    sizes = [float(probabilities(outcomes, p)[margins >= lead].sum()) for lead in LEADS for p in critical_laws(lead)]
    assert len(sizes) > 20
    assert max(sizes) <= alpha
    assert max(sizes) >= 0.5 * alpha or num_samples < 20


def test_a_slightly_larger_level_would_be_seen():
    """The enumeration notices a rule that spends twice its level."""
    outcomes = all_outcomes(40)
    margins = margins_of(outcomes, 0.1)
    largest = max(
        float(probabilities(outcomes, p)[margins >= lead].sum()) for lead in LEADS for p in critical_laws(lead)
    )
    assert largest > 0.05


def test_all_radii_of_a_target_fail_together_at_most_at_level_alpha():
    """Radii from one margin: the probability that any of them is too large, not of each."""
    alpha, outcomes, deltas = 0.05, all_outcomes(30), np.array([0.05, 0.15, 0.25, 0.3])
    radius = certified_radius(margins_of(outcomes, alpha), np.repeat(deltas[None], len(outcomes), axis=0))
    for index, delta in enumerate(deltas):
        for p in critical_laws(2 * delta):
            # a lead of 2Δ(index + 1): true radius is ``index``
            assert probabilities(outcomes, p)[radius > index].sum() <= alpha


def test_two_classes_are_the_binary_certificate():
    votes, majority = EstimationVotes([[90, 10], [30, 70]], 100), np.array([0, 1])
    margin = difference_margin_lower(votes, majority, alpha=0.01)
    assert (margin == binary_margin(binary_bounds(votes, majority, alpha=0.01)[0])).all()
    leads = difference_leads_lower(votes, majority, alpha=0.01)
    assert leads.tolist() == [[-1.0, margin[0]], [margin[1], -1.0]]


def test_margin_is_the_smallest_lead():
    rng = np.random.default_rng(3)
    counts = rng.multinomial(500, rng.dirichlet([4, 1, 1, 1], size=40))
    votes, majority = EstimationVotes(counts, 500), counts.argmax(axis=1)
    margin = difference_margin_lower(votes, majority, alpha=0.01)
    leads = difference_leads_lower(votes, majority, alpha=0.01)
    rows = np.arange(40)
    assert (leads[rows, majority] == -1.0).all()
    leads[rows, majority] = np.inf
    assert (leads.min(axis=1) == margin).all()


def test_radii_are_never_smaller_than_with_two_bounds():
    rng = np.random.default_rng(5)
    p = rng.dirichlet([8, 1, 1, 1], size=60)
    selection, estimation = rng.multinomial(100, p), rng.multinomial(3_000, p)
    deltas = np.repeat(np.linspace(0.02, 0.48, 24)[None], 60, axis=0)
    plain = certify_votes(selection, estimation, deltas, belongs_to="made-up votes and bounds")
    margin = difference_margin_lower(EstimationVotes(estimation, 3_000), plain.prediction, alpha=0.01)
    radius = certified_radius(margin, deltas)
    assert (radius >= plain.radius).all()
    assert (radius > plain.radius).sum() >= 5


def test_a_class_that_is_behind_shows_no_lead():
    votes = EstimationVotes([[10, 60, 30], [50, 50, 0], [0, 0, 100]], 100)
    assert difference_margin_lower(votes, np.array([0, 0, 0]), alpha=0.01).tolist() == [-1.0, -1.0, -1.0]
    assert difference_margin_lower(votes, np.array([1, 1, 2]), alpha=0.01)[2] > 0.9
