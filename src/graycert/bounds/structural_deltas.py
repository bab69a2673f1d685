"""Δ̄ for adversaries who delete or insert nodes, delete edges, or set the values of edges."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from graycert._types import FloatArray, IntArray
from graycert._validation import check_choice, check_integer, check_targets
from graycert.bounds.delta_bounds import DeltaBounds
from graycert.bounds.evaluation import DEFAULT_BUDGET, evaluate_deltas
from graycert.bounds.multiplicative import multiplicative_bound
from graycert.bounds.single_source import single_source_bounds
from graycert.bounds.structural import edge_deletion_bounds
from graycert.errors import UnsoundSetupError
from graycert.graph import Adjacency, SimplePathCounts, adjacency_fingerprint, simple_path_blocks
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats import EdgeDeletionThreat, NodeFeatureThreat, NodeThreat


def structural_deltas(
    adjacency: Adjacency,
    targets: ArrayLike,
    *,
    smoothing: InterceptionSmoothing,
    threat: NodeThreat | EdgeDeletionThreat | NodeFeatureThreat,
    num_layers: int,
    max_radius: int | None = 20,
    bound: str = "auto",
    budget: int = DEFAULT_BUDGET,
    num_threads: int = 1,
) -> DeltaBounds:
    r"""Bound, for each target and radius, the probability that the target notices the structural change.

    The votes to compare with are those of feature attacks, drawn on the graph given here. For ``NodeInsertionThreat``
    this graph is the perturbed one. ``threat.convolution`` is a statement about the model.

    Guarantee:
        Let H be the graph without up to ρ eligible nodes (or edges). Entry [i, ρ - 1] is at least the change of every
        label probability of target i between the given graph and H: $|p_{v,y}(G) - p_{v,y}(H)| \le
        \overline\\Delta(\\rho)$, for every p_a. Assumes Lemma 1, messages as ``threat.convolution`` says, a coin per
        directed edge, and features and edges that were not computed from the part that is missing. It never falls
        with ρ; with fewer than ρ eligible it is the bound for all of them. Rounded upward. With ρ = 1 exact up to
        rounding, as the probability of the event, for ``threat.reach(num_layers)`` <= 2 (nodes) or <= 3 (edges).

    Args:
        adjacency: The graph at hand.
        targets: Distinct node indices, shape (num_targets,).
        smoothing: The probabilities p_d > 0 and p_a. Ablation does not hide structure, so p_a plays no part.
        threat: ``NodeDeletionThreat``, ``NodeInsertionThreat``, ``EdgeDeletionThreat``, or ``NodeFeatureThreat`` with
            ``hostile_edge_inputs``: changed values of the edges of ρ nodes are noticed along the paths along which
            their absence is, one hop further than the model has steps, whatever its convolutions.
        num_layers: Number of message-passing steps k of the model, >= 1.
        max_radius: Largest number of deleted or inserted nodes, or deleted edges, >= 1; None as in `delta_bounds`, but
            not for edges.
        bound: As in `delta_bounds`; of edges "auto" and "multiplicative" are the same, and the only ones.
        budget: As in `delta_bounds`.
        num_threads: As in `delta_bounds`; of edges one.

    Returns:
        The bounds. Of nodes, ``num_eligible`` and ``receptive_field_size`` count what is within ``threat.reach``; of
        edges, ``num_eligible`` counts edges.

    Raises:
        InvalidParameterError: If an argument is malformed or out of range.
        UnsoundSetupError: ``ablation-cannot-certify-structure``, if p_d = 0; ``structure-dependent-smoothing``, if
            there is more than one p_d or p_a; ``unknown-convolution``, if the threat leaves it open.

    Example:
        >>> from graycert.graph import path_graph
        >>> from graycert.threats import NodeDeletionThreat
        >>> smoothing = InterceptionSmoothing(p_delete=0.5, p_ablate=0.9)
        >>> threat = NodeDeletionThreat(convolution="degree-normalised", min_distance=2)
        >>> bounds = structural_deltas(
        ...     path_graph(4), [0], smoothing=smoothing, threat=threat, num_layers=2, max_radius=2)
        >>> np.asarray(bounds).round(12)
        array([[0.25, 0.25]])

    References:
        Scholten et al. (2022), Section 5 "Threat model extensions"; docs/proofs/structural_threats.md.
    """
    p_delete = _p_delete(smoothing)
    if isinstance(threat, NodeFeatureThreat):  # the first step may count values, as degrees are counted
        reach = check_integer("num_layers", num_layers, at_least=1) + 1
    else:
        reach = threat.reach(num_layers)
    if not isinstance(threat, EdgeDeletionThreat):
        found = evaluate_deltas(
            adjacency,
            targets,
            smoothing=InterceptionSmoothing(p_delete=p_delete, p_ablate=0.0),
            threat=threat.hostile_nodes() if isinstance(threat, NodeThreat) else threat.features_alone(),
            num_layers=reach,
            max_radius=max_radius,
            bound=bound,
            budget=budget,
            num_threads=num_threads,
        )
        return replace(found, num_layers=num_layers, smoothing=smoothing, threat=threat)
    check_choice("bound", bound, ("auto", "multiplicative"), hint="Deleted edges have no other bound.")
    radius = check_integer("max_radius", max_radius, at_least=1, hint="Of edges it must be given.")
    nodes = check_targets(targets, num_nodes=adjacency.num_nodes)
    receivers = list(simple_path_blocks(adjacency, nodes, num_layers=max(reach - 1, 1)))
    parts = [
        _edge_table(adjacency, paths, p_delete=p_delete, distances=(threat.min_distance, reach), max_radius=radius)
        for paths in receivers
    ]
    table = np.concatenate([deltas for deltas, _ in parts])
    return DeltaBounds(
        targets=nodes,
        delta_upper=table,
        proved=np.zeros(table.shape, dtype=np.bool_),
        methods=np.full(nodes.size, "multiplicative"),
        num_eligible=np.concatenate([counts for _, counts in parts]),
        receptive_field_size=np.concatenate([np.diff(paths.indptr) for paths in receivers]),
        path_counts_exact=np.concatenate([paths.exact for paths in receivers]),
        attackers=(np.empty((0, 0), dtype=np.int32),) * nodes.size,
        bound=bound,
        num_layers=num_layers,
        smoothing=smoothing,
        threat=threat,
        graph=adjacency_fingerprint(adjacency),
    )


def _edge_table(
    adjacency: Adjacency, paths: SimplePathCounts, *, p_delete: float, distances: tuple[int, int], max_radius: int
) -> tuple[FloatArray, IntArray]:
    """Return Δ̄(ρ), and how many edges are eligible, for edges into nodes of ``paths``; those of a node are alike."""
    from graycert.bounds.worst_nodes import largest_per_group  # Numba takes a while to load

    received = single_source_bounds(paths.counts, p_delete=p_delete, p_ablate=0.0)
    received[paths.indptr[:-1]] = 1.0  # the target, first of its field, needs no edge
    nearest, farthest = distances
    in_degree: IntArray = np.diff(adjacency.indptr)[paths.sources]
    eligible = (paths.distances + 1 >= nearest) & (paths.distances + 1 <= farthest)
    num_eligible = np.add.reduceat(np.where(eligible, in_degree, 0), paths.indptr[:-1], dtype=np.int64)
    repeats = np.where(eligible, np.minimum(in_degree, max_radius), 0)  # more cannot be among the worst ones
    ends = np.concatenate([[0], np.cumsum(repeats)])[paths.indptr]
    single = np.repeat(edge_deletion_bounds(received, p_delete=p_delete), repeats)
    worst, _ = largest_per_group(single, ends[:-1], ends[1:], max_radius=max_radius)
    return multiplicative_bound(worst, max_radius=max_radius), num_eligible


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
