from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graycert.rules import binary_margin, certified_radius, multiclass_margin
from graycert.rules.binary import complement_upper

probability = st.floats(0.0, 1.0)


@given(low=probability, high=probability)
def test_multiclass_margin_is_rounded_downward(low, high):
    margin = Fraction(float(multiclass_margin([low], [high])[0]))
    exact = Fraction(low) - Fraction(high)
    assert exact - Fraction(1, 2**51) <= margin <= exact


@given(low=probability)
def test_binary_margin_is_exact_where_it_certifies(low):
    margin = Fraction(float(binary_margin([low])[0]))
    exact = 2 * Fraction(low) - 1
    assert margin == exact if low >= 0.25 else margin < 0


@given(low=probability)
def test_complement_is_rounded_upward(low):
    value = float(complement_upper(np.array([low]))[0])
    assert 1 - Fraction(low) <= Fraction(value) <= 1
    assert Fraction(value) <= 1 - Fraction(low) + Fraction(1, 2**52)


def test_radius_needs_a_strict_inequality():
    margin = np.array([0.5, 0.5, 0.0, -0.1, 0.1])
    deltas = np.array([[0.25], [np.nextafter(0.25, 0)], [0.0], [0.0], [0.0]])
    assert certified_radius(margin, deltas).tolist() == [0, 1, -1, -1, 1]
