"""Deterministic certificates against the worst adversary, listed exactly."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.graph import star_graph
from graycert.graph.reduced_representatives import ReducedRepresentatives, reduced_representatives
from graycert.rules import Status
from graycert.smoothing.retention.deterministic import certify_derandomized, holds_against
from graycert.smoothing.retention.label_counts import retention_delta
from support.kept_sets import connected_part, kept_sets, random_setting
from support.random_graphs import to_adjacency

MAX_RADIUS = 4


class Listed:
    """A smoothed classifier of node 0, kept set by kept set; labels depend on what is connected."""

    def __init__(self, rng, *, num_classes, lean, limit=100_000):
        self.edges, num_nodes, self.num_layers, num_kept = random_setting(rng, max_nodes=8)
        hops = None if rng.integers(2) else self.num_layers
        self.num_classes = num_classes
        self.representatives = reduced_representatives(
            to_adjacency(self.edges, num_nodes),
            0,
            num_layers=self.num_layers,
            num_kept=num_kept,
            hops=hops,
            max_representatives=limit,
        )
        kept = kept_sets(self.edges, 0, self.num_layers, num_kept)
        parts = [connected_part(self.edges, nodes, 0, hops) for nodes in kept]
        table = {
            part: 0 if rng.random() < lean else int(rng.integers(num_classes))
            for part in sorted(set(parts), key=sorted)
        }
        self.labels = [table[part] for part in parts]
        self.arriving = [connected_part(self.edges, nodes, 0, self.num_layers) for nodes in kept]
        found = self.representatives
        sets = np.split(found.nodes[found.members], found.indptr[1:-1])
        self.class_labels = [table[frozenset(nodes.tolist())] for nodes in sets]

    def counts(self, hostile=frozenset(), wanted=None) -> np.ndarray:
        seen = [bool(arriving & hostile) for arriving in self.arriving]
        labels = [wanted if hit else label for label, hit in zip(self.labels, seen, strict=True)]
        return np.bincount(labels, minlength=self.num_classes)

    def survives(self, majority, hostile) -> bool:
        """Whether ``majority`` has strictly most kept sets whatever class the adversary makes all others vote for."""
        others = [c for c in range(self.num_classes) if c != majority]
        return all(
            counts[majority] > max(counts[c] for c in others)
            for counts in (self.counts(frozenset(hostile), wanted) for wanted in others)
        )

    def true_radius(self, majority, eligible) -> int:
        for radius in range(MAX_RADIUS + 1):
            size = min(radius, len(eligible))
            if not all(self.survives(majority, hostile) for hostile in itertools.combinations(eligible, size)):
                return radius - 1
        return MAX_RADIUS

    def certificate(self, eligible, **options):
        return certify_derandomized(
            self.representatives,
            self.class_labels,
            num_classes=self.num_classes,
            eligible=eligible,
            num_layers=self.num_layers,
            max_radius=MAX_RADIUS,
            **options,
        )


def drawn(rng, limit=100_000):
    listed = Listed(rng, num_classes=int(rng.integers(2, 5)), lean=float(rng.choice([0.3, 0.7, 0.95])), limit=limit)
    eligible = rng.random(listed.representatives.nodes.size) < 0.7
    if rng.random() < 0.8:
        eligible[0] = False
    return listed, eligible


def check_exact(num_graphs, seed):
    """Returns how often each radius occurs."""
    rng, radii = np.random.default_rng(seed), []
    for _ in range(num_graphs):
        listed, eligible = drawn(rng)
        found = listed.certificate(eligible)
        majority = int(listed.counts().argmax())
        nodes = listed.representatives.nodes[eligible].tolist()
        assert found.prediction == majority
        assert found.radius == listed.true_radius(majority, nodes)
        assert found.labels.counts == tuple(listed.counts().tolist())
        expected = {-1: Status.ABSTAINED, 0: Status.PREDICTED}.get(found.radius, Status.CERTIFIED)
        assert found.status == expected
        if 0 <= found.radius < MAX_RADIUS:
            assert set(found.broken_by) <= set(nodes)
            assert len(found.broken_by) <= found.radius + 1
            assert not listed.survives(majority, found.broken_by)
        else:
            assert found.broken_by is None
        radii.append(found.radius)
    return radii


def test_the_radius_is_that_of_the_worst_adversary():
    radii = check_exact(150, seed=0)
    assert {-1, 0, 1, MAX_RADIUS} <= set(radii)


@pytest.mark.slow
def test_the_radius_is_that_of_the_worst_adversary_on_many_graphs():
    assert {-1, 0, 1, 2, MAX_RADIUS} <= set(check_exact(2_000, seed=1))


def check_stopped(num_graphs, seed):
    rng, certified, smaller = np.random.default_rng(seed), 0, 0
    for _ in range(num_graphs):
        listed, eligible = drawn(rng, limit=int(rng.choice([2, 4, 8, 100])))
        found = listed.certificate(eligible, max_steps=1)
        true = listed.true_radius(int(listed.counts().argmax()), listed.representatives.nodes[eligible].tolist())
        if found.radius >= 0:
            assert found.prediction == listed.counts().argmax()
            assert found.radius <= true
        certified += found.radius > 0
        smaller += found.radius < true
        if found.broken_by is not None:
            assert not listed.survives(found.prediction, found.broken_by)
    assert certified > 10
    assert smaller > 3


def test_stopped_early_it_never_says_too_much():
    check_stopped(150, seed=2)


@pytest.mark.slow
def test_stopped_early_it_never_says_too_much_on_many_graphs():
    check_stopped(2_000, seed=3)


def test_a_fixed_set_of_hostile_nodes():
    rng, answers = np.random.default_rng(4), set()
    for _ in range(150):
        listed, eligible = drawn(rng)
        hostile = frozenset(listed.representatives.nodes[eligible].tolist())
        said = holds_against(
            listed.representatives,
            listed.class_labels,
            hostile=hostile,
            num_classes=listed.num_classes,
            num_layers=listed.num_layers,
        )
        assert said == listed.survives(int(listed.counts().argmax()), hostile)
        answers.add(said)
    assert answers == {True, False}


@given(st.integers(0, 2**32 - 1))
def test_never_below_the_condition_of_the_paper(seed):
    listed, eligible = drawn(np.random.default_rng(seed))
    deltas = retention_delta(
        listed.representatives, eligible=eligible, num_layers=listed.num_layers, max_radius=MAX_RADIUS
    )
    counts = sorted(listed.counts().tolist())
    lead = Fraction(counts[-1] - counts[-2], sum(counts))
    paper = int(np.cumprod([lead > 2 * Fraction(delta) for delta in deltas.tolist()]).sum()) if lead > 0 else -1
    assert listed.certificate(eligible).radius >= paper


def test_the_sharper_condition_pays():
    """Six leaves, one stays; four say class 0. Owning the two that say class 1 gains the adversary nothing."""
    found = reduced_representatives(star_graph(6), 0, num_layers=1, num_kept=1)
    labels = [int(found.nodes[members[1]] >= 5) for members in np.split(found.members, found.indptr[1:-1])]
    eligible = found.nodes >= 5
    deltas = retention_delta(found, eligible=eligible, num_layers=1, max_radius=2)
    assert 2 * deltas[0] >= 2 / 6
    certificate = certify_derandomized(found, labels, num_classes=2, eligible=eligible, num_layers=1, max_radius=2)
    assert certificate.radius == 2


@pytest.mark.parametrize("max_steps", [1, 1_000])
def test_the_worst_nodes_need_not_be_the_greedy_ones(max_steps):
    """Node 1 hits most, then 2 or 3: 16 of the lead of 18. Nodes 2 and 3 together take 20."""
    found = ReducedRepresentatives(
        nodes=np.arange(19),
        field_distances=np.minimum(np.arange(19), 1),
        num_kept=1,
        indptr=np.array([0, 3, 6, 8, 10, 11]),
        members=np.array([0, 1, 2, 0, 1, 3, 0, 2, 0, 3, 0]),
        distances=np.array([0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0]),
        class_sizes=(3, 3, 2, 2, 8),
    )
    certificate = certify_derandomized(
        found, [0] * 5, num_classes=2, eligible=found.nodes > 0, num_layers=1, max_steps=max_steps
    )
    assert certificate.radius == 1
    assert certificate.broken_by == (None if max_steps == 1 else (2, 3))


def test_an_exact_tie_abstains():
    found = reduced_representatives(star_graph(2), 0, num_layers=1, num_kept=1)
    certificate = certify_derandomized(found, [0, 1], num_classes=3, eligible=found.nodes > 0, num_layers=1)
    assert (certificate.status, certificate.radius) == (Status.ABSTAINED, -1)


def test_a_hostile_target_is_never_certified():
    found = reduced_representatives(star_graph(4), 0, num_layers=1, num_kept=1)
    certificate = certify_derandomized(found, [0] * 4, num_classes=2, eligible=np.ones(5, bool), num_layers=1)
    assert (certificate.status, certificate.radius, certificate.broken_by) == (Status.PREDICTED, 0, (0,))


def test_arguments_are_checked():
    found = reduced_representatives(star_graph(2), 0, num_layers=1, num_kept=1)
    options = {"labels": [0, 0], "num_classes": 2, "eligible": np.ones(3, bool), "num_layers": 1, "max_radius": 1}
    bad = [("labels", [0]), ("num_classes", 1), ("eligible", [True]), ("num_layers", 0), ("max_radius", 0)]
    for name, value in [*bad, ("max_steps", 0)]:
        with pytest.raises(InvalidParameterError, match=f"`{name}` must"):
            certify_derandomized(found, **(options | {name: value}))
