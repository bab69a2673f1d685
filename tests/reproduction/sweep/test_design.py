import numpy as np
import pytest
from scipy.stats import kstest, qmc

from graycert.errors import InvalidParameterError
from graycert.reproduction.sweep import AdaptiveDesign, RandomDesign

UNIT = {
    "p_delete": (0.0, 1.0),
    "p_ablate": (0.0, 1.0),
    "p_delete_training": (0.0, 1.0),
    "p_ablate_training": (0.0, 1.0),
}


def _points(design: RandomDesign, number: int) -> np.ndarray:
    return np.array([list(design.point(index).values()) for index in range(number)])


@pytest.mark.statistical
def test_points_are_uniform_and_independent() -> None:
    points = _points(RandomDesign(ranges=UNIT, seed=13), 2_000)
    # eight tests at 1e-7 each: a false alarm has probability below 1e-6
    assert all(kstest(column, "uniform").pvalue > 1e-7 for column in points.T)
    correlation = np.corrcoef(np.concatenate([points.T[:, :-1], points.T[:, 1:]]))  # between parameters and neighbours
    assert np.abs(correlation[np.triu_indices(8, 1)]).max() < 0.13  # 5.8 standard errors for each of 28 pairs


@pytest.mark.parametrize("low_discrepancy", [False, True])
def test_a_point_depends_on_seed_and_index_only(low_discrepancy: bool) -> None:
    design = RandomDesign(ranges=UNIT, seed=13, low_discrepancy=low_discrepancy)
    again = RandomDesign(ranges=dict(UNIT), seed=13, low_discrepancy=low_discrepancy)
    backwards = np.array([list(again.point(index).values()) for index in reversed(range(8))])
    assert np.array_equal(_points(design, 8), backwards[::-1])
    assert len(np.unique(_points(design, 64), axis=0)) == 64
    other = RandomDesign(ranges=UNIT, seed=14, low_discrepancy=low_discrepancy)
    assert not (_points(design, 8) == _points(other, 8)).any()


def test_seeds_and_indices_are_not_mixed_up() -> None:
    # as a list of numbers, (5, 1) and (5 + 2**32, 0) would be the same words
    first = RandomDesign(ranges=UNIT, seed=5).point(1)
    assert first != RandomDesign(ranges=UNIT, seed=5 + 2**32).point(0)


def test_values_of_a_design_stay_what_they_are() -> None:
    """A sweep that goes on under another version of a library must not have other points."""
    point = RandomDesign(ranges={"x": (0.0, 1.0)}, seed=2**64 - 1).point(0)
    bits = np.random.Philox(np.random.SeedSequence(2**64 - 1, spawn_key=(0,))).random_raw()
    assert point == {"x": (int(bits) >> 11) / 2**53}


def test_low_discrepancy_leaves_smaller_gaps() -> None:
    spread = _points(RandomDesign(ranges=UNIT, seed=13, low_discrepancy=True), 64)
    assert np.array_equal(spread, qmc.Sobol(4, scramble=True, seed=np.random.default_rng(13)).random(64))
    assert qmc.discrepancy(spread) < qmc.discrepancy(_points(RandomDesign(ranges=UNIT, seed=13), 64)) / 2


def test_points_lie_in_their_ranges() -> None:
    ranges = {"low": (-3.0, -1.0), "fixed": (0.25, 0.25), "tiny": (1.0, np.nextafter(1.0, 2.0))}
    points = _points(RandomDesign(ranges=ranges, seed=0), 200)
    for column, (low, high) in zip(points.T, ranges.values(), strict=True):
        assert ((column >= low) & (column <= high)).all()
    assert np.ptp(points[:, 0]) > 1.8


@pytest.mark.parametrize("pair", [(1, 0), (0, float("nan")), (0, float("inf")), (0,), (0, 1, 2)])
def test_impossible_ranges_are_refused(pair: tuple[float, ...]) -> None:
    for kind in (RandomDesign, AdaptiveDesign):
        with pytest.raises(InvalidParameterError, match=r"`ranges` must give .* got x ="):
            kind(ranges={"x": pair}, seed=0)


def test_other_arguments_are_checked() -> None:
    with pytest.raises(InvalidParameterError, match="at least one parameter"):
        RandomDesign(ranges={}, seed=0)
    with pytest.raises(InvalidParameterError, match="`seed`"):
        RandomDesign(ranges=UNIT, seed=-1)
    with pytest.raises(InvalidParameterError, match="`sampler` must be one of 'nsga2', 'tpe'"):
        AdaptiveDesign(ranges=UNIT, seed=0, sampler="cmaes")
