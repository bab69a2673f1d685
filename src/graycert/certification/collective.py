"""One adversary against all targets of a run: how many predictions survive, from the votes already drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graycert.bounds.single_source_matrix import single_source_matrix
from graycert.certificates import NodeCertificates
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import as_adjacency, graph_fingerprint, smoothing_from_stored_order, smoothing_on
from graycert.rules import (
    CollectiveCertificate,
    binary_bounds,
    binary_margin,
    certified_radius,
    collective_certificate,
    difference_margin_lower,
    intersection_union_bounds,
    is_sound,
    multiclass_margin,
    simultaneous_level,
)
from graycert.statistics import EstimationVotes

DEFAULT_BUDGETS = (1, 2, 3, 5, 10, 20, 40)


def certify_collectively(
    certificates: NodeCertificates,
    data: Any,
    *,
    budgets: Sequence[int] = DEFAULT_BUDGETS,
    groups: ArrayLike | None = None,
    group_budgets: ArrayLike | None = None,
    method: str = "lp",
    time_limit: float = 60.0,
) -> CollectiveCertificate:
    r"""Bound how many targets keep their prediction if ρ hostile nodes are chosen once, against all of them.

    A certificate per target lets the adversary choose anew for each target. One that must spread ρ nodes over all
    targets flips far fewer.

    Guarantee:
        With probability at least 1 - α over the draws, for every budget: at least ``num_robust`` targets keep their
        prediction, whichever ρ untrusted nodes are hostile and whatever their features are. A target of which a node
        is hostile that the threat excludes for being too close (such as the target itself, if its features are shown
        by a skip connection) counts as lost. All targets are bounded at level α/N, from the votes of the run.

    Args:
        certificates: A run, with a sound rule. Its votes are used again; rule "event-aware" counts as "sound" here.
        data: The graph of the run, as it was certified: edges and features are compared.
        budgets: Numbers ρ of hostile nodes, rising, >= 1.
        groups: Group of each node, -1 for none, shape (num_nodes,).
        group_budgets: Most hostile nodes per group, shape (num_groups,).
        method: "lp", proved in integers whatever the solver does, or "milp", often tighter, which trusts the bound of
            the solver's branch and bound.
        time_limit: Seconds per budget; results of "milp" depend on it.

    Returns:
        Counts per budget.

    Raises:
        UnsoundSetupError: ``unsound-rule``, if the run's rule is "paper".
        InvalidParameterError: If an argument is out of range.

    References:
        Schuchardt et al. (2021) for the idea; docs/proofs/collective.md.
    """
    c = certificates
    refuse_unsound_rule(c.rule)
    found = graph_fingerprint(data.edge_index.cpu().numpy(), data.num_nodes, data.x.detach().cpu().numpy())
    if found != c.graph_fingerprint:
        raise InvalidParameterError(
            f"`data` must be the graph of the run, with {c.num_nodes} nodes and fingerprint {c.graph_fingerprint}, got "
            f"{int(data.num_nodes)} nodes and {found}. Pass the graph that was certified."
        )
    adjacency = as_adjacency(data)
    votes = EstimationVotes(c.estimation_votes, c.num_estimation)
    level = simultaneous_level(c.alpha, len(c))
    if c.num_classes == 2:
        margin = binary_margin(binary_bounds(votes, c.prediction, alpha=level)[0])
    elif c.rule == "difference":
        margin = difference_margin_lower(votes, c.prediction, alpha=level)
    else:
        margin = multiclass_margin(*intersection_union_bounds(votes, c.prediction, alpha=level))
    radius = certified_radius(margin, c.delta_upper)
    deltas = single_source_matrix(
        adjacency,
        c.targets,
        smoothing=smoothing_on(data, smoothing_from_stored_order(data, c.smoothing)),
        threat=c.threat,
        num_layers=c.num_layers,
    )
    return collective_certificate(
        deltas,
        margin,
        budgets=np.asarray(budgets),
        radius=radius,
        whole_field=(radius >= 0) & (radius >= c.num_eligible),
        groups=groups,
        group_budgets=group_budgets,
        method=method,
        time_limit=time_limit,
    )


def refuse_unsound_rule(rule: str) -> None:
    """The collective certificate adds up margins, which rule "paper" does not bound.

    Raises:
        UnsoundSetupError: ``unsound-rule``.
    """
    if not is_sound(rule):
        raise UnsoundSetupError(
            "unsound-rule",
            f"`rule` must be a sound one for a collective certificate, got {rule!r}, whose margins are not proved. "
            "Certify with rule 'sound'.",
        )
