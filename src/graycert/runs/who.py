"""Who matters: the nodes that limit the most targets, by name, and what trusting them would gain."""

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from graycert._called import Called
from graycert._types import BoolArray, FloatArray, IntArray
from graycert._validation import check_integer
from graycert.certificates import Certificates
from graycert.errors import InvalidParameterError
from graycert.metrics.cost import COST_RADII
from graycert.runs.called import called_of
from graycert.runs.cost import class_word
from graycert.runs.shares import aligned, percent

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMED_CLASSES = 4
"""Classes that are named per node."""


@dataclass(frozen=True, kw_only=True)
class NodeToProtect:
    """A node, and the targets that it limits.

    Attributes:
        node: Its index.
        name: Its name, or its index as text.
        targets: How many targets it limits.
        classes: How many of these are predicted to be of each class, by name of the class, the most first.
    """

    node: int
    name: str
    targets: int
    classes: dict[str, int]

    @property
    def of_classes(self) -> str:
        """How many of the targets are of which class, in words."""
        named = list(self.classes.items())[:MOST_NAMED_CLASSES]
        more = ", ..." if len(self.classes) > len(named) else ""
        numbers = all(name.isdecimal() for name in self.classes)  # "2 of class 1", not "2 1"
        return ", ".join(f"{count:,} {'of class ' if numbers else ''}{name}" for name, count in named) + more


@dataclass(frozen=True, kw_only=True)
class TrustGain:
    """What trusting the first few nodes would gain.

    Attributes:
        trusted: How many nodes are trusted.
        delta_before: Mean of Δ̄(radius + 1), at which targets are no longer certified, over those that are limited.
        delta_after: The same if they are trusted.
        rising: Targets whose radius rises, or that then hold whatever all do, from the same votes; None where other
            votes would be drawn, because the smoothing shows features of trusted nodes.
        held_before: Targets that hold at each of `COST_RADII`, those with fewer eligible nodes included.
        held_after: The same if the nodes are trusted, or None as above.
    """

    trusted: int
    delta_before: float
    delta_after: float
    rising: int | None
    held_before: tuple[int, ...]
    held_after: tuple[int, ...] | None


@dataclass(frozen=True, kw_only=True)
class ProtectFirst:
    """The nodes that limit the most targets.

    A node limits a target if it belongs to the smallest set of hostile nodes, as far as is known, against which the
    target is not certified: radius + 1 nodes. Whether they could change the prediction is not said.

    Attributes:
        nodes: The nodes, those that limit most targets first.
        limited: Targets that some known set limits.
        num_targets: All targets.
        gains: What trusting the first of them would gain; empty if that was not asked for.
        unit: What the radius counts.
        called: What readers call the parts of a graph.
    """

    nodes: tuple[NodeToProtect, ...]
    limited: int
    num_targets: int
    gains: tuple[TrustGain, ...] = field(default=())
    unit: str = "nodes"
    called: Called = field(default_factory=Called)

    def to_dataframe(self) -> "pd.DataFrame":
        """Return one row per node."""
        import pandas as pd

        rows = [{"node": each.node, "name": each.name, "targets": each.targets} for each in self.nodes]
        frame = pd.DataFrame(rows, columns=["node", "name", "targets"])
        frame["classes"] = [each.of_classes for each in self.nodes]
        return frame

    def __str__(self) -> str:
        """Return the nodes and the gains in words."""
        say = self.called.say
        if not self.nodes:
            return say(
                f"Protect first: nobody. No set of nodes is known that limits any of the {self.num_targets:,} targets."
            )
        rows = [(str(place + 1), *row) for place, row in enumerate(rows_of(self))]
        return "\n\n".join(
            [
                say("Protect first: the nodes that limit the most targets."),
                aligned(("", *map(say, COLUMNS)), rows),
                say(note(self)),
                *(say(_gain(each, self.num_targets)) for each in self.gains),
            ]
        )


COLUMNS = ("node", "limits targets", "predicted to be")
"""Headings of the table of nodes."""


def protect_first(c: Certificates, data: Any = None, *, top: int = 10) -> ProtectFirst:
    """Do the work of `Certificates.protect_first`."""
    top = check_integer("top", top, at_least=1, hint="It is a number of nodes.")
    if c.attackers is None or not c.attackers.shape[1]:
        raise InvalidParameterError(
            "`certificates` must know which nodes harm a target most, got a run of smoothing "
            f"'{c.setup.smoothing.name}' against {c.setup.threat.claimed_as}, which does not say. "
            "InterceptionSmoothing against NodeFeatureThreat does."
        )
    limits = _limits(c)
    nodes, counts = np.unique(c.attackers[limits], return_counts=True)
    order = np.lexsort((nodes, -counts))[:top]
    chosen = nodes[order]
    names = names_of_attackers(c)
    first = tuple(
        NodeToProtect(
            node=int(node),
            name=names[int(node)],
            targets=int(count),
            classes=_of_classes(c, (limits & (c.attackers == node)).any(axis=1)),
        )
        for node, count in zip(chosen, counts[order], strict=True)
    )
    gains = () if data is None or not first else _gains(c, data, chosen)
    return ProtectFirst(
        nodes=first,
        limited=int(np.count_nonzero(limits.any(axis=1))),
        num_targets=len(c),
        gains=gains,
        unit=c.setup.threat.unit,
        called=called_of(c),
    )


