"""Model + graph + smoothing + threat -> certificates: one way for all smoothings; and what follows from votes."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from graycert._called import Called
from graycert._phases import Phases
from graycert._types import BoolArray
from graycert._validation import check_integer
from graycert.blocks.work import Outcome, as_far_as_looked, certified, with_degrees, with_distances
from graycert.certificates import Certificates
from graycert.draws import AnyDraws
from graycert.errors import InvalidParameterError
from graycert.graph import fingerprint_of
from graycert.graph.named_graph import NamedGraph
from graycert.problem import Execution, Problem
from graycert.rules import (
    RULES,
    CollectiveCertificate,
    prediction_sets,
    simultaneous_level,
    status_of,
)
from graycert.rules.collective import check_budgets
from graycert.setup import Setup
from graycert.smoothing import Follows, FromGraph, Smoothing
from graycert.threats import Threat
from graycert.threats.named_nodes import with_trusted_nodes

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graycert.audit import AuditReport

DEFAULT_BUDGETS = (1, 2, 3, 5, 10, 20, 40)
_MUCH = 2**29  # bytes besides libraries and drawing, from which it is said what is needed


def certify(
    model: "nn.Module",
    data: Any,
    *,
    smoothing: Smoothing,
    threat: Threat,
    targets: "ArrayLike | Tensor | None" = None,
    draws: AnyDraws | None = None,
    rule: str | None = None,
    bound: str = "auto",
    alpha: float = 0.01,
    simultaneous: bool = False,
    max_radius: int | None = 20,
    seed: int = 0,
    num_layers: int | None = None,
    ablation_token: "Tensor | None" = None,
    audit: "AuditReport | None" = None,
    edge_inputs: Sequence[str] | Mapping[str, str] | None = None,
    execution: Execution | None = None,
    floor: "nn.Module | None" = None,
    called: str | Sequence[str] | Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Certificates:
    r"""Say for every target up to how many hostile nodes its prediction cannot change.

    The model is audited first (`audit_model`); then the graph says how probable hostile messages are, the predicted
    class is fixed with selection draws, and its lead is bounded with further, independent draws. Of
    `InterceptionSmoothing`, a radius ρ is certified if the lead exceeds $2\overline\Delta(\rho)$. Each smoothing says
    what it does instead.

    Guarantee:
        For each target on its own, with probability at least ``1 - alpha`` over the draws: if the classifier that
        ``smoothing`` makes of the model is certified at radius ρ > 0, nothing that ``threat`` allows with a budget of
        ρ changes its predicted class (all radii of one target hold together). With ``simultaneous`` the chance that
        this fails for any of the targets is at most ``alpha``. Smoothings without draws hold with certainty. For
        rule="paper" nothing is proved; it exists for comparison. Bounds are rounded outward.

    Args:
        model: ``forward(x, edge_index)`` -> class scores (num_nodes, num_classes); see `graycert.models.protocol`.
        data: Graph (`torch_geometric.data.Data`) with ``x`` and ``edge_index``; ``y``, ``node_ids`` and
            ``class_names`` are carried into the result. Or a `torch_geometric.data.HeteroData`, for a model that is
            called with ``x_dict`` and ``edge_index_dict``, see docs/heterogeneous.md.
        smoothing: What the classifier is smoothed over: one of ``graycert.smoothing.SMOOTHINGS``.
        threat: The adversary that the statement is about: one of ``graycert.threats.THREATS``.
        targets: Distinct node indices, shape (num_targets,), a boolean mask, shape (num_nodes,), or names in
            ``data.node_ids``; default all nodes. Of a ``HeteroData`` a dict with one node type and these of it; by
            default the type that has labels.
        draws: `Draws`, or `UntilDecided` to stop for a target once its radius is decided; default what the smoothing
            needs, None where nothing is drawn.
        rule: How votes are concluded from, see ``graycert.rules.RULES``; default the smoothing's own. "sound" bounds
            the lead of the reported class; "difference" tests it at once, slightly tighter; "event-aware" also uses
            which lost votes no hostile message can have caused, the tightest, for a few seconds more; "paper" is the
            reference implementation's, which is not sound. Choose it before looking at results.
        bound: How Δ is bounded over sets of hostile nodes, see `delta_bounds`; "auto" is the tightest.
        alpha: Failure probability per target, in (0, 1).
        simultaneous: Whether ``alpha`` is for all targets at once (level alpha / num_targets each).
        max_radius: Largest radius looked at, >= 1; None goes as far as a certificate can.
        seed: Seeds all draws; the same seed gives the same votes for every batch size and thread count.
        num_layers: Number k of propagation steps; default counted by the audit.
        ablation_token: Features of an ablated node (num_features,); default the model's own, else zeros. Of a
            ``HeteroData`` a dict by node type.
        audit: Report of `audit_model` on the same model, features, edges and token in this process, so that the model
            is not audited again; another one is refused.
        edge_inputs: Which values per edge of ``data`` the model is given, by name, or as a mapping from arguments of
            ``forward`` to tensors of ``data``, {"edge_weight": "amount"}; () for none, as it must be said where
            ``data`` has a tensor per edge and ``forward`` may take one.
        execution: Where and how to compute, and whether to show progress.
        floor: A model of single nodes (`distill`, or an MLP) to compare with: what is right by a target's own features
            alone is right at every ρ. Evaluated once; only where no target may be hostile itself.
        called: What readers call the parts of the graph, for summary, page and sentences: "account,accounts" for one
            node and several, or {"node": "account,accounts", "edge": ..., "prediction": ..., "features": "entries",
            "structure": "who pays whom"}. What exactly is proved keeps the words of graycert.
        provenance: Plain values stored with the result, e.g. where graph and model come from.

    Returns:
        One certificate per target, in the order of ``targets``.

    Raises:
        InvalidParameterError: If an argument is out of its domain.
        UnsoundSetupError: If a certificate for this set-up would not hold (``no-proof``, ``skip-exposes-target``,
            ``parallel-edges``, ``edge-inputs-unsaid``, ``reads-other-nodes``, ..., or a slug of `audit_model`).

    References:
        Scholten et al. (2022), Theorem 1, Corollaries 1 and 2; docs/theory.md has a row for every smoothing and rule.
    """
    from graycert.data.origin import graph_record
    from graycert.heterogeneous import AskedOfTypes, is_heterogeneous
    from graycert.models.private_copy import undisturbed
    from graycert.models.weights import OwnModel
    from graycert.sampling.floor import floor_record

    _check_types(smoothing, threat)
    if is_heterogeneous(data):
        asked = AskedOfTypes.of(model, data, targets=targets, edge_inputs=edge_inputs)
        asked.require_same_function()
        model, data, targets, edge_inputs = asked.model, asked.data, asked.nodes(targets), asked.edge_inputs
        smoothing, threat = asked.smoothing(smoothing), asked.threat(threat)
        ablation_token, provenance = asked.token(ablation_token), {**asked.provenance, **(provenance or {})}
    draws = smoothing.default_draws() if draws is None else draws
    rule = smoothing.default_rule(threat, draws) if rule is None else rule
    setup = Setup(
        smoothing=smoothing,
        threat=threat,
        draws=draws,
        rule=rule,
        bound=bound,
        alpha=alpha,
        simultaneous=simultaneous,
        max_radius=None if smoothing.examines_all_radii else max_radius,
        seed=seed,
        num_layers=num_layers,
        provenance={
            **({"graph": known} if (known := graph_record(data)) else {}),
            **({"floor": floor_record(floor)} if isinstance(floor, OwnModel) else {}),
            **({"called": dict(words.kinds)} if (words := Called.of(called)).kinds else {}),
            **(provenance or {}),
        },
    )
    smoothing.check(threat=threat, rule=rule, draws=draws, bound=bound)
    others = {
        "ablation_token": ablation_token,
        "audit": audit,
        "execution": Execution() if execution is None else execution,
    }
    phases = Phases()
    with undisturbed(), phases("preparation"):
        problem, outcome = _carried_out(model, data, targets, setup, edge_inputs, floor, phases=phases, **others)
    return _assemble(problem, outcome)


def _carried_out(
    model: Any,
    data: Any,
    targets: Any,
    setup: Setup,
    edge_inputs: Sequence[str] | Mapping[str, str] | None,
    floor: "nn.Module | None",
    **others: Any,
) -> tuple[Problem, Outcome]:
    """Certify with a copy of the model, which is the only one that is called."""
    from graycert.blocks.in_blocks import certified_in_blocks
    from graycert.data.checks import refuse_batch, validate_data
    from graycert.models.advice import refuse_featureless
    from graycert.models.edge_inputs import chosen_edge_inputs
    from graycert.models.precision import check_precision
    from graycert.models.private_copy import private_copy

    refuse_featureless(model, data)
    validate_data(data)
    refuse_batch(data)
    from graycert.sampling.as_trained import without_smoothing
    from graycert.sampling.floor import check_floor, predictions_of_floor, refuse_other_classes

    method = setup.smoothing.method
    copied = private_copy(model)
    problem = Problem.of(
        data,
        targets,
        setup=setup.replace(edge_inputs=chosen_edge_inputs(copied, data, edge_inputs)),
        model=copied,
        **others,
    )
    check_precision(model, data, edge_inputs=problem.setup.edge_inputs, device=problem.execution.place())
    if floor is not None:
        check_floor(floor, problem)
    problem = method.prepare(problem)
    _say_what_it_takes(problem)
    outcome = certified_in_blocks(problem) if problem.execution.in_blocks else certified(problem)
    problem = problem.with_setup(**vars(outcome.setup))
    with problem.phases("cost"):
        beside = {}
        if "prediction_as_trained" not in outcome.arrays:
            beside = without_smoothing(
                problem.model,
                data,
                problem.targets,
                edge_inputs=problem.setup.edge_inputs,
                device=problem.execution.place(),
                alone=not problem.exposed().any(),
            )
        if floor is not None:
            refuse_other_classes(floor, problem.setup.num_classes)
            beside["prediction_of_floor"] = predictions_of_floor(floor, problem.data.x, problem.targets)
    return problem, dataclasses.replace(outcome, arrays={**outcome.arrays, **beside})


def _say_what_it_takes(problem: Problem) -> None:
    """Say how much memory is needed, where it is much."""
    from graycert.blocks.planned_memory import LIBRARIES, PlannedMemory
    from graycert.sampling.memory import default_budget

    where = problem.execution
    if where.say is not None:
        drawing = default_budget() if where.memory is None else where.memory
        planned = PlannedMemory.of(problem, drawing=drawing)
        if planned.num_bytes - LIBRARIES - drawing >= _MUCH:
            where.say(planned.in_words())


def conclude_again(certificates: Certificates, data: Any, changes: Mapping[str, Any]) -> Certificates:
    """Do the work of `Certificates.again`."""
    before = certificates.setup
    data = _of_run(certificates, data)
    if before.smoothing.examines_all_radii:
        changes = {name: value for name, value in changes.items() if name != "max_radius"}
    _check_types(before.smoothing, changes.get("threat", before.threat))
    if "threat" in changes:
        changes = {**changes, "threat": with_trusted_nodes(changes["threat"], data)}
    setup = before.replace(**changes)
    said = getattr(setup.threat, "convolution", None)
    setup = setup.replace(convolution=setup.convolution or said)
    if not setup.threat.is_no_wider_than(before.threat):
        raise InvalidParameterError(
            f"`threat` must be no wider than that of the votes (hostile nodes {before.threat.describe()}), got hostile "
            f"nodes {setup.threat.describe()}. Certify again for the wider threat."
        )
    setup.smoothing.cell(setup.threat.claimed_as, setup.rule, "again").require()
    setup.smoothing.check(threat=setup.threat, rule=setup.rule, draws=setup.draws, bound=setup.bound)
    needs = RULES[setup.rule].needs
    if needs == "predictions" and "estimation_predictions" not in certificates.adds:
        raise InvalidParameterError(
            f"`rule` {setup.rule!r} needs the class of each vote, got a result that holds only their numbers. Certify "
            f"with rule={setup.rule!r} first; the other rules can be concluded from its votes."
        )
    refuse_another_graph(certificates, data)
    refuse_set_up(certificates, data, setup)
    return concluded_anew(certificates, data, setup)


def refuse_set_up(certificates: Certificates, data: Any, setup: Setup | None = None) -> None:
    """Refuse a stored set-up for which nothing is proved, whatever its votes say: a file may name another threat.

    Raises:
        InvalidParameterError: If arguments do not belong together.
        UnsoundSetupError: As `certify` would.
    """
    setup = certificates.setup if setup is None else setup
    setup.smoothing.check(threat=setup.threat, rule=setup.rule, draws=setup.draws, bound=setup.bound)
    setup.smoothing.method.refuse(Problem.stored(setup, certificates.targets, data))


def concluded_anew(certificates: Certificates, data: Any | None, setup: Setup | None = None) -> Certificates:
    """Conclude from the stored votes by a set-up, theirs if it is None: nothing is drawn, and no argument is checked.

    Without the graph only what follows from votes and from what is stored of the graph is concluded. What the rule does
    not need is left out, as if votes had been drawn for it.

    Raises:
        ValueError: If the smoothing needs the graph and it is missing.
    """
    setup = certificates.setup if setup is None else setup
    method = setup.smoothing.method
    problem = Problem.stored(setup, certificates.targets, data).checked()
    phases = problem.phases
    stored = {
        stage: {
            name: value
            for name, (spec, value) in certificates.every_array().items()
            if spec.stage == stage and (not spec.given_for or setup.the_rule.needs in spec.given_for)
        }
        for stage in ("graph", "drawn")
    }
    with phases("bounds"):
        found = FromGraph(arrays=stored["graph"]) if data is None else with_degrees(problem, method.from_graph(problem))
    problem = as_far_as_looked(problem, found)
    if data is not None:
        with phases("cost"):
            found = with_distances(problem, found, stored["drawn"])
    with phases("conclusion"):
        concluded = method.conclude(problem, found, stored["drawn"])
    arrays = {**found.arrays, **stored["drawn"], **concluded}
    return _assemble(problem, Outcome(setup=problem.setup, arrays=arrays), identity=certificates)


def against_one_adversary(
    certificates: Certificates, data: Any, *, budgets: Sequence[int] | None, **options: Any
) -> CollectiveCertificate:
    """Do the work of `Certificates.against_one_adversary`."""
    c = certificates
    data = _of_run(c, data)
    chosen = check_budgets(np.asarray(DEFAULT_BUDGETS if budgets is None else budgets))
    _require(c, "one adversary")
    refuse_another_graph(c, data)
    refuse_set_up(c, data)
    problem = Problem.stored(c.setup, c.targets, data)
    return c.setup.smoothing.method.against_one_adversary(problem, c, budgets=chosen, **options)


def possible_labels(certificates: Certificates, *, radius: int) -> BoolArray:
    r"""Return the labels that the smoothed classifier may have after an attack on ρ nodes, for each target of a run.

    $$\{y^*\} \cup \{c : \underline{p_{y^*} - p_c} \le 2\overline\Delta(\rho)\}$$

    Where a target is not certified at ρ this still excludes the classes that trail too far. The run's votes and Δ̄ are
    used as they are (`prediction_sets`), at its failure probability α, or α / num_targets each if the run is for all
    targets simultaneously.

    Guarantee:
        Take a target, and any attack on at most ρ of its eligible nodes that is chosen without looking at the
        estimation votes. The label of the ideal smoothed classifier on the attacked graph is in the target's set with
        probability at least 1 - α over the run's samples. For a simultaneous run, and one such attack per target or
        one for all, every label is in its set with probability at least 1 - α. Sets that are {y*} alone are
        certificates: with probability at least 1 - α per target none is wrong, for any ρ and any attack, even one
        that depends on the votes.

        Not covered at α: attacks that depend on the estimation votes (whoever knows graph, model and seed can compute
        these) where the set has several labels; pass ``alpha / (num_classes - 1)`` to `prediction_sets` for them. The
        sets and the run's radii are two statements, each of level α, from the same votes: both hold with probability
        at least 1 - 2α. With rule "difference" they are one: the set is {y*} exactly where the run certifies ρ. With
        other rules a set may hold several labels although the run certifies ρ, or {y*} although it does not.

    Args:
        certificates: A run with a sound rule.
        radius: Number ρ of hostile nodes, in [0, max_radius of the run]; 0 gives the labels that the votes cannot tell
            apart on the clean graph.

    Returns:
        Whether a class is possible, shape (num_targets, num_classes). The reported class always is.

    Raises:
        InvalidParameterError: If ``radius`` is out of range.
        UnsoundSetupError: If nothing is proved of the combination, e.g. ``unsound-rule``.

    References:
        Generalises Scholten et al. (2022), Corollary 1; docs/proofs/prediction_sets.md.
    """
    c = certificates
    _require(c, "possible labels")
    radius = check_integer("radius", radius, at_least=0)
    known = c.setup.smoothing.possible_labels(c, radius)
    if known is not None:
        return known
    votes = c.votes
    if votes is None or c.delta_upper is None:
        raise InvalidParameterError(
            "`certificates` must hold the same number of votes for all targets, got another run."
        )
    radius = check_integer(
        "radius", radius, at_least=0, at_most=c.delta_upper.shape[1], hint="The run bounds Δ up to its max_radius."
    )
    level = simultaneous_level(c.setup.alpha, len(c)) if c.setup.simultaneous else c.setup.alpha
    return np.asarray(prediction_sets(*votes, c.delta_upper, alpha=level)[:, radius, :])


def refuse_another_graph(certificates: Certificates, data: Any) -> None:
    """Compare edges and features with those of the certificates.

    Raises:
        InvalidParameterError: If they differ.
    """
    found = fingerprint_of(data, certificates.setup.edge_inputs)
    expected = certificates.setup.graph_fingerprint
    if found != expected:
        raise InvalidParameterError(
            f"`data` must be the graph of the certificates, with {certificates.setup.num_nodes} nodes and fingerprint "
            f"{expected}, got {int(data.num_nodes)} nodes and {found}. Load it with the same preparation."
        )


def _of_run(certificates: Certificates, data: Any) -> Any:
    """Return the graph as the run was made on it."""
    from graycert.heterogeneous import graph_of_run

    return graph_of_run(data, edge_inputs=certificates.setup.edge_inputs, targets=certificates.targets)


def _require(certificates: Certificates, follows: Follows) -> None:
    s = certificates.setup
    s.smoothing.cell(s.threat.claimed_as, s.rule, follows).require()


def _assemble(problem: Problem, outcome: Outcome, *, identity: Certificates | None = None) -> Certificates:
    """Put the arrays of all stages together; names, labels and earlier phases are those of ``identity``, if any."""
    data, targets = problem.data, problem.targets
    if identity is None:
        labels, node_ids = getattr(data, "y", None), getattr(data, "node_ids", None)
        known: dict[str, Any] = {
            "labels": None if labels is None else labels.cpu().numpy().astype(np.int64)[targets],
            "node_ids": None if node_ids is None else np.asarray(node_ids, dtype=np.str_)[targets],
            "model": problem.model,
            "ablation_token": problem.ablation_token,
        }
    else:
        known = {name: getattr(identity, name) for name in ("labels", "node_ids", "model", "ablation_token")}
    if problem.graph is not None:
        known["graph"] = NamedGraph(graph=problem.graph, node_ids=getattr(data, "node_ids", None))
    elif identity is not None:
        known |= {"graph": identity.graph, "neighbourhoods": identity.neighbourhoods}
    arrays: dict[str, Any] = dict(outcome.arrays)
    radius = np.minimum(arrays["radius"], arrays["num_eligible"])  # whoever is not there does nothing
    arrays |= {"radius": radius, "status": status_of(radius)}
    ids, attackers = getattr(data, "node_ids", None), arrays.get("attackers")
    if ids is not None and attackers is not None:
        arrays["attacker_ids"] = np.where(attackers < 0, "", np.asarray(ids, dtype=np.str_)[attackers])
    names = {spec.name for spec in problem.smoothing.adds}
    return Certificates(
        setup=problem.setup,
        targets=targets,
        seconds={**({} if identity is None else identity.seconds), **problem.phases.seconds, **outcome.seconds},
        adds={name: value for name, value in arrays.items() if name in names},
        **known,
        **{name: value for name, value in arrays.items() if name not in names},
    )


def _check_types(smoothing: object, threat: object) -> None:
    for name, value, wanted, example in (
        ("smoothing", smoothing, Smoothing, "graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)"),
        ("threat", threat, Threat, "graycert.NodeFeatureThreat(min_distance=1)"),
    ):
        if not isinstance(value, wanted):
            raise InvalidParameterError(
                f"`{name}` must be a {wanted.__name__.lower()} of graycert, such as {example}, got "
                f"{type(value).__name__}."
            )
