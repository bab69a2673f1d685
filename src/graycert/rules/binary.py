r"""The binary certificate: with two classes, one bound on the majority class is enough."""

import numpy as np
from numpy.typing import ArrayLike

from graycert._types import FloatArray, IntArray
from graycert.statistics import EstimationVotes, clopper_pearson_lower


def binary_margin(p_lower: ArrayLike) -> FloatArray:
    r"""Return a lower bound on the lead of the majority class over the other of two classes.

    $$\underline{p}_{v,y^*} - \overline{\Delta} > \tfrac12
    \iff 2\underline{p}_{v,y^*} - 1 > 2\overline{\Delta}$$

    Guarantee:
        Exact for p_lower >= 1/4 (doubling is exact, and so is the difference of doubles within a factor of
        two); below that the result is negative, as it should be, and never certifies.

    Args:
        p_lower: Lower bound on the probability of the majority class, in [0, 1], shape (num_targets,).

    Returns:
        The lead, in [-1, 1], shape (num_targets,).

    Example:
        >>> float(binary_margin([0.75])[0])
        0.5

    References:
        Scholten et al. (2022), Appendix A, binary certificate.
    """
    return 2.0 * np.asarray(p_lower, dtype=np.float64) - 1.0


def binary_bounds(votes: EstimationVotes, majority: IntArray, *, alpha: float) -> tuple[FloatArray, FloatArray]:
    r"""Bound the majority class of two from below at α; the other class follows.

    One bound suffices because the two probabilities, votes for no class counted as the other's, sum to one:
    $p_{y^*} \ge \underline{p}$ and $p_{\tilde y} \le 1 - \underline{p}$ are the same event. So nothing is lost to a
    second bound, and all of α is spent on the first.

    Guarantee:
        For a fixed ``majority`` (chosen without these votes), both bounds hold together with probability at
        least 1 - ``alpha``. Rounded outward.

    Args:
        votes: The estimation votes of two classes, n1 samples.
        majority: Reported class per target, shape (num_targets,).
        alpha: Failure probability per target, in (0, 1).

    Returns:
        ``p_lower`` and ``p_upper`` = 1 - p_lower rounded upward, each of shape (num_targets,).

    References:
        Scholten et al. (2022), Appendix A, binary certificate.
    """
    p_lower = clopper_pearson_lower(votes.of(majority), votes.num_samples, alpha=alpha)
    return p_lower, complement_upper(p_lower)


def complement_upper(p_lower: FloatArray) -> FloatArray:
    """Return 1 - p_lower rounded upward, at most 1.

    Example:
        >>> float(complement_upper(np.array([0.0]))[0])
        1.0
    """
    return np.minimum(np.nextafter(1.0 - p_lower, np.inf), 1.0)
