import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from graycert.errors import InvalidParameterError
from graycert.rules import Status, certify_votes
from graycert.statistics import EstimationVotes, SelectionVotes
from support.exact_binomial import lower_tail, upper_tail

MADE_UP = "made-up votes and bounds"
DELTAS = np.array([[0.05, 0.1, 0.2, 0.3, 0.4, 0.45]])


def one(selection, estimation, deltas=DELTAS, **options):
    return certify_votes([selection], [estimation], deltas, belongs_to=MADE_UP, **options)


def test_result_types():
    result = certify_votes(
        np.array([[9, 1, 0], [4, 3, 3], [4, 3, 3]], dtype=np.int16),
        np.array([[900, 50, 50], [500, 250, 250], [340, 330, 330]], dtype=np.int32),
        np.array([[0.1, 0.2], [0.3, 0.3], [0.0, 0.0]]),
        belongs_to=MADE_UP,
    )
    assert result.prediction.dtype == result.radius.dtype == np.int64
    assert result.p_lower.dtype == result.p_upper.dtype == np.float64
    assert result.status.tolist() == [Status.CERTIFIED, Status.PREDICTED, Status.ABSTAINED]
    assert result.radius.tolist() == [2, 0, -1]
    assert (result.rule, result.alpha, result.belongs_to) == ("sound", 0.01, MADE_UP)


def test_every_status_explains_itself():
    assert {status.value for status in Status} == {"certified", "predicted", "abstained"}
    assert all(len(status.help) > 20 for status in Status)


def test_all_other_classes_count_not_only_the_runner_up_of_the_selection():
    """Class 2 had no selection vote but leads the rest of the estimation votes: the paper misses it."""
    selection, estimation = [80, 20, 0], [1_800, 0, 1_200]
    sound = one(selection, estimation)
    paper = one(selection, estimation, rule="paper")
    assert sound.p_upper[0] > 0.4 > 0.01 > paper.p_upper[0]
    assert sound.radius[0] == 1
    assert paper.radius[0] == 3


def test_the_reported_class_is_fixed_by_the_selection_votes():
    result = one([40, 60, 0], [2_000, 900, 100])
    assert result.prediction[0] == 1
    assert result.status[0] == Status.ABSTAINED


@pytest.mark.parametrize("rule", ["sound", "paper"])
def test_at_a_tie_the_lowest_class_is_reported_and_bounded(rule):
    result = one([5, 0, 5], [2_500, 300, 200], rule=rule)
    assert result.prediction[0] == 0
    assert result.p_lower[0] == pytest.approx(2_500 / 3_000, abs=0.03)
    assert result.p_upper[0] < 0.15  # some other class, not class 0 itself
    mirrored = one([0, 5, 5], [200, 300, 2_500], rule=rule)
    assert mirrored.prediction[0] == 1
    assert mirrored.p_upper[0] > 0.8
    assert mirrored.radius[0] == -1


def test_levels_of_the_bounds():
    """α/2 for each of two bounds with three classes; all of α for the only bound with two."""
    three = one([9, 1, 0], [2_400, 500, 100])
    assert upper_tail(3_000, 2_400, Fraction(float(three.p_lower[0]))) == pytest.approx(0.005, rel=1e-9)
    assert lower_tail(3_000, 500, Fraction(float(three.p_upper[0]))) == pytest.approx(0.005, rel=1e-9)
    two = one([9, 1], [2_400, 600])
    assert upper_tail(3_000, 2_400, Fraction(float(two.p_lower[0]))) == pytest.approx(0.01, rel=1e-9)
    assert Fraction(float(two.p_upper[0])) >= 1 - Fraction(float(two.p_lower[0]))
    assert two.p_upper[0] == pytest.approx(1 - two.p_lower[0], abs=1e-15)
    paper = one([9, 1, 0], [2_400, 500, 100], rule="paper")
    assert upper_tail(3_000, 2_400, Fraction(float(paper.p_lower[0]))) == pytest.approx(0.01 / 3, rel=1e-9)
    assert lower_tail(3_000, 500, Fraction(float(paper.p_upper[0]))) == pytest.approx(0.01 / 3, rel=1e-9)


def test_binary_rule_is_the_one_of_the_appendix():
    """p_lower - Δ̄ > 1/2, strictly."""
    p_lower = float(one([9, 1], [2_400, 600]).p_lower[0])
    at = p_lower - 0.5  # exact
    assert one([9, 1], [2_400, 600], [[at]]).radius[0] == 0
    assert one([9, 1], [2_400, 600], [[math.nextafter(at, 0.0)]]).radius[0] == 1


