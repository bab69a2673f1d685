"""Nodes with the same path counts have the same bound: find the few distinct rows of many."""

import numpy as np

from graycert._compilation import kernel
from graycert._types import FloatArray, IntArray


def distinct_rows(rows: FloatArray) -> tuple[IntArray, IntArray]:
    """Return where each distinct row occurs first, and for each row which distinct row it is.

    Args:
        rows: Shape (num_rows, num_columns). Rows are compared bit by bit.

    Returns:
        first: Shape (num_distinct,), in order of occurrence.
        which: Indices into ``first``, shape (num_rows,): ``rows[first][which]`` equals ``rows``.

    Example:
        >>> first, which = distinct_rows(np.array([[1.0, 2.0], [0.0, 2.0], [1.0, 2.0]]))
        >>> first.tolist(), which.tolist()
        ([0, 1], [0, 1, 0])
    """
    first, which = _distinct(np.ascontiguousarray(rows).view(np.int64))
    return first, which


@kernel
def _distinct(rows: IntArray) -> tuple[IntArray, IntArray]:
    size = 2
    while size < 2 * rows.shape[0]:
        size *= 2
    table = np.full(size, -1, dtype=np.int32)  # open addressing: an index into `first`, or -1
    first, which = np.empty(rows.shape[0], dtype=np.int64), np.empty(rows.shape[0], dtype=np.int64)
    known = 0
    for row in range(rows.shape[0]):
        place = _hash(rows[row]) & (size - 1)
        while table[place] >= 0 and not _equal(rows[first[table[place]]], rows[row]):
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            table[place], first[known] = known, row
            known += 1
        which[row] = table[place]
    return first[:known].copy(), which


@kernel
def _hash(row: IntArray) -> np.int64:
    value = np.int64(0)
    for entry in row:  # small numbers differ in their upper bits only, and a place in the table is lower bits
        value = (value ^ entry ^ (entry >> 32)) * np.int64(-7046029254386353131)  # odd, from the golden ratio
        value ^= value >> 32
    return value


@kernel
def _equal(left: IntArray, right: IntArray) -> bool:
    for column in range(left.size):  # noqa: SIM110 - compiled
        if left[column] != right[column]:
            return False
    return True
