"""How many votes of a majority must change before another class wins; exact integers, ties to the smaller class.

Votes for no class count for every class but the winner, so the winner stays however such draws are decided.
"""

import numpy as np

from graycert._types import IntArray


def majority_radius(votes: IntArray, no_class: IntArray | None = None) -> IntArray:
    r"""Return how many votes may change, whichever they are, without changing the winner.

    $$M = \min_{b \ne a} \Bigl\lfloor \frac{n_a - n_b - n_\bot - [a > b]}{2} \Bigr\rfloor$$

    Guarantee:
        The class with the most votes, the smallest on a tie, stays the same whatever M votes become, those for no
        class besides. Tight: some M + 1 votes change it, or M votes and those for no class.

    Args:
        votes: Votes per class, >= 0, shape (num_targets, num_classes), at least two classes.
        no_class: Votes for no class, shape (num_targets,); None if there are none.

    Returns:
        M per target, shape (num_targets,); -1 where votes for no class leave the winner open.

    Example:
        >>> majority_radius(np.array([[2, 5], [5, 2], [3, 3]])).tolist()
        [1, 1, 0]

    References:
        docs/proofs/subgraph_voting.md, Statement 2.
    """
    needed = _needed(votes, no_class)
    return np.where((needed <= 0).any(axis=1), -1, ((needed - 1) // 2).min(axis=1))


def attackable_radius(
    votes: IntArray, attackable: IntArray, num_eligible: IntArray, no_class: IntArray | None = None
) -> IntArray:
    """Return how many nodes may be hostile if each changes at most one vote, and only attackable votes change.

    Guarantee:
        The winner stays the same whatever that many attackable votes become, and votes for no class besides. Tight if
        it is below ``num_eligible``.

    Args:
        votes: Votes per class, shape (num_targets, num_classes).
        attackable: Those of them that may change, per class, same shape.
        num_eligible: What to return where all attackable votes together do not suffice, shape (num_targets,).
        no_class: Votes for no class, shape (num_targets,), None if there are none. They are given to each rival as
            they are, so it makes no difference which of them are attackable.

    Returns:
        The number per target, shape (num_targets,); -1 where votes for no class leave the winner open.

    Example:
        >>> attackable_radius(np.array([[2, 5], [2, 5]]), np.array([[2, 1], [0, 2]]), np.array([9, 9])).tolist()
        [9, 1]

    References:
        docs/proofs/subgraph_voting.md, Statement 3.
    """
    rows = np.arange(votes.shape[0])
    needed = _needed(votes, no_class)
    from_winner = attackable[rows, votes.argmax(axis=1)][:, None]  # each closes the gap to a rival by two
    from_others = attackable.sum(axis=1)[:, None] - from_winner - attackable  # by one
    never = np.iinfo(np.int64).max
    flips = np.where(2 * from_winner >= needed, (needed + 1) // 2, needed - from_winner)
    flips = np.where(2 * from_winner + from_others >= needed, flips, never).min(axis=1)
    safe = np.where(flips < never, flips - 1, num_eligible)
    return np.where((needed <= 0).any(axis=1), -1, safe)


def _needed(votes: IntArray, no_class: IntArray | None) -> IntArray:
    """Return by how much the winner's lead over each class must fall for that class to win; huge for itself."""
    rows, winner = np.arange(votes.shape[0]), votes.argmax(axis=1)
    classes = np.arange(votes.shape[1])
    possible = votes if no_class is None else votes + no_class[:, None]
    needed: IntArray = votes[rows, winner][:, None] - possible - (winner[:, None] > classes) + 1
    needed[rows, winner] = np.iinfo(np.int64).max // 4
    return needed
