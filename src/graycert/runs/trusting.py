"""What trusting the first few nodes would gain, concluded from the same votes and from what is drawn of each field."""

from typing import Any

import numpy as np

from graycert._types import FloatArray, IntArray
from graycert.bounds.multiplicative import multiplicative_bound
from graycert.certificates import Certificates
from graycert.rules import certified_radius
from graycert.runs.explain import margins
from graycert.runs.neighbourhoods import HOSTILE, Neighbourhoods, neighbourhoods_of
from graycert.runs.who import knows_attackers, protect_first

MOST_TRUSTED = 10
"""Nodes that are trusted one after another."""


def trusting(c: Certificates, *, last: int, most: int = MOST_TRUSTED) -> dict[str, Any] | None:
    r"""Count what would hold if the nodes that limit the most targets were trusted, one after another.

    Guarantee:
        As of `graycert.Certificates.again` with these nodes trusted: never more than it gives. Of each target whose
        whole field is drawn, Theorem 3 over the nodes that are left, from the bounds of single nodes, and the radius of
        the result hold both; of every other target the radius of the result does. Rounded as these are.

    Args:
        c: A result.
        last: Largest budget that is counted.
        most: Nodes that are trusted one after another, >= 1.

    Returns:
        Names of the nodes, and per number of trusted nodes, from 0 on, how many targets hold at ρ = 0..last; None where
        the smoothing would draw other votes, has no bounds of single nodes, or the rule needs more than counts.
    """
    drawn = neighbourhoods_of(c)
    lead = margins(c)
    if not _same_votes(c) or drawn is None or drawn.influence is None or lead is None or not knows_attackers(c):
        return None
    first = protect_first(c, top=most).nodes
    trusted = np.array([each.node for each in first], dtype=np.int64)
    rows, nodes, weights = _whole_fields(drawn)
    holds = [
        _held(*_concluded(c, lead, rows, nodes, weights, trusted[:number]), last=last)
        for number in range(trusted.size + 1)
    ]
    return {"names": [each.name for each in first], "holds": holds}


def most_gained(c: Certificates, *, nodes: int, last: int) -> tuple[int, int] | None:
    """Return the budget at which trusting the first ``nodes`` nodes gains most, and how many targets more hold there.

    Guarantee:
        At least so many, as `trusting` counts them; exactly where none are.

    Returns:
        (ρ, targets), the smallest such ρ >= 1; None where it is not known.
    """
    found = trusting(c, last=last, most=nodes)
    if found is None:
        return None
    before, after = found["holds"][0], found["holds"][-1]
    rho = max(range(1, last + 1), key=lambda budget: after[budget] - before[budget], default=0)
    more = after[rho] - before[rho]
    return (rho, more) if more or _is_exact(c) else None


def _is_exact(c: Certificates) -> bool:
    """Return whether concluding again would give what `trusting` counts, and no more."""
    drawn = neighbourhoods_of(c)
    if drawn is None or c.delta_methods is None:
        return False
    whole = np.isin(np.arange(len(c)), drawn.rows[drawn.left_out == 0])
    open_targets = (c.radius >= 0) & ~c.whole_field
    return bool((whole[open_targets] & (c.delta_methods[open_targets] == "multiplicative")).all())


def _same_votes(c: Certificates) -> bool:
    """Return whether nodes may be trusted without drawing again, and what they would gain follows from Theorem 3."""
    threat: Any = c.setup.threat
    rule = c.setup.the_rule
    before = getattr(threat, "trusted", None)
    kept = before is None or not c.setup.smoothing.shows_trusted(before)
    return threat.claimed_as == "node-features" and rule.is_sound and rule.needs == "counts" and kept


def _whole_fields(drawn: Neighbourhoods) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the targets whose field is drawn as a whole, their nodes, padded with -1, and the bounds of these."""
    assert drawn.influence is not None
    whole = np.flatnonzero(drawn.left_out == 0)
    sizes = np.diff(drawn.indptr)[whole]
    nodes = np.full((whole.size, int(sizes.max(initial=1))), -1, dtype=np.int64)
    weights = np.zeros(nodes.shape)
    for place, field in enumerate(whole.tolist()):
        span = slice(int(drawn.indptr[field]), int(drawn.indptr[field + 1]))
        hostile = drawn.roles[span] == HOSTILE
        nodes[place, : sizes[place]] = np.where(hostile, drawn.nodes[drawn.places[span]], -1)
        weights[place, : sizes[place]] = np.where(hostile, drawn.influence[span], 0.0)
    return drawn.rows[whole], nodes, weights


def _concluded(
    c: Certificates, lead: FloatArray, rows: IntArray, nodes: IntArray, weights: FloatArray, trusted: IntArray
) -> tuple[IntArray, IntArray]:
    """Return radius and eligible nodes of all targets with some nodes trusted."""
    radius, eligible = c.radius.copy(), c.num_eligible.copy()
    touched = np.flatnonzero(np.isin(nodes, trusted).any(axis=1) & (c.radius[rows] >= 0) & ~np.isnan(lead[rows]))
    if not touched.size:
        return radius, eligible
    some = rows[touched]
    left = (nodes[touched] >= 0) & ~np.isin(nodes[touched], trusted)
    farthest = c.setup.max_radius if c.setup.max_radius is not None else int(c.radius.max()) + MOST_TRUSTED
    deltas = multiplicative_bound(np.where(left, weights[touched], 0.0), max_radius=farthest)
    eligible[some] = np.count_nonzero(left, axis=1)
    radius[some] = np.minimum(np.maximum(radius[some], certified_radius(lead[some], deltas)), eligible[some])
    return radius, eligible


def _held(radius: IntArray, eligible: IntArray, *, last: int) -> list[int]:
    return [int(np.count_nonzero(radius >= np.minimum(rho, eligible))) for rho in range(last + 1)]
