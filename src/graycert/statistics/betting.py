r"""Bets against a small lead of one class: evidence that may be looked at after every sample.

A gambler who believes that p1 - p2 > t bets on it in every sample, with a fixed share of the wealth. If the belief is
wrong, the wealth is not expected to grow, so it ever reaches 1/α with probability at most α (Ville's inequality).
Sampling may therefore stop at any time, for any reason. docs/proofs/sequential.md has the proof.
"""

import numpy as np
from numpy.typing import ArrayLike

from graycert._types import FloatArray

STAKES: FloatArray = np.array([0.02, 0.03, 0.04, 0.06, 0.08, 0.11, 0.15, 0.21, 0.29, 0.40, 0.55, 0.75, 0.95])
"""Shares of the wealth that a lost bet costs; the wealth is split among gamblers who each keep to one."""

_EQUAL_SHARE = 0.1  # of the wealth is split equally, in case the votes that split the rest were misleading
_ERROR = 2.0**-45  # relative error of the sums of logarithms, see docs/proofs/sequential.md


def log_wealth_lower(
    wins: ArrayLike, losses: ArrayLike, num_samples: ArrayLike, *, threshold: ArrayLike, weights: ArrayLike
) -> FloatArray:
    r"""Bound from below the logarithm of the wealth after betting on p1 - p2 > t.

    $$K = \sum_k w_k\,(1+\lambda_k(1-t))^{N_1}(1-\lambda_k(1+t))^{N_2}(1-\lambda_k t)^{n-N_1-N_2},\qquad
    \lambda_k=\tfrac{f_k}{1+t}$$

    Guarantee:
        If p1 - p2 <= t and the weights are fixed before the samples are drawn, K is a non-negative supermartingale
        that starts at most at 1: the probability that it reaches 1/α at any time is at most α. The result is at most
        log K in exact arithmetic.

    Args:
        wins: Occurrences N1 so far, integers >= 0; all arguments broadcast.
        losses: Occurrences N2 so far, integers >= 0.
        num_samples: Samples n so far, >= N1 + N2.
        threshold: t in (-1, 1).
        weights: w_k of ``stake_weights``, shape (..., num_stakes).

    Returns:
        Shape of the broadcast arguments.

    Example:
        >>> weights = stake_weights(80, 10, 100, threshold=0.5)
        >>> bool(log_wealth_lower(800, 100, 1_000, threshold=0.5, weights=weights) > np.log(100))
        True

    References:
        Waudby-Smith and Ramdas (2024); docs/proofs/sequential.md.
    """
    return _log_mean_exp_lower(_log_wealth_per_stake(wins, losses, num_samples, threshold), np.asarray(weights))


def stake_weights(wins: ArrayLike, losses: ArrayLike, num_samples: ArrayLike, *, threshold: ArrayLike) -> FloatArray:
    r"""Split the wealth among the stakes by what each would have won on earlier samples.

    Guarantee:
        Each weight is at least 0.1 / num_stakes up to rounding, and their exact sum is at most 1. Bets with them are
        valid on samples that are independent of the ones given here.

    Args:
        wins: Occurrences of the first event in earlier samples, integers >= 0; all arguments broadcast.
        losses: Occurrences of the second event.
        num_samples: Earlier samples.
        threshold: t in (-1, 1).

    Returns:
        Shape (..., num_stakes).

    Example:
        >>> STAKES[stake_weights(60, 40, 100, threshold=0.0).argmax()].item()
        0.21
    """
    log_wealth = _log_wealth_per_stake(wins, losses, num_samples, threshold)
    with np.errstate(under="ignore"):
        earned = np.exp(log_wealth - log_wealth.max(axis=-1, keepdims=True))
        share = earned / earned.sum(axis=-1, keepdims=True)
    # the last factor outweighs the rounding of fourteen operations
    mixed = (1.0 - _EQUAL_SHARE) * share + _EQUAL_SHARE / STAKES.size
    return np.asarray(mixed * (1.0 - 2.0**-40), dtype=np.float64)


def _log_wealth_per_stake(
    wins: ArrayLike, losses: ArrayLike, num_samples: ArrayLike, threshold: ArrayLike
) -> FloatArray:
    """Bound the logarithm of each gambler's wealth from below, shape (..., num_stakes)."""
    t = np.asarray(threshold, dtype=np.float64)[..., None]
    won, lost = (np.asarray(counts, dtype=np.float64)[..., None] for counts in (wins, losses))
    neither = np.asarray(num_samples, dtype=np.float64)[..., None] - won - lost
    stakes = STAKES / (1.0 + t)
    gained = won * np.log1p(stakes * (1.0 - t))
    paid = lost * np.log1p(-stakes * (1.0 + t))
    drifted = neither * np.log1p(-stakes * t)
    return gained + paid + drifted - _ERROR * (gained - paid + np.abs(drifted))


def _log_mean_exp_lower(logarithms: FloatArray, weights: FloatArray) -> FloatArray:
    largest = logarithms.max(axis=-1)
    with np.errstate(under="ignore"):
        mean = (weights * np.exp(logarithms - largest[..., None])).sum(axis=-1)
    total = largest + np.log(mean)
    return np.asarray(total - _ERROR * (np.abs(largest) + 64.0), dtype=np.float64)
