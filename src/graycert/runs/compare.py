"""Two results target by target: what got better, worse, or another prediction, and which settings differ."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graycert._called import Called
from graycert._types import IntArray, TextArray
from graycert.certificates import Certificates
from graycert.errors import InvalidParameterError
from graycert.metrics.ratios import certified_accuracy, certified_ratio
from graycert.runs.called import called_of
from graycert.runs.shares import percent
from graycert.setup_file import config_text, stored_arrays

if TYPE_CHECKING:
    import pandas as pd

CHANGES = ("better", "worse", "another prediction", "same")
"""What can have become of a target; a radius under another prediction is neither better nor worse."""

_NO_SETTINGS = ("seconds", "file", "provenance.options", "provenance.training.seconds", "certificate.memory")
_SHOWN_RADII = (1, 3, 10, 30, 100, 300, 1_000)
_SHOWN_TARGETS = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """What one of two results says of the targets that both have.

    Attributes:
        predicted: Name, or number, of the reported class, "none" without a prediction, shape (num_shared,).
        radius: Certified radius, -1 without a prediction.
        whole_field: Whether the prediction holds whatever all eligible nodes do together.
        counts: By what is true of targets, of how many it is, and of how many it could be: those with a label, where
            it is about labels.
    """

    predicted: TextArray
    radius: IntArray
    whole_field: NDArray[np.bool_]
    counts: Mapping[str, tuple[int, int]]

    def told(self, row: int, called: Called) -> str:
        """Say what is known of a target."""
        if self.radius[row] < 0:
            return called.say("no prediction")
        return f"{self.predicted[row]}, {'whole field' if self.whole_field[row] else f'radius {self.radius[row]}'}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """What became of the targets that two results share.

    Attributes:
        targets: Name, or node index, of each shared target, shape (num_shared,).
        change: One of `CHANGES` per target.
        before: What the first result says of them.
        after: What the second result says of them.
        notes: In words, how targets were matched, and what is left out.
        settings: Settings that differ: name, value before, value after; None where there is none.
        called: What readers of both call the parts of a graph.
    """

    targets: TextArray
    change: TextArray
    before: Side
    after: Side
    notes: tuple[str, ...]
    settings: tuple[tuple[str, Any, Any], ...]
    called: Called = field(default_factory=Called)

    @property
    def counts(self) -> dict[str, int]:
        """How many targets there are of each change."""
        return {each: int(np.count_nonzero(self.change == each)) for each in CHANGES}

    def to_dataframe(self) -> "pd.DataFrame":
        """Return one row per shared target."""
        import pandas as pd

        columns: dict[str, Any] = {"target": self.targets, "change": self.change}
        for name, side in (("before", self.before), ("after", self.after)):
            columns |= {f"prediction_{name}": side.predicted, f"radius_{name}": side.radius}
        return pd.DataFrame(columns)

    def record(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "num_targets": int(self.targets.size),
            "counts": self.counts,
            "notes": list(self.notes),
            "shares": [
                {"name": name, "before": _share(self.before, name), "after": _share(self.after, name)}
                for name in _both(self.before, self.after)
            ],
            "settings": [{"name": name, "before": a, "after": b} for name, a, b in self.settings],
            "targets": self.to_dataframe().to_dict("records"),
        }

    def __str__(self) -> str:
        """Say it in words, with the targets whose radius changed most."""
        total, counts, say = self.targets.size, self.counts, self.called.say
        parts = [say(f"{total:,} targets are in both: {', '.join(f'{counts[each]:,} {each}' for each in CHANGES)}.")]
        parts += [say("\n".join(self.notes))] if self.notes else []
        names = _both(self.before, self.after)
        pairs = [(name, percent(*self.before.counts[name]), percent(*self.after.counts[name])) for name in names]
        parts.append("\n".join(f"{say(name)}: {first} -> {second}" for name, first, second in pairs))
        parts += [text for each in CHANGES[:3] if (text := self._listed(each))]
        lines = [f"  {name}: {value_in_words(a)} -> {value_in_words(b)}" for name, a, b in self.settings]
        parts.append("\n".join(["Settings that differ:", *lines] if lines else ["No setting differs."]))
        return "\n\n".join(parts)

    def _listed(self, change: str) -> str:
        rows = np.flatnonzero(self.change == change)
        rows = rows[np.argsort(-np.abs(self.after.radius[rows] - self.before.radius[rows]), kind="stable")]
        if not rows.size:
            return ""
        told = [
            f"  {self.targets[row]}: {self.before.told(row, self.called)} -> {self.after.told(row, self.called)}"
            for row in rows[:_SHOWN_TARGETS].tolist()
        ]
        more = [f"  and {rows.size - _SHOWN_TARGETS:,} more"] if rows.size > _SHOWN_TARGETS else []
        return "\n".join([self.called.say(f"{change.capitalize()}:"), *told, *more])


def compare(before: Certificates, after: Certificates) -> Comparison:
    """Compare two results on the targets that both have, by name if nodes have names.

    A target is better if its radius is larger under the same prediction, or it has gained one; a prediction that holds
    whatever all eligible nodes do is better than any radius. Radii are compared as far as both results looked.

    Args:
        before: A result.
        after: Another one.

    Raises:
        InvalidParameterError: If radii count different things, the classes are others, the graphs differ and their
            nodes have no names, or no target is in both.
    """
    _refuse_incomparable(before, after)
    rows, names, notes = _shared(before, after)
    looked = [c.setup.max_radius for c in (before, after) if c.setup.max_radius is not None]
    limit = min(looked) if looked else max(int(before.radius.max()), int(after.radius.max()), 1)
    if len(set(looked)) == 2:
        notes.append(f"Radii are compared up to {limit}, the largest that both looked at.")
    for c, word in ((before, "first"), (after, "second")):
        if not c.setup.the_rule.is_sound:
            notes.append(f"NOT SOUND: the {word} was concluded by rule '{c.setup.rule}', so its radii prove nothing.")
    named = before.setup.class_names is not None and after.setup.class_names is not None
    reached = max(int(c.radius[~c.whole_field].max(initial=0)) for c in (before, after))
    shown = [each for each in _SHOWN_RADII if each <= limit and (each <= 3 or each <= reached)]
    sides = [_side(c, r, named=named, radii=shown) for c, r in zip((before, after), rows, strict=True)]
    return Comparison(
        targets=names,
        change=_changes(*sides, limit=limit),
        before=sides[0],
        after=sides[1],
        notes=tuple(notes),
        settings=tuple(differing_settings(before, after)),
        called=_called(before, after),
    )


def _called(before: Certificates, after: Certificates) -> Called:
    """Return the words of both results; none where they differ."""
    first, second = called_of(before), called_of(after)
    return first if first == second else Called()


def _refuse_incomparable(before: Certificates, after: Certificates) -> None:
    units = [c.setup.threat.unit for c in (before, after)]
    if units[0] != units[1]:
        raise InvalidParameterError(
            f"`other` must have radii that count {units[0]}, as these do, got {units[1]}. Certify against the same "
            "kind of threat."
        )
    first, second = before.setup, after.setup
    if first.num_classes != second.num_classes and None in (first.class_names, second.class_names):
        raise InvalidParameterError(
            f"`other` must tell the same {first.num_classes} classes apart, got {second.num_classes} of which nobody "
            "knows the names. Name the classes (class_names) to compare them."
        )


def _shared(before: Certificates, after: Certificates) -> tuple[list[IntArray], TextArray, list[str]]:
    """Return the rows of shared targets in both results, their names, and remarks."""
    same = before.setup.graph_fingerprint == after.setup.graph_fingerprint
    structure = before.setup.edges_fingerprint == after.setup.edges_fingerprint
    sides = (before, after)
    notes = []
    if all(c.node_ids is not None for c in sides):
        keys = [np.asarray(c.node_ids, dtype=np.str_) for c in sides]
        if not same:
            notes.append("The graphs differ; targets are matched by name.")
    elif same or (structure and before.setup.num_nodes == after.setup.num_nodes):
        keys = [c.targets.astype(np.str_) for c in sides]
        if not same:
            notes.append("The features differ on the same edges; targets are matched by node index.")
    else:
        raise InvalidParameterError(
            "`other` must be about the same graph, got another, and there are no names by which nodes could be "
            "matched. Load both graphs with node ids."
        )
    names, *rows = np.intersect1d(keys[0], keys[1], return_indices=True)
    if not names.size:
        raise InvalidParameterError("`other` must share targets with these certificates, got none in common.")
    order = np.argsort(rows[0])  # as in the first
    for key, word in zip(keys, ("first", "second"), strict=True):
        if key.size > names.size:
            notes.append(f"Left out: {key.size - names.size:,} targets that only the {word} has.")
    return [each[order] for each in rows], names[order], notes


def _side(c: Certificates, rows: IntArray, *, named: bool, radii: list[int]) -> Side:
    radius, eligible, prediction = c.radius[rows], c.num_eligible[rows], c.prediction[rows]
    names = c.setup.class_names if named else None
    classes = [str(number) if names is None else names[number] for number in prediction.tolist()]
    last = max(radii)
    holds = certified_ratio(radius, eligible, max_radius=last, denominator="whole_field").counts
    total = rows.size
    counts = {"with a prediction": (int(holds[0]), total)}
    counts |= {f"certified at ρ = {each}, or whole field": (int(holds[each]), total) for each in radii}
    if c.labels is not None:
        labels = c.labels[rows]
        correct = certified_accuracy(
            radius, eligible, prediction=prediction, labels=labels, max_radius=last, denominator="whole_field"
        ).counts
        known = int(np.count_nonzero(labels >= 0))
        counts["predicted correctly"] = int(correct[0]), known
        counts |= {
            f"correct and certified at ρ = {each}, or whole field": (int(correct[each]), known) for each in radii
        }
    return Side(
        predicted=np.where(radius >= 0, np.array(classes, dtype=np.str_), "none"),
        radius=radius,
        whole_field=c.whole_field[rows],
        counts=counts,
    )


def _both(before: Side, after: Side) -> list[str]:
    return [name for name in before.counts if name in after.counts]


def _share(side: Side, name: str) -> dict[str, int]:
    return dict(zip(("count", "total"), side.counts[name], strict=True))


def _changes(before: Side, after: Side, *, limit: int) -> TextArray:
    """Return what became of each target."""
    ranks = [np.where(side.whole_field, limit, np.minimum(side.radius, limit)) for side in (before, after)]
    another = (before.radius >= 0) & (after.radius >= 0) & (before.predicted != after.predicted)
    chosen = np.select([another, ranks[1] > ranks[0], ranks[1] < ranks[0]], [2, 0, 1], default=3)
    return np.array([CHANGES[each] for each in chosen.tolist()], dtype=np.str_)


def differing_settings(before: Certificates, after: Certificates) -> list[tuple[str, Any, Any]]:
    """Return what the two were made from differently: name as in config.toml, value before, value after.

    Of a section of the provenance that only one of them has, all values are together.
    """
    sides = [_settings(c) for c in (before, after)]
    found: dict[str, list[Any]] = {}
    for name in dict.fromkeys((*sides[0], *sides[1])):
        section = ".".join(name.split(".")[:2])
        has = [any(each.startswith(f"{section}.") for each in side) for side in sides]
        if name.startswith("provenance.") and not all(has):
            whole = [{key: value for key, value in side.items() if key.startswith(f"{section}.")} for side in sides]
            found[section] = [values or None for values in whole]
        elif sides[0].get(name) != sides[1].get(name):
            found[name] = [side.get(name) for side in sides]
    return [(name, first, second) for name, (first, second) in found.items()]


def _settings(c: Certificates) -> dict[str, Any]:
    values = _flat(tomllib.loads(config_text(c.setup, {})), "")
    for name, array in stored_arrays(c.setup).items():
        values[name] = f"{int(array.sum()):,} of {array.size:,}" if array.dtype == np.bool_ else array.tolist()
        if array.dtype == np.bool_ and array.size:
            values[f"{name}, which"] = np.flatnonzero(array).tolist()
    return {name: value for name, value in values.items() if not name.startswith(_NO_SETTINGS)}


def _flat(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def value_in_words(value: Any) -> str:
    """Return the value of a setting, shortened."""
    if isinstance(value, Mapping):
        return f"{len(value):,} values"
    text = "none" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
