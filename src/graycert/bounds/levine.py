"""The bounding constant of Levine and Feizi's randomized ablation, to compare with (App. B)."""

import math
from fractions import Fraction

import numpy as np

from graycert._rounding import fraction_up
from graycert._types import FloatArray
from graycert._validation import check_integer


def levine_delta(*, num_nodes: int, num_kept: int, max_radius: int, num_eligible: int | None = None) -> FloatArray:
    r"""Return the probability that some of the worst ρ nodes is kept, for ρ = 1..max_radius.

    $$\Delta^L(\rho) = 1-\binom{n-b}{k}\Big/\binom{n}{k},\qquad b = \min(\rho, m)$$

    n nodes are drawn from, k of them are kept, m may be hostile. This holds for the whole graph as for a receptive
    field; a target that cannot be hostile counts for n, not for m.

    Guarantee:
        Exact, rounded upward to the next float64: the largest probability, over all sets of at most ρ eligible nodes,
        that one of them is kept. No class probability of a model that sees the kept features only moves by more, and
        that of a model that tells whether a hostile node is kept moves by exactly as much. For 0 < k < n and
        2 <= ρ <= m it is larger than $1-(1-k/n)^\rho$, Proposition 2 at the same share of ablated nodes; for k in
        {0, n} or ρ = 1 the two are equal.

    Args:
        num_nodes: Number n of nodes that the k are drawn from, >= 0.
        num_kept: Number k of nodes that keep their features, in 0..num_nodes.
        max_radius: Largest ρ, >= 1.
        num_eligible: Number m of these nodes that may be hostile, in 0..num_nodes; None if all may be.

    Returns:
        Shape (max_radius,), never falling.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> levine_delta(num_nodes=10, num_kept=1, max_radius=4)
        array([0.1, 0.2, 0.3, 0.4])

    References:
        Levine and Feizi (2020); Scholten et al. (2022), App. B; docs/proofs/levine.md.
    """
    num_nodes, num_kept, num_eligible = _check_counts(num_nodes, num_kept, num_eligible)
    max_radius = check_integer("max_radius", max_radius, at_least=1)
    distinct = min(max_radius, num_eligible)
    values = np.zeros(max_radius)
    for radius in range(1, distinct + 1):
        all_ablated, outcomes = _all_ablated(num_nodes, num_kept, radius)
        values[radius - 1 :] = fraction_up(Fraction(outcomes - all_ablated, outcomes))
        if all_ablated == 0:  # 1 from here on
            break
    return values


def largest_levine_radius(*, num_nodes: int, num_kept: int, num_eligible: int | None = None) -> int | None:
    r"""Return the largest radius that can be certified with randomized ablation: the largest ρ with Δ^L(ρ) < 1/2.

    Guarantee:
        Exact. At larger radii no certificate of this kind can be issued, whatever the model.

    Args:
        num_nodes: Number n of nodes that the k are drawn from, >= 0.
        num_kept: Number k of nodes that keep their features, in 0..num_nodes.
        num_eligible: Number m of these nodes that may be hostile, in 0..num_nodes; None if all may be.

    Returns:
        The radius, or None if there is no limit: all eligible nodes together stay below 1/2.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> largest_levine_radius(num_nodes=10, num_kept=1)
        4

    References:
        Scholten et al. (2022), App. B.
    """
    num_nodes, num_kept, num_eligible = _check_counts(num_nodes, num_kept, num_eligible)
    if num_kept == 0:
        return None
    # C(n-ρ, k) / C(n, k) <= (1 - k/n)^ρ <= exp(-kρ/n), so Δ^L < 1/2 needs ρ < n log(2) / k < 7n / (10k).
    low, high = 0, min(num_eligible, num_nodes - num_kept, 7 * num_nodes // (10 * num_kept) + 1)
    while low < high:
        middle = (low + high + 1) // 2
        all_ablated, outcomes = _all_ablated(num_nodes, num_kept, middle)
        low, high = (middle, high) if 2 * all_ablated > outcomes else (low, middle - 1)
    return None if low == num_eligible else low


def _all_ablated(num_nodes: int, num_kept: int, num_hostile: int) -> tuple[int, int]:
    """Return two integers whose ratio is C(n - b, k) / C(n, k), the probability that b given nodes are ablated.

    The ratio is symmetric in b and k; as a product over the smaller of the two it stays short.
    """
    fewer, more = sorted((num_hostile, num_kept))
    return math.perm(num_nodes - more, fewer), math.perm(num_nodes, fewer)


def _check_counts(num_nodes: int, num_kept: int, num_eligible: int | None) -> tuple[int, int, int]:
    num_nodes = check_integer("num_nodes", num_nodes, at_least=0)
    num_kept = check_integer(
        "num_kept", num_kept, at_least=0, at_most=num_nodes, hint="It counts the nodes that keep their features."
    )
    if num_eligible is None:
        return num_nodes, num_kept, num_nodes
    num_eligible = check_integer(
        "num_eligible", num_eligible, at_least=0, at_most=num_nodes, hint="It counts nodes among the ones drawn from."
    )
    return num_nodes, num_kept, num_eligible
