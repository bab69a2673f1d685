"""Prediction sets of stored runs."""

import numpy as np
import pytest

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.rules import certified_radius, difference_margin_lower, prediction_sets, simultaneous_level
from graycert.statistics import EstimationVotes, SelectionVotes
from support.certificates import small_certificates
from support.outcomes import all_outcomes, probabilities


def sets_at(run, radius, alpha):
    selection = SelectionVotes(run.selection_votes, run.setup.draws.num_selection)
    estimation = EstimationVotes(run.estimation_votes, run.setup.draws.num_estimation)
    return prediction_sets(selection, estimation, run.delta_upper, alpha=alpha)[:, radius]


@pytest.mark.parametrize("simultaneous", [False, True])
def test_uses_votes_bounds_and_level_of_the_run(simultaneous):
    run = small_certificates(simultaneous=simultaneous, alpha=0.05, num_targets=12)
    level = simultaneous_level(0.05, 12) if simultaneous else 0.05
    sizes = set()
    for radius in range(9):
        found = run.possible_labels(radius)
        sizes |= set(found.sum(axis=1).tolist())
        assert found.shape == (12, 3)
        assert found.dtype == np.bool_
        np.testing.assert_array_equal(found, sets_at(run, radius, level))
        assert found[np.arange(12), run.prediction].all()
    assert sizes == {1, 2, 3}


def test_the_level_of_a_simultaneous_run_is_stricter():
    sizes = [
        sum(int(run.possible_labels(radius).sum()) for radius in range(9))
        for run in (small_certificates(num_targets=40, simultaneous=flag) for flag in (False, True))
    ]
    assert sizes[0] < sizes[1]


def test_sets_are_the_same_after_saving(tmp_path):
    run = small_certificates()
    stored = graycert.Certificates.load(run.save(tmp_path / "run"))
    for radius in (0, 3):
        np.testing.assert_array_equal(stored.possible_labels(radius), run.possible_labels(radius))


def test_a_single_label_is_where_the_difference_rule_certifies():
    run = small_certificates(rule="difference", num_targets=30)
    votes = EstimationVotes(run.estimation_votes, run.setup.draws.num_estimation)
    radii = certified_radius(difference_margin_lower(votes, run.prediction, alpha=run.setup.alpha), run.delta_upper)
    np.testing.assert_array_equal(np.minimum(radii, run.num_eligible), run.radius)
    for radius in range(9):
        np.testing.assert_array_equal(run.possible_labels(radius).sum(axis=1) == 1, radii >= radius)


def test_exact_coverage_of_a_fixed_attack():
    """Class 1 is exactly 2Δ(2) behind: an attack on two nodes can force it. All outcomes of 40 votes are listed."""
    outcomes, p = all_outcomes(40), np.array([0.625, 0.25, 0.125])
    size = len(outcomes)
    deltas = np.tile([[0.125, 0.1875, 0.25]], (size, 1))
    run = small_certificates(
        num_targets=size,
        named=False,
        alpha=0.05,
        draws=graycert.Draws(num_selection=10, num_estimation=40),
        max_radius=3,
        selection_votes=np.tile([[8, 1, 1]], (size, 1)),
        estimation_votes=outcomes,
        delta_upper=deltas,
        prediction=np.zeros(size, dtype=np.int64),
        radius=np.zeros(size, dtype=np.int64),
        status=np.full(size, "predicted"),
        num_eligible=np.full(size, 3),
        receptive_field_size=np.full(size, 4),
    )
    chance = probabilities(outcomes, p)
    missed = [float(chance[~run.possible_labels(radius)[:, 1]].sum()) for radius in (1, 2, 3)]
    assert missed[1] <= 0.05
    assert missed[1] > 0.02  # the check has power
    assert missed[0] > missed[1] > missed[2]
    assert missed[0] > 0.05  # one node cannot force it


def test_refusals():
    run = small_certificates()
    for radius in (-1, 9, 1.0, True):
        with pytest.raises(InvalidParameterError, match="`radius` must"):
            run.possible_labels(radius)
    with pytest.raises(UnsoundSetupError) as caught:
        small_certificates(rule="paper").possible_labels(1)
    assert caught.value.slug == "unsound-rule"
