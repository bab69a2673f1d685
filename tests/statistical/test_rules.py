"""The rules on vote counts keep their level at realistic sample sizes, on critical instances.

Exact sizes for few samples are enumerated in tests/certificates and tests/probabilities; here are thousands of votes.
Every instance is critical: the lead over one or more classes is exactly 2Δ, so each certificate of radius 1 is false.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

from graycert.rules import certified_radius
from graycert.rules.difference import difference_margin_lower
from graycert.rules.prediction_sets import prediction_sets
from graycert.rules.sequential import SequentialCertificates
from graycert.statistics import EstimationVotes, SelectionVotes

FAILURE = 1e-6  # chance that right code fails a statistical test of this file
ALPHA = 0.05
REPEATS = 2_000
LAWS = [  # class 0 leads class 1 by a multiple of 1/8, which is exact in binary: Δ = lead / 2
    (0.5, 0.375, 0.125),
    (0.5, 0.25, 0.25),
    (0.625, 0.125, 0.125, 0.125),
    (0.75, 0.25, 0.0),
    (0.875, 0.125),
    (0.875, 0.0625, 0.0625),
]


def keeps_its_level(counts):
    """Exact binomial tests at a joint level of 1e-6: false for right code with at most that chance."""
    return bool(stats.binom.sf(np.array(counts) - 1, REPEATS, ALPHA).min() > FAILURE / len(counts))


def critical(p, *, factor=1.0):
    deltas = np.full((REPEATS, 1), (p[0] - p[1]) / 2 * factor)
    return np.array(p), deltas


def false_by_difference(p, rng, num_samples, *, factor=1.0):
    law, deltas = critical(p, factor=factor)
    votes = EstimationVotes(rng.multinomial(num_samples, law, size=REPEATS), num_samples)
    margin = difference_margin_lower(votes, np.zeros(REPEATS, np.int64), alpha=ALPHA)
    return int((certified_radius(margin, deltas) >= 1).sum())


def false_by_betting(p, rng, *, batch, num_batches, factor=1.0, stop=False):
    """Radius 1 at any time; with ``stop`` sampling ends where it looks best for the certificate or is given up."""
    law, deltas = critical(p, factor=factor)
    selection = rng.multinomial(200, law, size=REPEATS)
    selection[:, 0] += 200  # the reported class is class 0; the stakes may be as bold as they like
    certificates = SequentialCertificates(selection, deltas, alpha=ALPHA)
    for _ in range(num_batches):
        votes = rng.multinomial(batch, law, size=REPEATS)
        certificates.update(votes * certificates.undecided[:, None] if stop else votes)
    return int((certificates.radius >= 1).sum())


def missed_by_sets(p, rng, num_samples, *, label, factor=1.0):
    """How often the set for radius 1 misses ``label``, which an attack on one node can force."""
    law, deltas = critical(p, factor=factor)
    selection = SelectionVotes(rng.multinomial(30, law, size=REPEATS), 30)
    estimation = EstimationVotes(rng.multinomial(num_samples, law, size=REPEATS), num_samples)
    return int((~prediction_sets(selection, estimation, deltas, alpha=ALPHA)[:, 1, label]).sum())


@pytest.mark.statistical
def test_difference_rule():
    """12 instances, 2,000 repetitions each."""
    rng = np.random.default_rng(1)
    counts = [false_by_difference(p, rng, n) for p, n in itertools.product(LAWS, (300, 3_000))]
    assert keeps_its_level(counts)
    assert max(counts) > 0.5 * ALPHA * REPEATS  # nearly all of α is spent


@pytest.mark.deep
@pytest.mark.statistical
@pytest.mark.parametrize("stop", [False, True])
def test_sequential_rule(stop):
    """6 instances, 2,000 repetitions of 30 looks each."""
    rng = np.random.default_rng(2)
    counts = [false_by_betting(p, rng, batch=100, num_batches=30, stop=stop) for p in LAWS]
    assert keeps_its_level(counts)
    assert max(counts) > 0


@pytest.mark.deep
@pytest.mark.statistical
def test_looking_twenty_times_at_a_rule_for_one_look_is_not_sound():
    """Why the sequential rule is needed: the difference rule, applied after every batch."""
    rng, (p, deltas) = np.random.default_rng(3), critical(LAWS[0])
    counts, certified = np.zeros((REPEATS, 3), np.int64), np.zeros(REPEATS, bool)
    for looks in range(1, 21):
        counts += rng.multinomial(150, p, size=REPEATS)
        margin = difference_margin_lower(EstimationVotes(counts, 150 * looks), np.zeros(REPEATS, np.int64), alpha=ALPHA)
        certified |= certified_radius(margin, deltas) >= 1
    assert not keeps_its_level([int(certified.sum())])


@pytest.mark.deep
@pytest.mark.statistical
def test_prediction_sets():
    """24 instances, 2,000 repetitions each: both the leading class and a class that is just possible."""
    rng = np.random.default_rng(4)
    counts = [missed_by_sets(p, rng, n, label=label) for p, n, label in itertools.product(LAWS, (300, 3_000), (0, 1))]
    assert keeps_its_level(counts)
    assert max(counts) > 0.5 * ALPHA * REPEATS


@pytest.mark.deep
@pytest.mark.statistical
def test_bounds_that_are_too_small_would_be_seen():
    """Δ a tenth too small: every rule fails the same check."""
    rng = np.random.default_rng(5)
    p = LAWS[2]
    assert not keeps_its_level([false_by_difference(p, rng, 3_000, factor=0.9)])
    assert not keeps_its_level([false_by_betting(p, rng, batch=100, num_batches=30, factor=0.9)])
    assert not keeps_its_level([missed_by_sets(p, rng, 3_000, label=1, factor=0.9)])
