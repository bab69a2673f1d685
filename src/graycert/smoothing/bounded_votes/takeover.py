"""How many hostile nodes votes of in-neighbours withstand if these also choose their edges; exact integers."""

from dataclasses import dataclass

import numpy as np

from graycert._types import BoolArray, IntArray
from graycert.smoothing.bounded_votes.ballots import ONE

UNLIMITED = 2**62
"""A radius that no number of hostile nodes exceeds, or as many new nodes as anyone likes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ballot:
    r"""Who votes on one target, and what it brings along itself.

    $$F_c = A_c + |V|\, D_c + \sum_{w \in V} Q_c(w)$$

    Args:
        own: A, int64, shape (num_classes,): reads the target's own row and what was fixed in training.
        per_voter: D, int64, shape (num_classes,): likewise; 0 for an offset that knows no number of voters.
        votes: Q of each voter, int64, in [0, 2^20], shape (num_voters, num_classes).
        eligible: Which voters may be hostile, shape (num_voters,).
        newcomers: How many eligible nodes are no voters yet, new nodes included; `UNLIMITED` for any number.
    """

    own: IntArray
    per_voter: IntArray
    votes: IntArray
    eligible: BoolArray
    newcomers: int

    @property
    def scores(self) -> IntArray:
        """F, shape (num_classes,)."""
        total: IntArray = self.own + self.votes.shape[0] * self.per_voter + self.votes.sum(axis=0)
        return total

    @property
    def prediction(self) -> int:
        """The class of the largest score, the smallest on a tie."""
        return int(self.scores.argmax())


def takeover_radii(ballot: Ballot) -> IntArray:
    r"""Return against how many hostile nodes the predicted class y stays ahead of each other class, edges theirs.

    $$d_c = D_y - D_c, \quad \text{hit}_c(w) = \max(2^{20}, d_c) + Q_y(w) - Q_c(w), \quad
    \text{new}_c = \max(0, 2^{20} - d_c)$$

    An eligible voter turns its vote to c or leaves, whichever costs y more; a newcomer votes for c. The adversary takes
    the ρ dearest of these, K_c(ρ), and c does not win if the lead of y exceeds it; equality suffices where y < c.

    Guarantee:
        Whatever up to the returned number of eligible nodes and newcomers do with their features and with all edges
        that they touch, F_c does not beat F_y. One more of them beat it, if rows exist that vote for c alone. Integers
        throughout: |own| and |per_voter| < 2^53, 2^20 times the number of voters < 2^60.

    Returns:
        One radius per class, int64, shape (num_classes,); `UNLIMITED` where no number suffices, and for y.

    Example:
        >>> two = np.array([[ONE, 0], [ONE, 0]])
        >>> nothing = np.zeros(2, dtype=np.int64)
        >>> everyone = np.ones(2, dtype=bool)
        >>> takeover_radii(Ballot(own=nothing, per_voter=nothing, votes=two, eligible=everyone, newcomers=5))[1]
        np.int64(1)

    References:
        docs/proofs/takeover.md, Statements 1 and 2.
    """
    scores, y = ballot.scores, ballot.prediction
    classes = np.arange(scores.size)
    slack = scores[y] - scores - (classes <= y)  # K may be that large
    ahead = ballot.per_voter[y] - ballot.per_voter
    cost = np.maximum(0, ONE - ahead)
    votes = ballot.votes[ballot.eligible]
    hits = -np.sort(-(np.maximum(ONE, ahead) + votes[:, [y]] - votes), axis=0)
    taken = np.concatenate([np.zeros((1, scores.size), dtype=np.int64), hits.cumsum(axis=0)])

    before = hits > cost  # voters that are taken before any newcomer
    num_before = before.sum(axis=0)
    spent = np.take_along_axis(taken, num_before[None], axis=0)[0]
    among_before = ((taken[1:] <= slack) & before).sum(axis=0)

    left = slack - spent
    joined = np.where(cost > 0, np.minimum(ballot.newcomers, left // np.maximum(cost, 1)), ballot.newcomers)
    among_after = ((taken[1:] - spent <= left - joined * cost) & ~before).sum(axis=0)

    radii = np.where(
        among_before < num_before,
        among_before,
        np.where(
            joined < ballot.newcomers,
            num_before + joined,
            np.where(among_after < (~before).sum(axis=0), num_before + ballot.newcomers + among_after, UNLIMITED),
        ),
    )
    radii[y] = UNLIMITED
    return radii
