"""Products of matrices whose every row has the same bits whatever the rows beside it are, and however many there are.

Libraries for matrix products cut rows into tiles and tiles into remainders, which round differently.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graycert._compilation import kernel


def rows_times(rows: Tensor, weights: Tensor) -> Tensor:
    """Multiply matrices, or batches of them, row by row.

    Terms are added in their order, in float64; those with a factor 0 in ``rows`` are left out.

    Args:
        rows: Float32 or float64, shape (num_rows, num_terms) or (batch, num_rows, num_terms).
        weights: Same type, shape (num_terms, width) or (batch, num_terms, width).

    Returns:
        Same type, shape (num_rows, width) or (batch, num_rows, width).
    """
    several = rows.dim() == 3
    left, right = (each if several else each[None] for each in (rows, weights))
    out = np.empty((left.size(0), left.size(1), right.size(2)), dtype=_numpy(left).dtype)
    _fill(out, _numpy(left), _numpy(right), np.empty(right.size(2)))
    found = torch.from_numpy(out)
    return found if several else found[0]


def _numpy(values: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = values.detach().contiguous().numpy()
    return array


@kernel
def _fill(out: NDArray[Any], rows: NDArray[Any], weights: NDArray[Any], total: NDArray[Any]) -> None:
    """Write all products into ``out``; ``total`` is room for one row."""
    for batch in range(rows.shape[0]):
        for row in range(rows.shape[1]):
            total[:] = 0.0
            for term in range(rows.shape[2]):
                factor = np.float64(rows[batch, row, term])
                if factor != 0.0:
                    for column in range(total.size):
                        total[column] += factor * np.float64(weights[batch, term, column])
            for column in range(total.size):
                out[batch, row, column] = total[column]
