"""Class scores: the class that a draw votes for, whose score alone is the largest; and when two tables are equal."""

import numpy as np
import torch
from torch import Tensor

from graycert._types import NO_CLASS


def voted_class(scores: Tensor) -> Tensor:
    """Return the class with the largest score, `NO_CLASS` where no class alone has it.

    So it is where a score is NaN, and where two classes have the largest one exactly: what a library makes of such
    scores, mostly the lowest class, is no statement of the model.

    Args:
        scores: Shape (..., num_classes).

    Returns:
        int64, shape (...).

    Example:
        >>> voted_class(torch.tensor([[0.0, 2.0], [1.0, 1.0], [3.0, torch.nan], [-torch.inf, 0.0]])).tolist()
        [1, -1, -1, 1]

    References:
        docs/soundness.md.
    """
    largest, winner = scores.max(dim=-1, keepdim=True)  # NaN, which equals nothing, if one of them is
    alone = (scores == largest).sum(dim=-1) == 1
    return torch.where(alone, winner.squeeze(-1), NO_CLASS)


def equal_scores(first: Tensor, second: Tensor, *, tolerance: float | Tensor = 0.0) -> bool:
    """Return whether scores differ by at most ``tolerance``; NaN and infinity equal themselves alone.

    Example:
        >>> nan = torch.tensor([torch.nan, 1.0])
        >>> equal_scores(nan, nan), equal_scores(nan, torch.tensor([0.0, 1.0]))
        (True, False)
    """
    close = (first - second).abs() <= tolerance
    return bool((close | (first == second) | (first.isnan() & second.isnan())).all())


def prediction_type(num_classes: int) -> "np.dtype[np.signedinteger]":
    """Return the smallest of int16, int32 and int64 that holds every class.

    Example:
        >>> [prediction_type(number).name for number in (2**15, 2**15 + 1)]
        ['int16', 'int32']
    """
    return next(np.dtype(kind) for kind in (np.int16, np.int32, np.int64) if num_classes - 1 <= np.iinfo(kind).max)
