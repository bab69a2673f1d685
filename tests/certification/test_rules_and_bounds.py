"""certify() with every rule and bound: what is proved, who breaks it, and what must be refused."""

import numpy as np
import pytest
import torch

import graycert
from graycert.bounds import BOUNDS, evaluate_deltas
from graycert.bounds.hop_limited import arrival_probability
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import CanonicalGraph, as_adjacency, receptive_fields
from graycert.rules import COUNT_RULES, certify_votes, simultaneous_level
from graycert.sampling import ArrivalRecorder, Purpose
from graycert.statistics import clopper_pearson_upper
from support.certified_groups import (
    COLUMNS,
    OTHERS,
    SMOOTHING,
    TARGETS,
    certify_groups,
    smoothing_with_arrays,
    three_groups,
    trained_model,
)
from support.flat_arguments import certify_flat

SMOOTHINGS = {"uniform": SMOOTHING, "arrays": smoothing_with_arrays()}

any_rule = pytest.mark.parametrize("rule", [*COUNT_RULES, "event-aware"])
any_smoothing = pytest.mark.parametrize("smoothing", SMOOTHINGS.values(), ids=SMOOTHINGS)


def placed_on(data, smoothing):
    """The smoothing with values per edge in the order of the adjacency."""
    graph = CanonicalGraph.of(data)
    return smoothing.with_canonical_edges(graph.sorted).with_canonical_edges(graph.proper)


def deltas_of(run, **changes):
    data = three_groups()
    arguments = {
        "smoothing": placed_on(data, SMOOTHING),
        "threat": run.setup.threat,
        "num_layers": run.setup.num_layers,
        "max_radius": run.setup.max_radius,
        "bound": run.setup.bound,
    }
    return evaluate_deltas(as_adjacency(data), run.targets, **{**arguments, **changes})


def bounds_of(run):
    """The typed bounds of a run, which votes are certified with."""
    return graycert.delta_bounds(
        three_groups(),
        run.targets,
        smoothing=SMOOTHING,
        threat=run.setup.threat,
        num_layers=run.setup.num_layers,
        max_radius=run.setup.max_radius,
        bound=run.setup.bound,
    )


def members(run, row):
    nodes = run.attackers[row]
    return nodes[nodes >= 0]


@pytest.mark.few(2)
@any_rule
@pytest.mark.parametrize("bound", ["auto", "exact", "surrogate", "multiplicative", "union"])
def test_votes_do_not_depend_on_rule_and_bound_and_deltas_only_on_the_bound(rule, bound):
    found, reference = certify_groups(rule=rule, bound=bound), certify_groups()
    np.testing.assert_array_equal(found.selection_votes, reference.selection_votes)
    np.testing.assert_array_equal(found.estimation_votes, reference.estimation_votes)
    deltas = deltas_of(found)
    np.testing.assert_array_equal(found.delta_upper, deltas.delta_upper)
    np.testing.assert_array_equal(found.delta_methods, deltas.methods)
    setup = found.setup
    assert (setup.rule, setup.bound, setup.simultaneous, found.collective) == (rule, bound, False, None)
    assert ("estimation_predictions" in found.adds) is (rule == "event-aware")
    if rule != "event-aware":
        again = certify_votes(*found.votes, bounds_of(found), alpha=setup.alpha, rule=rule)
        for name in ("prediction", "status", "p_lower", "p_upper", "radius"):
            np.testing.assert_array_equal(getattr(found, name), getattr(again, name))


def test_the_default_bound_is_exact_for_two_layers_and_never_looser_than_theorem_three():
    found, by_paths = certify_groups(), certify_groups(bound="multiplicative")
    assert set(found.delta_methods) == {"exact"}
    assert set(by_paths.delta_methods) == {"multiplicative"}
    assert (found.delta_upper <= by_paths.delta_upper + 1e-12).all()
    assert (found.radius >= by_paths.radius).all()
    deep = certify_groups_deep()
    assert set(deep.delta_methods) <= {"tree", "surrogate"}
    assert deep.setup.num_layers == 3


