"""Checking a run again from its votes and its graph, without trusting who made it."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graycert.certificates import CollectiveCertificate, certify_votes, is_sound, simultaneous_level
from graycert.collective_certification import certify_collectively
from graycert.conclusion import conclude
from graycert.data import inductive_split, load_graph, transductive_split, validate_data
from graycert.deltas import evaluate_deltas
from graycert.errors import GraycertError, InvalidFileError, InvalidParameterError, VerificationError
from graycert.graph import as_adjacency, graph_fingerprint, smoothing_from_stored_order, smoothing_on
from graycert.report import render_report
from graycert.results import NodeCertificates, report_view, summary_record

if TYPE_CHECKING:  # models and engines are loaded only where votes are drawn again
    from torch import Tensor, nn

FLOAT_TOLERANCE = 1e-12
"""Largest accepted difference of a stored float: mathematical libraries of platforms differ in their last bits.
Classes, radii and counts must be equal."""

_SPLITS: dict[str, Callable[..., Any]] = {"inductive": inductive_split, "transductive": transductive_split}
_FIGURE = re.compile(r"<figure>.*?</figure>", re.DOTALL)  # drawn by matplotlib, whose versions differ
_WEIGHTS = "model.safetensors"


@dataclass(frozen=True, kw_only=True)
class VerificationCheck:
    """One comparison.

    Attributes:
        name: What was compared: a column, or a file.
        passed: Whether stored and recomputed values agree.
        detail: What was found; for a difference the first node and both values.
    """

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What a verification found.

    Attributes:
        directory: The run that was checked.
        checks: All comparisons, in the order in which they were made.
        not_redone: What was taken from the files as it is.
    """

    directory: str
    checks: tuple[VerificationCheck, ...]
    not_redone: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every comparison agreed."""
        return all(check.passed for check in self.checks)

    def require(self) -> None:
        """Raise the first difference.

        Raises:
            VerificationError: Naming the quantity, the node and both values.
        """
        for check in self.checks:
            if not check.passed:
                raise VerificationError(f"{self.directory} does not verify: {check.name}: {check.detail}")

    def __str__(self) -> str:
        """Return one line per check, what was not redone, and the verdict."""
        lines = [f"{'ok  ' if check.passed else 'FAIL'}  {check.name}: {check.detail}" for check in self.checks]
        lines += [f"not redone: {sentence}" for sentence in self.not_redone]
        failed = sum(not check.passed for check in self.checks)
        verdict = "All of them agree." if not failed else f"{failed} of them DIFFER: do not rely on this run."
        return "\n".join([*lines, f"{len(self.checks)} comparisons. {verdict}"])


def verify(
    directory: str | Path,
    *,
    data: Any = None,
    data_root: str | Path | None = None,
    model: "nn.Module | None" = None,
    ablation_token: "Tensor | None" = None,
) -> Verification:
    """Recompute every certificate of a run from its votes and its graph, and compare all that is stored.

    Receptive fields, eligible nodes and Δ̄ are computed from the graph, then classes, bounds, radii and status from
    these and the votes, then summary and report. Classes, radii and counts must be equal; floats may differ by
    1e-12.

    Args:
        directory: A run directory.
        data: The graph that was certified; default is the one that the run names, loaded and prepared again.
        data_root: Folder with graph files, see `load_graph`.
        model: The model, if the votes are to be drawn again too. That audits the model and takes as long as
            certifying; on another machine rounding may turn a vote whose two best classes nearly tie.
        ablation_token: What was passed to `certify`, for drawing the votes again; a run does not store it.

    Returns:
        All comparisons; ``.passed`` says whether all agree.

    Raises:
        InvalidFileError: If the run or its graph cannot be read.
        InvalidParameterError: If the run does not say which graph it is about and ``data`` is missing.

    References:
        Scholten et al. (2022), Section 5.
    """
    folder = Path(directory).expanduser()
    stored = NodeCertificates.load(folder)
    graph = data if data is not None else rebuild_graph(stored, data_root=data_root)
    validate_data(graph)
    checks = [_fingerprint(stored, graph)]
    same_graph = checks[0].passed
    recomputed = _recompute(stored, graph if same_graph else None)
    if same_graph:
        checks += [*_identity(stored, graph), *_split(stored, graph)]
    checks += _columns(stored, recomputed, same_graph=same_graph)
    if stored.collective is not None and all(check.passed for check in checks if check.name == "collective"):
        recomputed = dataclasses.replace(recomputed, collective=stored.collective)  # another solver may prove more
    checks.append(_summary(folder, recomputed))
    not_redone = [] if same_graph else ["Δ̄ and receptive fields, because the graph is another one"]
    if not same_graph and stored.rule == "event-aware":
        not_redone.append("radii, because the event-aware rule draws what arrived from the graph")
    if stored.attackers is not None:
        not_redone.append("which nodes to protect first: no certificate rests on them")
    checks += _report(folder, stored, recomputed, not_redone)
    checks += _weights(folder, stored, not_redone)
    if model is not None and same_graph:
        checks += _redraw(stored, graph, model, ablation_token)
    elif model is None:
        not_redone.append(
            "drawing the votes: that they are those of the model, smoothing and seed named in config.toml, and that "
            f"the model has {stored.num_layers} propagation steps, is taken from the files. The model can check both "
            "(`verify(..., model=...)`, `--redraw`)"
        )
    if stored.rule == "paper":
        not_redone.append("soundness: rule='paper' proves nothing, whether its numbers agree or not")
    return Verification(directory=str(folder), checks=tuple(checks), not_redone=tuple(not_redone))


def rebuild_graph(
    certificates: NodeCertificates,
    *,
    source: str | Path | None = None,
    nodes: str | Path | None = None,
    data_root: str | Path | None = None,
) -> Any:
    """Load and prepare the graph of a run again.

    Args:
        certificates: A run, which names its graph and how it was prepared.
        source: Where the graph is now, if it has moved.
        nodes: Where its node table is now.
        data_root: Folder with graph files.

    Raises:
        InvalidFileError: If the graph cannot be read.
        InvalidParameterError: If neither the run nor ``source`` names a graph.
    """
    named = certificates.provenance.get("graph") or {}
    if not isinstance(named, Mapping):
        raise InvalidFileError(f"config.toml: `provenance.graph` must be a section, got {named!r}. Certify again.")
    if source is None:
        source, nodes = named.get("source"), nodes or named.get("nodes")
    if source is None:
        raise InvalidParameterError(
            "`data` must be given, because the run does not say where its graph comes from. Pass the graph that was "
            "certified (`--graph` on the command line)."
        )
    options = named.get("options") or {}
    known = {"undirected", "drop_self_loops", "coalesce", "largest_component", "binarize"}
    if not isinstance(options, Mapping) or not set(options) <= known:
        raise InvalidFileError(f"config.toml: [provenance.graph.options] must have keys of {sorted(known)}.")
    try:
        return load_graph(source, nodes=nodes, data_root=data_root, **options)
    except (InvalidFileError, InvalidParameterError) as error:
        raise type(error)(
            f"{error} The run's config.toml names the graph {named.get('source')!r} and the node table "
            f"{named.get('nodes')!r}; if they have moved, pass `--graph`, and `--nodes` if there was a node table."
        ) from error


def _fingerprint(stored: NodeCertificates, graph: Any) -> VerificationCheck:
    found = graph_fingerprint(graph.edge_index.cpu().numpy(), graph.num_nodes, graph.x.cpu().numpy())
    sizes = (int(graph.num_nodes), int(graph.edge_index.size(1)))
    same = found == stored.graph_fingerprint and sizes == (stored.num_nodes, stored.num_edges)
    if same:
        where = getattr(graph, "graph_source", None) or "the graph that was passed"
        detail = f"{where}: its {sizes[0]:,} nodes and {sizes[1]:,} directed edges are those that were certified"
    else:
        detail = (
            f"the graph is not the one that was certified: it has {sizes[0]:,} nodes, {sizes[1]:,} directed edges and "
            f"fingerprint {found}; the run is about {stored.num_nodes:,} nodes, {stored.num_edges:,} directed edges "
            f"and {stored.graph_fingerprint}. Its edges or features have changed since, or it was prepared otherwise"
        )
    return VerificationCheck(name="graph", passed=same, detail=detail)


def _recompute(stored: NodeCertificates, graph: Any | None) -> NodeCertificates:
    values: dict[str, Any] = {}
    if graph is None:
        level = simultaneous_level(stored.alpha, len(stored)) if stored.simultaneous else stored.alpha
        rule = "sound" if stored.rule == "event-aware" else stored.rule
        votes = certify_votes(
            stored.selection_votes, stored.estimation_votes, stored.delta_upper, alpha=level, rule=rule
        )
        for name in _by_votes(stored):
            values[name] = getattr(votes, name)
        return dataclasses.replace(stored, **values)
    adjacency = as_adjacency(graph)
    smoothing = smoothing_on(graph, smoothing_from_stored_order(graph, stored.smoothing))
    deltas = evaluate_deltas(
        adjacency,
        stored.targets,
        smoothing=smoothing,
        threat=stored.threat,
        num_layers=stored.num_layers,
        max_radius=stored.max_radius,
        method=stored.method,
    )
    found = conclude(
        adjacency,
        deltas,
        selection_votes=stored.selection_votes,
        estimation_votes=stored.estimation_votes,
        estimation_predictions=stored.estimation_predictions,
        smoothing=smoothing,
        threat=stored.threat,
        num_layers=stored.num_layers,
        alpha=stored.alpha,
        simultaneous=stored.simultaneous,
        rule=stored.rule,
        seed=stored.seed,
    )
    recomputed = dataclasses.replace(
        stored,
        delta_upper=deltas.delta_upper,
        delta_methods=None if stored.delta_methods is None else deltas.methods,
        receptive_field_size=deltas.receptive_field_size,
        num_eligible=deltas.num_eligible,
        **{name: getattr(found, name) for name in _CONCLUSIONS},
    )
    if stored.collective is None or not is_sound(stored.rule):
        return recomputed
    together = certify_collectively(recomputed, graph, budgets=stored.collective.budgets.tolist())
    return dataclasses.replace(recomputed, collective=together)


_CONCLUSIONS = ("prediction", "radius", "status", "p_lower", "p_upper")


def _by_votes(stored: NodeCertificates) -> tuple[str, ...]:
    """Return what follows from votes and Δ̄ alone: not the radii of the event-aware rule, which needs the graph."""
    return ("prediction", "p_lower", "p_upper") if stored.rule == "event-aware" else _CONCLUSIONS


def _columns(
    stored: NodeCertificates, recomputed: NodeCertificates, *, same_graph: bool
) -> Iterator[VerificationCheck]:
    names = list(_by_votes(stored))
    if same_graph:
        names = ["receptive_field_size", "num_eligible", "delta_upper", *_CONCLUSIONS, "whole_field"]
        if stored.delta_methods is not None:
            names.append("delta_methods")
    for name in names:
        yield _compare(name, stored, getattr(stored, name), getattr(recomputed, name))
    if same_graph and stored.collective is not None and recomputed.collective is not None:
        yield _collective(stored.collective, recomputed.collective)


def _collective(stored: CollectiveCertificate, found: CollectiveCertificate) -> VerificationCheck:
    """A count may be smaller than what the linear program gives, never larger."""
    claims_more = np.flatnonzero(stored.num_robust > found.num_robust)
    by_solver = [place for place in claims_more.tolist() if stored.proved_by[place] == "milp"]
    if len(by_solver) < claims_more.size:
        place = next(place for place in claims_more.tolist() if place not in by_solver)
        detail = (
            f"ρ = {stored.budgets[place]}: stored {stored.num_robust[place]}, recomputed {found.num_robust[place]} "
            "(the run claims more than its votes and graph give)"
        )
        return VerificationCheck(name="collective", passed=False, detail=detail)
    detail = f"{stored.budgets.size} counts, none larger than the recomputed ones"
    if by_solver:
        detail += f", but for {len(by_solver)} that rest on a solver's branch and bound, which was not run again"
    return VerificationCheck(name="collective", passed=True, detail=detail)


def _compare(name: str, run: NodeCertificates, stored: NDArray[Any], found: NDArray[Any]) -> VerificationCheck:
    if stored.dtype.kind == "f":
        differs = np.abs(stored - found) > FLOAT_TOLERANCE
        equal = f"within {FLOAT_TOLERANCE:g} of the recomputed values"
    else:
        differs, equal = stored != found, "equal to the recomputed values"
    if not differs.any():
        return VerificationCheck(name=name, passed=True, detail=f"{equal}, {len(run):,} targets")
    place = tuple(int(index) for index in np.argwhere(differs)[0])
    node = f"node {run.targets[place[0]]}" + ("" if run.node_ids is None else f" ({run.node_ids[place[0]]})")
    where = node if len(place) == 1 else f"{node} at ρ = {place[1] + 1}"
    ours, theirs = found[place].item(), stored[place].item()
    detail = f"{where}: stored {theirs!r}, recomputed {ours!r}"
    if name == "radius" and theirs > ours:
        detail += " (the run claims more than its votes and graph give)"
    rows = int(np.count_nonzero(differs.reshape(len(run), -1).any(axis=1)))
    return VerificationCheck(name=name, passed=False, detail=f"{detail}; {rows:,} of {len(run):,} targets differ")


def _identity(stored: NodeCertificates, graph: Any) -> Iterator[VerificationCheck]:
    """Labels and names, which certified accuracy and readers rely on."""
    labels, node_ids = getattr(graph, "y", None), getattr(graph, "node_ids", None)
    if stored.labels is not None and labels is not None:
        yield _compare("label", stored, stored.labels, labels.cpu().numpy().astype(np.int64)[stored.targets])
    elif stored.labels is not None:
        yield VerificationCheck(name="label", passed=False, detail="the run has labels, the graph has none")
    if stored.node_ids is not None and node_ids is not None:
        yield _compare("node_id", stored, stored.node_ids, np.asarray(node_ids, dtype=np.str_)[stored.targets])
    elif stored.node_ids is not None:
        yield VerificationCheck(name="node_id", passed=False, detail="the run names its nodes, the graph does not")
    if stored.class_names is not None:
        found = tuple(getattr(graph, "class_names", None) or ())
        same = found == stored.class_names
        detail = "equal" if same else f"stored {stored.class_names!r}, the graph has {found!r}"
        yield VerificationCheck(name="class_names", passed=same, detail=detail)


def _split(stored: NodeCertificates, graph: Any) -> Iterator[VerificationCheck]:
    split = stored.provenance.get("split")
    if not isinstance(split, dict) or split.get("targets") != "test":
        return
    try:
        made = _SPLITS[split["kind"]](
            graph, seed=split["seed"], per_class=split["per_class"], test_fraction=split["test_fraction"]
        )
    except (KeyError, TypeError, GraycertError) as error:
        yield VerificationCheck(name="targets", passed=False, detail=f"the split cannot be made again: {error}")
        return
    same = np.array_equal(made.test.nodes.cpu().numpy(), stored.targets)
    what = "are" if same else "are NOT"
    detail = f"the {len(stored):,} targets {what} the test nodes of the {split['kind']} split with seed {split['seed']}"
    yield VerificationCheck(name="targets", passed=same, detail=detail)


def _summary(folder: Path, recomputed: NodeCertificates) -> VerificationCheck:
    record = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    record.pop("format_version", None)
    expected = json.loads(json.dumps(summary_record(recomputed)))
    for key in sorted({*record, *expected}):
        if record.get(key) != expected.get(key):
            detail = f"`{key}`: stored {_short(record.get(key))}, recomputed {_short(expected.get(key))}"
            return VerificationCheck(name="summary.json", passed=False, detail=detail)
    return VerificationCheck(name="summary.json", passed=True, detail="says what the recomputed certificates say")


def _short(value: object, limit: int = 160) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _report(
    folder: Path, stored: NodeCertificates, recomputed: NodeCertificates, not_redone: list[str]
) -> Iterator[VerificationCheck]:
    from graycert import __version__

    versions = stored.provenance.get("versions")
    made_by = versions.get("graycert") if isinstance(versions, dict) else None
    if made_by not in (None, __version__):
        not_redone.append(f"report.html, which graycert {made_by} wrote (this is {__version__}): trust the other files")
        return
    page = (folder / "report.html").read_text(encoding="utf-8")
    expected = render_report(report_view(recomputed))
    blank = "<figure></figure>"  # stays, so that a figure elsewhere, which could say anything, is a difference
    same = _FIGURE.sub(blank, page) == _FIGURE.sub(blank, expected)
    detail = (
        "shows the recomputed certificates (its figure is not compared)"
        if same
        else ("its text is not what the recomputed certificates give; write it again with `graycert report`")
    )
    yield VerificationCheck(name="report.html", passed=same, detail=detail)


def _weights(folder: Path, stored: NodeCertificates, not_redone: list[str]) -> Iterator[VerificationCheck]:
    model = stored.provenance.get("model")
    expected = model.get("weights_sha256") if isinstance(model, dict) else None
    path = folder / _WEIGHTS
    if expected is None:
        return
    if not path.is_file():
        not_redone.append(f"the model: {_WEIGHTS} is not in the folder, only its hash {expected} in config.toml")
        return
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InvalidFileError(f"{path} cannot be read ({error.strerror}).") from error
    same = found == expected
    detail = "is the model that voted" if same else f"its hash is {found}, but the run was made with {expected}"
    yield VerificationCheck(name=_WEIGHTS, passed=same, detail=detail)


def _redraw(
    stored: NodeCertificates, graph: Any, model: "nn.Module", ablation_token: "Tensor | None"
) -> Iterator[VerificationCheck]:
    from graycert.certification import certify

    again = certify(
        model,
        graph,
        smoothing=smoothing_from_stored_order(graph, stored.smoothing),
        targets=stored.targets,
        threat=stored.threat,
        num_selection=stored.num_selection,
        num_estimation=stored.num_estimation,
        num_layers=stored.num_layers,
        alpha=stored.alpha,
        simultaneous=stored.simultaneous,
        rule=stored.rule,
        method=stored.method,
        max_radius=stored.max_radius,
        seed=stored.seed,
        ablation_token=ablation_token,
        engine="torch" if stored.engine.startswith("torch") else "auto",
    )
    detail = f"the model passes the audit with {again.num_layers} propagation steps"
    yield VerificationCheck(name="model audit", passed=True, detail=detail)
    names = ["selection_votes", "estimation_votes"]
    if stored.estimation_predictions is not None:
        names.append("estimation_predictions")
    for name in names:
        ours, theirs = getattr(again, name), getattr(stored, name)
        rows = np.flatnonzero((ours != theirs).any(axis=1)) if ours.shape == theirs.shape else np.arange(len(stored))
        if rows.size == 0:
            detail = "drawn again, equal"
        elif ours.shape != theirs.shape:
            detail = f"the model tells {ours.shape[1]} classes apart, the run {theirs.shape[1]}"
        else:
            row = int(rows[0])
            detail = (
                f"node {stored.targets[row]}: stored {theirs[row].tolist()}, drawn again {ours[row].tolist()}; "
                f"{rows.size:,} of {len(stored):,} targets differ (stored by {stored.engine}, again by "
                f"{again.engine}; single votes, where two classes tie up to rounding, may differ between machines "
                "and engines)"
            )
        yield VerificationCheck(name=name, passed=rows.size == 0, detail=detail)
