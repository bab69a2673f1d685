"""Certificates under node retention: without a confidence level where all kept sets can be looked at (App. J)."""

import warnings
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from graycert._progress import progress_bar
from graycert._rounding import fraction_up
from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer, check_open_unit, check_seed
from graycert.audit import audit_model
from graycert.certification.arguments import device_named, refuse_exposed_target, target_nodes
from graycert.data import validate_data
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import receptive_fields
from graycert.rules import certify_votes
from graycert.rules.vote_certificates import status_of
from graycert.runs.words import shares_in_words
from graycert.sampling import Purpose
from graycert.smoothing.retention.bound import retention_delta_bound
from graycert.smoothing.retention.deterministic import DeterministicCertificate, certify_derandomized
from graycert.smoothing.retention.draws import NodeRetentionEngine, build_retention_engine
from graycert.smoothing.retention.parameters import UniformRetention
from graycert.threats.node_features import NodeFeatureThreat
from graycert.threats.structural import convolution_family


@dataclass(frozen=True, kw_only=True, eq=False)
class RetentionCertificates:
    """Certificates of all targets under node retention, and how each was reached.

    Attributes:
        targets: Node index of each target, shape (num_targets,).
        evaluation: "exact" where every kept set was looked at: then nothing depends on chance; else "sampled".
        prediction: Reported class; where the status is "abstained" only the class with most (selection) votes.
        status: "certified" (radius >= 1), "predicted" (radius 0) or "abstained" (radius -1; exact targets only abstain
            at a tie).
        radius: Certified number of hostile nodes, in [-1, max_radius]; max_radius means "at least".
        p_lower: Lower bound on the probability of the reported class; where exact its probability, rounded down.
        p_upper: Upper bound on the probability of every other class; where exact the largest, rounded up.
        exact: For each exact target the deterministic certificate, with the whole numbers of kept sets per label; None
            for the others.
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius from the graph alone, shape (num_targets, max_radius). Sampled radii
            rest on it; exact ones on what arrives in each kept set.
        num_kept_sets: C(d, k) of each target.
        num_eligible: Nodes of the receptive field that may be hostile, shape (num_targets,).
        selection_votes: n0 votes per class, shape (num_targets, num_classes); zeros where exact.
        estimation_votes: n1 votes per class, same shape.
        alpha: Failure probability per sampled target.
        tau: Most kept sets of an exact target.
        num_layers: Message-passing steps h of the model.
        hops: None if kept nodes count as connected by paths of any length, else the largest length.
        retention: The smoothing distribution.
        threat: Who may be hostile.
        seed: Seed of the samples.
    """

    targets: IntArray
    evaluation: NDArray[np.str_]
    prediction: IntArray
    status: NDArray[np.str_]
    radius: IntArray
    p_lower: FloatArray
    p_upper: FloatArray
    exact: tuple[DeterministicCertificate | None, ...]
    delta_upper: FloatArray
    num_kept_sets: tuple[int, ...]
    num_eligible: IntArray
    selection_votes: IntArray
    estimation_votes: IntArray
    alpha: float
    tau: int
    num_layers: int
    hops: int | None
    retention: UniformRetention
    threat: NodeFeatureThreat
    seed: int

    def __len__(self) -> int:
        return int(self.targets.size)

    def summary(self) -> str:
        """Say in plain words what is proved, how, and for which share of the targets."""
        size, last = len(self), self.delta_upper.shape[1]
        num_exact = int(np.count_nonzero(self.evaluation == "exact"))
        return "\n\n".join(
            (
                "The smoothed classifier keeps its prediction for a target with radius ρ, whatever the features of up "
                f"to ρ hostile nodes ({self.threat.describe()}) are set to. The graph structure is fixed. The smoothed "
                f"classifier is the majority vote of the {self.num_layers}-step model over the subgraphs in which the "
                f"target and a share of {self.retention.keep_ratio} of its receptive field, rounded up, stay; nothing "
                "is said about the model without smoothing.",
                f"For {num_exact:,} of {size:,} targets all kept sets, at most {self.tau:,}, were looked at: these "
                "statements hold with certainty, up to how floating point breaks near-ties of the model's scores. "
                f"Each of the {size - num_exact:,} others is wrong with probability at most α = {self.alpha} over the "
                "samples, all its radii together; that is per target, not for all at once.",
                f"A prediction may hold further than stated; radii above {last} were not examined.",
                shares_in_words(self.radius, self.num_eligible, max_radius=last),
            )
        )


