"""How likely a deleted edge would have been noticed by the target, at most."""

import numpy as np
from numpy.typing import ArrayLike

from graycert._rounding import complement_up, multiply_up
from graycert._types import FloatArray
from graycert._validation import check_probability
from graycert.errors import InvalidParameterError


def edge_deletion_bounds(delta_receivers: ArrayLike, *, p_delete: float) -> FloatArray:
    r"""Bound the probability that the target notices whether one edge is there.

    $$\overline{\Delta}_{a\to b} = (1-p_d)\,\overline{\Delta}_b$$

    Guarantee:
        The result is at least the probability that the edge a → b survives and a message of its receiver b then
        reaches the target over at most K - 1 further edges. Exact, up to rounding, if ``delta_receivers`` is, as for
        K <= 3. Edges need independent coins, also the two directions of an undirected edge. Rounded upward, by less
        than 4·2^-53.

    Args:
        delta_receivers: Upper bounds on the probability that a surviving path of at most K - 1 edges leads from the
            receiver b to the target, whatever is ablated (``single_source_bounds`` with ``p_ablate=0``), in [0, 1],
            any shape; 1 for the target itself.
        p_delete: Probability p_d of deleting an edge, in [0, 1].

    Returns:
        Upper bounds in [0, 1], same shape.

    Raises:
        InvalidParameterError: If a probability is out of range.

    Example:
        >>> edge_deletion_bounds([1.0, 0.25], p_delete=0.5).round(12)
        array([0.5  , 0.125])

    References:
        docs/proofs/structural_threats.md, "Edges".
    """
    deltas = np.asarray(delta_receivers, dtype=np.float64)
    outside = deltas[~((deltas >= 0.0) & (deltas <= 1.0))]  # NaN is outside too
    if outside.size:
        raise InvalidParameterError(
            f"`delta_receivers` must be in [0, 1], got {outside[0]}. Pass probabilities, e.g. single_source_bounds."
        )
    keep = complement_up(
        check_probability("p_delete", p_delete, hint="It is the chance of deleting an edge, not of keeping it.")
    )
    return np.minimum(multiply_up(keep, deltas), np.minimum(keep, deltas))
