r"""The multi-class certificate: the majority class leads every other class by more than 2Δ."""

import numpy as np
from numpy.typing import ArrayLike

from graycert._types import FloatArray, IntArray
from graycert.statistics import (
    EstimationVotes,
    clopper_pearson_lower,
    clopper_pearson_upper,
    unverified_clopper_pearson_lower,
    unverified_clopper_pearson_upper,
)


def multiclass_margin(p_lower: ArrayLike, p_upper: ArrayLike) -> FloatArray:
    r"""Return a lower bound on the lead of the majority class over every other class.

    $$\underline{p}_{v,y^*} - \max_{c \ne y^*}\overline{p}_{v,c} > 2\overline{\Delta}
    \;\Rightarrow\; g_v(G) = g_v(G')$$

    Guarantee:
        The result is at most p_lower - p_upper in exact arithmetic (rounded downward: floating point
        subtraction is off by at most half a unit in the last place). Comparing it with 2Δ̄, which is exact,
        therefore never certifies what exact arithmetic would not.

    Args:
        p_lower: Lower bound on the probability of the majority class, in [0, 1], shape (num_targets,).
        p_upper: Upper bound on the probability of each other class, in [0, 1], shape (num_targets,).

    Returns:
        The lead, in [-1, 1], shape (num_targets,).

    Example:
        >>> bool(multiclass_margin([0.75], [0.25])[0] < 0.5)
        True

    References:
        Scholten et al. (2022), Corollaries 1 and 2.
    """
    return np.nextafter(np.subtract(p_lower, p_upper), -np.inf)


def intersection_union_bounds(
    votes: EstimationVotes, majority: IntArray, *, alpha: float
) -> tuple[FloatArray, FloatArray]:
    r"""Bound the majority class from below and all others from above, without a correction for their number.

    $$\underline{p} = CP_{low}(N_{y^*}; \alpha/2), \qquad
    \overline{p} = CP_{up}(\max_{c \ne y^*} N_c; \alpha/2)$$

    Let c be the most probable other class: it is unknown, but it does not depend on the votes. The largest
    count is at least its count and the bound rises with the count, so
    $\overline{p} \ge CP_{up}(N_c; \alpha/2)$, which falls below $p_c$ with probability at most α/2. So two
    bounds at α/2 are enough, however many classes there are. Votes for no class count for c, whichever it is.

    Guarantee:
        For a fixed ``majority`` (chosen without these votes), the event "p_lower - p_upper exceeds the lead
        of the majority class over some other class" has probability at most ``alpha``. Rounded outward.

    Args:
        votes: The estimation votes, n1 samples.
        majority: Reported class per target, shape (num_targets,).
        alpha: Failure probability per target, in (0, 1).

    Returns:
        ``p_lower`` and ``p_upper``, each of shape (num_targets,).

    References:
        Berger (1982), intersection-union tests. Replaces the estimate of Scholten et al. (2022), Section 5.
    """
    p_lower = clopper_pearson_lower(votes.of(majority), votes.num_samples, alpha=alpha / 2)
    p_upper = clopper_pearson_upper(votes.most_against(majority), votes.num_samples, alpha=alpha / 2)
    return p_lower, p_upper


def paper_bounds(
    votes: EstimationVotes, majority: IntArray, runner_up: IntArray, *, alpha: float
) -> tuple[FloatArray, FloatArray]:
    r"""Bound the majority class and one runner-up, as the authors' implementation does. NOT SOUND.

    Both bounds are Clopper-Pearson at α/C, with SciPy's quantiles as they are. The class with the second most
    *selection* votes need not be the most probable other class, and only that one is bounded: for
    probabilities (.60, .21, .19), Δ = .20, n0 = 10 and n1 = 10^5, 41 % of the certificates are wrong
    instead of 1 %. This rule exists to compare with published numbers.

    Args:
        votes: The estimation votes, n1 samples.
        majority: Reported class per target, shape (num_targets,).
        runner_up: The one other class that is bounded, shape (num_targets,).
        alpha: Nominal failure probability per target, in (0, 1).

    Returns:
        ``p_lower`` and ``p_upper``, each of shape (num_targets,).

    References:
        Scholten et al. (2022), Section 5, and their reference implementation.
    """
    level = alpha / votes.num_classes
    rival = votes.possible()[np.arange(votes.num_targets), runner_up]
    p_lower = unverified_clopper_pearson_lower(votes.of(majority), votes.num_samples, alpha=level)
    p_upper = unverified_clopper_pearson_upper(rival, votes.num_samples, alpha=level)
    return p_lower, p_upper
