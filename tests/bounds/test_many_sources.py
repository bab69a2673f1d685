"""Multiplicative and union bound, and the largest radius that they leave."""

import numpy as np
import pytest

from graycert.bounds import (
    largest_certifiable_radius,
    multiplicative_bound,
    single_source_bound,
    target_bound,
    union_bound,
)
from graycert.bounds.repeated_counts import distinct_rows
from graycert.bounds.worst_nodes import largest_per_group
from graycert.errors import InvalidParameterError


def test_the_worst_nodes_come_first_whatever_the_order():
    bound = multiplicative_bound([0.1, 0.5, 0.0, 0.2], max_radius=5)
    assert bound == pytest.approx([0.5, 0.6, 0.64, 0.64, 0.64], abs=1e-15)
    assert bound[2] == bound[3] == bound[4]  # no more nodes to add, so nothing is added, not even rounding
    assert union_bound([0.1, 0.5, 0.0, 0.2], max_radius=5) == pytest.approx([0.5, 0.7, 0.8, 0.8, 0.8], abs=1e-15)


def test_no_eligible_node_gives_zero():
    for bound in (multiplicative_bound, union_bound):
        assert bound([], max_radius=3).tolist() == [0.0, 0.0, 0.0]
        assert bound(np.zeros((2, 0)), max_radius=3).shape == (2, 3)


def test_rows_are_independent():
    rows = np.random.default_rng(1).random((4, 6))
    for bound in (multiplicative_bound, union_bound):
        together = bound(rows, max_radius=4)
        assert together.tolist() == [bound(row, max_radius=4).tolist() for row in rows]


def test_the_union_bound_stops_at_one():
    assert union_bound([0.5, 0.5, 0.5], max_radius=3).tolist() == [0.5, 1.0, 1.0]


def test_certain_arrival_stays_certain():
    for bound in (multiplicative_bound, union_bound):
        assert bound([1.0, 1.0, 0.3], max_radius=3).tolist() == [1.0, 1.0, 1.0]


def test_the_bottleneck_of_appendix_f():
    # ρ second-hop attackers behind one neighbour: exact (1 - p_d)(1 - p_d^ρ); both bounds lie above, exact at ρ = 1.
    p_delete = 0.3
    single = single_source_bound([2], p_delete=p_delete, p_ablate=0.0)
    radii = np.arange(1, 11)
    exact = (1 - p_delete) * (1 - p_delete**radii)
    multiplicative = multiplicative_bound([single] * 10, max_radius=10)
    union = union_bound([single] * 10, max_radius=10)
    assert multiplicative[0] == pytest.approx(exact[0], abs=1e-14)
    assert (multiplicative[1:] > exact[1:] + 0.01).all()
    assert (union >= multiplicative).all()


def test_without_edge_deletion_the_largest_radius_is_four():
    # Known answer of golden/README.md: p_d = 0, p_a = 0.85.
    single = [single_source_bound([2], p_delete=0.0, p_ablate=0.85)] * 30
    assert largest_certifiable_radius(multiplicative_bound(single, max_radius=20)) == 4
    assert largest_certifiable_radius(multiplicative_bound([target_bound(p_ablate=0.5)] * 9, max_radius=9)) == 0


def test_the_largest_radius_needs_all_smaller_ones_strictly_below_one_half():
    assert largest_certifiable_radius([0.1, 0.5, 0.4]) == 1
    assert largest_certifiable_radius([0.5, 0.1]) == 0
    assert largest_certifiable_radius([0.1, np.nextafter(0.5, 0)]) == 2
    assert largest_certifiable_radius(np.zeros((2, 3))).tolist() == [3, 3]


@pytest.mark.parametrize("max_radius", [1, 7, 64, 65, 300])
def test_largest_per_group_equals_sorting_each_group(max_radius):
    rng = np.random.default_rng(2)
    values = rng.integers(0, 60, 900) / 60  # with ties
    indptr = np.sort(np.concatenate([[0, 0, 900], rng.integers(0, 900, 7)]))  # the first group is empty
    for groups in (np.arange(9), np.array([6, 2])):
        result = largest_per_group(values, indptr[groups], indptr[groups + 1], max_radius=max_radius)[0]
        for row, group in enumerate(groups):
            wanted = np.sort(values[indptr[group] : indptr[group + 1]])[::-1][:max_radius]
            assert result[row].tolist() == np.pad(wanted, (0, max_radius - wanted.size)).tolist()


@pytest.mark.parametrize("num_columns", [1, 2, 5])
@pytest.mark.parametrize("scale", [1.0, 0.1, 2.0**60])
def test_distinct_rows_are_those_of_numpy(num_columns, scale):
    rng = np.random.default_rng(num_columns)
    rows = rng.integers(0, 6, (3000, num_columns)) * scale
    rows[rng.random(3000) < 0.01] = np.inf
    first, which = distinct_rows(rows)
    np.testing.assert_array_equal(rows[first][which], rows)
    wanted, occurrence = np.unique(rows, axis=0, return_index=True)
    assert first.size == len(wanted)
    assert first.tolist() == sorted(occurrence.tolist())


@pytest.mark.parametrize("bound", [multiplicative_bound, union_bound])
@pytest.mark.parametrize("values", [[-0.1], [1.1], [np.nan], 0.5])
def test_values_are_checked(bound, values):
    with pytest.raises(InvalidParameterError, match="`delta_sources` must"):
        bound(values, max_radius=2)


@pytest.mark.parametrize("max_radius", [0, 1.0, True])
def test_max_radius_is_checked(max_radius):
    with pytest.raises(InvalidParameterError, match="`max_radius` must be"):
        multiplicative_bound([0.1], max_radius=max_radius)


@pytest.mark.parametrize("values", [[1.5], [np.nan], 0.2])
def test_the_limit_checks_its_input(values):
    with pytest.raises(InvalidParameterError, match="`delta_upper` must"):
        largest_certifiable_radius(values)
