r"""Trade-off between clean accuracy and certified robustness: the Pareto front and how two fronts compare.

A point dominates another if it is at least as accurate and at least as robust, and better in one of the two. Both are
shares, so larger is better and (0, 0) is the worst point there is.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._validation import check_probability
from graycert.errors import InvalidParameterError

_Floats = NDArray[np.float64]

# Two shares of at most 10^8 targets differ from a margin of up to three decimals by nothing or by more than 10^-11.
_ROUNDING = 1e-12


def dominating_points(accuracy: ArrayLike, robustness: ArrayLike) -> NDArray[np.bool_]:
    r"""Mark the points on the Pareto front: those that no other point dominates.

    Args:
        accuracy: Clean accuracy per point, >= 0, shape (num_points,).
        robustness: Certified share, or area under its curve, per point, >= 0, shape (num_points,).

    Returns:
        A mask, shape (num_points,). Equal points do not dominate each other, so all copies of a point on the front are
        marked.

    Raises:
        InvalidParameterError: If a value is negative or not finite, or the two differ in length.

    Example:
        >>> dominating_points([0.8, 0.7, 0.7], [0.2, 0.5, 0.4]).tolist()
        [True, True, False]

    References:
        Scholten et al. (2022), Section 7 (lines of the figures connect dominating points).
    """
    accuracies, robustnesses = _points(accuracy, robustness)
    levels, level = np.unique(-accuracies, return_inverse=True)  # the most accurate first
    best = np.full(levels.size, -np.inf)
    np.maximum.at(best, level, robustnesses)
    best_of_more_accurate = np.concatenate([[-np.inf], np.maximum.accumulate(best)])[:-1]
    on_front: NDArray[np.bool_] = (robustnesses == best[level]) & (robustnesses > best_of_more_accurate[level])
    return on_front


def within_accuracy(accuracy: ArrayLike, *, margin: float = 0.05) -> NDArray[np.bool_]:
    r"""Mark the points whose clean accuracy is at most ``margin`` below the largest one.

    The comparison $\max a - a \le$ ``margin`` is that of the exact shares: 0.75 is within 0.05 of 0.8, although
    ``0.8 - 0.75 > 0.05`` in floating point. Shares of at most $10^8$ targets cannot come closer to a margin of up to
    three decimals than $10^{-11}$ without meeting it, and the comparison allows $10^{-12}$.

    Args:
        accuracy: Clean accuracy per point, >= 0, shape (num_points,).
        margin: Allowed loss in absolute accuracy, in [0, 1].

    Returns:
        A mask, shape (num_points,).

    Raises:
        InvalidParameterError: If a value is outside its domain.

    Example:
        >>> within_accuracy([0.8, 0.75, 0.74]).tolist()
        [True, True, False]

    References:
        Scholten et al. (2022), Section 7 (experimental setup; the paper shows these points only).
    """
    accuracies = _values("accuracy", accuracy)
    allowed = check_probability("margin", margin)
    if accuracies.size == 0:
        return np.zeros(0, dtype=np.bool_)
    within: NDArray[np.bool_] = accuracies.max() - accuracies <= allowed + _ROUNDING
    return within


def dominated_share(
    accuracy: ArrayLike, robustness: ArrayLike, *, other_accuracy: ArrayLike, other_robustness: ArrayLike
) -> float:
    """Return the share of a front whose points the other points match or dominate.

    1 means that the other method dominates: whatever this method reaches, the other reaches at least, in both
    respects. If both shares are 1, the two fronts are equal.

    Args:
        accuracy: Clean accuracy per point of this method; only its front counts, at least one point.
        robustness: Robustness per point of this method.
        other_accuracy: Clean accuracy per point of the other method.
        other_robustness: Robustness per point of the other method.

    Returns:
        A share in [0, 1] of the distinct points of this method's front.

    Raises:
        InvalidParameterError: If a value is negative or not finite, lengths differ, or this method has no point.

    Example:
        >>> dominated_share([0.8, 0.7], [0.2, 0.5], other_accuracy=[0.8], other_robustness=[0.3])
        0.5
    """
    mine = np.stack(_points(accuracy, robustness))
    if mine.shape[1] == 0:
        raise InvalidParameterError("`accuracy` must have at least one point, got none. An empty front has no share.")
    others = np.stack(_points(other_accuracy, other_robustness))
    front = np.unique(mine[:, dominating_points(*mine)], axis=1)
    matched = np.all(others[:, None, :] >= front[:, :, None], axis=0).any(axis=1)
    return float(np.count_nonzero(matched) / matched.size)


def dominated_area(accuracy: ArrayLike, robustness: ArrayLike) -> float:
    r"""Return the area of all trade-offs that some point matches or dominates (the hypervolume from (0, 0)).

    $$\lambda\Bigl(\bigcup_i [0, a_i] \times [0, r_i]\Bigr)$$

    A method that dominates another has the larger area; the reverse need not hold, see ``dominated_share``.

    Args:
        accuracy: Clean accuracy per point, >= 0, shape (num_points,).
        robustness: Robustness per point, >= 0, shape (num_points,).

    Returns:
        The area; 0 without points.

    Raises:
        InvalidParameterError: If a value is negative or not finite, or the two differ in length.

    Example:
        >>> dominated_area([0.5, 1.0], [1.0, 0.5])
        0.75
    """
    accuracies, robustnesses = _points(accuracy, robustness)
    order = np.argsort(accuracies)
    heights = np.maximum.accumulate(robustnesses[order][::-1])[::-1]  # the most robust at this accuracy or better
    return float(np.sum(np.diff(accuracies[order], prepend=0.0) * heights))


def _points(accuracy: ArrayLike, robustness: ArrayLike) -> tuple[_Floats, _Floats]:
    accuracies, robustnesses = _values("accuracy", accuracy), _values("robustness", robustness)
    if accuracies.shape != robustnesses.shape:
        raise InvalidParameterError(
            f"`accuracy` and `robustness` must have one value per point, got {accuracies.size} and "
            f"{robustnesses.size}. Pass the two columns of the same trials."
        )
    return accuracies, robustnesses


def _values(name: str, values: ArrayLike) -> _Floats:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise InvalidParameterError(
            f"`{name}` must be numbers with one axis, got dtype {array.dtype} and shape {array.shape}. "
            "Pass one value per point."
        )
    refused = array[~((array >= 0) & (array < np.inf))]  # NaN, too
    if refused.size:
        raise InvalidParameterError(
            f"`{name}` must be finite and >= 0, got {refused[0]}. Leave out trials without a value."
        )
    return array.astype(np.float64)
