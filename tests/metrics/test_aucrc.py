from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.metrics import aucrc, certified_ratio, normalized_aucrc, normalized_certified_ratio

targets = st.lists(st.tuples(st.integers(-1, 12), st.integers(0, 9)), min_size=1, max_size=30)


@given(targets)
def test_area_is_the_sum_of_the_steps(pairs):
    radius, eligible = np.array(pairs).T
    curve = certified_ratio(radius, eligible, max_radius=12)
    assert aucrc(radius, eligible) == pytest.approx(curve.counts[1:].sum() / len(pairs), abs=1e-12)


@given(targets, st.integers(2, 40))
def test_normalized_curve_is_the_definition_in_fractions(pairs, num_points):
    radius, eligible = np.array(pairs).T
    curve = normalized_certified_ratio(radius, eligible, num_points=num_points)
    for i, count in enumerate(curve.counts.tolist()):
        share = Fraction(i, num_points - 1)
        assert count == sum(r >= share * m for r, m in pairs)


def test_no_floating_point_ceiling():
    """0.14 · 50 is 7.000000000000001 in floating point, so a float ceiling asks for 8."""
    curve = normalized_certified_ratio([7], [50], num_points=101)
    assert curve.counts[14] == 1
    assert curve.counts[15] == 0


@given(targets)
def test_normalized_area_is_the_limit_of_the_mean(pairs):
    radius, eligible = np.array(pairs).T
    mean = normalized_certified_ratio(radius, eligible, num_points=20_001).values.mean()
    area = normalized_aucrc(radius, eligible)
    assert area == pytest.approx(mean, abs=2e-4)
    assert 0.0 <= area <= 1.0


def test_only_correct_predictions_count_if_asked():
    options = {"prediction": [0, 1], "labels": [0, 0]}
    assert aucrc([2, 3], [4, 4], **options) == 1.0
    assert normalized_aucrc([2, 3], [4, 4], **options) == 0.25
    assert normalized_certified_ratio([2, 3], [4, 4], num_points=3, **options).counts.tolist() == [1, 1, 0]
    with pytest.raises(InvalidParameterError, match="must be given together"):
        aucrc([2, 3], [4, 4], prediction=[0, 1])
