"""Votes for no class: every rule gives what it gives in the worst case of how they are decided."""

import numpy as np
import pytest

from graycert._types import NO_CLASS
from graycert.errors import InvalidParameterError
from graycert.rules import SequentialCertificates, certify_counts, prediction_sets
from graycert.rules.event_aware import EventAwareRule
from graycert.smoothing.subgraphs.flipped_votes import attackable_radius, majority_radius
from graycert.statistics import EstimationVotes, SelectionVotes
from graycert.statistics.votes import count_classes

DELTAS = np.linspace(0.005, 0.45, 40)[None, :]


def tables(num_classes, seed, cases=40):
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        law = rng.dirichlet(np.r_[20.0, rng.uniform(0.2, 6.0, num_classes - 1), 1.0])
        yield rng.multinomial(400, law)


def decided(counts, for_none, to):
    """All votes for no class given to one class."""
    table = counts.copy()
    table[to] += for_none
    return table


@pytest.mark.few(3)
@pytest.mark.parametrize("rule", ["sound", "difference"])
@pytest.mark.parametrize("num_classes", [2, 3, 5])
def test_a_radius_is_that_of_the_worst_way_to_decide_them(rule, num_classes):
    some = 0
    for row in tables(num_classes, seed=num_classes):
        counts, for_none = row[:-1], int(row[-1])
        selection = SelectionVotes([[10, *[0] * (num_classes - 1)]], 10)
        open_votes = EstimationVotes(counts[None], 400, no_class=np.array([for_none]))
        found = certify_counts(selection, open_votes, DELTAS, alpha=0.01, rule=rule)
        worst = [
            certify_counts(
                selection, EstimationVotes(decided(counts, for_none, c)[None], 400), DELTAS, alpha=0.01, rule=rule
            )
            for c in range(num_classes)
        ]
        assert found.radius[0] == min(each.radius[0] for each in worst)
        assert found.p_lower[0] == min(each.p_lower[0] for each in worst)
        assert found.p_upper[0] == max(each.p_upper[0] for each in worst)
        some += found.radius[0] > 0
    assert some > 10


def test_a_set_of_labels_holds_what_any_way_to_decide_them_allows():
    for row in tables(4, seed=9):
        counts, for_none = row[:-1], int(row[-1])
        selection = SelectionVotes([[10, 0, 0, 0]], 10)
        found = prediction_sets(selection, EstimationVotes(counts[None], 400, no_class=np.array([for_none])), DELTAS)
        for c in range(4):
            decided_so = prediction_sets(selection, EstimationVotes(decided(counts, for_none, c)[None], 400), DELTAS)
            assert (found >= decided_so).all()


def test_bets_count_them_as_losses_against_every_class():
    for row in tables(3, seed=4, cases=15):
        counts, for_none = row[:-1], int(row[-1])
        radii = []
        for to in range(3):
            bets = SequentialCertificates([[98, 1, 1]], DELTAS)
            bets.update(decided(counts, for_none, to)[None])
            radii.append(bets.radius[0])
        bets = SequentialCertificates([[98, 1, 1]], DELTAS)
        bets.update(counts[None], [for_none])
        assert bets.radius[0] == min(radii)
        assert bets.num_samples.tolist() == [400]
    with pytest.raises(InvalidParameterError, match="`no_class` must have one entry per target"):
        bets.update(counts[None], [1, 2])


def test_the_event_aware_test_counts_them_for_the_strongest_other_class():
    rule = EventAwareRule(num_samples=400, most_lost=60, num_classes=4, alpha=0.01)
    rng = np.random.default_rng(0)
    for _ in range(30):
        classes = rng.choice([NO_CLASS, 1, 2, 3], size=rng.integers(0, 60), p=[0.3, 0.4, 0.2, 0.1])
        worst = max(rule._bound(np.where(classes == NO_CLASS, c, classes)) for c in (1, 2, 3))
        assert rule._bound(classes) == worst


def test_majorities_of_subgraphs_hold_however_they_are_decided():
    rng = np.random.default_rng(3)
    for _ in range(300):
        votes, for_none = rng.integers(0, 8, size=(1, 3)), rng.integers(0, 4, size=1)
        attackable = rng.integers(0, votes + 1)
        winner, unlimited = int(votes.argmax()), np.array([99])
        possible = [decided(votes[0], for_none[0], c)[None] for c in range(3)]
        stays = all(table.argmax() == winner for table in possible)
        expected = min(majority_radius(table)[0] for table in possible) if stays else -1
        assert majority_radius(votes, for_none).tolist() == [expected]
        narrowed = min(attackable_radius(table, attackable, unlimited)[0] for table in possible) if stays else -1
        assert attackable_radius(votes, attackable, unlimited, for_none).tolist() == [narrowed]


def test_tables_count_every_sample_once():
    counts, for_none = count_classes([[0, 2, NO_CLASS], [NO_CLASS, NO_CLASS, 1]], num_classes=3)
    assert (counts.tolist(), for_none.tolist()) == ([[1, 0, 1], [0, 1, 0]], [1, 2])
    assert EstimationVotes(counts, 3, no_class=for_none).possible().tolist() == [[2, 1, 2], [2, 3, 2]]
    with pytest.raises(InvalidParameterError, match="must sum to the same number of samples"):
        EstimationVotes(counts, 3)
    with pytest.raises(InvalidParameterError, match=r"`estimation_votes\.no_class` must have one entry per row"):
        EstimationVotes(counts, 3, no_class=np.array([1]))
