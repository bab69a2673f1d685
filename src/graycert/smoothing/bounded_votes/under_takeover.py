"""Bounded votes against hostile nodes that choose their edges: what is refused, and the radii of all targets."""

import dataclasses

import numpy as np

from graycert._types import IntArray
from graycert.errors import UnsoundSetupError
from graycert.problem import Problem
from graycert.smoothing.bounded_votes.certificate import MOST_OFFSET, Polls
from graycert.smoothing.bounded_votes.parameters import BoundedVotes
from graycert.smoothing.bounded_votes.takeover import UNLIMITED, Ballot, takeover_radii
from graycert.smoothing.protocol import Arrays
from graycert.threats import NodeTakeoverThreat

_OF_EDGES = ("num_voters", "walk_length", "decay", "tolerance")


def refuse_chosen_voters(problem: Problem) -> None:
    """Refuse voters and offsets that hostile edges change, where the threat has such edges.

    Raises:
        UnsoundSetupError: ``takeover-voters`` or ``takeover-labels``.

    References:
        docs/proofs/takeover.md, "What each condition is for".
    """
    smoothing = problem.smoothing
    if not isinstance(problem.threat, NodeTakeoverThreat) or not isinstance(smoothing, BoundedVotes):
        return
    if smoothing.label_propagation is not None:
        raise UnsoundSetupError(
            "takeover-labels",
            "`label_propagation` must be None where hostile nodes choose their edges, got labels: an edge carries "
            "labels of its own to the target. Leave it out.",
        )
    usual = {field.name: field.default for field in dataclasses.fields(BoundedVotes)}
    voters = smoothing.voters if smoothing.voters is None or isinstance(smoothing.voters, str) else "own weights"
    if voters not in (None, "in-neighbours"):
        raise _chosen("voters", voters)
    for name in _OF_EDGES:
        if getattr(smoothing, name) != usual[name]:
            raise _chosen(name, getattr(smoothing, name))


def _chosen(name: str, value: object) -> UnsoundSetupError:
    return UnsoundSetupError(
        "takeover-voters",
        f"`{name}` must be left out where hostile nodes choose their edges, got {value}: each in-neighbour of a target "
        "has one vote, and all of them vote. A limit, a ranking or weights would be chosen by hostile edges, too.",
    )


def certify_takeover(polls: Polls, per_voter: IntArray, num_eligible: IntArray, threat: NodeTakeoverThreat) -> Arrays:
    """Return predictions, radii, scores and radii per class of all targets.

    Guarantee:
        As of `takeover_radii`. Where any number of nodes may be injected, radii that are not unlimited are cut below
        ``num_eligible``, which counts 2^20 new nodes.

    Args:
        polls: Who votes on what; in-neighbours, and the target where it is one voter.
        per_voter: D, the part of the offsets that each voter adds, int64, shape (num_targets, num_classes).
        num_eligible: How many nodes may be hostile, new ones included, shape (num_targets,).
        threat: How many of them may be new.
    """
    votes = (polls.voters >= 0) & (polls.weights > 0)
    largest = float(np.abs(per_voter).max(initial=0)) * (float(num_eligible.max(initial=0)) + votes.shape[1] + 1)
    if largest >= MOST_OFFSET:
        raise UnsoundSetupError(
            "votes-too-large",
            f"Own scores must stay exact, below 2**53, also where every node that may be hostile votes; they could "
            f"reach {largest:.3g}. Raise `gamma`, or set a smaller `max_injected`.",
        )
    scores, class_radius = (np.empty(polls.offsets.shape, dtype=np.int64) for _ in range(2))
    for row, counted in enumerate(votes):
        listens = bool(polls.weights[row].any())  # not where the target is sure of itself
        eligible = polls.eligible[row] & counted
        others = int(num_eligible[row]) - int(eligible.sum())
        newcomers = UNLIMITED if threat.max_injected is None else others
        ballot = Ballot(
            own=polls.offsets[row] - int(counted.sum()) * per_voter[row],
            per_voter=per_voter[row],
            votes=polls.ballots[polls.voters[row][counted]].astype(np.int64),
            eligible=eligible[counted],
            newcomers=newcomers if listens else 0,
        )
        scores[row] = ballot.scores
        radii = takeover_radii(ballot)
        all_of_them = num_eligible[row]
        class_radius[row] = np.where(radii == UNLIMITED, all_of_them, np.minimum(radii, max(all_of_them - 1, 0)))
    return {
        "prediction": scores.argmax(axis=1).astype(np.int64),
        "radius": class_radius.min(axis=1),
        "scores": scores,
        "class_radius": class_radius,
    }
