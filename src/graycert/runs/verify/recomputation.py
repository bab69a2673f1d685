"""The certificates of a run, computed again from its votes and, if it is at hand, its graph."""

import dataclasses
from typing import Any

from graycert.rules import certify_votes, simultaneous_level
from graycert.certification.again import CONCLUSIONS, concluded_anew
from graycert.certification.collective import certify_collectively
from graycert.certificates import NodeCertificates


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
    again = concluded_anew(
        stored,
        graph,
        threat=stored.threat,
        rule=stored.rule,
        method=stored.method,
        alpha=stored.alpha,
        max_radius=stored.max_radius,
    )
    unchecked: dict[str, Any] = {"attackers": stored.attackers}  # a search may find another set that harms as much
    if stored.delta_methods is None:
        unchecked["delta_methods"] = None
    recomputed = dataclasses.replace(again, **unchecked)
    if stored.collective is None:
        return recomputed
    together = certify_collectively(recomputed, graph, budgets=stored.collective.budgets.tolist())
    return dataclasses.replace(recomputed, collective=together)
