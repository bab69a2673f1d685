"""The mapping from a rule to its lead: what the functions of the rules give, and nothing else."""

import numpy as np
import pytest

from graycert.errors import InvalidParameterError
from graycert.rules import (
    COUNT_RULES,
    RULES,
    Rule,
    binary_bounds,
    binary_margin,
    certified_radius,
    certify_counts,
    difference_margin_lower,
    intersection_union_bounds,
    multiclass_margin,
    paper_bounds,
    rule_named,
)
from graycert.statistics import EstimationVotes, SelectionVotes

ALPHA = 0.02


@pytest.fixture(params=[2, 3, 7])
def votes(request):
    """Selection and estimation votes of 300 targets, among them ties and unanimous ones."""
    rng, num_classes = np.random.default_rng(request.param), request.param
    p = rng.dirichlet(np.full(num_classes, 0.4), size=300)
    selection = np.stack([rng.multinomial(20, each) for each in p])
    estimation = np.stack([rng.multinomial(400, each) for each in p])
    selection[0] = np.array([10, 10] + [0] * (num_classes - 2))
    estimation[1] = np.array([400] + [0] * (num_classes - 1))
    return SelectionVotes(selection, 20), EstimationVotes(estimation, 400)


def lead_by_the_functions(rule, selection, estimation, majority):
    """Lower bound, upper bound and margin, as the rules are defined."""
    if rule == "paper":
        order = np.argsort(selection.counts, axis=1, kind="stable")
        runner_up = np.where(order[:, -2] == majority, order[:, -1], order[:, -2])
        p_lower, p_upper = paper_bounds(estimation, majority, runner_up, alpha=ALPHA)
        return p_lower, p_upper, p_lower - p_upper
    if selection.num_classes == 2:
        p_lower, p_upper = binary_bounds(estimation, majority, alpha=ALPHA)
        return p_lower, p_upper, binary_margin(p_lower)
    p_lower, p_upper = intersection_union_bounds(estimation, majority, alpha=ALPHA)
    if rule == "difference":
        return p_lower, p_upper, difference_margin_lower(estimation, majority, alpha=ALPHA)
    return p_lower, p_upper, multiclass_margin(p_lower, p_upper)


@pytest.mark.parametrize("rule", [*COUNT_RULES, "event-aware"])
def test_leads_are_those_of_the_functions(rule, votes):
    selection, estimation = votes
    majority = selection.counts.argmax(axis=1)
    lead = RULES[rule].lead_of(selection, estimation, majority, ALPHA)
    p_lower, p_upper, margin = lead_by_the_functions(rule, selection, estimation, majority)
    np.testing.assert_array_equal(lead.p_lower, p_lower)
    np.testing.assert_array_equal(lead.p_upper, p_upper)
    np.testing.assert_array_equal(lead.margin, margin)


@pytest.mark.parametrize("rule", COUNT_RULES)
def test_radii_follow_from_the_lead(rule, votes):
    selection, estimation = votes
    deltas = np.sort(np.random.default_rng(0).uniform(0.0, 0.6, (300, 5)), axis=1)
    found = certify_counts(selection, estimation, deltas, alpha=ALPHA, rule=rule)
    majority = selection.counts.argmax(axis=1)
    margin = lead_by_the_functions(rule, selection, estimation, majority)[2]
    assert found.radius.tolist() == certified_radius(margin, deltas).tolist()
    assert found.prediction.tolist() == majority.tolist()


def test_what_there_is():
    assert list(RULES) == ["sound", "difference", "event-aware", "sequential", "exact", "paper"]
    assert COUNT_RULES == ("sound", "difference", "paper")
    assert [name for name, rule in RULES.items() if not rule.is_sound] == ["paper"]
    assert {name: rule.needs for name, rule in RULES.items() if name not in COUNT_RULES} == {
        "event-aware": "predictions",
        "sequential": "batches",
        "exact": "nothing",
    }
    for name, rule in RULES.items():
        assert isinstance(rule, Rule)
        assert rule.name == name
        assert rule_named(name) is rule
        assert len(rule.help) > 20
    assert "NOT SOUND" in RULES["paper"].help


@pytest.mark.parametrize("rule", ["sequential", "exact"])
def test_rules_without_counts_have_no_lead(rule, votes):
    selection, estimation = votes
    with pytest.raises(ValueError, match=f"'{rule}' does not bound a lead"):
        RULES[rule].lead_of(selection, estimation, selection.counts.argmax(axis=1), ALPHA)
    with pytest.raises(InvalidParameterError, match="`rule` must be one of 'sound', 'difference', 'paper'"):
        certify_counts(selection, estimation, np.zeros((300, 1)), alpha=ALPHA, rule=rule)


@pytest.mark.parametrize("name", ["fast", "", None, 3, "Sound"])
def test_unknown_rules_are_refused(name):
    with pytest.raises(InvalidParameterError, match=r"`rule` must be one of 'sound', .* sound: bounds"):
        rule_named(name)
