"""Another conclusion from the votes of a run: another threat, rule, bound or failure probability, nothing drawn."""

import dataclasses
from typing import Any

from graycert._validation import check_choice, check_integer, check_open_unit
from graycert.bounds.evaluation import check_method, evaluate_deltas
from graycert.certificates import NodeCertificates
from graycert.certification.conclusion import conclude
from graycert.errors import InvalidParameterError
from graycert.graph import as_adjacency, graph_fingerprint, smoothing_from_stored_order, smoothing_on
from graycert.rules import RULES
from graycert.threats.node_features import NodeFeatureThreat

CONCLUSIONS = ("prediction", "radius", "status", "p_lower", "p_upper")


def certify_again(
    certificates: NodeCertificates,
    data: Any,
    *,
    threat: NodeFeatureThreat | None = None,
    rule: str | None = None,
    method: str | None = None,
    alpha: float | None = None,
    max_radius: int | None = None,
) -> NodeCertificates:
    """Conclude once more from the votes of ``certificates``, for instance for attacks from another distance.

    Guarantee:
        As of `certify`, for each conclusion on its own, if it was chosen before looking at the votes. The chance that
        any of several conclusions is wrong may be as large as the sum of their failure probabilities. Where the rule
        is the same, conclusions for several threats or bounds rest on one confidence interval and fail together.

    Args:
        certificates: A result of `certify`.
        data: The graph that it is about; compared by fingerprint.
        threat: Who may be hostile; must not reach nodes that the first threat excluded, because the votes may come
            from a model that shows them (skip connection). Default: unchanged, as for all others.
        rule: See `certify`; "event-aware" needs votes that were drawn for it.
        method: See `delta_bounds`.
        alpha: Failure probability, in (0, 1).
        max_radius: Largest radius looked at, >= 1.

    Returns:
        The new result; a collective certificate of the old one is dropped.

    Raises:
        InvalidParameterError: If an argument is out of its domain, or ``data`` is another graph.
    """
    before = certificates.threat
    threat = before if threat is None else threat
    _refuse_wider_threat(before, threat)
    rule = check_choice("rule", certificates.rule if rule is None else rule, RULES)
    if rule == "event-aware" and certificates.estimation_predictions is None:
        raise InvalidParameterError(
            "`rule` 'event-aware' needs the class of each vote, got a result that holds only their numbers. Certify "
            "with rule='event-aware' first; the other rules can be concluded from its votes."
        )
    alpha = check_open_unit("alpha", certificates.alpha if alpha is None else alpha)
    radius = certificates.max_radius if max_radius is None else check_integer("max_radius", max_radius, at_least=1)
    method = check_method(certificates.method if method is None else method, num_layers=certificates.num_layers)
    _refuse_another_graph(certificates, data)
    return concluded_anew(
        dataclasses.replace(certificates, collective=None),
        data,
        threat=threat,
        rule=rule,
        method=method,
        alpha=alpha,
        max_radius=radius,
    )


def concluded_anew(
    certificates: NodeCertificates,
    data: Any,
    *,
    threat: NodeFeatureThreat,
    rule: str,
    method: str,
    alpha: float,
    max_radius: int,
) -> NodeCertificates:
    """Do the work of `certify_again`: nothing is checked, and a collective certificate is kept as it is."""
    adjacency = as_adjacency(data)
    smoothing = smoothing_on(data, smoothing_from_stored_order(data, certificates.smoothing))
    deltas = evaluate_deltas(
        adjacency,
        certificates.targets,
        smoothing=smoothing,
        threat=threat,
        num_layers=certificates.num_layers,
        max_radius=max_radius,
        method=method,
    )
    found = conclude(
        adjacency,
        deltas,
        selection_votes=certificates.selection_votes,
        estimation_votes=certificates.estimation_votes,
        estimation_predictions=certificates.estimation_predictions,
        smoothing=smoothing,
        threat=threat,
        num_layers=certificates.num_layers,
        alpha=alpha,
        simultaneous=certificates.simultaneous,
        rule=rule,
        seed=certificates.seed,
    )
    return dataclasses.replace(
        certificates,
        threat=threat,
        rule=rule,
        method=method,
        alpha=alpha,
        delta_upper=deltas.delta_upper,
        delta_methods=deltas.methods,
        receptive_field_size=deltas.receptive_field_size,
        num_eligible=deltas.num_eligible,
        attackers=found.attackers,
        estimation_predictions=certificates.estimation_predictions if rule == "event-aware" else None,
        **{name: getattr(found, name) for name in CONCLUSIONS},
    )


def _refuse_wider_threat(before: NodeFeatureThreat, threat: NodeFeatureThreat) -> None:
    was, now = before.trusted, threat.trusted
    kept = was is None or (now is not None and now.shape == was.shape and bool((now | ~was).all()))
    if threat.min_distance < before.min_distance or not kept:
        raise InvalidParameterError(
            f"`threat` must be no wider than that of the votes (hostile nodes {before.describe()}), got hostile nodes "
            f"{threat.describe()}. Certify again for the wider threat."
        )


def _refuse_another_graph(certificates: NodeCertificates, data: Any) -> None:
    found = graph_fingerprint(data.edge_index.cpu().numpy(), int(data.num_nodes), data.x.detach().cpu().numpy())
    if found != certificates.graph_fingerprint:
        raise InvalidParameterError(
            f"`data` must be the graph of the certificates, with fingerprint {certificates.graph_fingerprint}, got "
            f"{found}. Load it with the same preparation."
        )
