"""App. D: the exact Δ, and a worst adversary, for a target whose receptive field is a tree."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from graycert._rounding import complement_up
from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer, check_integer_array, check_mask, check_probabilities
from graycert.graph import Adjacency
from graycert.graph.trees import InTree, in_tree


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeDelta:
    """Δ of a target whose receptive field is a tree, and who attains it.

    Args:
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, shape (max_radius,).
        attackers: Node indices; the first ρ are a worst set of ρ nodes. Shape (min(max_radius, num_eligible),), with
            the eligible nodes of the receptive field counted.
    """

    delta_upper: FloatArray
    attackers: IntArray


def tree_arrival_probability(
    adjacency: Adjacency,
    target: int,
    attackers: ArrayLike,
    *,
    p_delete: ArrayLike,
    p_ablate: ArrayLike,
    num_layers: int,
) -> float:
    r"""Return p(E(B)), the probability that a message from hostile nodes B reaches the root of a tree-shaped field.

    $$p(R_i) = 1-p_a(i)^{[i\in B]}\prod_{j\to i}\bigl(1-(1-p_d(j,i))\,p(R_j)\bigr),\qquad p(E(B)) = p(R_v)$$

    Guarantee:
        Exact for edges and features dropped independently (also if the two directions of an undirected edge share
        their coin), rounded upward by less than (3n + 12k + 4)·2^-53 for a field of n nodes.

    Args:
        adjacency: The graph.
        target: Node index v.
        attackers: Node indices B, shape (num_attackers,); the target may be one, nodes outside the field do nothing.
        p_delete: Probability of deleting an edge, in [0, 1]: a number, or one per edge of ``adjacency`` in its order.
        p_ablate: Probability of ablating a node's features, in [0, 1]: a number, or one per node.
        num_layers: Number of message-passing steps k, >= 1.

    Returns:
        The probability, in [0, 1].

    Raises:
        InvalidParameterError: If an argument is malformed or out of range.
        UnsoundSetupError: ``field-not-a-tree``.

    Example:
        >>> from graycert.graph import bottleneck_graph
        >>> coins = {"p_delete": [0.5] * 6, "p_ablate": [0.0] * 4}
        >>> round(tree_arrival_probability(bottleneck_graph(2), 0, [2, 3], **coins, num_layers=2), 12)
        0.375

    References:
        Scholten et al. (2022), App. D (theorem); docs/proofs/trees.md.
    """
    hostile = np.zeros(adjacency.num_nodes, dtype=np.bool_)
    hostile[check_integer_array("attackers", attackers, ndim=1, at_least=0, less_than=adjacency.num_nodes)] = True
    tree = in_tree(adjacency, target, num_layers=num_layers)
    deleted, shown = _on_tree(adjacency, tree, p_delete, p_ablate, hostile)
    from graycert.bounds.tree_greedy import reach_root  # Numba takes a while to load

    return float(reach_root(tree.parents, deleted, shown))


def tree_delta(
    adjacency: Adjacency,
    target: int,
    *,
    p_delete: ArrayLike,
    p_ablate: ArrayLike,
    eligible: ArrayLike,
    num_layers: int,
    max_radius: int,
) -> TreeDelta:
    r"""Return Δ(ρ), the largest p(E(B)) over all sets B of ρ eligible nodes, if the target's field is a tree.

    $$\Delta(\rho) = 1-\prod_{m=1}^{\rho}(1-x_m),\qquad
      x_m = \max_{w}\,P\bigl(E(\{w_1,\dots,w_{m-1},w\})\mid\neg E(\{w_1,\dots,w_{m-1}\})\bigr)$$

    The worst sets are nested, $w_m$ being the maximiser. (Neither "closer nodes first" nor "different branches first",
    as App. D has it, finds them: both fail, the first from three layers on.)

    Guarantee:
        ``delta_upper[ρ - 1]`` is at least Δ(ρ), and exceeds p(E(B)) of the first ρ ``attackers``, hence Δ(ρ), by less
        than ((6k + 3)ρ + 9k + 9)·2^-53, for edges and features dropped independently, any probabilities and any
        eligible nodes (also if the two directions of an undirected edge share their coin). It never falls with ρ.

    Args:
        adjacency: The graph.
        target: Node index v.
        p_delete: Probability of deleting an edge, in [0, 1]: a number, or one per edge of ``adjacency`` in its order.
        p_ablate: Probability of ablating a node's features, in [0, 1]: a number, or one per node.
        eligible: Which nodes may be hostile, bool, shape (num_nodes,); the target may be one.
        num_layers: Number of message-passing steps k, >= 1.
        max_radius: Largest ρ, >= 1. With fewer eligible nodes than ρ, Δ(ρ) is the value for all of them.

    Raises:
        InvalidParameterError: If an argument is malformed or out of range.
        UnsoundSetupError: ``field-not-a-tree``.

    Example:
        >>> from graycert.graph import bottleneck_graph
        >>> eligible = np.array([False, False, True, True])
        >>> coins = {"p_delete": [0.5] * 6, "p_ablate": [0.0] * 4}
        >>> worst = tree_delta(bottleneck_graph(2), 0, **coins, eligible=eligible, num_layers=2, max_radius=3)
        >>> worst.delta_upper.round(12), worst.attackers
        (array([0.25 , 0.375, 0.375]), array([2, 3]))

    References:
        Scholten et al. (2022), App. D (recursion); docs/proofs/trees.md (worst sets, rounding).
    """
    max_radius = check_integer("max_radius", max_radius, at_least=1)
    mask = check_mask("eligible", eligible, num_nodes=adjacency.num_nodes, hint="It says which nodes may be hostile.")
    tree = in_tree(adjacency, target, num_layers=num_layers)
    deleted, shown = _on_tree(adjacency, tree, p_delete, p_ablate, mask)
    from graycert.bounds.tree_greedy import accumulate, worst_chain

    order, gains = worst_chain(tree.parents, deleted, shown, max_radius)
    nodes = tree.nodes[order]
    chosen = np.flatnonzero(mask[nodes])[:max_radius]
    delta_upper = np.empty(max_radius)
    accumulate(gains[chosen], delta_upper)
    return TreeDelta(delta_upper=delta_upper, attackers=nodes[chosen])


def _on_tree(
    adjacency: Adjacency, tree: InTree, p_delete: ArrayLike, p_ablate: ArrayLike, hostile: np.ndarray
) -> tuple[FloatArray, FloatArray]:
    """Return p_d of the edge to each node's parent (0 for the target) and 1 - p_a, upward, of each hostile node."""
    deleted = np.zeros(tree.nodes.size)
    deleted[1:] = check_probabilities("p_delete", p_delete, size=adjacency.num_edges, per="edge")[tree.edges[1:]]
    ablated = check_probabilities("p_ablate", p_ablate, size=adjacency.num_nodes, per="node")[tree.nodes]
    return deleted, np.where(hostile[tree.nodes], complement_up(ablated), 0.0)
