import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.rules import Status, certify_votes
from graycert.rules.sequential import SequentialCertificates

DELTAS = [[0.05, 0.2, 0.4]]


def test_radii_grow_with_the_votes_and_are_never_taken_back():
    certificates = SequentialCertificates([[90, 5, 5]], DELTAS)
    assert certificates.radius.tolist() == [-1]
    assert certificates.status.tolist() == [Status.ABSTAINED]
    seen = []
    for batch in [[9, 1, 0]] + 10 * [[95, 3, 2]] + 20 * [[0, 100, 0]]:
        certificates.update([batch])
        seen.append(int(certificates.radius[0]))
    assert seen == sorted(seen)
    assert seen[0] < 2 < seen[-1] == 3
    assert certificates.status.tolist() == [Status.CERTIFIED]
    assert certificates.num_samples.tolist() == [3_010]


def test_each_other_class_must_be_beaten():
    """Class 2 is as strong as the reported one: no number of votes singles out a class."""
    certificates = SequentialCertificates([[50, 1, 49]], DELTAS)
    for _ in range(40):
        certificates.update([[50, 0, 50]])
    assert certificates.radius.tolist() == [-1]


def test_targets_are_independent_of_each_other():
    """One object for many targets is many objects, whatever the size of the blocks."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([6, 1, 1, 1], size=30)
    selection, deltas = rng.multinomial(100, p), np.sort(rng.uniform(0, 0.5, (30, 5)), axis=1)
    together = SequentialCertificates(selection, deltas)
    together._block = 7
    alone = [SequentialCertificates(selection[[i]], deltas[[i]]) for i in range(30)]
    for _ in range(8):
        batch = rng.multinomial(60, p)
        together.update(batch)
        for one, votes in zip(alone, batch, strict=True):
            one.update(votes[None])
    assert together.radius.tolist() == [int(one.radius[0]) for one in alone]
    assert together.undecided.tolist() == [bool(one.undecided[0]) for one in alone]


def test_a_row_of_zeros_changes_nothing():
    certificates = SequentialCertificates([[9, 1], [9, 1]], [[0.1], [0.1]])
    certificates.update([[30, 0], [0, 0]])
    assert certificates.num_samples.tolist() == [30, 0]
    assert certificates.radius.tolist()[1] == -1


def test_hopeless_and_finished_targets_need_no_votes():
    deltas = [[0.1, 0.2], [0.1, 0.5], [0.4, 0.45]]
    certificates = SequentialCertificates([[95, 3, 2], [95, 3, 2], [60, 30, 10]], deltas)
    assert certificates.undecided.tolist() == [True, True, True]
    for _ in range(30):
        certificates.update(np.array([[95, 3, 2], [95, 3, 2], [60, 30, 10]]) * certificates.undecided[:, None])
    # all radii; a lead of 2Δ = 1 is impossible; a lead of .3 is no .8
    assert certificates.radius.tolist() == [2, 1, 0]
    assert certificates.undecided.tolist() == [False, False, False]
    assert certificates.num_samples[2] < 3_000


def test_what_the_votes_that_are_left_would_hardly_show_is_not_worth_drawing():
    votes, deltas = [[120, 60, 20], [120, 60, 20]], [[0.14, 0.14], [0.14, 0.2]]  # leads of .3: thresholds of .28 and .4
    certificates = SequentialCertificates(votes, deltas)
    for _ in range(4):
        certificates.update(votes)
    assert certificates.radius.tolist() == [0, 0]
    assert certificates.undecided.tolist() == [True, True]
    assert certificates.worth_drawing(1_000).tolist() == [False, False]
    assert certificates.worth_drawing(100_000).tolist() == [True, True]  # that many would show a lead above .28
    before = certificates.worth_drawing(1_000)
    certificates.update([[0, 0, 0], [0, 0, 0]])
    assert certificates.worth_drawing(1_000).tolist() == before.tolist()  # who is left out stays out


def test_only_undecided_targets_are_worth_drawing():
    rng = np.random.default_rng(2)
    p = rng.dirichlet([6, 2, 1], size=60)
    certificates = SequentialCertificates(rng.multinomial(200, p), np.repeat([[0.1, 0.2, 0.3]], 60, axis=0))
    certificates.update(rng.multinomial(300, p))
    shares = []
    for most in (320, 1_000, 100_000):
        worth = certificates.worth_drawing(most)
        assert not (worth & ~certificates.undecided).any()
        shares.append(int(worth.sum()))
    assert shares == sorted(shares)
    assert shares[0] < shares[-1]


def test_with_early_stopping_fewer_votes_give_nearly_the_same_radii():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([8, 1, 1, 0.5], size=80)
    deltas = np.repeat(np.array([[0.2, 0.36, 0.48]]), 80, axis=0)
    selection, batches = rng.multinomial(500, p), rng.multinomial(100, p, size=(30, 80))
    certificates = SequentialCertificates(selection, deltas)
    for batch in batches:
        certificates.update(batch * certificates.worth_drawing(3_000)[:, None])
    fixed = certify_votes(selection, batches.sum(axis=0), deltas, belongs_to="made-up votes and bounds").radius
    assert certificates.num_samples.mean() < 0.5 * 3_000
    assert certificates.radius.mean() >= fixed.mean() - 0.1


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_smaller_level_never_certifies_more(data):
    votes = data.draw(st.lists(st.integers(0, 200), min_size=3, max_size=3))
    selection = [[60, 30, 10]]
    strict, loose = (SequentialCertificates(selection, DELTAS, alpha=alpha) for alpha in (0.001, 0.05))
    for certificates in (strict, loose):
        certificates.update([votes])
    assert strict.radius[0] <= loose.radius[0]


def test_certain_and_impossible_messages():
    certificates = SequentialCertificates([[10, 0], [10, 0]], [[0.0, 0.0], [1.0, 1.0]])
    certificates.update([[1_000, 0], [1_000, 0]])
    assert certificates.radius.tolist() == [2, 0]
    assert certificates.undecided.tolist() == [False, False]


def test_arguments_are_checked():
    with pytest.raises(InvalidParameterError, match="`alpha` must be"):
        SequentialCertificates([[9, 1]], [[0.1]], alpha=1.0)
    with pytest.raises(InvalidParameterError, match="`give_up` must be"):
        SequentialCertificates([[9, 1]], [[0.1]], give_up=0.0)
    with pytest.raises(InvalidParameterError, match="must not fall"):
        SequentialCertificates([[9, 1]], [[0.2, 0.1]])
    certificates = SequentialCertificates([[9, 1]], [[0.1]])
    with pytest.raises(InvalidParameterError, match="shape of the selection votes"):
        certificates.update([[1, 2, 3]])
    with pytest.raises(InvalidParameterError, match=">= 0"):
        certificates.update([[1, -2]])
