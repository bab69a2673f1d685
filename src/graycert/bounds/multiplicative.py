"""Theorem 3: from single nodes to any ρ nodes, as if their messages were independent."""

import numpy as np
from numpy.typing import ArrayLike

from graycert._rounding import add_up, complement_up, multiply_up
from graycert._types import FloatArray
from graycert.bounds.largest_first import largest_first


def multiplicative_bound(delta_sources: ArrayLike, *, max_radius: int) -> FloatArray:
    r"""Bound the probability that a message from any of the worst ρ nodes reaches the target.

    $$\overline{\Delta}_M(\rho) = 1-\prod_{i=1}^{\rho}\bigl(1-\Delta_i\bigr),\qquad \Delta_1\ge\Delta_2\ge\dots$$

    Guarantee:
        The result is at least $\Delta(\rho)$, the maximum of p(E(B)) over all sets B of at most ρ eligible nodes, if
        each entry is at least $\Delta_w$ of its node. It never falls with ρ. Tight if the messages of the worst nodes
        share no edge. Rounded upward, by less than (2ρ + 6)·2^-53.

    Args:
        delta_sources: Δ_w or upper bounds of it for all eligible nodes in any order, in [0, 1], shape
            (..., num_eligible). Zeros are allowed as padding.
        max_radius: Largest number of hostile nodes to bound, >= 1.

    Returns:
        Δ̄(ρ) for ρ = 1..max_radius, in [0, 1], shape (..., max_radius). With fewer eligible nodes than ρ, the value
        for all of them.

    Raises:
        InvalidParameterError: If an entry is outside [0, 1] or ``max_radius`` < 1.

    Example:
        >>> multiplicative_bound([0.25, 0.5], max_radius=3).round(12)
        array([0.5  , 0.625, 0.625])

    References:
        Scholten et al. (2022), Theorem 3; docs/proofs/rounding.md.
    """
    worst = largest_first(delta_sources, max_radius=max_radius)
    bounds = np.empty_like(worst)
    reached = np.zeros(worst.shape[:-1])
    for index in range(worst.shape[-1]):
        delta = worst[..., index]
        # D + (1 - D)Δ keeps the relative accuracy of small values, which 1 - ∏(1 - Δ) loses.
        gain = np.minimum(multiply_up(complement_up(reached), delta), delta)
        reached = np.minimum(add_up(reached, gain), 1.0)
        bounds[..., index] = reached
    return bounds
