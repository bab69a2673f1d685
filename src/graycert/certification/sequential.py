"""Certificates from as many votes as each target needs: sampling of a target stops once it is decided."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from graycert._progress import Advance, progress_bar
from graycert._types import FloatArray, IntArray
from graycert._validation import check_choice, check_integer, check_open_unit, check_seed
from graycert.audit import audit_model
from graycert.bounds.evaluation import METHODS, check_method, evaluate_deltas
from graycert.certification.arguments import check_types, device_named, refuse_exposed_target, target_nodes
from graycert.data import validate_data
from graycert.graph import Adjacency, smoothing_on
from graycert.rules import SequentialCertificates
from graycert.runs.words import percent, shares_in_words
from graycert.sampling import ENGINES, Purpose, VotingEngine, choose_engine
from graycert.sampling.compiled import CompiledEngine
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat

_Engine = CompiledEngine | VotingEngine


@dataclass(frozen=True, kw_only=True, eq=False)
class SequentialResult:
    """Certificates of all targets, and how many votes each of them took.

    Attributes:
        targets: Node index of each target, shape (num_targets,).
        prediction: Reported class; where the status is "abstained" only the class with most selection votes.
        status: "certified" (radius >= 1), "predicted" (radius 0) or "abstained" (radius -1).
        radius: Certified number of hostile nodes, in [-1, max_radius]; max_radius means "at least".
        num_samples: Estimation votes that the target took, at most ``max_estimation``, shape (num_targets,).
        undecided: Whether more votes might have helped: the target ran into ``max_estimation``.
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, shape (num_targets, max_radius).
        num_eligible: Nodes that may be hostile, shape (num_targets,).
        selection_votes: n0 votes per class, shape (num_targets, num_classes).
        estimation_votes: Votes per class, same shape; row sums are ``num_samples``.
        max_estimation: Most estimation votes per target.
        batch: Votes between two looks.
        alpha: Failure probability per target; all radii of a target hold jointly.
        give_up: Level at which a larger radius counts as hopeless.
        num_layers: Message-passing steps k of the model.
        smoothing: The smoothing distribution, with p_d in the order of the columns of ``data.edge_index``.
        threat: Who may be hostile.
        method: How Δ̄ was to be bounded.
        seed: Seed of the samples.
        engine: What drew the samples.
    """

    targets: IntArray
    prediction: IntArray
    status: NDArray[np.str_]
    radius: IntArray
    num_samples: IntArray
    undecided: NDArray[np.bool_]
    delta_upper: FloatArray
    num_eligible: IntArray
    selection_votes: IntArray
    estimation_votes: IntArray
    max_estimation: int
    batch: int
    alpha: float
    give_up: float
    num_layers: int
    smoothing: InterceptionSmoothing
    threat: NodeFeatureThreat
    method: str
    seed: int
    engine: str

    def __len__(self) -> int:
        return int(self.targets.size)

    def summary(self) -> str:
        """Say in plain words what is proved, with how many votes, and for which share of the targets."""
        size, last = len(self), self.delta_upper.shape[1]
        saved = size * self.max_estimation - int(self.num_samples.sum())
        return "\n\n".join(
            (
                "The smoothed classifier keeps its prediction for a target with radius ρ, whatever the features of up "
                f"to ρ hostile nodes ({self.threat.describe()}) are set to. The graph structure is fixed. The smoothed "
                f"classifier is the majority vote of the {self.num_layers}-step model over random graphs in which each "
                f"edge is deleted with probability p_d = {self.smoothing.delete_in_words} and the features of each "
                f"node are ablated with probability p_a = {self.smoothing.ablate_in_words}; nothing is said about the "
                "model without smoothing.",
                "Each target's statement, all its radii together, is wrong with probability at most "
                f"α = {self.alpha} over the samples, although sampling stopped when the votes decided. That is per "
                f"target, not for all targets at once. Δ̄(ρ) is bounded from above (method '{self.method}'), so a "
                f"prediction may hold further than stated; radii above {last} were not examined.",
                f"n0 = {int(self.selection_votes[0].sum()):,} samples chose the class. Then a target took "
                f"{self.num_samples.mean():,.0f} of at most {self.max_estimation:,} other samples on average, in all "
                f"{percent(saved, size * self.max_estimation)} fewer. {int(self.undecided.sum()):,} of {size:,} "
                "targets were not decided by then: more samples may raise their radius.",
                shares_in_words(self.radius, self.num_eligible, max_radius=last),
            )
        )


def certify_sequentially(
    model: nn.Module,
    data: Any,
    *,
    smoothing: InterceptionSmoothing,
    targets: ArrayLike | Tensor | None = None,
    threat: NodeFeatureThreat | None = None,
    num_layers: int | None = None,
    num_selection: int = 1_000,
    max_estimation: int = 3_000,
    batch: int = 64,
    alpha: float = 0.01,
    give_up: float = 0.05,
    method: str = "auto",
    max_radius: int = 20,
    seed: int = 0,
    ablation_token: Tensor | None = None,
    device: str | torch.device | None = None,
    engine: str = "auto",
    progress: bool = False,
) -> SequentialResult:
    r"""Say for every target up to how many hostile nodes its smoothed prediction cannot change, with few votes.

    As `graycert.certify`, except that the estimation votes are looked at after every batch, and a target is no longer
    sampled once its radius is decided: nothing larger is possible, or it looks hopeless.

    Guarantee:
        For each target on its own, with probability at least ``1 - alpha`` over the draws: if the smoothed classifier
        is certified at radius ρ > 0, no change of all features of up to ρ eligible nodes changes its predicted
        class (all radii of one target hold together). Looking after every batch costs nothing
        (`SequentialCertificates`). The graph structure is fixed. Bounds are rounded outward.

    Args:
        model: ``forward(x, edge_index)`` -> class scores (num_nodes, num_classes); see `graycert.models.protocol`.
        data: Graph (`torch_geometric.data.Data`) with ``x`` and ``edge_index``.
        smoothing: p_d and p_a at inference.
        targets: Distinct node indices, shape (num_targets,), or a boolean mask, shape (num_nodes,); default all nodes.
        threat: Which nodes may be hostile; default all, the target included.
        num_layers: Number k of propagation steps; default counted by the audit.
        num_selection: Draws n0 that pick the class, and how boldly to bet on it, >= 1.
        max_estimation: Most further draws per target, >= 1.
        batch: Draws between two looks, >= 1. More looks stop sooner, and may stop at another radius; the guarantee
            does not depend on it.
        alpha: Failure probability per target, in (0, 1). For a statement about all targets together pass
            ``simultaneous_level(alpha, num_targets)``.
        give_up: A larger value gives up larger radii sooner, in (0, 1). The guarantee does not depend on it.
        method: How Δ is bounded over sets of hostile nodes, see `delta_bounds`; "auto" is the tightest.
        max_radius: Largest radius looked at, >= 1.
        seed: Seeds all draws. The votes of a sample are those that `certify` counts with the same seed.
        ablation_token: Features of an ablated node (num_features,); default the model's own, else zeros.
        device: Where to run the model; default where its parameters are.
        engine: "auto", "compiled" or "torch", see `graycert.certify`. Votes are the same, near-ties aside.
        progress: Show a progress bar on standard error if it is a terminal.

    Returns:
        One certificate per target, in the order of ``targets``.

    Raises:
        InvalidParameterError: If an argument is out of its domain.
        UnsoundSetupError: If a certificate for this set-up would not hold (``skip-exposes-target``,
            ``parallel-edges``, or a slug of `audit_model`).

    References:
        Scholten et al. (2022), Theorem 1 and Corollary 1; Ville (1939); docs/proofs/sequential.md.
    """
    _check_numbers(num_selection, max_estimation, batch, alpha, give_up, method, max_radius, seed)
    check_choice("engine", engine, ENGINES)
    threat = threat if threat is not None else NodeFeatureThreat()
    check_types(smoothing, threat)
    validate_data(data)
    nodes = target_nodes(targets, num_nodes=data.num_nodes)
    refuse_exposed_target(model, threat, nodes)
    where = device_named(device)
    adjacency = Adjacency.from_edge_index(data.edge_index.cpu().numpy(), num_nodes=data.num_nodes)
    audit = audit_model(model, data, num_layers=num_layers, ablation_token=ablation_token, seed=seed)
    audit.require()
    check_method(method, num_layers=audit.num_layers)
    deltas = evaluate_deltas(
        adjacency,
        nodes,
        smoothing=smoothing_on(data, smoothing),
        threat=threat,
        num_layers=audit.num_layers,
        max_radius=max_radius,
        method=method,
    )

    def engine_for(some: IntArray) -> _Engine:
        return choose_engine(
            model,
            data,
            some,
            smoothing=smoothing,
            num_layers=audit.num_layers,
            ablation_token=ablation_token,
            device=where,
            engine=engine,
        )

    drawing = engine_for(nodes)
    with progress_bar("drawing", total=num_selection + max_estimation, unit="draws", shown=progress) as advance:
        selection = drawing.votes(seed, Purpose.SELECTION, num_samples=num_selection, progress=advance)
        certificates = SequentialCertificates(selection, deltas.delta_upper, alpha=alpha, give_up=give_up)
        estimation = _draw_until_decided(
            certificates,
            _ShrinkingEngine(drawing, nodes, engine_for),
            total=np.zeros_like(selection),
            seed=seed,
            max_estimation=max_estimation,
            batch=batch,
            advance=advance,
        )
    return SequentialResult(
        targets=nodes,
        prediction=certificates.prediction,
        status=certificates.status,
        radius=certificates.radius,
        num_samples=certificates.num_samples,
        undecided=certificates.undecided,
        delta_upper=deltas.delta_upper,
        num_eligible=deltas.num_eligible,
        selection_votes=selection,
        estimation_votes=estimation,
        max_estimation=max_estimation,
        batch=batch,
        alpha=alpha,
        give_up=give_up,
        num_layers=audit.num_layers,
        smoothing=smoothing,
        threat=threat,
        method=method,
        seed=seed,
        engine=drawing.name,
    )


class _ShrinkingEngine:
    """Votes on fewer and fewer targets. Which votes a target gets does not depend on when the engine shrinks."""

    def __init__(self, engine: _Engine, targets: IntArray, engine_for: Callable[[IntArray], _Engine]) -> None:
        self._engine, self._targets, self._engine_for = engine, targets, engine_for
        self._rows = np.arange(targets.size)

    def votes(self, wanted: NDArray[np.bool_], seed: int, *, first_sample: int, num_samples: int) -> IntArray:
        """Return votes per target and class; rows of zeros where ``wanted`` is False."""
        if _is_worth_shrinking(num_wanted=int(wanted.sum()), num_drawn=self._rows.size):
            self._shrink(wanted)
        found = self._engine.votes(seed, Purpose.ESTIMATION, num_samples=num_samples, first_sample=first_sample)
        votes = np.zeros((wanted.size, found.shape[1]), dtype=np.int64)
        votes[self._rows] = found
        votes[~wanted] = 0
        return votes

    def _shrink(self, wanted: NDArray[np.bool_]) -> None:
        stays = wanted[self._rows]
        self._rows = self._rows[stays]
        if isinstance(self._engine, CompiledEngine):  # knows the whole graph
            self._engine = self._engine.restricted(stays)
        else:
            self._engine = self._engine_for(self._targets[self._rows])


def _is_worth_shrinking(*, num_wanted: int, num_drawn: int) -> bool:
    """Say whether at least half of the targets that are drawn are decided: then each target is paid for twice."""
    return 2 * num_wanted <= num_drawn


def _draw_until_decided(
    certificates: SequentialCertificates,
    engine: _ShrinkingEngine,
    *,
    total: IntArray,
    seed: int,
    max_estimation: int,
    batch: int,
    advance: Advance,
) -> IntArray:
    """Feed batches of votes to the certificates; return ``total`` plus these votes."""
    for first in range(0, max_estimation, batch):
        undecided = certificates.undecided
        if not undecided.any():
            break
        size = min(batch, max_estimation - first)
        votes = engine.votes(undecided, seed, first_sample=first, num_samples=size)
        certificates.update(votes)
        total = total + votes
        advance(size, f"{int(certificates.undecided.sum()):,} targets undecided")
    return total


def _check_numbers(
    num_selection: int,
    max_estimation: int,
    batch: int,
    alpha: float,
    give_up: float,
    method: str,
    max_radius: int,
    seed: int,
) -> None:
    check_integer("num_selection", num_selection, at_least=1, hint="It is the number n0 of draws that pick the class.")
    check_integer("max_estimation", max_estimation, at_least=1, hint="It is the most draws per target for the bounds.")
    check_integer("batch", batch, at_least=1, hint="It is the number of draws between two looks.")
    check_open_unit("alpha", alpha, hint="It is a failure probability, e.g. 0.01.")
    check_open_unit("give_up", give_up)
    check_choice("method", method, METHODS)
    check_integer("max_radius", max_radius, at_least=1)
    check_seed(seed)
