"""The event-aware rule keeps its level on critical instances: for a fixed hostile set B and class c, exactly

P(f = y*, not E(B)) - P(f = c, not E(B)) = p(E(B)),

so that B brings the target to a tie and each certificate of radius |B| is false. Half of the instances have no other
hostile nodes, which gives the test its power; elsewhere the rule must find B among other sets.
"""

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy import stats

from graycert.bounds.two_level import TwoLevelSearch
from graycert.rules.event_aware import EventAwareRule
from support.lost_votes import random_field
from support.random_graphs import to_adjacency
from support.two_level_oracles import Outcomes, SmallGraph

FAILURE = 1e-6  # chance that right code fails a statistical test of this file
ALPHA = 0.05
NUM_SAMPLES = 300


@dataclass(frozen=True)
class CriticalInstance:
    """The law of (what arrives, vote) of one target, in cells.

    Args:
        graph: The graph; node 0 is the target.
        eligible: Nodes that may be hostile, in the order of the receptive field.
        radius: Size of the set that brings the target to a tie.
        num_classes: Number of classes; class 0 is reported.
        arrived: Which eligible nodes arrive, shape (num_cells, num_eligible).
        classes: The vote, shape (num_cells,).
        law: Probability of each cell.
    """

    graph: SmallGraph
    eligible: list[int]
    radius: int
    num_classes: int
    arrived: np.ndarray
    classes: np.ndarray
    law: np.ndarray

    def routes(self, *, p_ablate=None):
        nodes = np.array(self.graph.field())
        search = TwoLevelSearch(
            to_adjacency(self.graph.edges, self.graph.num_nodes),
            p_delete=np.array(self.graph.p_delete),
            p_ablate=np.array(self.graph.p_ablate) if p_ablate is None else np.full(self.graph.num_nodes, p_ablate),
            num_layers=self.graph.num_layers,
        )
        return search.routes(nodes, np.isin(nodes, self.eligible))

    def false_certificates(self, rng, repeats, *, rule, routes, shuffled=False):
        """How often radius |B| is certified; ``shuffled`` takes the arrivals of other draws than the votes."""
        positions = np.flatnonzero(np.isin(self.graph.field(), self.eligible))
        lost, found = self.classes > 0, 0
        for counts in rng.multinomial(NUM_SAMPLES, self.law, size=repeats):
            arrived = np.repeat(self.arrived[lost], counts[lost], axis=0)
            if shuffled:
                arrived = rng.permutation(np.repeat(self.arrived, counts, axis=0))[: arrived.shape[0]]
            certificate = rule.certify(
                routes,
                classes=np.repeat(self.classes[lost], counts[lost]),
                arrived=arrived,
                eligible=positions,
                delta_upper=np.ones(self.radius),
            )
            found += certificate.radius >= self.radius
        return found


def arrival_law(graph, eligible):
    """P(exactly these eligible nodes arrive), every coin listed."""
    truth, law = Outcomes(graph), {}
    for size in range(len(eligible) + 1):
        for silent in itertools.combinations(eligible, size):
            law[frozenset(silent)] = float(truth.miss(silent))  # nothing from these; inclusion-exclusion below
    subsets = {}
    for kept in law:
        rest = frozenset(eligible) - kept
        subsets[kept] = sum(
            (-1) ** size * law[rest | set(more)]
            for size in range(len(kept) + 1)
            for more in itertools.combinations(sorted(kept), size)
        )
    return {kept: max(p, 0.0) for kept, p in subsets.items()}