def certify_groups_deep(**changes):
    arguments = {"smoothing": SMOOTHING, "threat": OTHERS, "num_selection": 20, "num_estimation": 40, "max_radius": 4}
    return certify_flat(
        trained_model(3), three_groups(), targets=TARGETS[:3], say=lambda _: None, **{**arguments, **changes}
    )


@pytest.mark.few(2)
@any_smoothing
@pytest.mark.parametrize("seed", range(3))
def test_the_event_aware_rule_never_certifies_less(smoothing, seed):
    sound, aware = (certify_groups(rule=rule, seed=seed, smoothing=smoothing) for rule in ("sound", "event-aware"))
    assert (aware.radius >= sound.radius).all()
    assert aware.radius.sum() > sound.radius.sum()  # and is worth its seconds
    for name in ("prediction", "p_lower", "p_upper", "delta_upper"):
        np.testing.assert_array_equal(getattr(aware, name), getattr(sound, name))
    np.testing.assert_array_equal(aware.status == "abstained", aware.radius < 0)
    counted = np.stack([np.count_nonzero(aware.estimation_predictions == number, axis=1) for number in range(3)], 1)
    np.testing.assert_array_equal(counted, sound.estimation_votes)


@pytest.mark.few(4)
@any_rule
@any_smoothing
def test_attackers_are_distinct_eligible_nodes_one_more_than_certified(rule, smoothing):
    trusted = np.arange(42) % 7 == 1
    threat = graycert.NodeFeatureThreat(min_distance=1, trusted=trusted)
    run = certify_groups(rule=rule, smoothing=smoothing, threat=threat)
    fields = receptive_fields(as_adjacency(three_groups()), run.targets, num_layers=2)
    eligible = threat.eligible(fields.nodes, fields.distances, num_nodes=42)
    assert run.attackers.dtype == np.int64
    for row, radius in enumerate(run.radius):
        nodes = members(run, row)
        allowed = fields.nodes[(fields.rows == row) & eligible]
        assert len(set(nodes.tolist())) == nodes.size
        assert nodes.size == min(radius + 1, run.num_eligible[row], run.setup.max_radius)
        assert np.isin(nodes, allowed).all()
        assert (run.attackers[row, nodes.size :] == -1).all()  # padding is at the end
    assert (run.attackers >= 0).any()


@any_smoothing
def test_with_two_layers_the_attackers_attain_the_bound(smoothing):
    run = certify_groups(smoothing=smoothing)
    data = three_groups()
    adjacency, placed = as_adjacency(data), placed_on(data, smoothing)
    proved = deltas_of(run, smoothing=placed).proved
    compared = 0
    for row, radius in enumerate(run.radius):
        if radius < 0 or radius >= run.setup.max_radius or not proved[row, radius]:
            continue
        arrives = arrival_probability(
            adjacency,
            int(run.targets[row]),
            members(run, row),
            p_delete=placed.p_delete,
            p_ablate=placed.p_ablate,
            num_layers=2,
        )
        assert arrives.exact
        assert 0 <= run.delta_upper[row, radius] - arrives.p_lower < 1e-11
        compared += 1
    assert compared >= 8


@any_smoothing
def test_attackers_of_the_event_aware_rule_refute_the_next_radius(smoothing):
    """Recomputed from the arrivals: bounds of lost votes without a hostile message, and p(E(B)) exactly."""
    run = certify_groups(rule="event-aware", smoothing=smoothing)
    data = three_groups()
    adjacency, placed = as_adjacency(data), placed_on(data, smoothing)
    recorder = ArrivalRecorder(adjacency=adjacency, smoothing=placed, threat=OTHERS, num_layers=2)
    records = recorder.record(
        run.setup.seed, Purpose.ESTIMATION, run.targets, samples=range(run.setup.draws.num_estimation)
    )
    upper = clopper_pearson_upper(
        np.arange(run.setup.draws.num_estimation + 1), run.setup.draws.num_estimation, alpha=run.setup.alpha / 2
    )
    refuted = 0
    for row, radius in enumerate(run.radius):
        nodes, votes = members(run, row), run.estimation_predictions[row]
        if radius < 0 or radius >= run.setup.max_radius:
            continue
        quiet = ~records.of(row)[:, np.isin(records.sources_of(row), nodes)].any(axis=1)
        lost = np.bincount(votes[quiet & (votes != run.prediction[row])], minlength=3)
        arrives = arrival_probability(
            adjacency,
            int(run.targets[row]),
            nodes,
            p_delete=placed.p_delete,
            p_ablate=placed.p_ablate,
            num_layers=2,
        )
        assert nodes.size == radius + 1
        assert upper[lost.sum()] + upper[lost.max()] + 2 * arrives.p_upper >= 1 - 1e-9
        refuted += 1
    assert refuted >= 8


