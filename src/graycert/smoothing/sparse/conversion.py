"""From certified attributes to whole nodes: the naive conversion that the paper compares with."""

import numpy as np
from numpy.typing import ArrayLike

from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer, check_integer_array
from graycert.errors import InvalidParameterError


def naive_certified_nodes(certified_attributes: ArrayLike, num_attributes: int) -> IntArray:
    r"""Convert certified attributes to certified whole nodes, as if each node had ``num_attributes`` of them.

    $$\rho = \lfloor \tilde\rho / d \rfloor$$

    Guarantee:
        If the prediction withstands ρ̃ flips of attributes and a hostile node can flip at most d of them, it
        withstands ρ hostile nodes. For deletions alone, d is the number of ones of a node; for arbitrary features it
        is their dimension, and flips in both directions must be certified.

    Args:
        certified_attributes: ρ̃ per target, -1 where the classifier abstains, shape (num_targets,).
        num_attributes: Number d of attributes per node, >= 1.

    Returns:
        ρ per target; -1 stays -1.

    Raises:
        InvalidParameterError: If an argument is out of its domain.

    Example:
        >>> naive_certified_nodes([7, 1, -1], 2).tolist()
        [3, 0, -1]

    References:
        Scholten et al. (2022), Section 7, "First certificate for stronger adversaries".
    """
    attributes = check_integer_array("certified_attributes", certified_attributes, ndim=1, at_least=-1)
    return attributes // check_integer("num_attributes", num_attributes, at_least=1)


def naive_certified_ratio(certified_attributes: ArrayLike, num_attributes: int, *, radii: ArrayLike) -> FloatArray:
    r"""Return the share of targets with ρ̃ / d >= ρ, for real ρ, as the paper draws the baseline.

    The curve falls at ρ = ρ̃ / d, so that it can be compared for different d; only its values at integers ρ are about
    whole nodes, and there it agrees with `naive_certified_nodes`.

    Args:
        certified_attributes: ρ̃ per target, -1 where the classifier abstains, shape (num_targets,), not empty.
        num_attributes: Number d of attributes per node, >= 1.
        radii: Numbers ρ >= 0 of nodes, shape (num_radii,); targets that abstain count nowhere.

    Returns:
        Shares in [0, 1], shape (num_radii,).

    Raises:
        InvalidParameterError: If an argument is out of its domain.

    Example:
        >>> naive_certified_ratio([7, 1, -1, 4], 2, radii=[0, 0.5, 2, 3.5]).tolist()
        [0.75, 0.75, 0.5, 0.25]

    References:
        Scholten et al. (2022), Fig. 3c.
    """
    attributes = check_integer_array("certified_attributes", certified_attributes, ndim=1, at_least=-1)
    check_integer("num_attributes", num_attributes, at_least=1)
    steps = np.asarray(radii, dtype=np.float64)
    if attributes.size == 0 or steps.ndim != 1 or not (steps >= 0).all():
        raise InvalidParameterError(
            "`certified_attributes` must have at least one target and `radii` must be a list of numbers >= 0, got "
            f"{attributes.size} targets and radii of shape {steps.shape}."
        )
    return np.asarray((attributes[None, :] >= steps[:, None] * num_attributes).mean(axis=1), dtype=np.float64)
