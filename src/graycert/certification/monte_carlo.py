"""The one orchestrator: model + graph + smoothing + threat -> certificates."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from graycert._progress import progress_bar
from graycert._validation import check_choice, check_integer, check_open_unit, check_seed
from graycert.audit import audit_model
from graycert.bounds.evaluation import METHODS, PATH_METHODS, check_method, evaluate_deltas
from graycert.bounds.two_level import load_kernels
from graycert.certificates import NodeCertificates
from graycert.certification.arguments import check_types, device_named, refuse_exposed_target, target_nodes
from graycert.certification.collective import certify_collectively, refuse_unsound_rule
from graycert.certification.conclusion import conclude, count_predictions
from graycert.data import validate_data
from graycert.errors import InvalidParameterError
from graycert.graph import Adjacency, graph_fingerprint, smoothing_in_stored_order, smoothing_on
from graycert.rules import RULES, check_can_certify, simultaneous_level
from graycert.rules.collective import check_budgets
from graycert.sampling import ENGINES, Purpose, choose_engine
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat

Say = Callable[[str], None]


def certify(
    model: nn.Module,
    data: Any,
    *,
    smoothing: InterceptionSmoothing,
    targets: ArrayLike | Tensor | None = None,
    threat: NodeFeatureThreat | None = None,
    num_layers: int | None = None,
    num_selection: int = 1_000,
    num_estimation: int = 3_000,
    alpha: float = 0.01,
    rule: str = "sound",
    method: str = "auto",
    simultaneous: bool = False,
    max_radius: int = 20,
    seed: int = 0,
    ablation_token: Tensor | None = None,
    device: str | torch.device | None = None,
    batch_size: int | None = None,
    engine: str = "auto",
    progress: bool = False,
    say: Say | None = None,
    provenance: Mapping[str, Any] | None = None,
    collective: Sequence[int] | None = None,
) -> NodeCertificates:
    r"""Say for every target up to how many hostile nodes its smoothed prediction cannot change.

    The model is audited first (`audit_model`); then $\overline\Delta(\rho)$ is computed from the graph, the
    predicted class is fixed with ``num_selection`` draws from φ, and its margin is bounded with ``num_estimation``
    further, independent draws. A radius ρ is certified if the margin exceeds $2\overline\Delta(\rho)$.

    Guarantee:
        For each target on its own, with probability at least ``1 - alpha`` over the draws: if the smoothed classifier
        is certified at radius ρ > 0, no change of all features of up to ρ eligible nodes changes its predicted
        class (all radii of one target hold together). The graph structure is fixed. With ``simultaneous`` the chance
        that this fails for any of the targets is at most ``alpha``. For rule="paper" nothing is proved; it exists for
        comparison. Bounds are rounded outward.

    Args:
        model: ``forward(x, edge_index)`` -> class scores (num_nodes, num_classes); see `graycert.models.protocol`.
        data: Graph (`torch_geometric.data.Data`) with ``x`` and ``edge_index``; ``y``, ``node_ids`` and
            ``class_names`` are carried into the result.
        smoothing: p_d and p_a at inference.
        targets: Distinct node indices, shape (num_targets,), or a boolean mask, shape (num_nodes,); default all nodes.
        threat: Which nodes may be hostile; default all, the target included.
        num_layers: Number k of propagation steps; default counted by the audit.
        num_selection: Draws n0 that pick the class, >= 1.
        num_estimation: Draws n1 that bound its margin, >= 1.
        alpha: Failure probability per target, in (0, 1).
        rule: "sound" bounds the lead of the reported class; "difference" tests it at once, slightly tighter;
            "event-aware" also uses which lost votes no hostile message can have caused, the tightest, for a few
            seconds more; "paper" is the reference implementation's, which is not sound. Choose it before looking at
            results.
        method: How Δ is bounded over sets of hostile nodes, see `delta_bounds`; "auto" is the tightest.
        simultaneous: Whether ``alpha`` is for all targets at once (level alpha / num_targets each).
        max_radius: Largest radius looked at, >= 1.
        seed: Seeds all draws; the same seed gives the same votes for every batch size and thread count.
        ablation_token: Features of an ablated node (num_features,); default the model's own, else zeros.
        device: Where to run the model; default where its parameters are.
        batch_size: Draws per forward pass of a model without compiled kernels; default from a memory budget.
        engine: "auto" draws with compiled kernels where the model is known for certain (see `choose_engine`), else
            with PyTorch; "compiled" refuses other models; "torch" never compiles. Votes are the same, near-ties aside.
        progress: Show a progress bar on standard error if it is a terminal.
        say: Called with a plain-words sentence before sampling: what can be certified at best, and if kernels have to
            be compiled first. By default nothing is said, except a warning where no radius can be certified whatever
            the votes.
        collective: Numbers of hostile nodes shared by all targets, rising, for which to bound how many targets keep
            their prediction (`graycert.certify_collectively`); default none.
        provenance: Plain values stored with the result, e.g. where graph and model come from.

    Returns:
        One certificate per target, in the order of ``targets``.

    Raises:
        InvalidParameterError: If an argument is out of its domain.
        UnsoundSetupError: If a certificate for this set-up would not hold (``skip-exposes-target``,
            ``parallel-edges``, or a slug of `audit_model`).

    References:
        Scholten et al. (2022), Theorem 1, Corollaries 1 and 2; the statistical rule is in `docs/theory.md`.
    """
    _check_numbers(num_selection, num_estimation, alpha, rule, method, max_radius, seed, batch_size)
    check_choice("engine", engine, ENGINES)
    if collective is not None:
        refuse_unsound_rule(rule)
        check_budgets(collective)
    threat = threat if threat is not None else NodeFeatureThreat()
    check_types(smoothing, threat)
    validate_data(data)
    nodes = target_nodes(targets, num_nodes=data.num_nodes)
    refuse_exposed_target(model, threat, nodes)
    where = device_named(device)
    adjacency = Adjacency.from_edge_index(data.edge_index.cpu().numpy(), num_nodes=data.num_nodes)
    on_adjacency = smoothing_on(data, smoothing)
    audit = audit_model(model, data, num_layers=num_layers, ablation_token=ablation_token, seed=seed)
    audit.require()
    check_method(method, num_layers=audit.num_layers)

    if method not in PATH_METHODS:
        load_kernels(say)
    deltas = evaluate_deltas(
        adjacency,
        nodes,
        smoothing=on_adjacency,
        threat=threat,
        num_layers=audit.num_layers,
        max_radius=max_radius,
        method=method,
    )
    drawing = choose_engine(
        model,
        data,
        nodes,
        smoothing=smoothing,
        num_layers=audit.num_layers,
        ablation_token=ablation_token,
        device=where,
        batch_size=batch_size,
        engine=engine,
        say=say,
    )
    labels = None if getattr(data, "y", None) is None else data.y.cpu().numpy().astype(np.int64)[nodes]
    if labels is not None and labels.max() >= drawing.num_classes:
        raise InvalidParameterError(
            f"`data.y` must be < {drawing.num_classes}, the number of classes of the model, got label {labels.max()}. "
            "Number the classes from 0, in the order of the model's outputs."
        )
    class_names = getattr(data, "class_names", None)
    if class_names is not None and len(class_names) != drawing.num_classes:
        raise InvalidParameterError(
            f"`data.class_names` must name the {drawing.num_classes} classes of the model, got {len(class_names)} "
            "names. Was the model trained on another graph?"
        )
    foresight = check_can_certify(
        deltas.delta_upper,
        num_estimation=num_estimation,
        num_classes=drawing.num_classes,
        alpha=simultaneous_level(alpha, nodes.size) if simultaneous else alpha,
        rule=rule,
    )
    if say is not None:
        say(foresight.in_words)
    elif not foresight.can_certify:
        warnings.warn(foresight.in_words, stacklevel=2)
    with progress_bar("drawing", total=num_selection + num_estimation, unit="draws", shown=progress) as advance:
        selection = drawing.votes(seed, Purpose.SELECTION, num_samples=num_selection, progress=advance)
        predictions = None
        if rule == "event-aware":
            predictions = drawing.predictions(seed, Purpose.ESTIMATION, num_samples=num_estimation, progress=advance)
            estimation = count_predictions(predictions, num_classes=drawing.num_classes)
        else:
            estimation = drawing.votes(seed, Purpose.ESTIMATION, num_samples=num_estimation, progress=advance)
    found = conclude(
        adjacency,
        deltas,
        selection_votes=selection,
        estimation_votes=estimation,
        estimation_predictions=predictions,
        smoothing=on_adjacency,
        threat=threat,
        num_layers=audit.num_layers,
        alpha=alpha,
        simultaneous=simultaneous,
        rule=rule,
        seed=seed,
        say=say,
    )
    given_up = int(np.count_nonzero(found.undecided))
    if given_up and say is not None:
        say(f"for {given_up:,} of {nodes.size:,} targets the search was given up: their radius may be larger")
    node_ids = getattr(data, "node_ids", None)
    certificates = NodeCertificates(
        targets=nodes,
        prediction=found.prediction,
        status=found.status,
        p_lower=found.p_lower,
        p_upper=found.p_upper,
        radius=found.radius,
        delta_upper=deltas.delta_upper,
        receptive_field_size=deltas.receptive_field_size,
        num_eligible=deltas.num_eligible,
        selection_votes=selection,
        estimation_votes=estimation,
        estimation_predictions=predictions,
        attackers=found.attackers,
        delta_methods=deltas.methods,
        simultaneous=simultaneous,
        num_layers=audit.num_layers,
        engine=drawing.name,
        smoothing=smoothing_in_stored_order(data, smoothing),
        threat=threat,
        alpha=alpha,
        rule=rule,
        method=method,
        seed=seed,
        graph_fingerprint=graph_fingerprint(
            data.edge_index.cpu().numpy(), data.num_nodes, data.x.detach().cpu().numpy()
        ),
        num_nodes=int(data.num_nodes),
        num_edges=int(data.edge_index.size(1)),
        labels=labels,
        node_ids=None if node_ids is None else np.asarray(node_ids, dtype=np.str_)[nodes],
        class_names=None if class_names is None else tuple(class_names),
        provenance=dict(provenance or {}),
    )
    if collective is None:
        return certificates
    together = certify_collectively(certificates, data, budgets=collective)
    return dataclasses.replace(certificates, collective=together)


def _check_numbers(
    num_selection: int,
    num_estimation: int,
    alpha: float,
    rule: str,
    method: str,
    max_radius: int,
    seed: int,
    batch_size: int | None,
) -> None:
    check_integer("num_selection", num_selection, at_least=1, hint="It is the number n0 of draws that pick the class.")
    check_integer("num_estimation", num_estimation, at_least=1, hint="It is the number n1 of draws for the bounds.")
    check_open_unit("alpha", alpha, hint="It is a failure probability, e.g. 0.01.")
    check_choice("rule", rule, RULES)
    check_choice("method", method, METHODS)
    check_integer("max_radius", max_radius, at_least=1)
    check_seed(seed)
    if batch_size is not None:
        check_integer("batch_size", batch_size, at_least=1, hint="It is the number of draws per forward pass.")