def certify_by_retention(
    model: nn.Module,
    data: Any,
    *,
    retention: UniformRetention,
    targets: ArrayLike | Tensor | None = None,
    threat: NodeFeatureThreat | None = None,
    num_layers: int | None = None,
    tau: int = 100_000,
    num_selection: int = 1_000,
    num_estimation: int = 3_000,
    alpha: float = 0.01,
    max_radius: int = 20,
    seed: int = 0,
    device: str | torch.device | None = None,
    progress: bool = False,
) -> RetentionCertificates:
    r"""Say for every target up to how many hostile nodes its prediction under node retention cannot change.

    A target with at most τ kept sets is evaluated on all of them, each class of equal ones once: its label
    probabilities are exact, and its certificate is deterministic (`certify_derandomized`). The other targets get votes
    from drawn kept sets of the same smoothed classifier, and Δ̄ from the graph (`retention_delta_bound`).

    Guarantee:
        Exact targets: if the radius is ρ > 0, no change of all features of up to ρ eligible nodes changes the
        predicted class of the classifier smoothed by ``retention``, with certainty (for the labels as they were
        computed; near-ties of scores may fall differently in another evaluation). They abstain only at an exact tie.
        Sampled targets: the same with probability at least ``1 - alpha`` over the draws, for each target on its own
        and all its radii together. Which targets are exact depends on the graph alone. The graph structure is fixed.
        Bounds are rounded outward.

    Args:
        model: ``forward(x, edge_index)`` -> class scores (num_nodes, num_classes); see `graycert.models.protocol`.
            Convolutions that are known not to read their sender's degree (GAT, GATv2, SAGE, GIN; see
            `convolution_family`) get the coarser classes of kept nodes within ``num_layers`` hops, all others those by
            paths of any length, which are right for every model whose degrees are in-degrees (GCN, soft medoid).
        data: Graph (`torch_geometric.data.Data`) with ``x`` and ``edge_index``.
        retention: Which share of the receptive field stays.
        targets: Distinct node indices, shape (num_targets,), or a boolean mask, shape (num_nodes,); default all nodes.
        threat: Which nodes may be hostile; default all but the target. A target that may itself be hostile is always
            kept, so it gets no radius above 0, and there is a warning.
        num_layers: Number h of propagation steps; default counted by the audit.
        tau: Most kept sets C(d, k) of a target that is derandomized, >= 1; the paper's is 100,000.
        num_selection: Draws n0 that pick the class of a sampled target, >= 1.
        num_estimation: Draws n1 that bound its margin, >= 1.
        alpha: Failure probability per sampled target, in (0, 1).
        max_radius: Largest radius looked at, >= 1.
        seed: Seeds all draws.
        device: Where to run the model; default where its parameters are.
        progress: Show a progress bar on standard error if it is a terminal.

    Returns:
        One certificate per target, in the order of ``targets``.

    Raises:
        InvalidParameterError: If an argument is out of its domain.
        UnsoundSetupError: If a certificate for this set-up would not hold (``skip-exposes-target``,
            ``skip-not-local``, ``parallel-edges``, ``disconnected-nodes-matter``, or a slug of `audit_model`).

    References:
        Scholten et al. (2022), Appendix J and Corollary 1; docs/proofs/derandomization.md.
    """
    threat = threat if threat is not None else NodeFeatureThreat(min_distance=1)
    _check_types(retention, threat)
    _check_numbers(tau, num_selection, num_estimation, max_radius)
    check_open_unit("alpha", alpha, hint="It is a failure probability, e.g. 0.01.")
    check_seed(seed)
    validate_data(data)
    nodes = target_nodes(targets, num_nodes=data.num_nodes)
    refuse_exposed_target(model, threat, nodes)
    _warn_of_hostile_targets(threat, nodes, num_nodes=data.num_nodes)
    where = device_named(device)
    audit = audit_model(model, data, num_layers=num_layers, seed=seed)
    audit.require()
    hops = _hops_of_classes(model, audit.num_layers)
    engine = build_retention_engine(
        model, data, smoothing=retention, num_layers=audit.num_layers, hops=hops, device=where
    )
    fields = [_Field.of(engine, target, threat, max_radius=max_radius) for target in nodes.tolist()]
    exact: list[DeterministicCertificate | None] = []
    selection, estimation = (np.zeros((nodes.size, engine.num_classes), dtype=np.int64) for _ in range(2))
    with progress_bar("evaluating", total=nodes.size, unit="targets", shown=progress) as advance:
        for row, target in enumerate(nodes.tolist()):
            exact.append(None)
            if fields[row].num_kept_sets <= tau:
                exact[row] = _certify_exactly(engine, target, fields[row], tau=tau, max_radius=max_radius)
            else:
                selection[row] = engine.votes(target, seed, Purpose.SELECTION, num_samples=num_selection)
                estimation[row] = engine.votes(target, seed, Purpose.ESTIMATION, num_samples=num_estimation)
            advance(1)
    delta_upper = np.stack([field.delta_upper for field in fields])
    prediction, radius, p_lower, p_upper = _both_kinds(exact, selection, estimation, delta_upper, alpha=alpha)
    return RetentionCertificates(
        targets=nodes,
        evaluation=np.where([certificate is not None for certificate in exact], "exact", "sampled"),
        prediction=prediction,
        status=status_of(radius),
        radius=radius,
        p_lower=p_lower,
        p_upper=p_upper,
        exact=tuple(exact),
        delta_upper=delta_upper,
        num_kept_sets=tuple(field.num_kept_sets for field in fields),
        num_eligible=np.array([field.eligible.sum() for field in fields], dtype=np.int64),
        selection_votes=selection,
        estimation_votes=estimation,
        alpha=alpha,
        tau=tau,
        num_layers=audit.num_layers,
        hops=hops,
        retention=retention,
        threat=threat,
        seed=seed,
    )


