"""A result laid out for the page's own script: columns of numbers and texts, the weakest targets first."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from graycert._types import FloatArray, IntArray
from graycert.certificates import Certificates
from graycert.runs.claim import NOT_PROVED, claim
from graycert.runs.cohorts import cohorts
from graycert.runs.cost import class_word
from graycert.runs.drawn_later import why_none
from graycert.runs.explain import (
    NO_ATTACK,
    margins,
    one_more_in_words,
    predicted_in_words,
    votes_of,
)
from graycert.runs.floor import floor_classes
from graycert.runs.neighbourhoods import neighbourhoods_of, weakest_first
from graycert.runs.trusting import trusting
from graycert.runs.who import protect_first_per_target
from graycert.runs.words import shown_rows

MOST_TARGETS = 20_000
"""Targets on a page; of more, the weakest."""

MOST_CLASSES = 8
"""Classes whose votes are shown of a target."""

MOST_NAMED = 20
"""Nodes that a sentence names; all of a set are marked where a target is drawn, and in certificates.parquet."""

BEYOND = 3
"""Values of Δ̄ that are shown beyond the radius."""

UNIT = 1_000_000
"""Probabilities are whole multiples of its inverse, rounded outward."""


def page_data(c: Certificates) -> dict[str, Any]:
    """Return all that the page's script shows, as plain values; the same for the same result.

    Probabilities are integers, in millionths, rounded to the side that promises less. Everything else is exact.

    Args:
        c: A result.
    """
    last = len(shown_rows(c)) - 1
    order = weakest_first(c)[:MOST_TARGETS]
    nodes, names = _nodes(c, order)
    place = {node: index for index, node in enumerate(nodes.tolist())}
    fields = _fields(c, order, place)
    return {
        "unit": c.setup.threat.unit,
        "sound": c.setup.the_rule.is_sound,
        "last": last,
        "total": len(c),
        "shown": int(order.size),
        "classes": [class_word(c, number) for number in range(c.setup.num_classes)],
        "claims": [list(claim(c, budget)) for budget in range(last + 1)],
        "cohorts": cohorts(c, last=last),
        "histogram": _histogram(c),
        "by_degree": _by_degree(c),
        "targets": _targets(c, order, place),
        "nodes": {"index": nodes.tolist(), "name": names},
        "fields": fields,
        "no_fields": why_none(c) if fields is None else "",
        "trusting": trusting(c, last=last),
        "smoothing": _scalars(c),
    }


def _scalars(c: Certificates) -> dict[str, Any] | None:
    """Return p_d, p_a and the steps of the model, where Theorems 2 and 3 follow from counts of paths of one or two."""
    s: Any = c.setup
    scalars = [getattr(s.smoothing, name, None) for name in ("p_delete", "p_ablate")]
    if s.threat.claimed_as != "node-features" or not all(isinstance(each, float) for each in scalars):
        return None
    if s.smoothing.name != "interception" or s.num_layers not in (1, 2):
        return None
    return {"p_delete": scalars[0], "p_ablate": scalars[1], "steps": s.num_layers}


def down(values: FloatArray) -> list[int | None]:
    """Return probabilities in whole millionths, rounded down; None for NaN."""
    return [None if np.isnan(each) else int(np.floor(each * UNIT)) for each in values.tolist()]


def up(values: FloatArray) -> list[int]:
    """Return probabilities in whole millionths, rounded up."""
    return [int(each) for each in np.ceil(values * UNIT).tolist()]


def _targets(c: Certificates, order: IntArray, place: dict[int, int]) -> dict[str, Any]:
    """Return one entry per target and column."""
    rows = order.tolist()
    lead = margins(c)
    columns: dict[str, Any] = {
        "node": c.targets[order].tolist(),
        "prediction": np.where(c.radius[order] >= 0, c.prediction[order], -1).tolist(),
        "radius": c.radius[order].tolist(),
        "eligible": c.num_eligible[order].tolist(),
        "field": c.receptive_field_size[order].tolist(),
        "status": c.status[order].tolist(),
        "votes": [_votes(c, row) for row in rows],
        "said": _coded(
            _said(c, row, protected, lead) for row, protected in zip(rows, _protected(c, order), strict=True)
        ),
        "worst": _worst(c, order, place),
    }
    for name, array in (
        ("label", c.labels),
        ("trained", c.prediction_as_trained),
        ("alone", floor_classes(c)),
        ("degree", c.in_degree),
    ):
        if array is not None:
            columns[name] = array[order].tolist()
    if c.node_ids is not None:
        columns["name"] = c.node_ids[order].tolist()
    if c.p_lower is not None and c.p_upper is not None:
        columns |= {"lower": down(c.p_lower[order]), "upper": up(c.p_upper[order])}
    if lead is not None:
        columns["margin"] = down(lead[order])
    exact = [c.setup.smoothing.exact_votes(c, row)[:MOST_CLASSES] for row in rows]
    if any(exact):
        columns["exact"] = [[list(each) for each in found] for found in exact]
    if c.delta_upper is not None:
        columns["delta"] = [_delta(c, row) for row in rows]
    return columns


def _delta(c: Certificates, row: int) -> list[int]:
    """Return Δ̄(ρ) for ρ = 1, 2, ..., a little farther than the radius."""
    assert c.delta_upper is not None
    end = min(int(c.radius[row]) + BEYOND, c.delta_upper.shape[1])
    return up(c.delta_upper[row, : max(end, 1)])


def _votes(c: Certificates, row: int) -> list[list[int]]:
    """Return [class, votes] of the classes with most votes; -1 stands for no class, -2 for all other classes."""
    counts, none, _ = votes_of(c, row)
    order = [int(each) for each in np.argsort(-counts, kind="stable") if counts[each]]
    found = [[each, int(counts[each])] for each in order[:MOST_CLASSES]]
    rest = sum(int(counts[each]) for each in order[MOST_CLASSES:])
    return [*found, *([[-2, rest]] if rest else []), *([[-1, none]] if none else [])]


def _protected(c: Certificates, order: IntArray) -> list[list[str]]:
    names = protect_first_per_target(c)
    return [names[row] for row in order.tolist()]


def _said(c: Certificates, row: int, protected: list[str], lead: FloatArray | None) -> list[str]:
    """Return the sentences of a target."""
    margin = None if lead is None or np.isnan(lead[row]) else float(lead[row])
    texts = (
        predicted_in_words(c, row),
        _withstands(c, row),
        _could_be_enough(protected),
        one_more_in_words(c, row, margin)[0],
    )
    return [each for each in texts if each]


def _withstands(c: Certificates, row: int) -> str:
    """Say what a prediction withstands."""
    radius, threat = int(c.radius[row]), c.setup.threat
    eligible = f"{int(c.num_eligible[row]):,} eligible {threat.unit}"
    proved = "" if c.setup.the_rule.is_sound else NOT_PROVED
    if radius < 0:
        return "It has no prediction, so nothing is certified of it."
    if c.whole_field[row]:
        return f"{proved}It holds whatever all {eligible} do together."
    if not radius:
        return f"{proved}Not proved against even one of the {eligible}; {NO_ATTACK}."
    at_least = "at least " if radius == c.setup.max_radius else ""
    return f"{proved}Radius {at_least}{radius}: it holds {threat.against(radius)} ({eligible})."


def _could_be_enough(names: list[str]) -> str:
    """Name the smallest set that a target is not certified against."""
    if not names:
        return ""
    whom = "this one" if len(names) == 1 else f"these {len(names)} together"
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    smallest = f"Not proved against {whom}, the smallest such set as far as is known ({NO_ATTACK})"
    return f"{smallest}: {', '.join(names[:MOST_NAMED])}{more}. Protect them first."


def _coded(texts: Iterable[list[str]]) -> dict[str, Any]:
    """Return each distinct text once, and per target the places of its texts."""
    places: dict[str, int] = {}
    rows = [[places.setdefault(text, len(places)) for text in each] for each in texts]
    return {"texts": list(places), "rows": rows}


def _limits(c: Certificates, order: IntArray) -> IntArray:
    """Return the nodes of the smallest set that a target is not certified against, padded with -1."""
    if c.attackers is None:
        return np.zeros((order.size, 0), dtype=np.int64)
    open_targets = (c.radius[order] >= 0) & ~c.whole_field[order]
    return np.where(open_targets[:, None], c.attackers[order], -1)


def _worst(c: Certificates, order: IntArray, place: dict[int, int]) -> list[list[int]]:
    return [[place[node] for node in row if node >= 0] for row in _limits(c, order).tolist()]


def _nodes(c: Certificates, order: IntArray) -> tuple[IntArray, list[str] | None]:
    """Return all nodes that something on the page refers to, and their names."""
    drawn, worst = neighbourhoods_of(c), _limits(c, order)
    known = [worst[worst >= 0], *([] if drawn is None else [drawn.nodes])]
    nodes = np.unique(np.concatenate(known)).astype(np.int64)
    names: dict[int, str] = {}
    if c.attackers is not None and c.attacker_ids is not None:
        names |= dict(zip(c.attackers.ravel().tolist(), c.attacker_ids.ravel().tolist(), strict=True))
    if drawn is not None and drawn.names is not None:
        names |= dict(zip(drawn.nodes.tolist(), drawn.names.tolist(), strict=True))
    return nodes, [names[node] for node in nodes.tolist()] if names else None


def _fields(c: Certificates, order: IntArray, place: dict[int, int]) -> dict[str, Any] | None:
    """Return what is drawn of each target: [node, hops, role, influence] of its field; edges of all of them once."""
    drawn = neighbourhoods_of(c)
    if drawn is None:
        return None
    where = {row: index for index, row in enumerate(order.tolist())}
    moved = np.array([place[node] for node in drawn.nodes.tolist()], dtype=np.int64)
    influence = None if drawn.influence is None else up(drawn.influence)
    rows: list[Any] = [None] * order.size
    for each, row in enumerate(drawn.rows.tolist()):
        span = slice(int(drawn.indptr[each]), int(drawn.indptr[each + 1]))
        if row in where:
            rows[where[row]] = {
                "nodes": moved[drawn.places[span]].tolist(),
                "hops": "".join(map(str, np.minimum(drawn.hops[span], 9).tolist())),
                "roles": "".join(map(str, drawn.roles[span].tolist())),
                "influence": None if influence is None else influence[span],
                "left": int(drawn.left_out[each]),
            }
    sources, targets = moved[drawn.edges]
    into: dict[int, list[int]] = {}
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        into.setdefault(target, []).append(source)
    by_votes = c.setup.smoothing.heard(c, np.zeros(0, dtype=np.int64)) is not None
    return {"by_votes": by_votes, "rows": rows, "into": [into.get(node, []) for node in range(len(place))]}


def _histogram(c: Certificates) -> list[list[int]]:
    """Return [radius, targets that hold whatever all do, other targets] of each radius."""
    radii, counts = np.unique(c.radius, return_counts=True)
    whole = [int(np.count_nonzero(c.whole_field & (c.radius == radius))) for radius in radii.tolist()]
    return [[int(r), w, int(n) - w] for r, w, n in zip(radii.tolist(), whole, counts.tolist(), strict=True)]


def _by_degree(c: Certificates) -> list[list[int]]:
    """Return [smallest degree of a bin, radius, targets]; bins as in the table by degree."""
    if c.in_degree is None:
        return []
    low = np.where(c.in_degree < 2, c.in_degree, 2 ** np.floor(np.log2(np.maximum(c.in_degree, 1))).astype(np.int64))
    pairs, counts = np.unique(np.stack([low, c.radius], axis=1), axis=0, return_counts=True)
    return [
        [int(degree), int(radius), int(n)] for (degree, radius), n in zip(pairs.tolist(), counts.tolist(), strict=True)
    ]
