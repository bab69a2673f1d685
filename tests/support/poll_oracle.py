"""Bounded votes by exhaustion: every set of hostile voters, every class that each of them may give its vote to."""

import itertools
from dataclasses import dataclass

import numpy as np

from graycert.smoothing.bounded_votes.ballots import ONE, ballots
from graycert.smoothing.bounded_votes.certificate import Polls


@dataclass(frozen=True)
class Instance:
    """One target."""

    polls: Polls
    kinds: frozenset[str]


def random_instance(generator):
    """Few voters and classes, small leads, ties, nodes that cannot be hostile, own scores or none."""
    size, num_classes = int(generator.integers(1, 6)), int(generator.integers(2, 5))
    num_nodes = size + int(generator.integers(1, 3))
    one_hot = bool(generator.random() < 0.4)
    coarse = generator.random() < 0.5
    shares = generator.dirichlet(np.full(num_classes, generator.choice([0.2, 1.0, 4.0])), num_nodes)
    if coarse:  # many equal votes, so that scores tie
        shares = np.round(4 * shares) + 1e-12
        shares /= shares.sum(axis=1, keepdims=True)
    votes = ballots(shares, sharpen=float(generator.choice([0.7, 1.0, 2.0])), one_hot=one_hot)
    voters = np.full((1, size + 1), -1, dtype=np.int32)
    voters[0, :size] = generator.permutation(num_nodes)[:size]
    mode = generator.choice(["own", "target votes"])
    kinds = {str(mode), "one-hot" if one_hot else "soft"}
    offsets = np.zeros((1, num_classes), dtype=np.int64)
    if mode == "own" or generator.random() < 0.3:
        step = ONE if coarse and one_hot else ONE // 4
        offsets[0] = generator.integers(-3, 4, num_classes) * step + generator.integers(0, 2) * generator.integers(0, 9)
        kinds.add("offsets")
    eligible = voters >= 0
    for kind, share in (("trusted", 0.4), ("near", 0.4)):
        if generator.random() < share:
            left_out = eligible & (generator.random(voters.shape) < 0.4)
            eligible = eligible & ~left_out
            kinds |= {kind} if left_out.any() else set()
    if mode == "target votes" and eligible[0, 0]:
        kinds.add("hostile target")
    weights = np.ones(voters.shape, dtype=np.int64)
    if mode == "own" and generator.random() < 0.15:
        weights[:] = 0
        kinds.add("gate")
    elif generator.random() < 0.3:
        weights = generator.integers(0, 4, voters.shape)
        kinds.add("weights")
    polls = Polls(offsets=offsets, voters=voters, eligible=eligible, ballots=votes, weights=weights)
    return Instance(polls, frozenset(kinds))


def scores_of(polls, changed=()):
    """Scores with the votes of some nodes replaced, in Python's integers."""
    table = {int(node): polls.ballots[node].tolist() for node in polls.voters[0] if node >= 0}
    table.update(changed)
    found = polls.offsets[0].tolist()
    for node, weight in zip(polls.voters[0].tolist(), polls.weights[0].tolist(), strict=True):
        if node >= 0:
            found = [each + weight * vote for each, vote in zip(found, table[node], strict=True)]
    return found


def winner(scores):
    """The class with the largest score, the lowest on a tie."""
    return scores.index(max(scores))


def attacks(polls, budget):
    """Yield the votes of every set of so many hostile voters, each with its whole vote for one class."""
    num_classes = polls.offsets.shape[1]
    whole = [[ONE * (each == given) for each in range(num_classes)] for given in range(num_classes)]
    allowed = polls.voters[0][polls.eligible[0]].tolist()
    for nodes in itertools.combinations(allowed, min(budget, len(allowed))):
        for given in itertools.product(whole, repeat=len(nodes)):
            yield dict(zip(nodes, given, strict=True))


def worst_case(polls, budget):
    """Return classes that win under some attack, classes that beat the prediction, and the smallest margin."""
    num_classes = polls.offsets.shape[1]
    best = winner(scores_of(polls))
    winners, beaten_by, least = set(), set(), None
    for changed in attacks(polls, budget):
        scores = scores_of(polls, changed)
        winners.add(winner(scores))
        for other in set(range(num_classes)) - {best}:
            margin = scores[best] - scores[other] - (other < best)
            least = margin if least is None else min(least, margin)
            if margin < 0:
                beaten_by.add(other)
    return winners, beaten_by, least
