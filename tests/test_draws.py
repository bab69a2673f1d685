"""How much may be drawn: what can be saved can be loaded, too."""

import pytest

from graycert.draws import MOST_DRAWS, Draws, UntilDecided
from graycert.errors import InvalidParameterError


def test_more_draws_than_a_run_may_hold_are_refused_before_any_is_made():
    assert Draws(num_selection=1, num_estimation=MOST_DRAWS - 1).most == MOST_DRAWS
    for make in (
        lambda: Draws(num_selection=1, num_estimation=MOST_DRAWS),
        lambda: UntilDecided(num_selection=2, max_estimation=MOST_DRAWS - 1),
    ):
        with pytest.raises(InvalidParameterError, match=r"at most 33,554,432 per target, got 33,554,433"):
            make()
