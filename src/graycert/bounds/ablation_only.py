"""Smoothing that deletes no edges (p_d = 0): Propositions 2 and 3, with the precondition they need."""

import decimal
from fractions import Fraction

import numpy as np

from graycert._rounding import fraction_up
from graycert._types import FloatArray
from graycert._validation import check_integer, check_probability

_ABLATE_HINT = "It is the chance of replacing a node's features, not of keeping them."


def ablation_only_delta(*, p_ablate: float, num_eligible: int, max_radius: int) -> FloatArray:
    r"""Return Δ(ρ) for ρ = 1..max_radius if no edge is ever deleted.

    $$\Delta(\rho) = 1-p_a^{\min(\rho,\,m)},\qquad m = \text{number of eligible nodes in the receptive field}$$

    Guarantee:
        Exact for p_d = 0 and independent ablation, rounded upward to the next float64. The paper states 1 - p_a^ρ,
        which holds for ρ <= m only: an adversary cannot control more nodes than there are.

    Args:
        p_ablate: Probability p_a of ablating a node's features, in [0, 1].
        num_eligible: Number m of eligible nodes, >= 0.
        max_radius: Largest ρ, >= 1.

    Returns:
        Shape (max_radius,).

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> ablation_only_delta(p_ablate=0.5, num_eligible=2, max_radius=3)
        array([0.5 , 0.75, 0.75])

    References:
        Scholten et al. (2022), Proposition 2.
    """
    ablated = Fraction(check_probability("p_ablate", p_ablate, hint=_ABLATE_HINT))
    num_eligible = check_integer("num_eligible", num_eligible, at_least=0)
    max_radius = check_integer("max_radius", max_radius, at_least=1)
    values, all_ablated = np.empty(max_radius), Fraction(1)
    for index in range(max_radius):
        if index < num_eligible and all_ablated:
            all_ablated *= ablated
        values[index] = fraction_up(1 - all_ablated)
    return values


def largest_ablation_only_radius(*, p_ablate: float, num_eligible: int | None = None) -> int | None:
    r"""Return the largest radius that can be certified without deleting edges: the largest ρ with p_a^ρ > 1/2.

    Guarantee:
        Exact. For larger radii Δ >= 1/2, so this kind of certificate cannot be issued whatever the model. That is the
        paper's condition p_a > 0.5^(1/ρ), provided that at least ρ nodes are eligible.

    Args:
        p_ablate: Probability p_a of ablating a node's features, in [0, 1].
        num_eligible: Number of eligible nodes, >= 0; None if it is unlimited.

    Returns:
        The radius, or None if there is no limit: all ``num_eligible`` nodes together stay below 1/2, or p_a = 1.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> largest_ablation_only_radius(p_ablate=0.85)
        4
        >>> largest_ablation_only_radius(p_ablate=0.85, num_eligible=3) is None
        True

    References:
        Scholten et al. (2022), Proposition 3.
    """
    p_ablate = check_probability("p_ablate", p_ablate, hint=_ABLATE_HINT)
    if num_eligible is not None:
        num_eligible = check_integer("num_eligible", num_eligible, at_least=0)
    if p_ablate == 1.0 or num_eligible == 0:
        return None
    radius = 0 if p_ablate <= 0.5 else _whole_part_of_log_ratio(p_ablate)
    return None if num_eligible is not None and num_eligible <= radius else radius


def _whole_part_of_log_ratio(p_ablate: float) -> int:
    """Return floor(log 2 / -log p) for p in (1/2, 1).

    The ratio is no integer: p = a/2^b with a odd gives p^ρ = 1/2 only for a = 1, so p = 1/2. Hence an enclosure of
    the ratio excludes all integers once it is narrow enough. Powers of fractions would need up to 10^15 factors.
    """
    one, digits = decimal.Decimal(1), 50
    while True:
        context = decimal.Context(prec=digits)
        log_two, log_p = context.ln(decimal.Decimal(2)), context.ln(decimal.Decimal(p_ablate))
        ratio = context.divide(log_two, context.minus(log_p))
        width = one.scaleb(3 - digits)  # three operations, each off by at most half of the last digit
        low = context.multiply(ratio, context.subtract(one, width))
        high = context.multiply(ratio, context.add(one, width))
        if int(low) == int(high):
            return int(low)
        digits *= 2
