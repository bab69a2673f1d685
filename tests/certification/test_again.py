"""Another conclusion from the same votes is what certifying with it from the start would have given."""

import numpy as np
import pytest
import torch

import graycert
from graycert.errors import InvalidParameterError
from graycert.rules import CollectiveCertificate
from support.certified_groups import COLUMNS, OTHERS, certify_groups, smoothing_with_arrays, three_groups

DISTANT = graycert.NodeFeatureThreat(min_distance=2)


@pytest.fixture(scope="module")
def every_vote():
    return certify_groups(rule="event-aware")


@pytest.mark.few(1)
@pytest.mark.parametrize("rule", ["sound", "difference", "paper", "event-aware"])
@pytest.mark.parametrize("threat", [OTHERS, DISTANT], ids=["others", "distant"])
@pytest.mark.parametrize("bound", ["auto", "multiplicative"])
def test_it_is_the_certificate_that_would_have_been_made(every_vote, rule, threat, bound):
    expected = certify_groups(rule=rule, threat=threat, bound=bound, alpha=0.01, max_radius=9)
    found = every_vote.again(three_groups(), rule=rule, threat=threat, bound=bound, alpha=0.01, max_radius=9)
    for name in (*COLUMNS, "num_eligible", "receptive_field_size", "delta_methods"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    setup = found.setup
    assert (setup.rule, setup.bound, setup.alpha, setup.threat) == (rule, bound, 0.01, threat)
    assert setup == expected.setup


def test_nothing_given_changes_nothing_but_drops_the_collective_certificate():
    run = certify_groups(collective=[1], smoothing=smoothing_with_arrays())
    assert isinstance(run.collective, CollectiveCertificate)
    again = run.again(three_groups())
    assert again.collective is None
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(again, name), getattr(run, name), err_msg=name)


def test_votes_alone_do_not_allow_the_event_aware_rule():
    with pytest.raises(InvalidParameterError, match="rule='event-aware' first"):
        certify_groups().again(three_groups(), rule="event-aware")


def test_a_wider_threat_is_refused(every_vote):
    with pytest.raises(InvalidParameterError, match="no wider"):
        every_vote.again(three_groups(), threat=graycert.NodeFeatureThreat(min_distance=0))
    trusted = np.arange(42) < 5
    some_trusted = certify_groups(threat=graycert.NodeFeatureThreat(min_distance=1, trusted=trusted))
    with pytest.raises(InvalidParameterError, match="no wider"):
        some_trusted.again(three_groups(), threat=OTHERS)
    fewer = graycert.NodeFeatureThreat(min_distance=1, trusted=np.arange(42) < 4)
    with pytest.raises(InvalidParameterError, match="no wider"):
        some_trusted.again(three_groups(), threat=fewer)
    more = graycert.NodeFeatureThreat(min_distance=1, trusted=np.arange(42) < 9)
    assert (some_trusted.again(three_groups(), threat=more).radius >= some_trusted.radius).all()


def test_another_graph_is_refused(every_vote):
    other = three_groups().clone()
    other.x = torch.roll(other.x, 1, dims=0)
    with pytest.raises(InvalidParameterError, match="fingerprint"):
        every_vote.again(other)


def test_arguments_out_of_range_are_refused(every_vote):
    for wrong in ({"alpha": 0.0}, {"rule": "bold"}, {"bound": "guess"}, {"max_radius": 0}):
        with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
            every_vote.again(three_groups(), **wrong)
