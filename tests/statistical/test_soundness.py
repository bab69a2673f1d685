"""No certified radius is ever broken by the worst adversary, and false certificates stay below α.

Random graphs of few edges, every coin listed, all probabilities as Fractions; the adversary turns each draw in which
one of its messages arrives into the strongest wrong class. Critical classifiers (true lead at or just below 2Δ) give
the tests their power: each comes with a mutation that fails it.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from graycert.bounds.evaluation import delta_bounds
from graycert.rules import certify_votes
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat
from support.enumeration import arrival_law, hop_distances
from support.random_graphs import random_edges, to_adjacency
from support.worst_adversary import critical_classifier, random_classifier, seen_law

FAILURE = 1e-6  # chance that right code fails a statistical test of this file
ALPHA = 0.05
MAX_RADIUS = 3
TARGET = 0


class Instance:
    """One graph with its bounds and the exact law of what its target sees."""

    def __init__(self, seed, *, bound="multiplicative", inflate=1.0):
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.num_layers = 1 + seed % 4
        directed = bool(seed // 4 % 2)
        num_nodes = int(rng.integers(4, 7))
        most = 9 if directed else 8
        while True:
            edges = random_edges(rng, num_nodes, 0.3 if directed else 0.4, directed=directed)
            if any(target == TARGET for _, target in edges) and len(edges) <= most:
                break
        p_delete, p_ablate = float(rng.choice([0.1, 0.3, 0.5, 0.8])), float(rng.choice([0.0, 0.4, 0.6, 0.9]))
        threat = NodeFeatureThreat(min_distance=int(rng.integers(0, 2)))
        law = arrival_law(edges, TARGET, self.num_layers, Fraction(p_delete))
        self.seen = seen_law(law, Fraction(p_ablate))
        distances = hop_distances(edges, TARGET, self.num_layers)
        self.eligible = [node for node, hops in sorted(distances.items()) if hops >= threat.min_distance]
        bounds = delta_bounds(
            to_adjacency(edges, num_nodes),
            [TARGET],
            smoothing=InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate),
            threat=threat,
            num_layers=self.num_layers,
            max_radius=MAX_RADIUS,
            bound=bound,
        )
        self.delta_upper = inflate * np.asarray(bounds)

    def worst_sets(self):
        """For each radius the hostile set whose messages arrive most often."""
        for radius in range(1, min(MAX_RADIUS, len(self.eligible)) + 1):
            sets = [frozenset(b) for b in itertools.combinations(self.eligible, radius)]
            yield max(sets, key=lambda b: sum(p for kept, p in self.seen.items() if kept & b))

    def classifiers(self):
        for lean in (0.3, 0.6, 0.9):
            yield random_classifier(self.seen, self.rng, num_classes=3, lean=lean)
        for hostile in self.worst_sets():
            for lead_beyond in (Fraction(-1, 10**9), Fraction(0), Fraction(1, 10**9), Fraction(1, 20)):
                critical = critical_classifier(self.seen, hostile, lead_beyond, num_classes=3)
                if critical is not None:
                    yield critical


def exact_radius(classifier, delta_upper):
    """The certificate with the exact distribution instead of confidence bounds."""
    margin = classifier.margin()
    radius = 0
    while radius < MAX_RADIUS and margin > 2 * Fraction(float(delta_upper[0, radius])):
        radius += 1
    return radius


def broken_exact_certificates(seeds, **options):
    """Count certified (classifier, radius) pairs and those that an adversary breaks."""
    certified = broken = 0
    for seed in seeds:
        instance = Instance(seed, **options)
        for classifier in instance.classifiers():
            clean = classifier.clean()
            majority = clean.index(max(clean))
            radius = exact_radius(classifier, instance.delta_upper)
            if radius >= 1:
                certified += 1
                broken += classifier.true_radius(majority, instance.eligible, radius) < radius
    return certified, broken


@pytest.mark.few(1)
@pytest.mark.parametrize("bound", ["multiplicative", "union"])
def test_no_certified_radius_is_broken(bound):
    certified, broken = broken_exact_certificates(range(24), bound=bound)
    assert certified >= 20
    assert broken == 0


@pytest.mark.deep
def test_bounds_that_are_a_little_too_small_are_broken():
    assert broken_exact_certificates(range(24), inflate=0.9)[1] >= 5
    assert broken_exact_certificates(range(24), inflate=1 - 1e-12)[1] >= 1


def test_critical_classifiers_are_certified_once_they_lead_by_more():
    """The certificate is tight where Δ̄ is: one layer, one hostile node, a lead of 2Δ and a billionth."""
    tight = 0
    for seed in range(0, 24, 4):
        instance = Instance(seed)
        hostile = next(instance.worst_sets())
        leads = [critical_classifier(instance.seen, hostile, Fraction(s, 10**9), num_classes=3) for s in (0, 1)]
        if None not in leads:
            radii = [exact_radius(classifier, instance.delta_upper) for classifier in leads]
            tight += radii[0] == 0 and radii[1] >= 1
    assert tight >= 2


def false_certificates(classifier, delta_upper, eligible, rng, *, repeats, n0=200, n1=2_000, rule="sound"):
    """How many of ``repeats`` certificates from sampled votes claim more than is true."""
    clean = np.array([float(p) for p in classifier.clean()])
    clean /= clean.sum()
    found = certify_votes(
        rng.multinomial(n0, clean, size=repeats),
        rng.multinomial(n1, clean, size=repeats),
        np.repeat(delta_upper, repeats, axis=0),
        alpha=ALPHA,
        rule=rule,
        belongs_to="one instance, drawn many times",
    )
    truth = np.array([classifier.true_radius(label, eligible, MAX_RADIUS) for label in range(len(clean))])
    return int((found.radius > truth[found.prediction]).sum()), int((found.radius >= 1).sum())


def critical_instances(seeds, **options):
    for seed in seeds:
        instance = Instance(seed, **options)
        for hostile in instance.worst_sets():
            classifier = critical_classifier(instance.seen, hostile, Fraction(0), num_classes=3)
            if classifier is not None:
                yield instance, classifier


@pytest.mark.statistical
def test_false_certificates_from_sampled_votes_stay_below_alpha():
    """If a true rate were at most α, one of the counts would be this high with chance at most 1e-6."""
    rng, repeats, counts, claims = np.random.default_rng(1), 1_000, [], 0
    for instance, classifier in critical_instances(range(24)):
        false, claimed = false_certificates(classifier, instance.delta_upper, instance.eligible, rng, repeats=repeats)
        counts.append(false)
        claims += claimed
    assert len(counts) >= 10
    assert claims > 1_000
    assert stats.binom.sf(np.array(counts) - 1, repeats, ALPHA).min() > FAILURE / len(counts)


@pytest.mark.deep
@pytest.mark.statistical
def test_small_bounds_raise_the_rate_of_false_certificates():
    rng, repeats, pvalues = np.random.default_rng(1), 1_000, []
    for instance, classifier in critical_instances(range(24), inflate=0.9):
        false, _ = false_certificates(classifier, instance.delta_upper, instance.eligible, rng, repeats=repeats)
        pvalues.append(stats.binom.sf(false - 1, repeats, ALPHA))
    assert min(pvalues) < FAILURE / len(pvalues)


@pytest.mark.deep
@pytest.mark.statistical
@pytest.mark.parametrize("num_selection", [10, 100])
def test_bounding_only_the_runner_up_is_not_sound(num_selection):
    """p = (.60, .21, .19) and Δ = .20: the lead over class 1 is .39 < 2Δ; class 2 often looks second."""
    rng, repeats, p = np.random.default_rng(2), 1_000, [0.60, 0.21, 0.19]
    selection = rng.multinomial(num_selection, p, size=repeats)
    estimation = rng.multinomial(100_000, p, size=repeats)
    deltas = np.full((repeats, 1), 0.20)
    rates = {}
    for rule in ("paper", "sound"):
        found = certify_votes(selection, estimation, deltas, alpha=0.01, rule=rule, belongs_to="made up")
        rates[rule] = int((found.radius >= 1).sum())  # p moves to (.40, .41, .19): each certificate is false
    assert stats.binom.sf(rates["paper"] - 1, repeats, 0.01) < FAILURE
    assert rates["paper"] > 0.25 * repeats
    assert stats.binom.sf(rates["sound"] - 1, repeats, 0.01) > FAILURE


@pytest.mark.slow
@pytest.mark.statistical
def test_many_more_graphs():
    certified, broken = broken_exact_certificates(range(24, 400))
    assert certified > 300
    assert broken == 0
