"""The certificate of bounded votes is the exhaustive worst case, in integers."""

from collections import Counter

import numpy as np
import pytest

from graycert.errors import UnsoundSetupError
from graycert.smoothing.bounded_votes import certificate
from graycert.smoothing.bounded_votes.ballots import ONE, ballots
from graycert.smoothing.bounded_votes.certificate import Polls, certify_polls, worst_margins, worst_sets
from support.poll_oracle import random_instance, scores_of, winner, worst_case

KINDS = ("tie", "trusted", "near", "hostile target", "gate", "whole field", "offsets", "one-hot", "soft", "weights")


def compare_with_exhaustion(instance):
    """Compare all that is certified of one target with every attack; return what the instance had."""
    polls, kinds = instance.polls, set(instance.kinds)
    found = certify_polls(polls)
    assert found.scores[0].tolist() == scores_of(polls)
    best = winner(scores_of(polls))
    assert found.prediction[0] == best
    if np.count_nonzero(found.scores[0] == found.scores[0, best]) > 1:
        kinds.add("tie")
    eligible = int(polls.eligible.sum())
    margins = worst_margins(polls, np.arange(eligible + 2))[0]
    for budget in range(eligible + 2):
        winners, beaten_by, least = worst_case(polls, budget)
        holds = found.radius[0] >= min(budget, eligible)
        assert holds is not None
        assert bool(holds) == (winners == {best})
        assert margins[budget] == least
        possible = {
            each for each in range(polls.offsets.shape[1]) if found.class_radius[0, each] < min(budget, eligible)
        }
        assert possible == beaten_by
        assert winners <= {best} | possible
        nodes = worst_sets(polls, np.array([budget]))[0]
        assert nodes.size == min(budget, polls.voters.shape[1])
        chosen = nodes[nodes >= 0].tolist()
        assert len(set(chosen)) == len(chosen) == min(budget, eligible)
        assert set(chosen) <= set(polls.voters[0][polls.eligible[0]].tolist())
        if least is not None and chosen:
            attained = []
            for given in set(range(polls.offsets.shape[1])) - {best}:
                vote = [ONE * (each == given) for each in range(polls.offsets.shape[1])]
                scores = scores_of(polls, dict.fromkeys(chosen, vote))
                attained.append(scores[best] - scores[given] - (given < best))
            assert min(attained) == least
    if found.radius[0] >= eligible:
        kinds.add("whole field")
    return kinds, eligible + 2


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_exhaustive_worst_case(seed):
    generator = np.random.default_rng(seed)
    hit = Counter()
    for _ in range(100):
        hit.update(compare_with_exhaustion(random_instance(generator))[0])
    assert all(hit[kind] >= 3 for kind in KINDS), hit


@pytest.mark.slow
def test_it_is_the_exhaustive_worst_case_on_many():
    generator = np.random.default_rng(1_000)
    hit = Counter()
    for _ in range(6_000):
        hit.update(compare_with_exhaustion(random_instance(generator))[0])
    assert all(hit[kind] >= 200 for kind in KINDS), hit


def polls_of(offsets, votes, **changes):
    voters = np.arange(len(votes))[None]
    arguments = {
        "offsets": np.array([offsets]),
        "voters": voters,
        "eligible": voters >= 0,
        "ballots": np.array(votes, dtype=np.int32),
        "weights": np.ones_like(voters),
    }
    return Polls(**{**arguments, **changes})


@pytest.mark.deep
def test_a_tie_goes_to_the_lower_class_before_and_after_an_attack():
    lower = certify_polls(polls_of([0, 0], [[ONE, 0], [ONE, 0]]))
    assert (lower.prediction.tolist(), lower.radius.tolist()) == ([0], [1])  # one hostile vote makes a tie
    upper = certify_polls(polls_of([0, 0], [[0, ONE], [0, ONE]]))
    assert (upper.prediction.tolist(), upper.radius.tolist()) == ([1], [0])


@pytest.mark.deep
def test_nobody_to_fear_is_a_whole_field():
    alone = polls_of([5, 5, 4], np.zeros((0, 3)), voters=np.full((1, 2), -1), eligible=np.zeros((1, 2), dtype=bool))
    alone = Polls(**{**vars(alone), "weights": np.ones((1, 2), dtype=np.int64)})
    found = certify_polls(alone)
    assert (found.prediction.tolist(), found.radius.tolist(), found.class_radius.tolist()) == ([0], [0], [[0, 0, 0]])
    assert worst_sets(alone, np.array([1])).tolist() == [[-1]]


def test_a_row_of_votes_that_does_not_sum_to_one_vote_is_certified_all_the_same():
    thirds = ballots(np.full((1, 3), 1 / 3), sharpen=1.0, one_hot=False)
    assert thirds.tolist() == [[349525] * 3]
    assert certify_polls(polls_of([ONE, 0, 0], thirds)).radius.tolist() == [1]
    assert certify_polls(polls_of([ONE - 1, 0, 0], thirds)).radius.tolist() == [0]


def test_sums_stay_exact_or_are_refused():
    huge = 2**53 - 1
    found = certify_polls(polls_of([huge, -huge], [[0, ONE]] * 3, weights=np.full((1, 3), 2**40)))
    assert found.scores.tolist() == [[huge, -huge + 3 * 2**60]]
    assert found.radius.tolist() == [1]
    for changes in (
        {"offsets": [2**53, 0]},
        {"offsets": [0, -(2**53)]},
        {"weights": np.array([[2**42]])},
        {"weights": np.array([[-1]])},
    ):
        with pytest.raises(UnsoundSetupError, match="votes-too-large"):
            polls_of(**{"offsets": [0, 0], "votes": [[0, ONE]], **changes})


def test_the_oracle_notices_wrong_certificates(monkeypatch):
    """Neither one that ignores ties nor one that counts a changed vote once is what exhaustion says."""
    for name in ("_certify", "_find_margins", "_find_worst", "_add_up", "_hits", "_margin", "fewest"):
        monkeypatch.setattr(certificate, name, getattr(certificate, name).py_func)
    compare_many()
    for name, wrong in (("_margin", _margin_without_ties), ("_hits", _hits_without_the_new_vote)):
        with monkeypatch.context() as patch:
            patch.setattr(certificate, name, wrong)
            with pytest.raises(AssertionError):
                compare_many()


def compare_many():
    generator = np.random.default_rng(0)
    for _ in range(40):
        compare_with_exhaustion(random_instance(generator))


def _margin_without_ties(scores, best, other):
    return int(scores[best] - scores[other])


def _hits_without_the_new_vote(voters, eligible, votes, weights, best, other, hits):
    number = 0
    for place, node in enumerate(voters):
        if node >= 0 and eligible[place]:
            hits[number] = max(0, weights[place] * (int(votes[node, best]) - int(votes[node, other])))
            number += 1
    return number
