"""Δ̄ for adversaries who delete or insert nodes, or delete edges."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._types import FloatArray
from graycert._validation import check_integer, check_targets
from graycert.bounds import multiplicative_bound, single_source_bounds
from graycert.bounds.evaluation import evaluate_deltas
from graycert.bounds.structural import edge_deletion_bounds
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import Adjacency, SimplePathCounts, as_adjacency, simple_path_blocks
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.structural import EdgeDeletionThreat, NodeThreat, StructuralThreat


def structural_delta_bounds(
    data_or_adjacency: Any,
    targets: ArrayLike,
    *,
    smoothing: InterceptionSmoothing,
    threat: StructuralThreat,
    num_layers: int = 2,
    max_radius: int = 20,
) -> FloatArray:
    r"""Bound, for each target and radius, the probability that the target notices the structural change.

    The votes to compare with are those of feature attacks, drawn on the graph given here: pass them to
    ``certify_votes`` with these bounds. For ``NodeInsertionThreat`` this graph is the perturbed one. The audit, too, is
    that of feature attacks; ``threat.convolution`` is a statement about the model that the audit does not test.

    Guarantee:
        Let H be the graph without up to ρ eligible nodes (or edges). Entry [i, ρ - 1] is at least the change of every
        label probability of target i between the given graph and H: $|p_{v,y}(G) - p_{v,y}(H)| \le
        \overline\Delta(\rho)$, for every p_a. Assumes Lemma 1, messages as ``threat.convolution`` says, a coin per
        directed edge, and features and edges that were not computed from the part that is missing. It never falls
        with ρ; with fewer than ρ eligible it is the bound for all of them. Rounded upward. With ρ = 1 exact up to
        rounding, as the probability of the event, for ``threat.reach(num_layers)`` <= 2 (nodes) or <= 3 (edges).

    Args:
        data_or_adjacency: The graph at hand, as for ``delta_bounds``.
        targets: Distinct node indices, shape (num_targets,).
        smoothing: The probabilities p_d > 0 and p_a. Ablation does not hide structure, so p_a plays no part.
        threat: ``NodeDeletionThreat``, ``NodeInsertionThreat`` or ``EdgeDeletionThreat``.
        num_layers: Number of message-passing steps k of the model, >= 1.
        max_radius: Largest number of deleted or inserted nodes, or deleted edges, >= 1.

    Returns:
        Δ̄(ρ) for ρ = 1..max_radius, float64, shape (num_targets, max_radius).

    Raises:
        InvalidParameterError: If an argument is malformed or out of range.
        UnsoundSetupError: ``ablation-cannot-certify-structure``, if p_d = 0; ``structure-dependent-smoothing``, if
            there is more than one p_d or p_a; ``parallel-edges``, if the graph holds an edge twice.

    Example:
        >>> from graycert.graph import path_graph
        >>> from graycert.threats.structural import NodeDeletionThreat
        >>> smoothing = InterceptionSmoothing(p_delete=0.5, p_ablate=0.9)
        >>> threat = NodeDeletionThreat(convolution="degree-normalised", min_distance=2)
        >>> structural_delta_bounds(path_graph(4), [0], smoothing=smoothing, threat=threat, max_radius=2).round(12)
        array([[0.25, 0.25]])

    References:
        Scholten et al. (2022), Section 5 "Threat model extensions"; docs/proofs/structural_threats.md.
    """
    adjacency = as_adjacency(data_or_adjacency)
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    max_radius = check_integer("max_radius", max_radius, at_least=1)
    _check_types(smoothing, threat)
    p_delete = _p_delete(smoothing)
    reach = threat.reach(num_layers)
    if isinstance(threat, NodeThreat):
        return evaluate_deltas(
            adjacency,
            targets,
            smoothing=InterceptionSmoothing(p_delete=p_delete, p_ablate=0.0),
            threat=threat.hostile_nodes(),
            num_layers=reach,
            max_radius=max_radius,
        ).delta_upper
    receivers = simple_path_blocks(adjacency, targets, num_layers=max(reach - 1, 1))
    return np.concatenate(
        [
            _edge_table(
                adjacency,
                paths,
                p_delete=p_delete,
                distances=(threat.min_distance, reach),
                max_radius=max_radius,
            )
            for paths in receivers
        ]
    )


def _edge_table(
    adjacency: Adjacency, paths: SimplePathCounts, *, p_delete: float, distances: tuple[int, int], max_radius: int
) -> FloatArray:
    """Return Δ̄(ρ) for edges whose receivers are the nodes of ``paths``; all edges into a node have the same bound."""
    from graycert.bounds.worst_nodes import largest_per_group  # Numba takes a while to load

    received = single_source_bounds(paths.counts, p_delete=p_delete, p_ablate=0.0)
    received[paths.indptr[:-1]] = 1.0  # the target, first of its field, needs no edge
    nearest, farthest = distances
    in_degree: NDArray[np.int64] = np.diff(adjacency.indptr)[paths.sources]
    eligible = (paths.distances + 1 >= nearest) & (paths.distances + 1 <= farthest)
    repeats = np.where(eligible, np.minimum(in_degree, max_radius), 0)  # more cannot be among the worst ones
    ends = np.concatenate([[0], np.cumsum(repeats)])[paths.indptr]
    single = np.repeat(edge_deletion_bounds(received, p_delete=p_delete), repeats)
    worst, _ = largest_per_group(single, ends[:-1], ends[1:], max_radius=max_radius)
    return multiplicative_bound(worst, max_radius=max_radius)


def _p_delete(smoothing: InterceptionSmoothing) -> float:
    """Return p_d, if the proof holds for this smoothing."""
    if not isinstance(smoothing.p_delete, float) or not isinstance(smoothing.p_ablate, float):
        raise UnsoundSetupError(
            "structure-dependent-smoothing",
            "Probabilities that differ between edges or nodes may have been computed from the graph, which is what the "
            "adversary changes here: the smoothed classifier itself would be another one. Use one p_delete and one "
            "p_ablate.",
        )
    if smoothing.p_delete == 0.0:
        raise UnsoundSetupError(
            "ablation-cannot-certify-structure",
            "Feature ablation alone certifies no insertion or deletion: an ablated node still sends the token and "
            "still counts as a neighbour, so every draw notices whether it is there. Use p_delete > 0.",
        )
    return smoothing.p_delete


def _check_types(smoothing: object, threat: object) -> None:
    if not isinstance(smoothing, InterceptionSmoothing):
        raise InvalidParameterError(
            f"`smoothing` must be an InterceptionSmoothing, got {type(smoothing).__name__}. "
            "Make one with graycert.InterceptionSmoothing."
        )
    if not isinstance(threat, NodeThreat | EdgeDeletionThreat):
        raise InvalidParameterError(
            "`threat` must be a NodeDeletionThreat, NodeInsertionThreat or EdgeDeletionThreat, got "
            f"{type(threat).__name__}. Changed features are bounded by delta_bounds."
        )
