from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.rules.simultaneous import simultaneous_level


@given(alpha=st.floats(1e-6, 0.999), num_targets=st.integers(1, 10**7))
def test_levels_add_up_to_at_most_alpha_exactly(alpha, num_targets):
    level = simultaneous_level(alpha, num_targets)
    total = Fraction(level) * num_targets
    assert total <= Fraction(alpha)
    assert float(total) >= alpha * (1 - 1e-15)


def test_one_target_keeps_the_whole_level():
    assert simultaneous_level(0.01, 1) == 0.01


@pytest.mark.parametrize(("alpha", "num_targets", "name"), [(0.0, 3, "alpha"), (1.0, 3, "alpha"), (0.1, 0, "num_t")])
def test_arguments_are_checked(alpha, num_targets, name):
    with pytest.raises(InvalidParameterError, match=f"`{name}"):
        simultaneous_level(alpha, num_targets)
