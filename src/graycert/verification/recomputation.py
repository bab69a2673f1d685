"""The certificates of a run, computed again from its votes and, if it is at hand, its graph."""

import dataclasses
from typing import Any

from graycert.certificates import certify_votes, simultaneous_level
from graycert.certification.collective import certify_collectively
from graycert.certification.conclusion import conclude
from graycert.deltas import evaluate_deltas
from graycert.graph import as_adjacency, smoothing_from_stored_order, smoothing_on
from graycert.results import NodeCertificates

CONCLUSIONS = ("prediction", "radius", "status", "p_lower", "p_upper")


def recompute(stored: NodeCertificates, graph: Any | None) -> NodeCertificates:
    """Return the run with everything recomputed that its votes and the graph, or its votes and Δ̄ alone, determine."""
    return _from_votes(stored) if graph is None else _from_graph(stored, graph)


def by_votes(stored: NodeCertificates) -> tuple[str, ...]:
    """Return what follows from votes and Δ̄ alone: not the radii of the event-aware rule, which needs the graph."""
    return ("prediction", "p_lower", "p_upper") if stored.rule == "event-aware" else CONCLUSIONS


def _from_votes(stored: NodeCertificates) -> NodeCertificates:
    level = simultaneous_level(stored.alpha, len(stored)) if stored.simultaneous else stored.alpha
    rule = "sound" if stored.rule == "event-aware" else stored.rule
    votes = certify_votes(stored.selection_votes, stored.estimation_votes, stored.delta_upper, alpha=level, rule=rule)
    values: dict[str, Any] = {name: getattr(votes, name) for name in by_votes(stored)}
    return dataclasses.replace(stored, **values)


def _from_graph(stored: NodeCertificates, graph: Any) -> NodeCertificates:
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
        **{name: getattr(found, name) for name in CONCLUSIONS},
    )
    if stored.collective is None:
        return recomputed
    together = certify_collectively(recomputed, graph, budgets=stored.collective.budgets.tolist())
    return dataclasses.replace(recomputed, collective=together)
