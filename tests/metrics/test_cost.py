import numpy as np
import pytest

from graycert.errors import InvalidParameterError
from graycert.metrics.cost import COST_RADII, cost_of


def drawn(seed, *, size=200, unknown=0.2):
    """Predictions of four classes, of which the last is never a label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, size)
    labels[rng.random(size) < unknown] = -1
    eligible = rng.integers(0, 6, size)
    return {
        "prediction": rng.integers(0, 4, size),
        "labels": labels,
        "radius": np.minimum(rng.integers(-1, 6, size), eligible),
        "num_eligible": eligible,
        "as_trained": rng.integers(-1, 4, size),
        "without_messages": rng.integers(-1, 4, size),
        "in_degree": rng.integers(0, 40, size),
    }


def counted(rows, truth):
    """What one group should hold, target by target."""
    found = {"targets": 0, "as_trained": 0, "smoothed": 0, "without_messages": 0, "certified": [0, 0], "whole": [0, 0]}
    for row in rows:
        true = truth[row["index"]]
        found["targets"] += 1
        found["as_trained"] += row["as_trained"] == true
        found["without_messages"] += row["without_messages"] == true
        if row["radius"] < 0 or row["prediction"] != true:
            continue
        found["smoothed"] += 1
        for place, rho in enumerate(COST_RADII):
            found["certified"][place] += row["radius"] >= rho
            found["whole"][place] += row["radius"] >= rho or row["radius"] == row["num_eligible"]
    return found


def assert_counts(group, expected, *, labelled=True):
    assert group.targets == expected["targets"]
    assert group.as_trained == (expected["as_trained"] if labelled else None)
    assert group.smoothed == expected["smoothed"]
    assert list(group.certified) == expected["certified"]
    assert list(group.whole_field) == expected["whole"]
    assert group.without_messages == expected["without_messages"]


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_a_loop_over_targets(seed, labelled):
    arrays = drawn(seed)
    rows = [{"index": i, **{name: values[i] for name, values in arrays.items()}} for i in range(200)]
    truth = arrays["labels" if labelled else "as_trained"]
    known = [row for row in rows if truth[row["index"]] >= 0]
    labels = arrays.pop("labels")
    found = cost_of(**arrays, labels=labels if labelled else np.full(200, -1), num_classes=4)
    assert found.labelled == labelled
    assert_counts(found.total, counted(known, truth), labelled=labelled)
    assert [each.group for each in found.classes] == ([0, 1, 2] if labelled else [0, 1, 2, 3])
    for each in found.classes:
        members = [row for row in known if truth[row["index"]] == each.group]
        assert_counts(each, counted(members, truth), labelled=labelled)
    bins = {0: [0], 1: [1], 2: [2, 3], 4: range(4, 8), 8: range(8, 16), 16: range(16, 32), 32: range(32, 64)}
    assert [each.group for each in found.degrees] == list(bins)
    for each in found.degrees:
        members = [row for row in known if row["in_degree"] in bins[each.group]]
        assert_counts(each, counted(members, truth), labelled=labelled)
    same = sum(row["prediction"] == row["as_trained"] and row["radius"] >= 0 for row in rows)
    assert (found.same_as_trained, found.num_targets) == (same, 200)


def test_balanced_accuracy_is_the_mean_recall():
    labels = np.array([0] * 8 + [1] * 2)
    prediction = np.zeros(10, dtype=int)
    found = cost_of(prediction, labels, np.ones(10, int), np.ones(10, int), num_classes=3)
    assert found.balanced([each.smoothed for each in found.classes]) == 0.5  # the third class is nobody's
    assert found.is_unequal
    assert found.balanced([each.as_trained for each in found.classes]) is None
    alike = cost_of(prediction, np.arange(10) % 2, np.ones(10, int), np.ones(10, int), num_classes=3)
    assert not alike.is_unequal


def test_arrays_of_other_lengths_are_refused():
    with pytest.raises(InvalidParameterError, match=r"one entry per target \(3\)"):
        cost_of(np.zeros(3, int), np.zeros(2, int), np.zeros(3, int), np.zeros(3, int), num_classes=2)
