"""Stored values beside recomputed ones: columns, and what the graph says of its nodes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert.certificates import Certificates
from graycert.certification import refuse_set_up
from graycert.data.split_nodes import split_nodes
from graycert.errors import GraycertError
from graycert.graph import CanonicalGraph, fingerprint_of
from graycert.graph.conversion import as_array
from graycert.rules import CollectiveCertificate
from graycert.runs.neighbourhoods import neighbourhoods_of
from graycert.runs.verify.findings import VerificationCheck

FLOAT_TOLERANCE = 1e-12
"""Largest accepted difference of a stored float: mathematical libraries of platforms differ in their last bits.
Classes, radii and counts must be equal."""

_SPLITS = ("inductive", "transductive")


def compare_fingerprint(stored: Certificates, graph: Any) -> VerificationCheck:
    """Compare edges, features and sizes of the graph with those that were certified."""
    s = stored.setup
    expected, found = s.graph_fingerprint, fingerprint_of(graph, s.edge_inputs)
    sizes = (int(graph.num_nodes), int(graph.edge_index.shape[1]))
    same = found == expected and sizes == (s.num_nodes, s.num_edges)
    if same:  # that of the edges alone, by which votes and bounds are told to belong together
        canonical = CanonicalGraph.of(graph, merge_parallel=s.allows_parallel_edges)
        expected, found = s.edges_fingerprint, canonical.fingerprint
        same = found == expected
    if same:
        where = getattr(graph, "graph_source", None) or "the graph that was passed"
        detail = f"{where}: its {sizes[0]:,} nodes and {sizes[1]:,} directed edges are those that were certified"
    else:
        detail = (
            f"the graph is not the one that was certified: it has {sizes[0]:,} nodes, {sizes[1]:,} directed edges and "
            f"fingerprint {found}; the run is about {s.num_nodes:,} nodes, {s.num_edges:,} "
            f"directed edges and {expected}. Its edges or features have changed since, or it was prepared otherwise"
        )
    return VerificationCheck(name="graph", passed=same, detail=detail)


def compare_identity(stored: Certificates, graph: Any) -> Iterator[VerificationCheck]:
    """Labels and names, which certified accuracy and readers rely on."""
    labels, node_ids = getattr(graph, "y", None), getattr(graph, "node_ids", None)
    if stored.labels is not None and labels is not None:
        yield _compare("label", stored, stored.labels, as_array(labels).astype(np.int64)[stored.targets])
    elif stored.labels is not None:
        yield VerificationCheck(name="label", passed=False, detail="the run has labels, the graph has none")
    if stored.node_ids is not None and node_ids is not None:
        yield _compare("node_id", stored, stored.node_ids, np.asarray(node_ids, dtype=np.str_)[stored.targets])
    elif stored.node_ids is not None:
        yield VerificationCheck(name="node_id", passed=False, detail="the run names its nodes, the graph does not")
    if stored.setup.class_names is not None:
        found = tuple(getattr(graph, "class_names", None) or ())
        same = found == stored.setup.class_names
        detail = "equal" if same else f"stored {stored.setup.class_names!r}, the graph has {found!r}"
        yield VerificationCheck(name="class_names", passed=same, detail=detail)


def refused_set_up(stored: Certificates, graph: Any) -> Iterator[VerificationCheck]:
    """Fail where a run claims what `certify` refuses: of a threat, say, that its votes prove nothing about."""
    try:
        refuse_set_up(stored, graph)
    except GraycertError as error:
        yield VerificationCheck(name="set-up", passed=False, detail=str(error))


def compare_preparation(stored: Certificates, graph: Any, not_redone: list[str]) -> Iterator[VerificationCheck]:
    """Repeat what was assumed of the graph and done to it; what the graph does not say is added to ``not_redone``."""
    named = stored.setup.provenance.get("graph")
    said = named.get("preparation") if isinstance(named, dict) else None
    if not isinstance(said, list):
        return
    again = set(getattr(graph, "preparation", None) or ())
    repeated = [str(each) for each in said if each in again]
    if repeated:
        detail = f"loading the graph again says, as the run does: {'; '.join(repeated)}"
        yield VerificationCheck(name="preparation", passed=True, detail=detail)
    others = [str(each) for each in said if each not in again]
    if others:
        not_redone.append(f"what the run says of its graph, and loading it again does not: {'; '.join(others)}")


def compare_split(stored: Certificates, graph: Any) -> Iterator[VerificationCheck]:
    """Compare the targets with the test nodes of the split that the run names, if it names one."""
    split = stored.setup.provenance.get("split")
    if not isinstance(split, dict) or split.get("targets") != "test":
        return
    try:
        how = {} if split.get("masks") else {name: split[name] for name in ("seed", "per_class", "test_fraction")}
        if split["kind"] not in _SPLITS:
            raise KeyError(split["kind"])
        made = split_nodes(graph, **how)
    except (KeyError, TypeError, ValueError, OverflowError, RuntimeError, GraycertError) as error:
        yield VerificationCheck(name="targets", passed=False, detail=f"the split cannot be made again: {error}")
        return
    same = np.array_equal(np.flatnonzero(made.test), stored.targets)
    what = "are" if same else "are NOT"
    which = "of its masks" if split.get("masks") else f"with seed {split['seed']}"
    detail = f"the {len(stored):,} targets {what} the test nodes of the {split['kind']} split {which}"
    yield VerificationCheck(name="targets", passed=same, detail=detail)


def compare_arrays(
    stored: Certificates, recomputed: Certificates, names: tuple[str, ...]
) -> Iterator[VerificationCheck]:
    """Compare the arrays that were recomputed, and what follows from them."""
    ours, theirs = recomputed.every_array(), stored.every_array()
    for name in names:
        if name in ours and name in theirs:
            yield _compare(name, stored, theirs[name][1], ours[name][1])
        else:
            where = "the run has it, its votes and graph do not give it" if name in theirs else "the run lacks it"
            yield VerificationCheck(name=name, passed=False, detail=where)
    if "radius" in names and "num_eligible" in names:
        yield _compare("whole_field", stored, stored.whole_field, recomputed.whole_field)
    if stored.collective is not None and recomputed.collective is not None and "num_eligible" in names:
        yield _compare_collective(stored.collective, recomputed.collective)


def compare_neighbourhoods(stored: Certificates, recomputed: Certificates) -> Iterator[VerificationCheck]:
    """Compare what pages draw of receptive fields with the graph, where it is at hand."""
    drawn = stored.neighbourhoods
    if drawn is None or recomputed.graph is None:
        return
    again = neighbourhoods_of(recomputed)
    wrong = "rows" if again is None else drawn.differs_from(again, tolerance=FLOAT_TOLERANCE)
    detail = f"`{wrong}` is not what the graph gives" if wrong else f"{drawn.rows.size:,} receptive fields are drawn"
    yield VerificationCheck(name="neighbourhoods", passed=not wrong, detail=detail)


def _compare_collective(stored: CollectiveCertificate, found: CollectiveCertificate) -> VerificationCheck:
    """A count may be smaller than what the linear program gives, never larger; only branch and bound may prove more."""

    def check(detail: str, *, passed: bool) -> VerificationCheck:
        return VerificationCheck(name="collective", passed=passed, detail=detail)

    if stored.num_active != found.num_active:
        return check(f"num_active: stored {stored.num_active}, recomputed {found.num_active}", passed=False)
    by_solver = np.array(stored.proved_by) == "milp"
    limit = np.where(by_solver, found.num_active, found.num_robust)
    for name, differs, allowed in (
        ("num_robust_naive", stored.num_robust_naive != found.num_robust_naive, found.num_robust_naive),
        ("num_robust", stored.num_robust > limit, limit),
    ):
        if differs.any():
            place = int(differs.argmax())
            detail = f"ρ = {stored.budgets[place]}: stored {getattr(stored, name)[place]}, recomputed {allowed[place]}"
            return check(f"{name} at {detail} (the run claims more than its votes and graph give)", passed=False)
    detail = f"{stored.budgets.size} counts, none larger than the recomputed ones"
    if (stored.num_robust > found.num_robust).any():
        detail += ", but for those that rest on a solver's branch and bound"
    return check(detail, passed=True)


def _compare(name: str, run: Certificates, stored: NDArray[Any], found: NDArray[Any]) -> VerificationCheck:
    if stored.shape != found.shape:
        detail = f"stored with shape {stored.shape}, recomputed with shape {found.shape}"
        return VerificationCheck(name=name, passed=False, detail=detail)
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
