"""Certificates that hold for all targets at once."""

import math
from fractions import Fraction

from graycert._validation import check_integer, check_open_unit


def simultaneous_level(alpha: float, num_targets: int) -> float:
    r"""Return the failure probability per target with which all targets together fail with probability α.

    $$\alpha_v = \alpha / N$$

    A certificate at level α is about one target: of N correct-looking certificates, αN may be wrong on average.
    Certify with the result of this function where a statement about the whole set is made, such as "no target of this
    list changes" or a count of robust targets. It covers every rule of graycert, sequential ones included, whatever
    the dependence between targets: the same draws may serve all.

    Guarantee:
        If each certificate fails with probability at most the result, the probability that any of ``num_targets``
        fails is at most ``alpha`` (union bound). The result times ``num_targets`` is at most ``alpha`` exactly. The
        targets must be chosen without looking at the estimation votes; dropping some later is allowed, adding is not.

    Args:
        alpha: Failure probability for all targets together, in (0, 1).
        num_targets: Number of targets N >= 1.

    Returns:
        The level per target, in (0, alpha].

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    Example:
        >>> simultaneous_level(0.01, 256)
        3.90625e-05
    """
    alpha = check_open_unit("alpha", alpha, hint="It is the chance of failure, not the confidence level.")
    num_targets = check_integer("num_targets", num_targets, at_least=1)
    level = alpha / num_targets
    return level if Fraction(level) * num_targets <= Fraction(alpha) else math.nextafter(level, 0.0)