def critical_instance(rng) -> CriticalInstance | None:
    """Draw one, or None if the messages of the set drawn arrive never, or too often for a tie."""
    graph = random_field(rng, int(rng.integers(1, 4)), max_nodes=5)
    if len(set(graph.coin_of)) > 8:
        return None
    others, size = graph.field()[1:], int(rng.integers(1, 4))
    if len(others) < size:
        return None
    hostile = sorted(rng.choice(others, size, replace=False).tolist())
    eligible = [node for node in others if node in hostile] if rng.integers(2) else others
    law = arrival_law(graph, eligible)
    arrives = sum(p for kept, p in law.items() if kept & set(hostile))
    if not 0.01 < arrives < 0.45:
        return None
    num_classes = int(rng.integers(2, 5))
    lead = arrives / (1 - arrives)  # of y* over c where nothing from B arrives
    beside = 0.0 if num_classes == 2 else rng.choice([0.0, 0.5, 1.0]) * (1 - lead) / 2
    without = np.zeros(num_classes)
    without[:2] = (1 + lead - beside) / 2, (1 - lead - beside) / 2
    without[2:] = beside / max(num_classes - 2, 1)
    seen = [np.eye(num_classes)[0], np.eye(num_classes)[1], rng.dirichlet(np.ones(num_classes))][rng.integers(3)]
    cells = [
        (kept, label, p * (seen if kept & set(hostile) else without)[label])
        for kept, p in law.items()
        for label in range(num_classes)
    ]
    probabilities = np.array([p for _, _, p in cells])
    return CriticalInstance(
        graph=graph,
        eligible=eligible,
        radius=size,
        num_classes=num_classes,
        arrived=np.array([[node in kept for node in eligible] for kept, _, _ in cells]),
        classes=np.array([label for _, label, _ in cells]),
        law=probabilities / probabilities.sum(),
    )


@cache
def critical_instances(number):
    rng, found = np.random.default_rng(1), []
    while len(found) < number:
        instance = critical_instance(rng)
        if instance is not None:
            found.append(instance)
    return found


@cache
def rule_for(num_classes, alpha):
    return EventAwareRule(num_samples=NUM_SAMPLES, most_lost=NUM_SAMPLES, num_classes=num_classes, alpha=alpha)


def false_counts(instances, repeats, *, alpha=ALPHA, p_ablate=None, seed=2, shuffled=False):
    rng = np.random.default_rng(seed)
    return np.array(
        [
            each.false_certificates(
                rng,
                repeats,
                rule=rule_for(each.num_classes, alpha),
                routes=each.routes(p_ablate=p_ablate),
                shuffled=shuffled,
            )
            for each in instances
        ]
    )


def keeps_its_level(counts, repeats):
    """Exact binomial tests at a joint level of 1e-6: false for right code with at most that chance."""
    return bool(stats.binom.sf(counts - 1, repeats, ALPHA).min() > FAILURE / counts.size)


@pytest.mark.statistical
@pytest.mark.parametrize(("number", "repeats"), [(60, 400), pytest.param(150, 4_000, marks=pytest.mark.slow)])
def test_false_certificates_stay_below_alpha(number, repeats):
    """60 instances, 400 repetitions each; slow: 150 and 4,000."""
    instances = critical_instances(number)
    counts = false_counts(instances, repeats)
    assert keeps_its_level(counts, repeats)
    two_classes = np.array([each.num_classes == 2 for each in instances])
    assert counts[two_classes].max() > 0.8 * ALPHA * repeats  # nearly all of α is spent
    assert counts[~two_classes].max() > 0.3 * ALPHA * repeats
    assert {each.radius for each in instances} == {1, 2, 3}


@pytest.mark.deep
@pytest.mark.statistical
@pytest.mark.parametrize(
    "mistake",
    [
        {"alpha": 4 * ALPHA},
        {"p_ablate": 0.999},  # as good as leaving out 2 p(E(B))
        {"shuffled": True},  # arrivals of other draws than the votes
    ],
)
def test_mistakes_would_be_seen(mistake):
    """60 instances, 400 repetitions each."""
    assert not keeps_its_level(false_counts(critical_instances(60), 400, **mistake), 400)


def test_the_instances_are_critical():
    """The condition holds with equality for one set of this size and one class, and p(E(B)) is what arrives."""
    for each in critical_instances(60):
        worst, truth = np.inf, Outcomes(each.graph)
        for columns in itertools.combinations(range(len(each.eligible)), each.radius):
            hit = each.arrived[:, list(columns)].any(axis=1)
            arrives = each.law[hit].sum()
            assert arrives == pytest.approx(float(1 - truth.miss([each.eligible[i] for i in columns])), abs=1e-12)
            kept = np.bincount(each.classes[~hit], weights=each.law[~hit], minlength=each.num_classes)
            gaps = kept[0] - kept[1:] - arrives
            worst = min(worst, np.abs(gaps).min())
        assert worst < 1e-12
