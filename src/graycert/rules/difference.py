r"""The multi-class certificate from the difference of vote counts: tighter than two bounds, from the same votes."""

import numpy as np

from graycert._types import FloatArray, IntArray
from graycert.rules.binary import binary_bounds, binary_margin
from graycert.statistics import EstimationVotes


def difference_margin_lower(votes: EstimationVotes, majority: IntArray, *, alpha: float) -> FloatArray:
    r"""Bound the lead of the majority class over every other class from below, by the difference of the counts.

    $$\underline{t} \text{ of } (N_{y^*}, \max_{c \ne y^*} N_c) \text{ at level } \alpha$$

    Use it as the margin of ``certified_radius``. With two classes it is the binary certificate, whose test also is
    about the difference; with more, it replaces two confidence bounds at α/2 by one test at α. Votes for no class
    count for c, whichever it is.

    Guarantee:
        For a fixed ``majority`` (chosen without these votes), the event "the result is >= 0 and at least the lead of
        the majority class over some other class" has probability at most ``alpha``. Rounded downward.

    Args:
        votes: The estimation votes, n1 samples.
        majority: Reported class per target, shape (num_targets,).
        alpha: Failure probability per target, in (0, 1).

    Returns:
        Lower bounds in [-1, 1), shape (num_targets,); with three classes or more, -1 where no lead is shown.

    Example:
        >>> votes = EstimationVotes([[2_100, 350, 300, 250]], 3_000)
        >>> difference_margin_lower(votes, np.array([0]), alpha=0.01).round(3)
        array([0.552])

    References:
        Berger (1982), intersection-union tests; docs/proofs/difference_test.md.
    """
    # compiles a kernel: not before it is used
    from graycert.statistics.difference_test import difference_lower

    if votes.num_classes == 2:
        return binary_margin(binary_bounds(votes, majority, alpha=alpha)[0])
    return difference_lower(votes.of(majority), votes.most_against(majority), votes.num_samples, alpha=alpha)


def difference_leads_lower(votes: EstimationVotes, majority: IntArray, *, alpha: float) -> FloatArray:
    r"""Bound the lead of the majority class over each other class from below, one class at a time.

    Guarantee:
        For a fixed ``majority`` and one fixed other class, the event "its result is >= 0 and at least the lead over it"
        has probability at most ``alpha``. That is not a joint statement about several classes. The smallest of the
        results is ``difference_margin_lower``. Rounded downward.

    Args:
        votes: The estimation votes, n1 samples.
        majority: Reported class per target, shape (num_targets,).
        alpha: Failure probability per target and class, in (0, 1).

    Returns:
        Lower bounds in [-1, 1), shape (num_targets, num_classes); -1 for the majority class itself.

    Example:
        >>> votes = EstimationVotes([[80, 15, 5]], 100)
        >>> difference_leads_lower(votes, np.array([0]), alpha=0.01).round(2)
        array([[-1.  ,  0.43,  0.56]])

    References:
        docs/proofs/difference_test.md.
    """
    from graycert.statistics.difference_test import difference_lower

    margin = difference_margin_lower(votes, majority, alpha=alpha)[:, None]
    if votes.num_classes == 2:
        leads = np.repeat(margin, 2, axis=1)
    else:
        is_itself = np.arange(votes.num_classes) == majority[:, None]
        losses = np.where(is_itself, 0, votes.possible())
        wins = np.where(is_itself, 0, votes.of(majority)[:, None])
        # the exact bound falls with the opponent's votes; the search stops a little below it
        leads = np.maximum(difference_lower(wins, losses, votes.num_samples, alpha=alpha), margin)
    leads[np.arange(votes.num_targets), majority] = -1.0
    return leads
