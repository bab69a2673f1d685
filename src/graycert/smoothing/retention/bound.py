r"""Δ of node-retention smoothing without listing kept sets, for fields that are too large to derandomize."""

from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from graycert._rounding import fraction_up
from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer
from graycert.errors import InvalidParameterError
from graycert.graph.adjacency import Adjacency
from graycert.graph.receptive_field import receptive_fields


def retention_source_bound(*, num_gates: int | None, num_others: int, num_kept: int) -> Fraction:
    r"""Bound the probability that a message of one node w of the field reaches the target.

    $$\Delta_w = \frac{k}{d} \text{ if } w \to v, \quad \text{else} \quad
    \Delta_w \le \frac{k}{d}\left[1 - \binom{d-1-m}{k-1} \Big/ \binom{d-1}{k-1}\right]$$

    w must be kept, and beside it one of its m gates: nodes other than the target that w sends to and that are at most
    h - 1 hops from the target.

    Guarantee:
        Exact rational arithmetic. At least $\Delta_w$ for every number h of layers; equal for h <= 2.

    Args:
        num_gates: Number m of gates, in [0, d - 1]; None if w sends to the target itself.
        num_others: Number d of nodes in the field without the target, >= 1.
        num_kept: Number k of further nodes that stay, in [0, d].

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> retention_source_bound(num_gates=1, num_others=4, num_kept=2)
        Fraction(1, 6)

    References:
        Beyond Scholten et al. (2022), Appendix J; docs/proofs/derandomization.md.
    """
    others = check_integer("num_others", num_others, at_least=1)
    kept = check_integer("num_kept", num_kept, at_least=0, at_most=others)
    if num_gates is None or kept == 0:
        return Fraction(kept, others)
    gates = check_integer("num_gates", num_gates, at_least=0, at_most=others - 1)
    closed = Fraction(comb(others - 1 - gates, kept - 1), comb(others - 1, kept - 1))
    return Fraction(kept, others) * (1 - closed)


def retention_delta_bound(
    adjacency: Adjacency,
    target: int,
    *,
    num_layers: int,
    num_kept: int,
    eligible: ArrayLike,
    max_radius: int,
) -> FloatArray:
    r"""Bound Δ(ρ) of node-retention smoothing from the graph alone.

    $$\overline\Delta(\rho) = \min\Bigl(\textstyle\sum_{i=1}^{\rho} \Delta_i,\
    1 - \binom{d-\rho}{k} \big/ \binom{d}{k}\Bigr), \qquad \Delta_1 \ge \Delta_2 \ge \dots$$

    The sum is the union bound on `retention_source_bound`; the second term is the probability that some hostile node is
    kept at all.

    Guarantee:
        At least Δ(ρ) for every model of ``num_layers`` message-passing steps, computed with fractions and rounded up.
        Tight for ρ = 1 and two layers or fewer.

    Args:
        adjacency: The graph.
        target: The node v.
        num_layers: Number h of message-passing steps, >= 1.
        num_kept: Number k of further nodes that stay, in [0, d].
        eligible: Which nodes may be hostile, boolean, shape (num_nodes,). If the target may, Δ = 1.
        max_radius: Largest ρ, >= 1.

    Returns:
        Shape (max_radius,), in [0, 1], never falling.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> from graycert.graph.toy_graphs import star_graph
        >>> mask = np.array([False, True, True, True, True])
        >>> retention_delta_bound(star_graph(4), 0, num_layers=2, num_kept=1, eligible=mask, max_radius=3)
        array([0.25, 0.5 , 0.75])

    References:
        Beyond Scholten et al. (2022), Appendix J; docs/proofs/derandomization.md.
    """
    max_radius = check_integer("max_radius", max_radius, at_least=1)
    mask = np.asarray(eligible)
    if mask.dtype != np.bool_ or mask.shape != (adjacency.num_nodes,):
        raise InvalidParameterError(
            f"`eligible` must be a boolean array of shape ({adjacency.num_nodes},), got dtype {mask.dtype} and shape "
            f"{mask.shape}."
        )
    field = receptive_fields(adjacency, [target], num_layers=num_layers)
    others = field.nodes.size - 1
    kept = check_integer("num_kept", num_kept, at_least=0, at_most=others, hint=f"The field has {others} other nodes.")
    if mask[target]:
        return np.ones(max_radius)
    gates = _gates(adjacency, field.nodes, field.distances, num_layers)
    hostile = [(gate, distance) for node, distance, gate in gates if mask[node]]
    sources = sorted(
        (
            retention_source_bound(num_gates=None if distance == 1 else gate, num_others=others, num_kept=kept)
            for gate, distance in hostile
        ),
        reverse=True,
    )
    bounds, union = np.zeros(max_radius), Fraction(0)
    for index in range(max_radius):
        size = min(index + 1, len(sources))
        union += sources[index] if index < len(sources) else 0
        some_kept = 1 - Fraction(comb(others - size, kept), comb(others, kept))
        bounds[index] = fraction_up(min(union, some_kept))
    return bounds


def _gates(adjacency: Adjacency, nodes: IntArray, distances: IntArray, num_layers: int) -> list[tuple[int, int, int]]:
    """Return (node, distance, number of gates) of every node of the field but the target."""
    counts = np.zeros(adjacency.num_nodes, dtype=np.int64)
    for node, distance in zip(nodes[1:].tolist(), distances[1:].tolist(), strict=True):
        if distance < num_layers:
            counts[adjacency.in_neighbors(node)] += 1
    return list(zip(nodes[1:].tolist(), distances[1:].tolist(), counts[nodes[1:]].tolist(), strict=True))
