"""Groups of targets, counted at every budget: what curves and tables of a page show."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from graycert._types import BoolArray, IntArray
from graycert.certificates import Certificates
from graycert.runs.cost import class_word, cost, degrees_in_words
from graycert.runs.floor import floor_classes

MOST_GROUPS = 200
"""Groups of one kind that are counted; of more classes, those with the most targets."""


def cohorts(c: Certificates, *, last: int) -> list[dict[str, Any]]:
    """Count what holds at ρ = 0..last of all targets, and by class, degree, and distance of hostile nodes.

    Args:
        c: A result.
        last: Largest budget.

    Returns:
        Per kind of group its title, the heading of its first column, and its groups. Of a group: ``targets``, how many
        are ``known`` (have a true class, where any has one), correct ``as_trained`` and ``alone`` (by the best floor;
        None where not evaluated), and per ρ how many targets hold (``certified``: at least ρ could attack;
        ``holds``: also those with fewer that hold whatever all do) and how many of these are correct.
    """
    everything = np.ones(len(c), dtype=np.bool_)
    found = cost(c)
    kinds = [{"title": "All targets", "heading": "group", "groups": [_group(c, "all", everything, last)]}]
    labelled = found.labelled
    truth = c.labels if labelled else c.prediction_as_trained
    if truth is not None and len(found.classes) > 1:
        largest = sorted(found.classes, key=lambda each: -each.targets)[:MOST_GROUPS]
        members = [(class_word(c, each.group), truth == each.group) for each in found.classes if each in largest]
        title = "By class" if labelled else "By class as trained"
        kinds.append({"title": title, "heading": "class", "groups": _groups(c, members, last)})
    if c.in_degree is not None and len(found.degrees) > 1:
        members = [
            (degrees_in_words(each.group), (c.in_degree >= each.group) & (c.in_degree < max(1, 2 * each.group)))
            for each in found.degrees
        ]
        kinds.append({"title": "By degree", "heading": "in-degree", "groups": _groups(c, members, last)})
    if c.radius_by_distance is not None and c.radius_by_distance.shape[1]:
        kinds.append({"title": "By distance of hostile nodes", "heading": "hops away", "groups": _distances(c, last)})
    return kinds


def _groups(c: Certificates, members: Iterable[tuple[str, BoolArray]], last: int) -> list[dict[str, Any]]:
    return [_group(c, name, some, last) for name, some in members]


def _group(c: Certificates, name: str, members: BoolArray, last: int) -> dict[str, Any]:
    budgets = np.arange(last + 1)[:, None]
    radius, eligible = c.radius[members], c.num_eligible[members]
    certified = (radius >= budgets) & (eligible >= budgets)
    return {
        "name": name,
        "targets": int(np.count_nonzero(members)),
        "certified": _counts(certified),
        "holds": _counts(radius >= np.minimum(budgets, eligible)),
        **_correct(c, members, certified, radius >= np.minimum(budgets, eligible)),
    }


def _correct(c: Certificates, members: BoolArray, certified: BoolArray, holds: BoolArray) -> dict[str, Any]:
    if c.labels is None or not (c.labels >= 0).any():
        return {}
    labels = c.labels[members]
    known, right = labels >= 0, (c.prediction[members] == labels) & (c.radius[members] >= 0)
    others = {"as_trained": c.prediction_as_trained, "alone": floor_classes(c)}
    return {
        "known": int(np.count_nonzero(known)),
        **{
            key: None if values is None else int(np.count_nonzero(known & (values[members] == labels)))
            for key, values in others.items()
        },
        "certified_correct": _counts(certified & right),
        "holds_correct": _counts(holds & right),
    }


def _distances(c: Certificates, last: int) -> list[dict[str, Any]]:
    """Count targets that hold if hostile nodes are farther and farther away; the first distance is the threat's."""
    assert c.radius_by_distance is not None
    first, budgets = int(getattr(c.setup.threat, "min_distance", 0)), np.arange(last + 1)[:, None]
    rows: list[tuple[str, IntArray, IntArray]] = [(f">= {first}", c.radius, c.num_eligible)]
    beyond = np.full(len(c), np.iinfo(np.int64).max)
    rows += [(f">= {first + 1 + place}", radii, beyond) for place, radii in enumerate(c.radius_by_distance.T)]
    right = None
    if c.labels is not None and (c.labels >= 0).any():
        right = (c.prediction == c.labels) & (c.labels >= 0)
    groups = []
    for name, radius, eligible in rows:
        holds = radius >= np.minimum(budgets, eligible)
        group: dict[str, Any] = {"name": name, "targets": len(c), "holds": _counts(holds)}
        if right is not None and c.labels is not None:
            group |= {"known": int(np.count_nonzero(c.labels >= 0)), "holds_correct": _counts(holds & right)}
        groups.append(group)
    return groups


def _counts(holds: BoolArray) -> list[int]:
    return [int(each) for each in np.count_nonzero(holds, axis=1)]
