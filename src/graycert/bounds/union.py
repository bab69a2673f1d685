"""The union bound of App. F: looser than Theorem 3, kept for comparison."""

import numpy as np
from numpy.typing import ArrayLike

from graycert._rounding import add_up
from graycert._types import FloatArray
from graycert.bounds.largest_first import largest_first


def union_bound(delta_sources: ArrayLike, *, max_radius: int) -> FloatArray:
    r"""Bound the probability that a message from any of the worst ρ nodes reaches the target by a sum.

    $$\overline{\Delta}_U(\rho) = \min\Bigl(1, \sum_{i=1}^{\rho}\Delta_i\Bigr),\qquad \Delta_1\ge\Delta_2\ge\dots$$

    Guarantee:
        The result is at least $\Delta(\rho)$, and never below ``multiplicative_bound`` of the same values. It never
        falls with ρ. Tight for ρ = 1. Rounded upward, by less than 2ρ·2^-53.

    Args:
        delta_sources: Δ_w or upper bounds of it for all eligible nodes in any order, in [0, 1], shape
            (..., num_eligible). Zeros are allowed as padding.
        max_radius: Largest number of hostile nodes to bound, >= 1.

    Returns:
        Δ̄(ρ) for ρ = 1..max_radius, in [0, 1], shape (..., max_radius).

    Raises:
        InvalidParameterError: If an entry is outside [0, 1] or ``max_radius`` < 1.

    Example:
        >>> union_bound([0.25, 0.5, 0.5], max_radius=3)
        array([0.5, 1. , 1. ])

    References:
        Scholten et al. (2022), App. F.
    """
    worst = largest_first(delta_sources, max_radius=max_radius)
    bounds = np.empty_like(worst)
    total = np.zeros(worst.shape[:-1])
    for index in range(worst.shape[-1]):
        total = np.minimum(add_up(total, worst[..., index]), 1.0)
        bounds[..., index] = total
    return bounds
