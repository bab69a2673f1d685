"""The certificate of bounded votes, in integers: which number of hostile voters can change a prediction, exactly."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._types import BoolArray, IntArray
from graycert.errors import UnsoundSetupError
from graycert.smoothing.bounded_votes.ballots import ONE, Ballots
from graycert.smoothing.bounded_votes.largest import fewest, largest_first

MOST_OFFSET = 2**53
MOST_VOTES = 2**62
UNKNOWN = -1
"""What pads lists of nodes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Polls:
    r"""One vote of several voters on each target.

    $$F_c = A_c + \sum_{w \in V} u_w Q_c(w), \qquad \text{prediction} = \arg\max_c F_c, \text{ the lowest on a tie}$$

    Args:
        offsets: A, which no eligible voter changes, int64, shape (num_targets, num_classes).
        voters: Distinct nodes of each row, padded with -1, integers, shape (num_targets, most_voters).
        eligible: Which of these may be hostile, same shape.
        ballots: Q of every node, integers in [0, `ONE`], shape (num_nodes, num_classes).
        weights: Number u >= 0 of votes of each voter, int64, same shape as ``voters``.

    Raises:
        UnsoundSetupError: ``votes-too-large``, where sums could leave the range of exact integers.
    """

    offsets: IntArray
    voters: NDArray[np.signedinteger]
    eligible: BoolArray
    ballots: Ballots
    weights: IntArray

    def __post_init__(self) -> None:
        """Check that nothing can overflow."""
        sums = self.weights.sum(axis=1, dtype=np.float64)  # rounded; the limit is half of what would still fit
        largest = int(np.abs(self.offsets).max(initial=0))
        if largest >= MOST_OFFSET or (self.weights < 0).any() or (ONE * sums >= MOST_VOTES).any():
            raise UnsoundSetupError(
                "votes-too-large",
                f"Scores must stay exact: offsets below 2**53, votes below 2**62. Got an offset of {largest:.3g} and "
                f"{sums.max(initial=0):.3g} votes. Raise `gamma`, or have fewer voters.",
            )
        for name in ("offsets", "voters", "eligible", "ballots", "weights"):
            alike = np.ascontiguousarray(getattr(self, name)).view()  # kernels are compiled once for all
            alike.flags.writeable = False
            object.__setattr__(self, name, alike)


@dataclass(frozen=True, kw_only=True, eq=False)
class PollCertificates:
    """Exact certificates of all targets.

    Attributes:
        scores: F, int64, shape (num_targets, num_classes).
        prediction: The class with the largest score, the lowest on a tie, shape (num_targets,).
        class_radius: For each class the largest number of eligible voters that cannot make it beat the prediction,
            shape (num_targets, num_classes); the number of all eligible voters where they cannot together, and for the
            prediction itself.
        radius: The smallest of these, shape (num_targets,).
    """

    scores: IntArray
    prediction: IntArray
    class_radius: IntArray
    radius: IntArray


def certify_polls(polls: Polls) -> PollCertificates:
    r"""Return how many eligible voters may be hostile without changing a prediction, whatever they vote.

    $$\text{lead}_c = F_y - F_c > H_c(\rho) = \text{sum of the } \rho \text{ largest } u_w (1 + Q_y(w) - Q_c(w)),
    \quad w \in E, \text{ for all } c \ne y$$

    Where y < c, y wins a tie, and equality is enough. One sort for each class gives every ρ.

    Guarantee:
        Exact integers. No votes of any ``radius`` eligible voters change the prediction; where more could be hostile,
        some radius + 1 of them change it if each can give its whole vote to one class.

    Args:
        polls: The votes.

    Example:
        >>> votes = np.array([[ONE, 0]] * 4, dtype=np.int32)
        >>> voters = np.array([[0, 1, 2, 3]])
        >>> polls = Polls(
        ...     offsets=np.zeros((1, 2), dtype=np.int64),
        ...     voters=voters,
        ...     eligible=voters >= 0,
        ...     ballots=votes,
        ...     weights=np.ones_like(voters),
        ... )
        >>> found = certify_polls(polls)
        >>> found.radius, found.class_radius
        (array([2]), array([[4, 2]]))

    References:
        docs/proofs/bounded_votes.md, Statement 1; Levine and Feizi (2021) for counting votes that can be flipped.
    """
    shape = polls.offsets.shape
    scores, class_radius = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    _certify(polls.offsets, polls.voters, polls.eligible, polls.ballots, polls.weights, scores, class_radius)
    return PollCertificates(
        scores=scores,
        prediction=scores.argmax(axis=1).astype(np.int64),
        class_radius=class_radius,
        radius=class_radius.min(axis=1),
    )


def worst_margins(polls: Polls, budgets: IntArray) -> IntArray:
    r"""Return the margin that a worst set of hostile voters leaves, in units of 2^-20 votes.

    $$\min_{c \ne y} \bigl[\text{lead}_c - H_c(\rho) - [c < y]\bigr]$$

    The prediction holds at ρ if and only if this is not negative; a class below y needs one less, since it wins ties.

    Args:
        polls: The votes.
        budgets: Numbers ρ >= 0 of hostile voters, shape (num_budgets,).

    Returns:
        Int64, shape (num_targets, num_budgets).
    """
    margins = np.empty((polls.offsets.shape[0], budgets.size), dtype=np.int64)
    _find_margins(polls.offsets, polls.voters, polls.eligible, polls.ballots, polls.weights, budgets, margins)
    return margins


