"""The largest single-source bounds of each target, without sorting the others."""

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._rounding import FloatArray

IntArray = NDArray[np.int64]

_INSERTED = 64  # a longer list is cheaper to sort as a whole than to keep sorted


def largest_per_group(values: FloatArray, starts: IntArray, stops: IntArray, *, max_radius: int) -> FloatArray:
    """Return the ``max_radius`` largest values of each group in falling order, padded with zeros.

    Args:
        values: Non-negative, shape (num_values,).
        starts: Group i is ``values[starts[i]:stops[i]]``, shape (num_groups,).
        stops: Shape (num_groups,).
        max_radius: Number of values to keep per group, >= 1.

    Returns:
        Shape (num_groups, max_radius).

    Example:
        >>> largest_per_group(np.array([0.1, 0.3, 0.2, 0.5]), np.array([0, 3]), np.array([3, 4]), max_radius=2)
        array([[0.3, 0.2],
               [0.5, 0. ]])
    """
    largest = np.zeros((starts.size, max_radius))
    if max_radius <= _INSERTED:
        _insert(values, starts, stops, largest)
        return largest
    for kept, start, stop in zip(largest, starts.tolist(), stops.tolist(), strict=True):
        descending = np.sort(values[start:stop])[::-1][:max_radius]
        kept[: descending.size] = descending
    return largest


@kernel
def _insert(values: FloatArray, starts: IntArray, stops: IntArray, largest: FloatArray) -> None:
    last = largest.shape[1] - 1
    for group in range(largest.shape[0]):
        kept = largest[group]
        for value in values[starts[group] : stops[group]]:
            if value > kept[last]:
                place = last
                while place > 0 and kept[place - 1] < value:
                    kept[place] = kept[place - 1]
                    place -= 1
                kept[place] = value
