"""The wall Δ < 1/2: what no model and no number of samples can certify."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert.errors import InvalidParameterError


def largest_certifiable_radius(delta_upper: ArrayLike) -> NDArray[np.int64]:
    """Return the largest ρ with Δ̄(1), ..., Δ̄(ρ) all below 1/2.

    A larger radius cannot be certified with this bound even if every sample votes for the same class.

    Args:
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, in [0, 1], shape (..., max_radius).

    Returns:
        Radii in 0..max_radius, 0 if there is none, shape (...); ``max_radius`` may mean "at least".

    Raises:
        InvalidParameterError: If an entry is outside [0, 1].

    Example:
        >>> largest_certifiable_radius([[0.2, 0.36, 0.49, 0.59], [0.5, 0.6, 0.7, 0.8]])
        array([3, 0])

    References:
        Scholten et al. (2022), Corollary 1 and App. I.
    """
    bounds = np.asarray(delta_upper, dtype=np.float64)
    outside = bounds[~((bounds >= 0.0) & (bounds <= 1.0))]
    if bounds.ndim == 0 or outside.size:
        raise InvalidParameterError(
            "`delta_upper` must hold one value in [0, 1] per radius along its last axis, got "
            f"{outside[0] if outside.size else bounds}. Pass the result of delta_bounds."
        )
    below = np.logical_and.accumulate(bounds < 0.5, axis=-1)
    return np.asarray(below.sum(axis=-1), dtype=np.int64)
