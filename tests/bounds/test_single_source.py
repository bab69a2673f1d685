import numpy as np
import pytest

from graycert.bounds import single_source_bound, single_source_bounds, target_bound
from graycert.errors import InvalidParameterError


def test_values_worked_out_by_hand():
    assert single_source_bound([1], p_delete=0.5, p_ablate=0.0) == pytest.approx(0.5, abs=1e-14)
    assert single_source_bound([2], p_delete=0.5, p_ablate=0.0) == pytest.approx(0.25, abs=1e-14)
    assert single_source_bound([2, 2, 1], p_delete=0.5, p_ablate=0.2) == pytest.approx(
        0.8 * (1 - 0.5 * 0.75**2), abs=1e-14
    )


def test_the_target_itself_has_a_path_of_length_zero():
    for p_delete in (0.0, 0.3, 1.0):
        assert single_source_bound([0], p_delete=p_delete, p_ablate=0.3) == target_bound(p_ablate=0.3)


@pytest.mark.parametrize("p_ablate", [0.0, 0.794, 1.0])
def test_certain_outcomes_are_exact(p_ablate):
    shown = target_bound(p_ablate=p_ablate)
    assert single_source_bound([], p_delete=0.0, p_ablate=p_ablate) == 0.0
    assert single_source_bound([3], p_delete=0.0, p_ablate=p_ablate) == shown
    assert single_source_bound([1, 2], p_delete=1.0, p_ablate=p_ablate) == 0.0
    counts = [[0, 0, 0], [0, 0, 1], [5, 0, 0]]
    assert single_source_bounds(counts, p_delete=0.0, p_ablate=p_ablate).tolist() == [0.0, shown, shown]
    assert single_source_bounds(counts, p_delete=1.0, p_ablate=p_ablate).tolist() == [0.0, 0.0, 0.0]


def test_lengths_and_counts_are_two_ways_to_say_the_same():
    counts = np.random.default_rng(0).integers(0, 5, size=(50, 4))
    together = single_source_bounds(counts, p_delete=0.31, p_ablate=0.794)
    for row, bound in zip(counts, together.tolist(), strict=True):
        lengths = np.repeat([1, 2, 3, 4], row)
        assert single_source_bound(lengths, p_delete=0.31, p_ablate=0.794) == bound


def test_extreme_counts_and_lengths():
    assert single_source_bounds([[np.inf, 0.0]], p_delete=0.5, p_ablate=0.25).tolist() == [0.75]
    assert single_source_bounds([[np.inf]], p_delete=1.0, p_ablate=0.25).tolist() == [0.0]
    assert single_source_bounds([[1e300]], p_delete=0.5, p_ablate=0.25).tolist() == [0.75]
    assert 0.0 < single_source_bound([10**6], p_delete=0.5, p_ablate=0.0) <= 2e-60  # sixty digits are computed
    assert single_source_bounds(np.zeros((0, 2)), p_delete=0.5, p_ablate=0.25).shape == (0,)


@pytest.mark.parametrize("name", ["p_delete", "p_ablate"])
@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, "0.5", True])
def test_probabilities_are_checked(name, value):
    probabilities = {"p_delete": 0.5, "p_ablate": 0.5} | {name: value}
    with pytest.raises(InvalidParameterError, match=f"`{name}` must be"):
        single_source_bound([1], **probabilities)
    with pytest.raises(InvalidParameterError, match=f"`{name}` must be"):
        single_source_bounds([[1]], **probabilities)


@pytest.mark.parametrize("lengths", [[-1], [1.5], [[1]], 1])
def test_lengths_are_checked(lengths):
    with pytest.raises(InvalidParameterError, match="`path_lengths` must"):
        single_source_bound(lengths, p_delete=0.5, p_ablate=0.5)


@pytest.mark.parametrize("counts", [[1, 2], [[-1.0]], [[np.nan]]])
def test_counts_are_checked(counts):
    with pytest.raises(InvalidParameterError, match="`path_counts` must"):
        single_source_bounds(counts, p_delete=0.5, p_ablate=0.5)
