"""Certificates from Levine and Feizi's randomized ablation, to compare with interception smoothing (App. B)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor, nn

from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer, check_open_unit, check_seed, check_targets
from graycert.audit import audit_model
from graycert.bounds.levine import levine_delta
from graycert.certification.arguments import refuse_exposed_target
from graycert.data import validate_data
from graycert.errors import InvalidParameterError
from graycert.graph import Adjacency, receptive_fields
from graycert.graph.conversion import simple_adjacency
from graycert.rules import VoteCertificates, certify_votes
from graycert.sampling import Purpose
from graycert.smoothing.randomized_ablation.draws import build_randomized_ablation_engine
from graycert.smoothing.randomized_ablation.parameters import RandomizedAblation
from graycert.threats.node_features import NodeFeatureThreat


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomizedAblationCertificates:
    """Certificates of all targets, and the numbers that they rest on, in the order of the targets.

    Attributes:
        targets: Node index of each target, shape (num_targets,).
        certificates: Prediction, status, bounds and radius per target.
        delta_upper: Δ^L(ρ) for ρ = 1..max_radius, shape (num_targets, max_radius).
        num_candidates: Number n of nodes that draws choose from.
        num_kept: Number k of them that keep their features.
        num_eligible: Number m of them that may be hostile.
        selection_votes: n0 votes per class, shape (num_targets, num_classes).
        estimation_votes: n1 votes per class, same shape.
    """

    targets: IntArray
    certificates: VoteCertificates
    delta_upper: FloatArray
    num_candidates: IntArray
    num_kept: IntArray
    num_eligible: IntArray
    selection_votes: IntArray
    estimation_votes: IntArray


def certify_randomized_ablation(
    model: nn.Module,
    data: Any,
    *,
    smoothing: RandomizedAblation,
    targets: ArrayLike,
    threat: NodeFeatureThreat | None = None,
    num_layers: int | None = None,
    num_selection: int = 1_000,
    num_estimation: int = 3_000,
    alpha: float = 0.01,
    max_radius: int = 20,
    seed: int = 0,
    ablation_token: Tensor | None = None,
    batch_size: int | None = None,
) -> RandomizedAblationCertificates:
    r"""Say for every target up to how many hostile nodes its prediction under randomized ablation cannot change.

    Global scope: a black-box certificate, for any model that is a function of features and edges, local or not.
    Hostile nodes may be anywhere in the graph, so all eligible nodes count, reachable or not. Local scope: the model
    is audited first (`audit_model`), and only eligible nodes of the receptive field count.

    Guarantee:
        For each target on its own, with probability at least ``1 - alpha`` over the draws: if its radius is ρ > 0, no
        change of all features of up to ρ eligible nodes changes the predicted class of the classifier that is smoothed
        by ``smoothing`` (all radii of one target hold together). The graph structure is fixed. Δ^L is exact, rounded
        upward.

    Args:
        model: ``forward(x, edge_index)`` -> class scores (num_nodes, num_classes); see `graycert.models.protocol`.
        data: Graph (`torch_geometric.data.Data`) with ``x`` and ``edge_index``.
        smoothing: How many nodes keep their features, and which nodes they are drawn from.
        targets: Distinct node indices, shape (num_targets,).
        threat: Which nodes may be hostile; default all, the target included.
        num_layers: Number k of propagation steps, for the local scope; default counted by the audit.
        num_selection: Draws n0 that pick the class, >= 1.
        num_estimation: Draws n1 that bound its margin, >= 1.
        alpha: Failure probability per target, in (0, 1).
        max_radius: Largest radius looked at, >= 1.
        seed: Seeds all draws; the same seed gives the same votes for every batch size.
        ablation_token: Features of an ablated node (num_features,); default the model's own, else zeros.
        batch_size: Most draws per forward pass in the local scope; the global scope takes one at a time.

    Returns:
        One certificate per target, in the order of ``targets``.

    Raises:
        InvalidParameterError: If an argument is out of its domain.
        UnsoundSetupError: If a certificate for this set-up would not hold (``skip-exposes-target``,
            ``skip-not-local``, ``not-deterministic``; in the local scope any slug of `audit_model`).

    References:
        Levine and Feizi (2020); Scholten et al. (2022), App. B; docs/proofs/levine.md.
    """
    threat = threat if threat is not None else NodeFeatureThreat()
    _check_types(smoothing, threat)
    check_integer("num_selection", num_selection, at_least=1)
    check_integer("num_estimation", num_estimation, at_least=1)
    check_integer("max_radius", max_radius, at_least=1)
    check_open_unit("alpha", alpha, hint="It is a failure probability, e.g. 0.01.")
    check_seed(seed)
    validate_data(data)
    nodes = check_targets(targets, num_nodes=data.num_nodes)
    refuse_exposed_target(model, threat, nodes)
    if smoothing.scope == "local":
        audit = audit_model(model, data, num_layers=num_layers, ablation_token=ablation_token, seed=seed)
        audit.require()
        num_layers = audit.num_layers
    else:
        num_layers = None
    num_eligible = _num_eligible(
        simple_adjacency(data.edge_index, num_nodes=data.num_nodes), nodes, threat, num_layers=num_layers
    )
    engine = build_randomized_ablation_engine(
        model,
        data,
        nodes,
        smoothing=smoothing,
        num_layers=num_layers,
        ablation_token=ablation_token,
        batch_size=batch_size,
    )
    delta_upper = _deltas(engine.num_candidates, engine.num_kept, num_eligible, max_radius=max_radius)
    selection = engine.votes(seed, Purpose.SELECTION, num_samples=num_selection)
    estimation = engine.votes(seed, Purpose.ESTIMATION, num_samples=num_estimation)
    return RandomizedAblationCertificates(
        targets=nodes,
        certificates=certify_votes(selection, estimation, delta_upper, alpha=alpha),
        delta_upper=delta_upper,
        num_candidates=engine.num_candidates,
        num_kept=engine.num_kept,
        num_eligible=num_eligible,
        selection_votes=selection,
        estimation_votes=estimation,
    )


def _check_types(smoothing: object, threat: object) -> None:
    if not isinstance(smoothing, RandomizedAblation) or not isinstance(threat, NodeFeatureThreat):
        raise InvalidParameterError(
            "`smoothing` must be a RandomizedAblation and `threat` a NodeFeatureThreat, got "
            f"{type(smoothing).__name__} and {type(threat).__name__}. For InterceptionSmoothing use graycert.certify."
        )


def _num_eligible(
    adjacency: Adjacency, targets: IntArray, threat: NodeFeatureThreat, *, num_layers: int | None
) -> IntArray:
    """Return how many nodes may be hostile, for each target: of its receptive field, or, without depth, of all."""
    depth = max(1, threat.min_distance - 1) if num_layers is None else num_layers
    fields = receptive_fields(adjacency, targets, num_layers=depth)
    num_nodes, counts = adjacency.num_nodes, np.empty(targets.size, dtype=np.int64)
    for row in range(targets.size):
        part = slice(fields.indptr[row], fields.indptr[row + 1])
        near, distances = fields.nodes[part], fields.distances[part]
        if num_layers is None:  # beyond the field every distance counts as far: it is at least min_distance
            everywhere = np.full(num_nodes, np.iinfo(np.int64).max)
            everywhere[near] = distances
            near, distances = np.arange(num_nodes), everywhere
        counts[row] = np.count_nonzero(threat.eligible(near, distances, num_nodes=num_nodes))
    return counts


def _deltas(num_nodes: IntArray, num_kept: IntArray, num_eligible: IntArray, *, max_radius: int) -> FloatArray:
    """Return Δ^L(ρ) per target; equal numbers are computed once."""
    cases, which = np.unique(np.stack([num_nodes, num_kept, num_eligible], axis=1), axis=0, return_inverse=True)
    table = [
        levine_delta(num_nodes=int(n), num_kept=int(k), num_eligible=int(m), max_radius=max_radius) for n, k, m in cases
    ]
    return np.stack(table)[which.reshape(-1)]
