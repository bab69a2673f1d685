"""The worst ρ nodes of each target: the largest single-source bounds, in falling order."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._rounding import FloatArray
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


def largest_per_group(values: FloatArray, groups: NDArray[np.int64], *, num_groups: int, max_radius: int) -> FloatArray:
    """Return the ``max_radius`` largest values of each group in falling order, padded with zeros.

    Args:
        values: Shape (num_values,).
        groups: Group of each value, in [0, num_groups), shape (num_values,).
        num_groups: Number of groups.
        max_radius: Number of values to keep per group, >= 1.

    Returns:
        Shape (num_groups, max_radius).
    """
    order = np.lexsort((-values, groups))
    sorted_groups = groups[order]
    first = np.searchsorted(sorted_groups, np.arange(num_groups))
    rank = np.arange(order.size) - first[sorted_groups]
    kept = rank < max_radius
    largest = np.zeros((num_groups, max_radius))
    largest[sorted_groups[kept], rank[kept]] = values[order[kept]]
    return largest
