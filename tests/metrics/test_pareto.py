from fractions import Fraction

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.metrics.pareto import dominated_area, dominated_share, dominating_points, within_accuracy

# a coarse grid, so that ties and copies are common
POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


def _columns(points: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([a for a, _ in points]) / 6, np.array([r for _, r in points]) / 6


def _dominates(p: tuple[int, int], q: tuple[int, int]) -> bool:
    return p[0] >= q[0] and p[1] >= q[1] and p != q


@given(POINTS)
def test_the_front_is_what_no_point_dominates(points: list[tuple[int, int]]) -> None:
    expected = [not any(_dominates(other, point) for other in points) for point in points]
    assert dominating_points(*_columns(points)).tolist() == expected


def test_the_front_is_that_of_optuna() -> None:
    generator = np.random.default_rng(3)
    points = generator.integers(0, 15, size=(60, 2)) / 15
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(directions=["maximize", "maximize"])
    study.add_trials([optuna.trial.create_trial(values=list(point)) for point in points])
    best = sorted(trial.number for trial in study.best_trials)
    assert np.flatnonzero(dominating_points(points[:, 0], points[:, 1])).tolist() == best


@pytest.mark.parametrize("num_targets", [20, 281, 1000, 3327])
def test_the_margin_is_compared_as_if_shares_were_exact(num_targets: int) -> None:
    counts = np.arange(num_targets + 1)
    for largest in (num_targets, num_targets - 7, num_targets // 2):
        accuracy = counts[: largest + 1] / num_targets
        exact = [Fraction(largest - int(count), num_targets) <= Fraction(1, 20) for count in counts[: largest + 1]]
        assert within_accuracy(accuracy).tolist() == exact


def test_a_margin_of_nothing_keeps_the_best_and_no_points_are_no_error() -> None:
    assert within_accuracy([0.5, 0.8, 0.8], margin=0).tolist() == [False, True, True]
    assert within_accuracy([]).tolist() == []
    assert dominating_points([], []).tolist() == []
    assert dominated_area([], []) == 0.0


@given(POINTS)
def test_the_area_is_that_of_the_cells_below_some_point(points: list[tuple[int, int]]) -> None:
    cells = sum(any(a > x and r > y for a, r in points) for x in range(6) for y in range(6))
    assert dominated_area(*_columns(points)) == pytest.approx(cells / 36, abs=1e-12)


@given(POINTS.filter(bool), POINTS)
def test_the_share_counts_front_points_that_the_others_reach(
    mine: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    front = {p for p in mine if not any(_dominates(q, p) for q in mine)}
    reached = {p for p in front if any(q[0] >= p[0] and q[1] >= p[1] for q in others)}
    accuracy, robustness = _columns(others)
    share = dominated_share(*_columns(mine), other_accuracy=accuracy, other_robustness=robustness)
    assert share == len(reached) / len(front)
    if share == 1:
        assert dominated_area(accuracy, robustness) >= dominated_area(*_columns(mine)) - 1e-12


@pytest.mark.parametrize(
    ("accuracy", "robustness", "message"),
    [
        ([0.5, float("nan")], [0.1, 0.2], "`accuracy` must be finite"),
        ([0.5], [-0.1], "`robustness` must be finite and >= 0"),
        ([0.5, 0.6], [0.1], "one value per point, got 2 and 1"),
        ([[0.5]], [[0.1]], "one axis"),
        (["a"], [0.1], "must be numbers"),
    ],
)
def test_unusable_points_are_refused(accuracy: list, robustness: list, message: str) -> None:
    for function in (dominating_points, dominated_area):
        with pytest.raises(InvalidParameterError, match=message):
            function(accuracy, robustness)


def test_a_method_without_points_has_no_share() -> None:
    with pytest.raises(InvalidParameterError, match="at least one point"):
        dominated_share([], [], other_accuracy=[0.5], other_robustness=[0.5])
