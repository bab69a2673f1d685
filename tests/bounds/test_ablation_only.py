from fractions import Fraction

import numpy as np
import pytest

from graycert.bounds import ablation_only_delta, largest_ablation_only_radius
from graycert.errors import InvalidParameterError


def test_known_answers():
    # golden/README.md: n = 10, k = 1 (p_a = 0.9): radius 6; p_a = 0.85: radius 4; p_a <= 0.5 certifies nothing.
    assert largest_ablation_only_radius(p_ablate=0.9, num_eligible=10) == 6
    assert largest_ablation_only_radius(p_ablate=0.85) == 4
    assert [largest_ablation_only_radius(p_ablate=p) for p in (0.0, 0.3, 0.5)] == [0, 0, 0]
    assert largest_ablation_only_radius(p_ablate=float(np.nextafter(0.5, 1))) == 1
    # App. I: radius 10 needs more than about 0.933.
    assert largest_ablation_only_radius(p_ablate=0.933) == 9
    assert largest_ablation_only_radius(p_ablate=0.9331) == 10


def test_there_is_no_limit_when_the_whole_field_is_below_one_half():
    # The paper's condition would refuse radius 2 here; with one eligible node Δ(2) = 0.4.
    assert largest_ablation_only_radius(p_ablate=0.6, num_eligible=1) is None
    assert ablation_only_delta(p_ablate=0.6, num_eligible=1, max_radius=3) == pytest.approx([0.4, 0.4, 0.4], abs=1e-15)
    assert largest_ablation_only_radius(p_ablate=0.6, num_eligible=2) == 1
    assert largest_ablation_only_radius(p_ablate=0.1, num_eligible=0) is None
    assert largest_ablation_only_radius(p_ablate=1.0) is None


def test_the_radius_is_the_largest_power_above_one_half():
    rng = np.random.default_rng(0)
    for p_ablate in [*rng.uniform(0.4, 1, 150).tolist(), *(1 - 10 ** rng.uniform(-3, -1, 30)).tolist()]:
        radius = largest_ablation_only_radius(p_ablate=p_ablate)
        power = Fraction(p_ablate) ** radius
        assert power > Fraction(1, 2) >= power * Fraction(p_ablate)


@pytest.mark.parametrize("radius", [1, 2, 3, 5, 8, 13, 64])
def test_the_floats_on_both_sides_of_the_threshold(radius):
    p_ablate = 0.5 ** (1 / radius)
    for _ in range(4):
        p_ablate = float(np.nextafter(p_ablate, 0))
    found = []
    for _ in range(9):
        certifiable = Fraction(p_ablate) ** radius > Fraction(1, 2)
        assert (largest_ablation_only_radius(p_ablate=p_ablate) >= radius) == certifiable
        found.append(certifiable)
        p_ablate = float(np.nextafter(p_ablate, 1))
    assert found[0] is False
    assert found[-1] is True


def test_probabilities_next_to_one():
    # log 2 · 2^53 = 6243314768165359.1...
    assert largest_ablation_only_radius(p_ablate=float(np.nextafter(1, 0))) == 6243314768165358


def test_delta_is_rounded_up_by_less_than_one_unit():
    rng = np.random.default_rng(1)
    for p_ablate in [0.0, 1.0, 0.5, 1e-300, *rng.random(40).tolist(), *(1 - 10 ** rng.uniform(-16, -2, 40)).tolist()]:
        values = ablation_only_delta(p_ablate=p_ablate, num_eligible=7, max_radius=10)
        for radius, value in enumerate(values.tolist(), start=1):
            exact = 1 - Fraction(p_ablate) ** min(radius, 7)
            assert Fraction(value) >= exact
            assert value == 0.0 or Fraction(float(np.nextafter(value, 0))) < exact


@pytest.mark.parametrize(
    ("name", "value"), [("p_ablate", 1.2), ("num_eligible", -1), ("num_eligible", 2.0), ("max_radius", 0)]
)
def test_arguments_are_checked(name, value):
    arguments = {"p_ablate": 0.5, "num_eligible": 3, "max_radius": 2} | {name: value}
    with pytest.raises(InvalidParameterError, match=f"`{name}` must be"):
        ablation_only_delta(**arguments)
    arguments.pop("max_radius")
    if name != "max_radius":
        with pytest.raises(InvalidParameterError, match=f"`{name}` must be"):
            largest_ablation_only_radius(**arguments)
