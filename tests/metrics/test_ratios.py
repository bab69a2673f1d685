import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.metrics import abstain_ratio, certified_accuracy, certified_ratio, clean_accuracy

RADIUS = [4, 4, 1, 0, -1]
ELIGIBLE = [2, 9, 3, 9, 0]
PREDICTION = [0, 1, 0, 0, 0]
LABELS = [0, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("denominator", "counts", "totals"),
    [
        ("all", [4, 3, 2, 1, 1, 0], [5, 5, 5, 5, 5, 5]),
        ("whole_field", [4, 3, 2, 2, 2, 1], [5, 5, 5, 5, 5, 5]),
        ("paper", [4, 3, 2, 1, 1, 0], [5, 4, 4, 3, 2, 2]),
    ],
)
def test_certified_ratio_by_hand(denominator, counts, totals):
    curve = certified_ratio(RADIUS, ELIGIBLE, max_radius=5, denominator=denominator)
    assert curve.counts.tolist() == counts
    assert curve.totals.tolist() == totals
    assert curve.values.tolist() == [c / t for c, t in zip(counts, totals, strict=True)]
    assert curve.denominator == denominator


@pytest.mark.parametrize(
    ("denominator", "counts"),
    [("all", [3, 2, 2, 1, 1, 0]), ("whole_field", [3, 2, 2, 2, 2, 1]), ("paper", [3, 2, 2, 1, 1, 0])],
)
def test_certified_accuracy_by_hand(denominator, counts):
    curve = certified_accuracy(
        RADIUS, ELIGIBLE, prediction=PREDICTION, labels=LABELS, max_radius=5, denominator=denominator
    )
    assert curve.counts.tolist() == counts
    assert curve.totals.tolist() == [5] * 6


def test_nobody_can_be_attacked_by_that_many_nodes():
    curve = certified_ratio([2], [1], max_radius=2, denominator="paper")
    assert curve.totals.tolist() == [1, 1, 0]
    assert curve.values.tolist() == [1.0, 1.0, 0.0]


def test_abstentions_are_wrong_and_unknown_labels_too():
    assert clean_accuracy(RADIUS, prediction=PREDICTION, labels=LABELS) == 3 / 5
    assert clean_accuracy([1, 1], prediction=[0, 0], labels=[-1, 0]) == 0.5
    assert abstain_ratio(RADIUS) == 1 / 5


targets = st.lists(st.tuples(st.integers(-1, 6), st.integers(0, 9)), min_size=1, max_size=30)


@given(targets)
def test_conventions_are_ordered_and_curves_fall(pairs):
    radius, eligible = np.array(pairs).T
    strict = certified_ratio(radius, eligible, max_radius=7)
    whole = certified_ratio(radius, eligible, max_radius=7, denominator="whole_field")
    paper = certified_ratio(radius, eligible, max_radius=7, denominator="paper")
    assert (strict.counts <= whole.counts).all()
    assert (strict.counts == paper.counts).all()
    assert (strict.values <= paper.values).all()
    assert (np.diff(strict.counts) <= 0).all()
    assert strict.counts[0] == whole.counts[0] == (radius >= 0).sum()


@pytest.mark.parametrize(
    ("radius", "eligible", "options", "message"),
    [
        ([], [], {}, "at least one target"),
        ([-2], [1], {}, "`radius` must be >= -1"),
        ([0.5], [1], {}, "`radius` must hold integers"),
        ([1], [1, 2], {}, "one entry per target"),
        ([1], [-1], {}, "`num_eligible` must be >= 0"),
        ([1], [1], {"max_radius": -1}, "`max_radius` must be >= 0"),
        ([1], [1], {"denominator": "some"}, "`denominator` must be one of"),
    ],
)
def test_wrong_arguments_are_refused(radius, eligible, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        certified_ratio(radius, eligible, **{"max_radius": 3, **options})


def test_labels_must_belong_to_the_targets():
    with pytest.raises(InvalidParameterError, match="one entry per target"):
        certified_accuracy([1, 1], [1, 1], prediction=[0, 0], labels=[0], max_radius=1)
