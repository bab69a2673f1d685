"""The floor against a certificate, counted one target and one radius after the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.metrics.floor import best_floor

CLASSES = st.integers(-1, 2)
TARGET = st.tuples(CLASSES, CLASSES, CLASSES, st.integers(0, 2), st.integers(-1, 4), st.integers(0, 4))


@given(targets=st.lists(TARGET, min_size=1, max_size=12), max_radius=st.integers(0, 6))
def test_every_count_is_that_of_a_loop(targets, max_radius):
    label, first, second, prediction, radius, eligible = (np.array(each) for each in zip(*targets, strict=True))
    radius = np.minimum(radius, eligible)
    found = best_floor(
        {"first": first, "missing": None, "second": second},
        labels=label,
        prediction=prediction,
        radius=radius,
        num_eligible=eligible,
        max_radius=max_radius,
    )
    known = [place for place in range(len(targets)) if label[place] >= 0]
    if not known:
        assert found is None
        return
    right = [sum(int(classes[place] == label[place]) for place in known) for classes in (first, second)]
    assert (found.targets, found.correct) == (len(known), max(right))
    assert found.source == ("first" if right[0] >= right[1] else "second")
    holds = [
        sum(
            int(prediction[place] == label[place] and radius[place] >= 0 and radius[place] >= min(rho, eligible[place]))
            for place in known
        )
        for rho in range(max_radius + 1)
    ]
    assert list(found.certified) == holds
    assert found.beats_from == next((rho for rho, count in enumerate(holds) if count < max(right)), None)
    assert found.beats_from is None or all(count < found.correct for count in holds[found.beats_from :])


def test_no_floor_without_labels_or_candidates():
    ones = np.ones(2, dtype=np.int64)
    arrays = {"prediction": ones, "radius": ones, "num_eligible": ones, "max_radius": 1}
    assert best_floor({"a": ones}, labels=None, **arrays) is None
    assert best_floor({"a": ones}, labels=-ones, **arrays) is None
    assert best_floor({"a": None}, labels=ones, **arrays) is None
    with pytest.raises(InvalidParameterError, match="one entry per target"):
        best_floor({"a": np.ones(3, dtype=np.int64)}, labels=ones, **arrays)
