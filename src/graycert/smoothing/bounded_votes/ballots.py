"""Votes on a grid: what a node says of itself, as integers of which none can exceed one vote."""

import numpy as np
from numpy.typing import NDArray

from graycert._types import FloatArray

ONE = 2**20
"""One whole vote."""

Ballots = NDArray[np.int32]


def ballots(probabilities: FloatArray, *, sharpen: float, one_hot: bool) -> Ballots:
    r"""Turn class probabilities into votes on a grid of 2^-20.

    $$Q_c = \mathrm{clip}(\mathrm{rint}(2^{20} q_c), 0, 2^{20}), \qquad q = s^T / \sum_c s_c^T$$

    Guarantee:
        Every entry lies in [0, `ONE`], so that Q_y - Q_c lies in [-`ONE`, `ONE`]. That is all that certificates use: a
        row of votes need not sum to `ONE`.

    Args:
        probabilities: s, shape (num_nodes, num_classes), finite, each row with a positive entry.
        sharpen: Power T > 0; more makes votes more decided.
        one_hot: Give the whole vote to the most probable class instead, the lowest one on a tie.

    Returns:
        Int32, shape (num_nodes, num_classes).

    Example:
        >>> ballots(np.array([[0.5, 0.25, 0.25]]), sharpen=1.0, one_hot=False).tolist()
        [[524288, 262144, 262144]]
    """
    if one_hot:
        first = np.arange(probabilities.shape[1]) == probabilities.argmax(axis=1)[:, None]
        return np.where(first, ONE, 0).astype(np.int32)
    powers = (probabilities / probabilities.max(axis=1, keepdims=True)) ** sharpen
    shares = powers / powers.sum(axis=1, keepdims=True)
    votes: Ballots = np.clip(np.rint(ONE * shares), 0, ONE).astype(np.int32)
    return votes
