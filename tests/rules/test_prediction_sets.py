import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.rules import certified_radius
from graycert.rules.difference import difference_margin_lower
from graycert.rules.prediction_sets import prediction_sets
from graycert.statistics import EstimationVotes, SelectionVotes
from support.outcomes import all_outcomes, critical_laws, probabilities

DELTAS = np.array([[0.05, 0.15, 0.25, 0.35]])


def sets_of(outcomes, deltas, alpha, selection=(5, 3, 2)):
    chosen = np.repeat(np.array(selection)[None], len(outcomes), axis=0)
    return prediction_sets(
        SelectionVotes(chosen, sum(selection)),
        EstimationVotes(outcomes, int(outcomes[0].sum())),
        np.repeat(deltas, len(outcomes), axis=0),
        alpha=alpha,
    )


def possible_labels(p, delta):
    """Labels that no class leads by more than 2Δ from the start: all others lose whatever the attack."""
    return [c for c in range(len(p)) if p.max() - p[c] <= 2 * delta + 1e-12]


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_exact_coverage_of_each_attack(alpha):
    """All outcomes of 30 samples: each label that an attack of any size can force is missed with at most α."""
    outcomes = all_outcomes(30)
    sets = sets_of(outcomes, DELTAS, alpha)
    misses = []
    for lead in (0.0, *(2 * DELTAS[0])):
        for law in critical_laws(lead):
            for p in (law, law[[1, 0, 2]], law[[2, 1, 0]]):  # the selection may have chosen any of the classes
                chance = probabilities(outcomes, p)
                for label in range(3):
                    # at the smallest radius that reaches the label, and at all larger ones jointly
                    reached = [r for r in range(5) if label in possible_labels(p, 0.0 if r == 0 else DELTAS[0, r - 1])]
                    if reached:
                        missed = ~sets[:, reached[0] :, label].all(axis=1)
                        misses.append(float(chance[missed].sum()))
    assert max(misses) <= alpha
    assert max(misses) >= alpha / 2  # the check has power


def test_exact_coverage_of_all_attacks_at_once():
    """At α / (C - 1) one event covers all labels; at α it need not."""
    outcomes, alpha = all_outcomes(120), 0.05
    p = np.array([0.4, 0.3, 0.3])  # Δ = .05: labels 1 and 2 are both just possible
    chance = probabilities(outcomes, p)
    for level in (alpha, alpha / 2):
        missed = ~sets_of(outcomes, DELTAS, level)[:, 1, 1:].all(axis=1)
        total = float(chance[missed].sum())
        assert total > alpha if level == alpha else total <= alpha


def test_a_lone_label_needs_no_correction():
    outcomes, alpha = all_outcomes(30), 0.05
    alone = sets_of(outcomes, DELTAS, alpha).sum(axis=2) == 1
    for index, delta in enumerate(DELTAS[0]):
        for p in critical_laws(2 * delta):
            assert probabilities(outcomes, p)[alone[:, index + 1]].sum() <= alpha


@settings(max_examples=40, deadline=None)
@given(data=st.data(), num_classes=st.integers(2, 5))
def test_sets_grow_are_never_empty_and_are_single_where_certified(data, num_classes):
    counts = st.lists(st.integers(0, 60), min_size=num_classes, max_size=num_classes).map(np.array)
    selection, estimation = (data.draw(counts) + np.eye(num_classes, dtype=int)[0] for _ in range(2))
    deltas = np.sort(np.array(data.draw(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3))))[None]
    chosen = SelectionVotes(selection[None], int(selection.sum()))
    votes = EstimationVotes(estimation[None], int(estimation.sum()))
    sets = prediction_sets(chosen, votes, deltas, alpha=0.05)
    majority = selection[None].argmax(axis=1)
    assert sets.shape == (1, 4, num_classes)
    assert sets.dtype == np.bool_
    assert sets[0, :, majority[0]].all()
    assert (sets[:, 1:] >= sets[:, :-1]).all()
    radius = int(certified_radius(difference_margin_lower(votes, majority, alpha=0.05), deltas)[0])
    assert (sets[0].sum(axis=1) == 1).tolist() == [rho <= radius for rho in range(4)]


def test_an_attack_that_surely_arrives_can_force_every_label():
    sets = prediction_sets(SelectionVotes([[9, 1, 0]], 10), EstimationVotes([[1_000, 0, 0]], 1_000), [[0.0, 1.0]])
    assert sets.sum(axis=2).tolist() == [[1, 1, 3]]


@pytest.mark.parametrize("name", ["selection", "estimation"])
def test_votes_cannot_be_swapped(name):
    votes = {"selection": SelectionVotes([[9, 1]], 10), "estimation": EstimationVotes([[9, 1]], 10)}
    other = "estimation" if name == "selection" else "selection"
    with pytest.raises(InvalidParameterError, match=f"`{name}` must be"):
        prediction_sets(**(votes | {name: votes[other]}), delta_upper=[[0.1]])


def test_shapes_and_levels_are_checked():
    selection, estimation = SelectionVotes([[9, 1]], 10), EstimationVotes([[9, 1, 0]], 10)
    with pytest.raises(InvalidParameterError, match="shape of `selection`"):
        prediction_sets(selection, estimation, [[0.1]])
    with pytest.raises(InvalidParameterError, match="`alpha` must be"):
        prediction_sets(selection, EstimationVotes([[9, 1]], 10), [[0.1]], alpha=0.0)
    with pytest.raises(InvalidParameterError, match="must not fall"):
        prediction_sets(selection, EstimationVotes([[9, 1]], 10), [[0.2, 0.1]])
