"""The largest single-source bounds of each target, without sorting the others."""

import numpy as np

from graycert._compilation import kernel
from graycert._types import FloatArray, IntArray

_INSERTED = 64  # a longer list is cheaper to sort as a whole than to keep sorted


def largest_per_group(
    values: FloatArray, starts: IntArray, stops: IntArray, *, max_radius: int
) -> tuple[FloatArray, IntArray]:
    """Return the ``max_radius`` largest positive values of each group in falling order, and where they stand.

    Args:
        values: Non-negative, shape (num_values,).
        starts: Group i is ``values[starts[i]:stops[i]]``, shape (num_groups,).
        stops: Shape (num_groups,).
        max_radius: Number of values to keep per group, >= 1.

    Returns:
        The values, padded with zeros, and their positions within the group, padded with -1, each of shape
        (num_groups, max_radius).

    Example:
        >>> largest_per_group(np.array([0.1, 0.3, 0.2, 0.5]), np.array([0, 3]), np.array([3, 4]), max_radius=2)[0]
        array([[0.3, 0.2],
               [0.5, 0. ]])
    """
    largest = np.zeros((starts.size, max_radius))
    places = np.full((starts.size, max_radius), -1, dtype=np.int64)
    if max_radius <= _INSERTED:
        _insert(values, starts, stops, largest, places)
        return largest, places
    for kept, place, start, stop in zip(largest, places, starts.tolist(), stops.tolist(), strict=True):
        order = np.argsort(-values[start:stop], kind="stable")[:max_radius]
        order = order[values[start:stop][order] > 0.0]
        kept[: order.size], place[: order.size] = values[start:stop][order], order
    return largest, places


@kernel
def _insert(values: FloatArray, starts: IntArray, stops: IntArray, largest: FloatArray, places: IntArray) -> None:
    last = largest.shape[1] - 1
    for group in range(largest.shape[0]):
        kept, where = largest[group], places[group]
        for entry in range(starts[group], stops[group]):
            value = values[entry]
            if value > kept[last]:
                place = last
                while place > 0 and kept[place - 1] < value:
                    kept[place], where[place] = kept[place - 1], where[place - 1]
                    place -= 1
                kept[place], where[place] = value, entry - starts[group]