def worst_sets(polls: Polls, sizes: IntArray) -> IntArray:
    """Return eligible voters that harm each target most, as many as ``sizes`` says: an exact worst attack.

    Guarantee:
        If any set of so many eligible voters changes the prediction, this one does, each voter with its whole vote for
        the class that comes closest. There may be others that harm as much.

    Args:
        polls: The votes.
        sizes: Number of nodes of each target, >= 0, shape (num_targets,); fewer where fewer are eligible.

    Returns:
        Nodes, most harmful first, padded with -1, int64, shape (num_targets, largest size).
    """
    largest = int(min(sizes.max(initial=0), polls.voters.shape[1]))
    nodes = np.full((sizes.size, largest), UNKNOWN, dtype=np.int64)
    _find_worst(polls.offsets, polls.voters, polls.eligible, polls.ballots, polls.weights, sizes, nodes)
    return nodes


@kernel
def _certify(
    offsets: IntArray,
    voters: NDArray[np.signedinteger],
    eligible: BoolArray,
    ballots: Ballots,
    weights: IntArray,
    scores: IntArray,
    class_radius: IntArray,
) -> None:
    hits = np.empty(voters.shape[1], dtype=np.int64)
    for row in range(voters.shape[0]):
        best = _add_up(offsets[row], voters[row], ballots, weights[row], scores[row])
        for other in range(offsets.shape[1]):
            number = _hits(voters[row], eligible[row], ballots, weights[row], best, other, hits)
            left = _margin(scores[row], best, other)
            class_radius[row, other] = number
            if other == best or left >= hits[:number].sum():
                continue
            class_radius[row, other] = fewest(hits[:number], left) - 1


@kernel
def _find_margins(
    offsets: IntArray,
    voters: NDArray[np.signedinteger],
    eligible: BoolArray,
    ballots: Ballots,
    weights: IntArray,
    budgets: IntArray,
    margins: IntArray,
) -> None:
    hits, scores = np.empty(voters.shape[1], dtype=np.int64), np.empty(offsets.shape[1], dtype=np.int64)
    for row in range(voters.shape[0]):
        best = _add_up(offsets[row], voters[row], ballots, weights[row], scores)
        margins[row] = np.iinfo(np.int64).max
        for other in range(offsets.shape[1]):
            if other == best:
                continue
            number = _hits(voters[row], eligible[row], ballots, weights[row], best, other, hits)
            ordered = np.sort(hits[:number])
            for place in range(budgets.size):
                taken = ordered[number - min(budgets[place], number) :].sum()
                margins[row, place] = min(margins[row, place], _margin(scores, best, other) - taken)


@kernel
def _find_worst(
    offsets: IntArray,
    voters: NDArray[np.signedinteger],
    eligible: BoolArray,
    ballots: Ballots,
    weights: IntArray,
    sizes: IntArray,
    nodes: IntArray,
) -> None:
    most = voters.shape[1]
    hits, kept = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    scores, places = np.empty(offsets.shape[1], dtype=np.int64), np.arange(most)
    for row in range(voters.shape[0]):
        best = _add_up(offsets[row], voters[row], ballots, weights[row], scores)
        first, least = True, 0
        for other in range(offsets.shape[1]):
            if other == best:
                continue
            number = _hits(voters[row], eligible[row], ballots, weights[row], best, other, hits)
            largest = kept[: min(sizes[row], number)]
            largest_first(places[:number], hits, largest)
            left = _margin(scores, best, other)
            for place in largest:
                left -= hits[place]
            if first or left < least:
                first, least = False, left
                _write_eligible(voters[row], eligible[row], largest, nodes[row])


@kernel
def _write_eligible(voters: NDArray[np.signedinteger], eligible: BoolArray, chosen: IntArray, nodes: IntArray) -> None:
    """Write the voters at these places among the eligible ones."""
    number = 0
    allowed = np.empty(voters.size, dtype=np.int64)
    for place in range(voters.size):
        if voters[place] >= 0 and eligible[place]:
            allowed[number] = voters[place]
            number += 1
    for place in range(chosen.size):
        nodes[place] = allowed[chosen[place]]


@kernel
def _add_up(
    offsets: IntArray, voters: NDArray[np.signedinteger], ballots: Ballots, weights: IntArray, scores: IntArray
) -> int:
    """Write the scores of one target; return the class with the largest one, the lowest on a tie."""
    for each in range(scores.size):
        scores[each] = offsets[each]
    for place in range(voters.size):
        if voters[place] >= 0:
            for each in range(scores.size):
                scores[each] += weights[place] * np.int64(ballots[voters[place], each])
    return int(np.argmax(scores))


@kernel
def _hits(
    voters: NDArray[np.signedinteger],
    eligible: BoolArray,
    ballots: Ballots,
    weights: IntArray,
    best: int,
    other: int,
    hits: IntArray,
) -> int:
    """Write what each eligible voter can take from the lead over a class, in their order; return how many there are."""
    number = 0
    for place in range(voters.size):
        node = voters[place]
        if node >= 0 and eligible[place]:
            hits[number] = weights[place] * (ONE + np.int64(ballots[node, best]) - np.int64(ballots[node, other]))
            number += 1
    return number


@kernel
def _margin(scores: IntArray, best: int, other: int) -> int:
    """Return by how much the lead over a class may fall before that class wins, which it does at a tie if lower."""
    return int(scores[best] - scores[other] - (1 if other < best else 0))