@settings(max_examples=60, deadline=None)
@given(
    counts=hnp.arrays(np.int64, st.tuples(st.integers(1, 3), st.integers(2, 4)), elements=st.integers(1, 40)),
    ulps=st.integers(-3, 3),
    alpha=st.sampled_from([0.3, 0.05, 0.01]),
)
def test_no_certificate_at_the_boundary_that_exact_arithmetic_refuses(counts, ulps, alpha):
    """Δ̄ is placed within a few units in the last place of the largest certifiable value."""
    counts[:, 0] += 60
    counts[:, 1] += counts.sum(axis=1).max() - counts.sum(axis=1)
    plain = certify_votes(counts, counts, np.zeros((len(counts), 1)), alpha=alpha, belongs_to=MADE_UP)
    lead = [
        2 * Fraction(low) - 1 if counts.shape[1] == 2 else Fraction(low) - Fraction(high)
        for low, high in zip(plain.p_lower.tolist(), plain.p_upper.tolist(), strict=True)
    ]
    half = np.array([min(max(float(value / 2), 0.0), 1.0) for value in lead])
    deltas = np.clip(half + ulps * np.spacing(half), 0.0, 1.0)[:, None]
    radius = certify_votes(counts, counts, deltas, alpha=alpha, belongs_to=MADE_UP).radius
    for value, delta, found in zip(lead, deltas[:, 0].tolist(), radius.tolist(), strict=True):
        assert found < 1 or value > 2 * Fraction(delta)
        assert found == 1 or value <= 2 * Fraction(delta) * (1 + Fraction(1, 2**50)) + Fraction(1, 2**52)


@settings(max_examples=40, deadline=None)
@given(wins=st.integers(0, 300), others=st.integers(0, 300), classes=st.integers(2, 5))
def test_radius_rises_with_the_lead(wins, others, classes):
    def radius(first):
        rest = [0] * (classes - 1)
        rest[0] = 600 - first
        return one([1] + [0] * (classes - 1), [first, *rest]).radius[0]

    low, high = sorted((wins, others))
    assert radius(300 + low) <= radius(300 + high)


def test_radius_is_capped_at_the_columns_and_stops_at_the_first_failure():
    assert one([1, 0], [3_000, 0], [[0.0, 0.0]]).radius[0] == 2
    assert one([1, 0], [3_000, 0], [[0.1, 0.6, 0.7]]).radius[0] == 1


def test_vote_types_are_accepted_and_cannot_be_swapped():
    selection, estimation = SelectionVotes([[9, 1]], 10), EstimationVotes([[90, 10]], 100)
    assert certify_votes(selection, estimation, [[0.1]], belongs_to=MADE_UP).radius[0] == 1
    with pytest.raises(InvalidParameterError, match="draw new ones"):
        certify_votes(selection, selection, [[0.1]], belongs_to=MADE_UP)
    with pytest.raises(InvalidParameterError, match="swapped"):
        certify_votes(estimation, estimation, [[0.1]], belongs_to=MADE_UP)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selection_votes": [[9.0, 1.0]]}, "`selection_votes` must hold integers"),
        ({"selection_votes": [[9, 1, 0]]}, "must have the shape of `selection_votes`"),
        ({"selection_votes": [[10]], "estimation_votes": [[100]]}, "at least two classes"),
        ({"estimation_votes": [[0, 0]]}, "at least one vote"),
        ({"estimation_votes": [[-1, 101]]}, "must be >= 0"),
        (
            {"estimation_votes": np.zeros((0, 2), int), "selection_votes": np.zeros((0, 2), int)},
            "at least one row",
        ),
        ({"delta_upper": [[0, 1]]}, "must hold floats"),
        ({"delta_upper": [0.1]}, r"must have shape \(num_targets, max_radius\)"),
        ({"delta_upper": [[0.1], [0.1]]}, "with 1 targets"),
        ({"delta_upper": np.zeros((1, 0))}, "at least one radius"),
        ({"delta_upper": [[0.1, math.nan]]}, r"must be in \[0, 1\], got nan for target 0 at radius 2"),
        ({"delta_upper": [[-0.1]]}, r"must be in \[0, 1\]"),
        ({"delta_upper": [[0.1, 1.1]]}, r"must be in \[0, 1\]"),
        ({"delta_upper": [[0.2, 0.1]]}, "must not fall with the radius"),
        ({"alpha": 0.0}, "`alpha` must be in"),
        ({"alpha": 1.0}, "`alpha` must be in"),
        ({"rule": "fast"}, "`rule` must be one of 'sound', 'difference', 'paper'"),
    ],
)
def test_wrong_arguments_are_refused(changes, message):
    arguments = {
        "selection_votes": [[9, 1]],
        "estimation_votes": [[90, 10]],
        "delta_upper": [[0.1]],
        "belongs_to": MADE_UP,
    } | changes
    with pytest.raises(InvalidParameterError, match=message):
        certify_votes(**arguments)


@pytest.mark.statistical
def test_wrong_certificates_are_rare_at_a_critical_instance():
    """Every certificate at Δ equal to half the lead is wrong. Allowed: α = .05 of 20,000 draws.

    With a true rate of at most .05, more than .0578 (five standard deviations) has probability below 1e-6.
    The paper's rule with a small selection exceeds it by far: that the test can fail is part of the test.
    """
    generator = np.random.default_rng(0)
    p = np.array([0.6, 0.21, 0.19])
    selection = generator.multinomial(10, p, size=20_000)
    keep = selection.argmax(axis=1) == 0
    estimation = generator.multinomial(3_000, p, size=20_000)
    deltas = np.full((20_000, 1), (0.6 - 0.21) / 2)
    wrong = {}
    for rule in ("sound", "paper"):
        found = certify_votes(selection, estimation, deltas, alpha=0.05, rule=rule, belongs_to=MADE_UP)
        wrong[rule] = (keep & (found.radius >= 1)).mean()
    assert wrong["sound"] <= 0.0578
    assert wrong["paper"] > 0.0578
