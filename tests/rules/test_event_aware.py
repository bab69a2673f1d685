"""The event-aware rule against every adversary, every set, and the rule on vote counts."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.bounds.two_level import DEFAULT_BUDGET, TwoLevelSearch
from graycert.errors import InvalidParameterError
from graycert.rules import certify_votes
from graycert.rules.event_aware import EventAwareRule
from support.listed_outcomes import ListedOutcomes, list_outcomes, random_listed, wins
from support.lost_votes import made_critical, random_case
from support.random_graphs import to_adjacency
from support.two_level_oracles import SmallGraph, TwoLevels

FEW_OR_MANY = [40, pytest.param(600, marks=pytest.mark.slow)]  # per number of layers
ROUNDING = 1e-9


def routes_of(graph, eligible, *, budget=DEFAULT_BUDGET):
    nodes = np.array(graph.field())
    search = TwoLevelSearch(
        to_adjacency(graph.edges, graph.num_nodes),
        p_delete=np.array(graph.p_delete),
        p_ablate=np.array(graph.p_ablate),
        num_layers=graph.num_layers,
        budget=budget,
    )
    return search.routes(nodes, np.isin(nodes, eligible))


def rule_with(table, *, two_classes, max_sets=20_000):
    """A rule whose confidence bounds are ``table``."""
    num_classes = 2 if two_classes else 3
    rule = EventAwareRule(num_samples=1, most_lost=0, num_classes=num_classes, alpha=0.05, max_sets=max_sets)
    rule._upper = np.array(table)
    return rule


def certify_case(case, *, max_radius, delta_upper=None, max_sets=20_000):
    return rule_with(case.upper, two_classes=case.two_classes, max_sets=max_sets).certify(
        routes_of(case.graph, case.eligible),
        classes=case.classes,
        arrived=case.arrived,
        eligible=case.positions,
        delta_upper=np.ones(max_radius) if delta_upper is None else delta_upper,
    )


# Every set by definition


@pytest.mark.few(1)
@pytest.mark.parametrize("num_cases", FEW_OR_MANY)
@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_the_radius_is_the_largest_up_to_which_every_set_passes(num_layers, num_cases):
    """Eligible nodes that never arrive, the target among them, more radius than nodes, no lost votes, two classes."""
    rng, radii = np.random.default_rng(num_layers), []
    for _ in range(num_cases):
        case = random_case(rng, num_layers)
        case = made_critical(case, int(rng.integers(1, 4)), rng)
        max_radius = int(rng.integers(1, len(case.eligible) + 3))
        if min(abs(case.worst(size) - 1.0) for size in range(max_radius + 1)) < ROUNDING:
            continue
        found = certify_case(case, max_radius=max_radius)
        assert found.decided
        assert found.radius == case.true_radius(max_radius)
        if 0 <= found.radius < max_radius:
            failing = case.nodes[found.counterexample].tolist()
            assert len(set(failing)) == len(failing) == found.radius + 1
            assert set(failing) <= set(case.eligible)
            assert case.harm(failing) > 1.0 - ROUNDING
        else:
            assert found.counterexample.size == 0
        radii.append(found.radius)
    assert set(radii) >= {-1, 0, 1}
    assert max(radii) >= 2


def test_a_search_that_is_given_up_ends_the_radius():
    rng, undecided = np.random.default_rng(5), 0
    for _ in range(80):
        case = made_critical(random_case(rng, 2), 3, rng)
        found = certify_case(case, max_radius=4, max_sets=1)
        assert found.radius <= case.true_radius(4)
        if not found.decided:
            undecided += 1
            assert found.counterexample.size == 0
            assert found.radius == 4 or found.radius >= 1  # radius 1 needs no branching
    assert undecided >= 5


def test_bounds_on_delta_can_only_help():
    rng = np.random.default_rng(6)
    for _ in range(60):
        case = made_critical(random_case(rng, 2), 2, rng)
        delta = [max(case.arrival_probability(b) for b in case.sets(size)) * (1 + 1e-12) for size in (1, 2, 3)]
        with_delta = certify_case(case, max_radius=3, delta_upper=np.array(delta), max_sets=1)
        assert certify_case(case, max_radius=3, max_sets=1).radius <= with_delta.radius <= case.true_radius(3)


def test_too_many_walks_leave_the_bound_on_delta():
    """Routes that were not found say nothing about who can arrive."""
    graph = SmallGraph(3, 2, [(1, 0), (2, 1)], [0, 1], [0.3, 0.3], [0.5, 0.5, 0.5])
    nothing = routes_of(graph, [1, 2], budget=0)
    assert nothing.p_first.size == 0
    rule = EventAwareRule(num_samples=1_000, most_lost=100, num_classes=3, alpha=0.01)
    votes = {"classes": np.ones(100, np.int64), "arrived": np.ones((100, 2), bool), "eligible": np.array([1, 2])}
    found = rule.certify(nothing, **votes, delta_upper=np.array([0.3, 0.5, 0.5]))
    assert (found.radius, found.decided, found.counterexample.size) == (1, False, 0)
    found = rule.certify(nothing, **votes, delta_upper=np.array([0.3, 0.36]))
    assert (found.radius, found.decided) == (2, True)
    found = rule.certify(nothing, **votes, delta_upper=np.array([1.0, 0.1]))
    assert (found.radius, found.decided) == (0, False)


# Every adversary


def base_classifier(rng, listed, num_classes, *, least=0.6):
    """Any function of the coins; class 0 is frequent, more so where messages arrive, or where none does."""
    some, none = rng.uniform(least, 1.2, size=2)
    lean = np.where(listed.arrived[:, 1:].any(axis=1), some, none)
    return np.where(rng.random(len(lean)) < lean, 0, rng.integers(num_classes, size=len(lean)))


def is_robust(listed, votes_for, hostile, num_classes):
    """P(f = y*, not E(B)) - P(f = c, not E(B)) > p(E(B)) for all c, in whole numbers."""
    hit = listed.hit(hostile)
    missed = np.bincount(votes_for[~hit], weights=listed.weights[~hit], minlength=num_classes)
    return all(missed[0] - missed[c] > listed.weights[hit].sum() for c in range(1, num_classes))


def hostile_sets(listed, size):
    return itertools.combinations(range(listed.graph.num_nodes), size)


def test_the_condition_is_exact():
    """It holds iff no adversary wins, and the one that always outputs c decides: 300 classifiers, all adversaries."""
    rng, found = np.random.default_rng(7), []
    while len(found) < 300:
        listed, num_classes = random_listed(rng, int(rng.integers(1, 5))), int(rng.integers(2, 4))
        votes_for = base_classifier(rng, listed, num_classes, least=0.1)
        for size in (1, 2):
            for hostile in hostile_sets(listed, size):
                if num_classes ** int(listed.hit(hostile).sum()) > 1_000:
                    continue
                attacks = listed.all_attacks(votes_for, hostile, num_classes)
                outputs_c = [listed.attacked(votes_for, hostile, c) for c in range(1, num_classes)]
                robust = is_robust(listed, votes_for, hostile, num_classes)
                assert robust == all(wins(listed.votes(each, num_classes), 0) for each in attacks)
                assert robust == all(wins(listed.votes(each, num_classes), 0) for each in outputs_c)
                found.append(robust)
    assert 50 < sum(found) < 250


def exact_certificate(listed: ListedOutcomes, votes_for, num_classes, eligible, max_radius):
    """The rule with the exact law in place of samples: every draw listed, count k bounded by k / n."""
    repeated = np.repeat(np.arange(votes_for.size), listed.weights)
    lost = repeated[votes_for[repeated] != 0]
    table = np.arange(repeated.size + 1) / repeated.size
    field = listed.graph.field()
    return rule_with(table, two_classes=num_classes == 2).certify(
        routes_of(listed.graph, eligible),
        classes=votes_for[lost],
        arrived=listed.arrived[lost][:, [node for node in field if node in eligible]],
        eligible=np.flatnonzero(np.isin(field, eligible)),
        delta_upper=np.ones(max_radius),
    )


def true_radius(listed, votes_for, num_classes, eligible, max_radius):
    """How far no adversary wins."""
    for size in range(max_radius + 1):
        for hostile in itertools.combinations(eligible, min(size, len(eligible))):
            attacks = [listed.attacked(votes_for, hostile, c) for c in range(1, num_classes)]
            if not all(wins(listed.votes(each, num_classes), 0) for each in attacks):
                return size - 1
    return max_radius


@pytest.mark.parametrize("num_cases", FEW_OR_MANY)
@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_with_the_exact_law_it_certifies_exactly_what_no_adversary_breaks(num_layers, num_cases):
    """Ties, which are frequent here, are broken; for k > 2 the bound on p(E(B)) may be larger than it."""
    rng, pairs = np.random.default_rng(10 + num_layers), []
    for _ in range(num_cases):
        listed, num_classes = random_listed(rng, num_layers), int(rng.integers(2, 5))
        votes_for = base_classifier(rng, listed, num_classes)
        eligible = listed.graph.field()[int(rng.integers(2)) :]
        true = true_radius(listed, votes_for, num_classes, eligible, 3)
        found = exact_certificate(listed, votes_for, num_classes, eligible, 3)
        assert found.decided
        assert found.radius == true if num_layers <= 2 else found.radius <= true
        pairs.append((found.radius, true))
    assert np.mean([found == true for found, true in pairs]) > 0.9
    assert {true for _, true in pairs} >= {0, 1, 3}


def test_one_edge_by_hand():
    """p_d = p_a = 1/2: the message arrives in a quarter of the draws. Votes lost when it arrives are lost anyway."""
    listed = list_outcomes(SmallGraph(2, 1, [(1, 0)], [0], [0.5], [0.0, 0.5]), 2)
    arrives = listed.arrived[:, 1]
    assert listed.weights.tolist() == [2] * 4
    lost_there = np.where(arrives, 1, 0)
    assert exact_certificate(listed, lost_there, 3, [1], 1).radius == 1  # the clean lead is 1/2 = 2 Δ
    lost_elsewhere = np.zeros(4, np.int64)
    lost_elsewhere[np.flatnonzero(~arrives)[0]] = 1
    assert exact_certificate(listed, lost_elsewhere, 3, [1], 1).radius == 0  # a tie


# Against the rule on vote counts


@cache
def real_rule(num_samples, num_classes):
    return EventAwareRule(num_samples=num_samples, most_lost=160, num_classes=num_classes, alpha=0.05)


def sound_radius(case, num_samples, num_classes, delta, alpha):
    votes = np.zeros((1, num_classes), np.int64)
    votes[0] += np.bincount(case.classes, minlength=num_classes)
    votes[0, num_classes - 1] = num_samples - case.classes.size
    selection = np.eye(num_classes, dtype=np.int64)[[num_classes - 1]]
    found = certify_votes(selection, votes, np.atleast_2d(delta), alpha=alpha, belongs_to="made-up votes and bounds")
    return int(found.radius[0])


@pytest.mark.few(1)
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_never_below_the_rule_on_vote_counts_and_equal_where_nothing_arrived(num_layers):
    rng, gained, radii = np.random.default_rng(20 + num_layers), 0, set()
    for _ in range(70):
        case, num_samples = random_case(rng, num_layers), int(rng.choice([160, 300, 600, 2_000]))
        if case.two_classes:
            case = replace(case, classes=np.zeros_like(case.classes))
        num_classes, max_radius = 2 if case.two_classes else 7, min(len(case.eligible), 3)
        delta = [max(case.arrival_probability(b) for b in case.sets(size)) for size in range(1, max_radius + 1)]
        delta = np.minimum(np.array(delta) * (1 + 1e-12), 1.0)
        radius = {}
        for name, arrived in (("sampled", case.arrived), ("none", np.zeros_like(case.arrived))):
            radius[name] = (
                real_rule(num_samples, num_classes)
                .certify(
                    routes_of(case.graph, case.eligible),
                    classes=case.classes,
                    arrived=arrived,
                    eligible=case.positions,
                    delta_upper=delta,
                )
                .radius
            )
        sound = sound_radius(case, num_samples, num_classes, delta, 0.05)
        assert radius["sampled"] >= sound == radius["none"]
        gained += radius["sampled"] > sound
        radii.add(sound)
    assert gained >= 1
    assert radii >= {-1, 0, 1}


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_losing_one_more_vote_never_helps(seed, num_layers):
    rng = np.random.default_rng(seed)
    case = random_case(rng, num_layers)
    more = replace(
        case,
        upper=np.append(case.upper, case.upper[-1] + rng.random()) / (case.upper[-1] + 1),
        classes=np.append(case.classes, 1 if case.two_classes else rng.choice([0, 2, 4])),
        arrived=np.vstack([case.arrived, rng.random((1, len(case.eligible))) < 0.3]),
    )
    fewer = replace(case, upper=more.upper)
    assert certify_case(more, max_radius=3).radius <= certify_case(fewer, max_radius=3).radius


# Edges of the domain


def test_nothing_eligible_or_nothing_arrives():
    graph = SmallGraph(3, 2, [(1, 0), (2, 1)], [0, 1], [0.5, 0.5], [1.0, 1.0, 1.0])
    rule = EventAwareRule(num_samples=100, most_lost=10, num_classes=3, alpha=0.05)
    for eligible in ([], [1], [1, 2], [0, 1, 2]):
        found = rule.certify(
            routes_of(graph, eligible),
            classes=np.zeros(10, np.int64),
            arrived=np.zeros((10, len(eligible)), dtype=bool),
            eligible=np.array(eligible, dtype=np.int64),
            delta_upper=np.full(5, 0.9),
        )
        assert (found.radius, found.decided) == (5, True)


def test_certain_arrival_is_never_certified():
    """p_d = p_a = 0 on the way: the adversary sees every draw."""
    graph = SmallGraph(3, 2, [(1, 0), (2, 1)], [0, 1], [0.0, 0.0], [0.0, 0.0, 0.5])
    rule = EventAwareRule(num_samples=1_000, most_lost=0, num_classes=3, alpha=0.05)
    votes = {"classes": np.empty(0, np.int64), "delta_upper": np.ones(3)}
    for eligible, radius in (([1], 0), ([0, 1], 0), ([2], 0), ([1, 2], 0)):
        found = rule.certify(
            routes_of(graph, eligible), arrived=np.empty((0, len(eligible)), bool), eligible=np.array(eligible), **votes
        )
        assert (found.radius, found.decided) == (radius, True)


def test_a_prediction_without_a_lead_is_not_certified():
    graph = SmallGraph(2, 1, [(1, 0)], [0], [0.5], [0.5, 0.5])
    for num_classes, num_lost in ((2, 50), (3, 50), (3, 100)):
        rule = EventAwareRule(num_samples=100, most_lost=num_lost, num_classes=num_classes, alpha=0.05)
        found = rule.certify(
            routes_of(graph, [1]),
            classes=np.zeros(num_lost, np.int64),
            arrived=np.ones((num_lost, 1), dtype=bool),
            eligible=np.array([1]),
            delta_upper=np.array([0.01]),
        )
        assert (found.radius, found.decided, found.counterexample.size) == (-1, True, 0)


def test_shapes_and_numbers_are_checked():
    graph = SmallGraph(2, 1, [(1, 0)], [0], [0.5], [0.5, 0.5])
    rule = EventAwareRule(num_samples=100, most_lost=3, num_classes=3, alpha=0.05)
    for num_lost, shape in ((3, (3, 2)), (3, (2, 1)), (4, (4, 1))):
        with pytest.raises(InvalidParameterError, match="`arrived` must have shape"):
            rule.certify(
                routes_of(graph, [1]),
                classes=np.zeros(num_lost, np.int64),
                arrived=np.zeros(shape, dtype=bool),
                eligible=np.array([1]),
                delta_upper=np.array([0.01]),
            )
    good = {"num_samples": 100, "most_lost": 3, "num_classes": 3, "alpha": 0.05}
    for bad in ({"num_samples": 0}, {"most_lost": 101}, {"num_classes": 1}, {"alpha": 1.0}, {"max_sets": 0}):
        with pytest.raises(InvalidParameterError, match=f"`{next(iter(bad))}` must be"):
            EventAwareRule(**(good | bad))


def test_the_oracle_of_probabilities_is_the_listed_truth():
    """Two layers: the two-level formula is what the listed outcomes say."""
    rng = np.random.default_rng(30)
    for _ in range(40):
        listed = random_listed(rng, int(rng.integers(1, 3)))
        formula = TwoLevels(listed.graph)
        for hostile in hostile_sets(listed, min(2, listed.graph.num_nodes)):
            hit = listed.weights[listed.hit(hostile)].sum() / listed.weights.sum()
            assert float(1 - formula.miss(hostile)) == pytest.approx(hit, abs=1e-12)
