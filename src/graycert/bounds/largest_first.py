"""The worst ρ nodes of each target: the largest single-source bounds, in falling order."""

import numpy as np
from numpy.typing import ArrayLike

from graycert._types import FloatArray
from graycert._validation import check_integer
from graycert.errors import InvalidParameterError


def largest_first(delta_sources: ArrayLike, *, max_radius: int) -> FloatArray:
    """Return the ``max_radius`` largest values of the last axis in falling order, padded with zeros.

    A zero stands for a node that no message comes from, so padding changes no bound.

    Raises:
        InvalidParameterError: If an entry is outside [0, 1] or ``max_radius`` < 1.
    """
    max_radius = check_integer("max_radius", max_radius, at_least=1)
    values = np.asarray(delta_sources, dtype=np.float64)
    if values.ndim == 0:
        raise InvalidParameterError(
            f"`delta_sources` must have one entry per eligible node along its last axis, got {values}. Pass a list."
        )
    outside = values[~((values >= 0.0) & (values <= 1.0))]  # NaN is outside too
    if outside.size:
        raise InvalidParameterError(
            f"`delta_sources` must be in [0, 1], got {outside[0]}. Pass probabilities, e.g. single_source_bounds."
        )
    largest = -np.sort(-values, axis=-1)[..., :max_radius]
    padding = [(0, 0)] * (values.ndim - 1) + [(0, max_radius - largest.shape[-1])]
    return np.pad(largest, padding)
