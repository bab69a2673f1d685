"""Theorem 2: how likely a message from one hostile node reaches the target, at most."""

import decimal

import numpy as np
from numpy.typing import ArrayLike

from graycert._rounding import add_up, complement_up, decimal_up, multiply_up, one_minus_exp_up
from graycert._types import FloatArray
from graycert._validation import check_integer_array, check_probability
from graycert.errors import InvalidParameterError

_DELETE_HINT = "It is the chance of deleting an edge, not of keeping it."
_ABLATE_HINT = "It is the chance of replacing a node's features, not of keeping them."


def single_source_bound(path_lengths: ArrayLike, *, p_delete: float, p_ablate: float) -> float:
    r"""Bound the probability that a message from one hostile node reaches the target.

    $$\overline{\Delta}_w = (1-p_a)\Bigl[1-\prod_{q}\bigl(1-(1-p_d)^{|q|}\bigr)\Bigr]$$

    Guarantee:
        The result is at least $\Delta_w$ if edges are deleted independently of each other and of the ablation, or the
        two directions of an undirected edge together. Up to rounding it equals $\Delta_w$ if no two paths share an
        edge, as always for two layers or fewer. Rounded upward, by less than (34 + distinct lengths)·2^-53.

    Args:
        path_lengths: Number of edges of each simple path from the hostile node to the target, shape (num_paths,),
            entries >= 0. The target itself has one path of length 0; no path gives 0.
        p_delete: Probability p_d of deleting an edge, in [0, 1].
        p_ablate: Probability p_a of ablating a node's features, in [0, 1].

    Returns:
        An upper bound in [0, 1].

    Raises:
        InvalidParameterError: If a probability or a path length is out of range.

    Example:
        >>> round(single_source_bound([1, 2], p_delete=0.5, p_ablate=0.2), 12)
        0.5

    References:
        Scholten et al. (2022), Theorem 2; docs/proofs/rounding.md.
    """
    lengths = check_integer_array(
        "path_lengths", path_lengths, ndim=1, at_least=0, hint="A path length is a number of edges."
    )
    distinct, repeats = np.unique(lengths, return_counts=True)
    counts = repeats.astype(np.float64)[np.newaxis, :]
    return float(_bound(counts, distinct.tolist(), p_delete, p_ablate)[0])


def single_source_bounds(path_counts: ArrayLike, *, p_delete: float, p_ablate: float) -> FloatArray:
    """Apply Theorem 2 to many nodes at once, given only how many paths of each length they have.

    Guarantee:
        As ``single_source_bound``; path counts that are too large keep it.

    Args:
        path_counts: ``path_counts[j, l - 1]`` is the number of simple paths of l edges from node j to the target, or
            more; non-negative numbers, shape (num_sources, num_layers). A row of zeros gives 0; the target itself is
            not such a node, see ``target_bound``.
        p_delete: Probability p_d of deleting an edge, in [0, 1].
        p_ablate: Probability p_a of ablating a node's features, in [0, 1].

    Returns:
        Upper bounds in [0, 1], shape (num_sources,).

    Raises:
        InvalidParameterError: If a probability or a count is out of range.

    Example:
        >>> single_source_bounds([[1, 1], [0, 0]], p_delete=0.5, p_ablate=0.2).round(12)
        array([0.5, 0. ])

    References:
        Scholten et al. (2022), Theorem 2.
    """
    counts = np.asarray(path_counts, dtype=np.float64)
    if counts.ndim != 2:
        raise InvalidParameterError(
            f"`path_counts` must have shape (num_sources, num_layers), got {counts.shape}. "
            "Pass the counts of count_simple_paths, or path lengths to single_source_bound."
        )
    refused = counts[~(counts >= 0.0)]  # NaN too; infinity is a valid over-count
    if refused.size:
        raise InvalidParameterError(
            f"`path_counts` must be >= 0, got {refused[0]}. Pass the counts of count_simple_paths."
        )
    return _bound(counts, list(range(1, counts.shape[1] + 1)), p_delete, p_ablate)


def target_bound(*, p_ablate: float) -> float:
    """Return Δ_v = 1 - p_a of a hostile target: its own features need no edge. Exact, rounded upward.

    Raises:
        InvalidParameterError: If ``p_ablate`` is not in [0, 1].

    Example:
        >>> target_bound(p_ablate=0.75)
        0.25
    """
    return float(complement_up(check_probability("p_ablate", p_ablate, hint=_ABLATE_HINT)))


def _bound(counts: FloatArray, lengths: list[int], p_delete: float, p_ablate: float) -> FloatArray:
    """Return Theorem 2 for ``counts[:, i]`` paths of ``lengths[i]`` edges, as 1 - exp(-sum of weights)."""
    p_delete = check_probability("p_delete", p_delete, hint=_DELETE_HINT)
    not_ablated = target_bound(p_ablate=p_ablate)
    exponents = np.zeros(counts.shape[0])
    for column, length in enumerate(lengths):
        weight = _path_weight(length, p_delete)
        exponents = add_up(exponents, multiply_up(counts[:, column], weight))
    return np.minimum(multiply_up(not_ablated, one_minus_exp_up(exponents)), not_ablated)


def _path_weight(length: int, p_delete: float) -> float:
    """Return -log(1 - (1 - p_d)^length) rounded up, in [0, inf]: what one path adds to the exponent.

    Computed with 60 digits, each step rounded in the direction that makes the weight larger. So 1 - p_d is not
    rounded to float64, and no accuracy is lost for p_d near 0 or 1.
    """
    if length == 0 or p_delete == 0.0:
        return np.inf
    if p_delete == 1.0:
        return 0.0
    up = decimal.Context(prec=60, rounding=decimal.ROUND_CEILING, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    down = decimal.Context(prec=60, rounding=decimal.ROUND_FLOOR, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    one = decimal.Decimal(1)
    keep = up.subtract(one, decimal.Decimal(p_delete))
    survive = one
    for bit in f"{length:b}":  # binary powering: the context's own power is not correctly rounded
        survive = up.multiply(survive, survive)
        if bit == "1":
            survive = up.multiply(survive, keep)
    blocked = down.subtract(one, survive)
    if not blocked:
        return np.inf
    return decimal_up(up.minus(down.next_minus(down.ln(blocked))))  # ln rounds to nearest in every context
