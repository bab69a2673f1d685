"""The integer enclosures behind the exact p(E(B)): each operation against rational numbers, in units of 2^-128."""

from fractions import Fraction

import numpy as np
import pytest

from graycert.bounds.hop_network import CERTAIN, NEVER, ONE, HopNetwork, either, mix, nodes_of, times
from graycert.graph import path_graph

FINEST = Fraction(1, ONE)


def enclose(value):
    """Return the narrowest enclosure of a rational number."""
    scaled = value * ONE
    return scaled.numerator // scaled.denominator, -(-scaled.numerator // scaled.denominator)


def random_fraction(rng):
    return Fraction(int(rng.integers(0, 10**9)), 10**9 + 7)


def assert_encloses(enclosure, exact, *, width):
    low, high = (Fraction(end, ONE) for end in enclosure)
    assert 0 <= low <= exact <= high <= 1
    assert high - low <= width * FINEST


def test_operations_enclose_their_results():
    rng = np.random.default_rng(0)
    for _ in range(500):
        p, x, y = (random_fraction(rng) for _ in range(3))
        x, y = max(x, y), min(x, y)
        assert_encloses(times(enclose(x), enclose(y)), x * y, width=4)
        assert_encloses(either(enclose(x), enclose(y)), x + y - x * y, width=4)
        assert_encloses(mix(enclose(p), enclose(x), enclose(y)), p * x + (1 - p) * y, width=4)


@pytest.mark.parametrize("wide", [False, True])
def test_wide_enclosures_stay_valid(wide):
    rng = np.random.default_rng(1)
    for _ in range(500):
        p, x, y = (random_fraction(rng) for _ in range(3))
        x, y = max(x, y), min(x, y)
        slack = rng.random(3) if wide else np.zeros(3)

        def loosely(value, share):
            low, high = enclose(value)
            return int(low * Fraction(1 - share)), high + int((ONE - high) * Fraction(share))

        low, high = mix(loosely(p, slack[0]), loosely(x, slack[1]), loosely(y, slack[2]))
        assert Fraction(low, ONE) <= p * x + (1 - p) * y <= Fraction(high, ONE)


def test_certain_values_stay_certain():
    assert times(CERTAIN, CERTAIN) == either(NEVER, CERTAIN) == mix(NEVER, NEVER, CERTAIN) == CERTAIN
    assert times(CERTAIN, NEVER) == either(NEVER, NEVER) == mix(CERTAIN, NEVER, NEVER) == NEVER


@pytest.mark.parametrize("p_delete", [0.0, 5e-324, 1e-40, 0.1, 1 - 2**-53])
def test_probabilities_smaller_than_the_unit_are_enclosed(p_delete):
    network, start = HopNetwork.around(
        path_graph(2), 0, np.array([1]), np.full(2, p_delete), np.array([0.5]), num_layers=1
    )
    (inner,) = nodes_of(start.between)
    assert_encloses(network.lost[inner, 1], Fraction(p_delete), width=1)
