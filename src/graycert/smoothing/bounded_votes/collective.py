"""One adversary against all targets of votes: what each node contributes to making a target fall, in exact integers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from graycert._types import BoolArray, IntArray
from graycert.bounds.collective_program import GRID, FlipWeights
from graycert.rules.collective import CollectiveCertificate, surviving_targets
from graycert.smoothing.bounded_votes.ballots import ONE
from graycert.smoothing.bounded_votes.certificate import Polls
from graycert.smoothing.bounded_votes.shared_attack import most_falls

_WIDE = 42  # bits: beyond them a product with GRID would leave int64


@dataclass(frozen=True, kw_only=True, eq=False)
class Contest:
    r"""What hostile nodes can do to one target: class c wins if the hits of those that vote for it reach its need.

    Args:
        prediction: The class y that is predicted.
        needs: lead_c + [y < c] in units of 2^-20, int64 >= 1, shape (num_classes,); that of y is not read.
        nodes: Voters that may be hostile, distinct, shape (num_voters,).
        weights: 2^20 u of each, int64 >= 0, shape (num_voters,): what a whole vote of it counts.
        hits: u (2^20 + Q_y - Q_c), int64, shape (num_voters, num_classes): what y loses to c if it votes for c.
        decisive: Nodes each of which alone counts as making the target fall: those that may be hostile although the
            threat excludes them as too close, such as a target that reads its own row.
        radius: A certified radius of the target on its own; the program needs no other knowledge of it.
    """

    prediction: int
    needs: IntArray
    nodes: IntArray
    weights: IntArray
    hits: IntArray
    decisive: IntArray
    radius: int

    def flip_weights(self) -> FlipWeights:
        r"""Return how much each node contributes, whichever class wins.

        $$a_w = \max_{c \ne y} \min\Bigl(1, \frac{\text{hit}_c(w)}{\text{need}_c}\Bigr)$$

        Guarantee:
            Of every set of hostile nodes that makes the target fall and has no decisive one, the weights sum to at
            least ``GRID``. Rounded up to the grid.
        """
        rivals = np.flatnonzero(np.arange(self.needs.size) != self.prediction)
        needs, hits = self.needs[rivals], np.minimum(self.hits[:, rivals], self.needs[rivals])
        excess = max(0, int(needs.max(initial=1)).bit_length() - _WIDE)
        rounded, least = -(-hits >> excess), np.maximum(needs >> excess, 1)
        weights = np.minimum(-(-rounded * GRID // least), GRID).max(axis=1, initial=0)
        useful = weights > 0
        return FlipWeights.weighed(
            self.nodes[useful], weights[useful], decisive=self.decisive, radius=max(self.radius, 0)
        )


def contests(polls: Polls, *, untrusted: BoolArray, own: IntArray, radius: IntArray) -> list[Contest]:
    """Return what hostile nodes can do to each target of a poll.

    Args:
        polls: Who votes on what; eligible voters are those that the threat allows to be hostile.
        untrusted: Which voters may be hostile at all, however close, shape (num_targets, most_voters).
        own: The target where it counts its own scores in full and may be hostile to others, else -1, shape
            (num_targets,).
        radius: Certified radius of each target, at least the number of all eligible voters where these do not suffice.
    """
    made = []
    scores = np.stack([_scores(polls, row) for row in range(polls.offsets.shape[0])])
    for row, y in enumerate(scores.argmax(axis=1).tolist()):
        counted = (polls.voters[row] >= 0) & (polls.weights[row] > 0)
        hostile, near = counted & polls.eligible[row], counted & untrusted[row] & ~polls.eligible[row]
        nodes = polls.voters[row][hostile].astype(np.int64)
        units, votes = polls.weights[row][hostile], polls.ballots[nodes].astype(np.int64)
        made.append(
            Contest(
                prediction=y,
                needs=scores[row, y] - scores[row] + (y < np.arange(scores.shape[1])),
                nodes=nodes,
                weights=ONE * units,
                hits=units[:, None] * (ONE + votes[:, [y]] - votes),
                decisive=np.append(polls.voters[row][near], own[row : row + 1][own[row] >= 0]).astype(np.int64),
                radius=int(radius[row]),
            )
        )
    return made


def _scores(polls: Polls, row: int) -> IntArray:
    counted = polls.voters[row] >= 0
    votes = polls.ballots[polls.voters[row][counted]].astype(np.int64)
    total: IntArray = polls.offsets[row] + polls.weights[row][counted] @ votes
    return total


def against_one_adversary(
    contests: Sequence[Contest],
    *,
    num_nodes: int,
    budgets: ArrayLike,
    groups: ArrayLike | None = None,
    group_budgets: ArrayLike | None = None,
    method: str = "lp",
    time_limit: float = 60.0,
    one_hot: bool = False,
) -> CollectiveCertificate:
    """Bound from below how many targets keep their prediction when one adversary's ρ nodes vote once, for all of them.

    Guarantee:
        For each set B of at most ρ nodes within the budgets and each choice of their votes, at least ``num_robust``
        targets keep their prediction. Method "lp": exact integers; HiGHS proposes multipliers, and nothing it returns
        is trusted. Method "milp" is the exact number if the solver ends, up to its tolerances, and trusts its bound.

    Args:
        contests: One for each target.
        num_nodes: Number of nodes of the graph, which ``groups`` is about.
        budgets: Numbers ρ of hostile nodes, rising, >= 1.
        groups: The group of each node, -1 for none, shape (num_nodes,).
        group_budgets: Largest number of hostile nodes of each group, >= 0.
        method: "lp" or "milp".
        time_limit: Seconds for each solver and budget; results of "milp" depend on it.
        one_hot: Whether a node votes for one class alone; else a hostile vote may be shared among classes.

    Returns:
        Counts per budget; every target is active.

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    References:
        Schuchardt et al. (2021) for the idea; docs/proofs/bounded_votes_collective.md.
    """
    return surviving_targets(
        [contest.flip_weights() for contest in contests],
        num_nodes=num_nodes,
        budgets=budgets,
        groups=groups,
        group_budgets=group_budgets,
        method=method,
        time_limit=time_limit,
        exact=partial(most_falls, contests, one_hot=one_hot, time_limit=time_limit),
    )
