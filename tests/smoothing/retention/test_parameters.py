import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.smoothing.retention.parameters import UniformRetention


def test_a_ratio_of_percents_is_the_decimal_number():
    wrong = []
    for percent in range(1, 101):
        smoothing = UniformRetention(keep_ratio=percent / 100)
        for size in range(1, 1001):
            kept = smoothing.num_kept(size)
            assert kept == -(-size * percent // 100)
            if kept != math.ceil(size * (percent / 100)):
                wrong.append((size, percent))
    assert (100, 7) in wrong
    assert len(wrong) == 141


@pytest.mark.parametrize("ratio", [0.07, "0.07", Decimal("0.07"), Fraction(7, 100), np.float64(0.07), np.float32(0.07)])
def test_all_ways_to_write_a_ratio(ratio):
    assert UniformRetention(keep_ratio=ratio) == UniformRetention(keep_ratio=Fraction(7, 100))
    assert UniformRetention(keep_ratio=ratio).num_kept(100) == 7


def test_extremes():
    assert UniformRetention(keep_ratio=0.3).num_kept(0) == 0
    assert UniformRetention(keep_ratio=1e-9).num_kept(5) == 1
    assert UniformRetention(keep_ratio=0).num_kept(5) == 0
    assert UniformRetention(keep_ratio=1).num_kept(5) == 5
    assert UniformRetention(keep_ratio="1/3").num_kept(6) == 2


@given(st.fractions(0, 1), st.integers(0, 10**6))
def test_it_is_the_ceiling(ratio, size):
    kept = UniformRetention(keep_ratio=ratio).num_kept(size)
    assert kept - 1 < ratio * size <= kept


@pytest.mark.parametrize(
    "ratio", [-0.1, 1.5, np.nan, np.inf, "half", "1/0", None, True, np.bool_(True), Decimal("NaN")]
)
def test_ratios_are_checked(ratio):
    with pytest.raises(InvalidParameterError, match=r"`keep_ratio` must be a number in \[0, 1\]"):
        UniformRetention(keep_ratio=ratio)


@pytest.mark.parametrize("size", [-1, 2.0, True])
def test_sizes_are_checked(size):
    with pytest.raises(InvalidParameterError, match="`field_size_without_target` must be"):
        UniformRetention(keep_ratio=0.5).num_kept(size)