@dataclass(frozen=True)
class _Field:
    """What the graph alone says about a target."""

    num_kept_sets: int
    eligible: NDArray[np.bool_]
    delta_upper: FloatArray

    @classmethod
    def of(cls, engine: NodeRetentionEngine, target: int, threat: NodeFeatureThreat, *, max_radius: int) -> "_Field":
        adjacency = engine.adjacency
        field = receptive_fields(adjacency, [target], num_layers=engine.num_layers)
        others = field.nodes.size - 1
        num_kept = engine.smoothing.num_kept(others)
        eligible = threat.eligible(field.nodes, field.distances, num_nodes=adjacency.num_nodes)
        hostile = np.zeros(adjacency.num_nodes, dtype=np.bool_)
        hostile[field.nodes] = eligible
        delta_upper = retention_delta_bound(
            adjacency,
            target,
            num_layers=engine.num_layers,
            num_kept=num_kept,
            eligible=hostile,
            max_radius=max_radius,
        )
        return cls(comb(others, num_kept), eligible, delta_upper)


def _certify_exactly(
    engine: NodeRetentionEngine, target: int, field: _Field, *, tau: int, max_radius: int
) -> DeterministicCertificate:
    found = engine.label_representatives(target, tau=tau)
    assert found is not None  # there are at most as many classes as kept sets
    return certify_derandomized(
        found.representatives,
        found.labels,
        num_classes=engine.num_classes,
        eligible=field.eligible,
        num_layers=engine.num_layers,
        max_radius=max_radius,
    )


def _both_kinds(
    exact: list[DeterministicCertificate | None],
    selection: IntArray,
    estimation: IntArray,
    delta_upper: FloatArray,
    *,
    alpha: float,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return prediction, radius, and lower and upper probability of exact and sampled targets, in their order."""
    size = len(exact)
    prediction, radius = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    p_lower, p_upper = np.zeros(size), np.zeros(size)
    for row, certificate in enumerate(exact):
        if certificate is not None:
            prediction[row], radius[row] = certificate.prediction, certificate.radius
            p_lower[row], p_upper[row] = _probabilities(certificate)
    rest = np.flatnonzero([certificate is None for certificate in exact])
    if rest.size:
        sampled = certify_votes(selection[rest], estimation[rest], delta_upper[rest], alpha=alpha)
        prediction[rest], radius[rest] = sampled.prediction, sampled.radius
        p_lower[rest], p_upper[rest] = sampled.p_lower, sampled.p_upper
    return prediction, radius, p_lower, p_upper


def _probabilities(certificate: DeterministicCertificate) -> tuple[float, float]:
    """Return the probability of the reported class rounded down, and the largest of another class rounded up."""
    shares: list[Fraction] = list(certificate.labels.p_lower)
    chosen = shares.pop(certificate.prediction)
    return 0.0 - fraction_up(-chosen), fraction_up(max(shares))


def _hops_of_classes(model: nn.Module, num_layers: int) -> int | None:
    """Return ``num_layers`` if no layer reads its sender's degree, as far as is known, else None.

    Wrong knowledge costs no guarantee: what is certified is the classifier that sees the connected part alone.
    """
    convolutions = {type(module).__name__ for module in model.modules() if isinstance(module, MessagePassing)}
    try:
        families = {convolution_family(name) for name in convolutions}
    except UnsoundSetupError:
        return None
    return num_layers if families == {"local"} else None


def _warn_of_hostile_targets(threat: NodeFeatureThreat, nodes: IntArray, *, num_nodes: int) -> None:
    hostile = int(threat.eligible(nodes, np.zeros_like(nodes), num_nodes=num_nodes).sum())
    if hostile:
        warnings.warn(
            f"{hostile:,} of {nodes.size:,} targets may be hostile themselves. Node retention always keeps the target, "
            "so their radius is 0 at most. Use NodeFeatureThreat(min_distance=1).",
            stacklevel=3,
        )


def _check_types(retention: object, threat: object) -> None:
    if not isinstance(retention, UniformRetention) or not isinstance(threat, NodeFeatureThreat):
        raise InvalidParameterError(
            "`retention` must be a UniformRetention and `threat` a NodeFeatureThreat, got "
            f"{type(retention).__name__} and {type(threat).__name__}. For InterceptionSmoothing use graycert.certify."
        )


def _check_numbers(tau: int, num_selection: int, num_estimation: int, max_radius: int) -> None:
    check_integer("tau", tau, at_least=1, hint="It is the most kept sets that a target may be evaluated on.")
    check_integer("num_selection", num_selection, at_least=1, hint="It is the number n0 of draws that pick the class.")
    check_integer("num_estimation", num_estimation, at_least=1, hint="It is the number n1 of draws for the bounds.")
    check_integer("max_radius", max_radius, at_least=1)
