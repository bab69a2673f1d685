"""Counting votes, and the votes that rounding may have decided."""

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._types import Float32Array
from graycert.sampling.kernels.draws import LANES

NEAR_TIE = np.float32(2.0**-16)
"""Two engines round differently, by up to about 1e-6 of the scores. A lead smaller than this share of the largest
absolute score of the target may fall either way, and is counted as a near-tie."""


@kernel
def count_votes(
    scores: Float32Array,
    skip: Float32Array,
    low: int,
    high: int,
    votes: NDArray[np.int64],
    near_ties: NDArray[np.int64],
    predictions: NDArray[np.signedinteger],
) -> None:
    """Add the votes of lanes ``low ... high - 1``; scores that single out no class are a vote for none.

    That is so where the largest score is attained twice exactly, or one is NaN: see `graycert.sampling.scores`.

    Args:
        scores: float32 (num_targets, num_classes, LANES).
        skip: Added to the scores, float32 (num_targets, num_classes).
        low: First lane that counts.
        high: Last lane that counts, plus one.
        votes: Result, int64 (num_targets, num_classes).
        near_ties: Result, int64 (num_targets,): votes whose lead is below `NEAR_TIE`.
        predictions: Result, the class of each vote, -1 for none, integers that hold all classes, (num_targets,
            high - low); not filled if it has no column.
    """
    best = np.empty(LANES, dtype=np.float32)
    second = np.empty(LANES, dtype=np.float32)
    largest = np.empty(LANES, dtype=np.float32)
    winner = np.empty(LANES, dtype=np.int32)
    total = np.empty(LANES, dtype=np.float32)  # of absolute scores: NaN if and only if one of them is
    for target in range(scores.shape[0]):
        winner[:] = 0
        for i in range(LANES):
            best[i] = scores[target, 0, i] + skip[target, 0]
            largest[i] = abs(best[i])
            second[i] = -np.inf
            total[i] = largest[i]
        for c in range(1, scores.shape[1]):
            row, added = scores[target, c], skip[target, c]
            for i in range(LANES):
                value = row[i] + added
                largest[i] = max(largest[i], abs(value))
                total[i] += abs(value)
                leads = value > best[i]
                second[i] = best[i] if leads else max(second[i], value)
                winner[i] = np.int32(c) if leads else winner[i]
                best[i] = value if leads else best[i]
        for i in range(low, high):
            alone = best[i] > second[i] and not np.isnan(total[i])
            if alone:
                votes[target, winner[i]] += 1
            near_ties[target] += not alone or best[i] - second[i] <= NEAR_TIE * largest[i]
            if predictions.shape[1] > 0:
                predictions[target, i - low] = winner[i] if alone else -1