def knows_attackers(c: Certificates) -> bool:
    """Return whether nodes to protect first are known of a run."""
    return c.attackers is not None and bool(_limits(c).any())


def names_of_attackers(c: Certificates) -> dict[int, str]:
    """Return the name of each node that is to be protected first for some target; without names its index."""
    if c.attackers is None:
        return {}
    names = c.attackers.astype(np.str_) if c.attacker_ids is None else c.attacker_ids
    return dict(zip(c.attackers.ravel().tolist(), names.ravel().tolist(), strict=True))


def protect_first_per_target(c: Certificates) -> list[list[str]]:
    """Return for each target the names of the nodes to protect first; none where there are none to fear."""
    limits, names = _limits(c), names_of_attackers(c)
    if c.attackers is None:
        return [[] for _ in range(len(c))]
    return [[names[node] for node in row[kept].tolist()] for row, kept in zip(c.attackers, limits, strict=True)]


def rows_of(found: ProtectFirst) -> list[tuple[str, ...]]:
    """Return the cells of the table of nodes."""
    return [(each.name, f"{each.targets:,}", each.of_classes) for each in found.nodes]


def note(found: ProtectFirst) -> str:
    """Return the line that explains the table of nodes."""
    return (
        "What a node limits: targets that are not certified against a set of hostile nodes with it among them, the "
        f"smallest such set as far as is known ({found.limited:,} of {found.num_targets:,} targets have one). Whether "
        "these nodes could change the prediction is not said."
    )


def _limits(c: Certificates) -> BoolArray:
    """Return which entries of ``attackers`` are nodes of a set that a target with a prediction does not withstand."""
    if c.attackers is None:
        return np.zeros((len(c), 0), dtype=np.bool_)
    return np.asarray((c.attackers >= 0) & ((c.radius >= 0) & ~c.whole_field)[:, None])


def _of_classes(c: Certificates, members: BoolArray) -> dict[str, int]:
    counts = np.bincount(c.prediction[members], minlength=c.setup.num_classes)
    order = np.lexsort((np.arange(counts.size), -counts))
    return {class_word(c, int(number)): int(counts[number]) for number in order if counts[number]}


def _gains(c: Certificates, data: Any, nodes: IntArray) -> tuple[TrustGain, ...]:
    """Conclude again with the first node trusted, with a few, and with all of them."""
    if "trusted" not in {each.name for each in dataclasses.fields(c.setup.threat)}:
        return ()
    sizes = dict.fromkeys(min(size, nodes.size) for size in (1, 3, nodes.size))
    return tuple(_gain_of(c, data, nodes[:size]) for size in sizes)


def _gain_of(c: Certificates, data: Any, nodes: IntArray) -> TrustGain:
    threat = c.setup.threat
    before = getattr(threat, "trusted", None)
    trusted = np.zeros(c.setup.num_nodes, dtype=np.bool_) if before is None else before.copy()
    trusted[nodes] = True
    changes: dict[str, Any] = {"trusted": trusted}
    again = c.again(data, threat=dataclasses.replace(threat, **changes))
    same_votes = before is None or not c.setup.smoothing.shows_trusted(before)
    rising = (again.radius > c.radius) | (again.whole_field & ~c.whole_field)
    return TrustGain(
        trusted=int(nodes.size),
        delta_before=_deciding(c, c.delta_upper),
        delta_after=_deciding(c, again.delta_upper),
        rising=int(np.count_nonzero(rising)) if same_votes else None,
        held_before=_held(c),
        held_after=_held(again) if same_votes else None,
    )


def _deciding(c: Certificates, deltas: FloatArray | None) -> float:
    """Return the mean of Δ̄ at the radius that each limited target of a run does not reach."""
    rows = np.flatnonzero(_limits(c).any(axis=1))
    if deltas is None or c.delta_upper is None or not rows.size:
        return 0.0
    return float(deltas[rows, np.minimum(c.radius[rows], c.delta_upper.shape[1] - 1)].mean())


def _held(c: Certificates) -> tuple[int, ...]:
    return tuple(int(np.count_nonzero(c.radius >= np.minimum(radius, c.num_eligible))) for radius in COST_RADII)


def _gain(each: TrustGain, total: int) -> str:
    who = "the first one" if each.trusted == 1 else f"the first {each.trusted:,}"
    bound = (
        "the bound Δ̄(radius + 1) that stops a limited target falls on average from "
        f"{each.delta_before:.4f} to {each.delta_after:.4f}"
    )
    if each.held_after is None or each.rising is None:
        return (
            f"Trusting {who}: {bound}. The smoothing shows the features of trusted nodes, so that votes would be "
            "others: certify again to see radii."
        )
    delta = f"; {bound}" if each.delta_before else ""  # votes that are counted have no Δ̄
    if not each.rising:
        return f"Trusting {who}, from the same votes: no target's radius rises{delta}."
    held = ", ".join(
        f"{percent(before, total)} -> {percent(after, total)} hold against any {radius}"
        for before, after, radius in zip(each.held_before, each.held_after, COST_RADII, strict=True)
    )
    return f"Trusting {who}, from the same votes: {each.rising:,} of {total:,} targets gain; {held}{delta}."