@pytest.mark.parametrize("rule", ["sound", "difference", "paper"])
def test_simultaneous_certificates_are_those_at_the_level_of_all(rule):
    run = certify_groups(rule=rule, simultaneous=True)
    level = simultaneous_level(0.05, len(run))
    again = certify_votes(*run.votes, bounds_of(run), alpha=level, rule=rule)
    for name in ("prediction", "status", "p_lower", "p_upper", "radius"):
        np.testing.assert_array_equal(getattr(run, name), getattr(again, name))
    assert (run.setup.simultaneous, run.setup.alpha) == (True, 0.05)
    assert (run.radius <= certify_groups(rule=rule).radius).all()


def test_the_event_aware_rule_takes_the_level_of_all_too():
    run = certify_groups(rule="event-aware", simultaneous=True)
    same = certify_groups(rule="event-aware", alpha=simultaneous_level(0.05, len(run)))
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(run, name), getattr(same, name))


@pytest.mark.few(1)
@pytest.mark.parametrize("rule", ["sound", "difference", "event-aware"])
def test_the_collective_certificate_is_that_of_the_finished_run(rule):
    run = certify_groups(rule=rule, collective=(1, 2, 5))
    again = certify_groups(rule=rule).against_one_adversary(three_groups(), budgets=(1, 2, 5))
    assert run.collective.budgets.tolist() == [1, 2, 5]
    for name in ("num_robust", "num_robust_naive", "num_active", "proved_by", "solver_status"):
        np.testing.assert_array_equal(getattr(run.collective, name), getattr(again, name))
    assert run.collective.num_robust[0] > 0


def test_what_proves_nothing_is_refused_before_any_draw():
    with pytest.raises(UnsoundSetupError) as caught:
        certify_groups(rule="paper", collective=(1,), num_estimation=200_000)
    assert caught.value.slug == "unsound-rule"


@pytest.mark.deep
def test_wrong_budgets_are_refused_before_any_draw():
    for budgets in ((), (0,), (2, 1), (1.5,)):
        with pytest.raises(InvalidParameterError, match="`budgets` must"):
            certify_groups(collective=budgets, num_estimation=200_000)


def test_bounds_that_do_not_apply_are_refused_before_any_draw():
    with pytest.raises(InvalidParameterError, match="`bound` 'exact' needs at most two layers, got num_layers = 3"):
        certify_groups_deep(bound="exact", num_estimation=200_000)
    with pytest.raises(InvalidParameterError, match=r"`bound` 'tree' needs exactly one simple path .* sparsified"):
        certify_groups(bound="tree", num_estimation=200_000)


@pytest.mark.few(4)
@any_rule
@pytest.mark.parametrize("bound", BOUNDS)
def test_every_rule_and_bound_works_on_a_tree(rule, bound):
    forward = torch.tensor([[0, 1, 2, 3, 1], [1, 2, 3, 4, 5]])
    data = three_groups().clone()
    data.x, data.y = data.x[:6], data.y[:6]
    data.edge_index = torch.cat([forward, forward.flip(0)], dim=1)
    run = certify_flat(
        trained_model(),
        data,
        smoothing=SMOOTHING,
        threat=OTHERS,
        num_selection=20,
        num_estimation=100,
        max_radius=3,
        rule=rule,
        bound=bound,
        alpha=0.2,
    )
    expected = {"auto": "exact"}.get(bound, "exact" if bound == "surrogate" else bound)
    assert set(run.delta_methods) == {expected}
    assert set(run.radius.tolist()) <= {-1, 0, 1, 2, 3}
