"""Node model + split -> the settings of bounded votes that certify most on the validation nodes."""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graycert._progress import progress_bar
from graycert._types import IntArray
from graycert.certificates import Certificates
from graycert.errors import InvalidParameterError
from graycert.metrics import certified_accuracy
from graycert.reproduction.chosen_job import CHOICE_RADII
from graycert.smoothing import BoundedVotes
from graycert.threats import NodeFeatureThreat
from graycert.threats.named_nodes import with_trusted_nodes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from torch import nn

LABELS, WEIGHT = "spread_labels", "label_weight"

SETTINGS: Mapping[str, tuple[Any, ...]] = {
    "num_voters": (160, 80, 320),
    "gamma": (2.0, 1.0, 4.0),
    "gate": (0.7, 0.9),
    "sharpen": (2.0, 1.0),
    LABELS: (False, True),
}
"""Values that are tried, all with all; of equally good ones the first is recommended."""

_OWN_ALONE = ("gamma", "gate")  # without effect where the target is one voter among the others


@dataclass(frozen=True, kw_only=True, eq=False)
class VotesTuning:
    """Settings of bounded votes that were compared on validation nodes.

    Attributes:
        table: A row per setting: its parameters, ``accuracy``, what is certified and correct at each radius
            (``correct_1``, ..., whole fields included), their mean ``score``, and whether it is ``recommended``.
        smoothing: The recommended `BoundedVotes`, for the whole graph of the split.
        chosen: Its parameters, as plain values.
    """

    table: "pd.DataFrame"
    smoothing: BoundedVotes
    chosen: Mapping[str, Any]

    def __str__(self) -> str:
        """Return the table, best first, and the recommendation."""
        names = [*self.chosen, *(name for name in self.table.columns if name not in {*self.chosen, "recommended"})]
        best = self.table.sort_values("score", ascending=False, kind="stable")[names]
        shown = best.to_string(index=False, float_format=lambda value: f"{value:.3f}".rstrip("0").rstrip("."))
        return f"{shown}\n\n{self.recommendation()}"

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Plot what is certified and correct over the radius: a line per setting, the recommended one in colour.

        Args:
            ax: Matplotlib axes to draw into. Default: those of a new figure.

        Returns:
            The axes. At radius 0 stands the accuracy.

        Raises:
            InvalidParameterError: If matplotlib is not installed.
        """
        from graycert.runs.pictures import BLUE, GREY, new_axes

        axes = new_axes(ax)
        names = [str(name) for name in self.table.columns if str(name).startswith("correct_")]
        radii = [0, *(int(name.rpartition("_")[2]) for name in names)]
        shares = self.table[["accuracy", *names]].to_numpy()
        best = int(self.table["recommended"].to_numpy().argmax())
        for place, row in enumerate(shares):
            if place != best:
                axes.plot(radii, row, color=GREY, alpha=0.3, linewidth=1, label="_other settings")
        axes.plot(radii, shares[best], color=BLUE, marker="o", linewidth=2, label="recommended")
        axes.set_ylim(0.0, 1.02)
        axes.set_xlabel("radius ρ: number of hostile nodes")
        axes.set_ylabel("certified and correct, of the validation nodes")
        axes.legend(loc="best", frameon=False)
        return axes

    def recommendation(self) -> str:
        """Return in words what is recommended."""
        score = float(self.table["score"].max())
        words = ", ".join(f"{name} = {value}" for name, value in self.chosen.items())
        return (
            f"Recommended: {words}. On the validation nodes that chose it, correct and certified on average over the "
            f"radii: {score:.1%}. Report what it reaches on other nodes."
        )


def tune_votes(
    model: "nn.Module",
    split: Any,
    *,
    threat: NodeFeatureThreat,
    settings: Mapping[str, Iterable[Any]] | None = None,
    radii: Iterable[int] = CHOICE_RADII,
    progress: bool = False,
) -> VotesTuning:
    """Choose settings of `BoundedVotes` on the validation nodes of a split; test nodes are not looked at.

    Every combination certifies the validation nodes in the validation graph, which lacks the test nodes of an inductive
    split. The one with the largest certified accuracy, averaged over the radii, is recommended; of several the first.
    What it reached on the nodes that chose it flatters it.

    Args:
        model: A model of single nodes, see `graycert.distill`.
        split: An inductive or transductive split.
        threat: Who may do what; trusted nodes are named in the whole graph.
        settings: Values to try by name: ``num_voters``, ``gamma``, ``gate``, ``sharpen``, and ``spread_labels``
            (whether the labels of the training nodes are spread over the graph), and their ``label_weight``; others
            keep their default. Default: `settings_for` a graph of that size.
        radii: Numbers of hostile nodes to average over, >= 1.
        progress: Show a progress bar on standard error if it is a terminal.

    Returns:
        A table of all settings, and the recommended one.

    Raises:
        InvalidParameterError: If an argument is out of its domain.
        UnsoundSetupError: If the model cannot be certified, e.g. ``not-per-node``.
    """
    import pandas as pd

    from graycert.audit import audit_model
    from graycert.certification import certify
    from graycert.problem import Execution
    from graycert.training.parts import is_split

    if not is_split(split):
        raise InvalidParameterError(
            f"`split` must come from inductive_split or transductive_split, got {type(split).__name__}."
        )
    part, at = split.validation, tuple(sorted(set(radii)))
    threat = _on_part(threat, split)
    nodes = part.nodes.cpu().numpy()
    asked = settings_for(int(part.data.num_nodes)) if settings is None else settings
    points = _points(asked, hostile=bool(threat.exposes(nodes).any()))
    report = audit_model(model, part.data, edge_inputs=(), targets=nodes)
    rows = []
    with progress_bar("settings", total=len(points), unit="settings", shown=progress) as advance:
        for point in points:
            found = certify(
                model,
                part.data,
                targets=nodes,
                smoothing=_smoothing(point, _training_labels(split)),
                threat=threat,
                edge_inputs=(),
                audit=report,
                execution=Execution(say=lambda _: None),
            )
            rows.append({**point, **_measured(found, at)})
            advance(1)
    table = pd.DataFrame(rows)
    best = int(table["score"].to_numpy().argmax())
    return VotesTuning(
        table=table.assign(recommended=table.index == best),
        smoothing=_smoothing(points[best], split),
        chosen=points[best],
    )


def settings_for(num_nodes: int) -> Mapping[str, tuple[Any, ...]]:
    """Return what is tried by default: `SETTINGS`, with fewer voters where these would be most of the graph.

    Example:
        >>> settings_for(400)["num_voters"], settings_for(2_810)["num_voters"]
        ((40, 20, 80), (160, 80, 320))
    """
    usual = SETTINGS["num_voters"][0]
    most = max(2, min(usual, num_nodes // 10))
    return {**SETTINGS, "num_voters": tuple(each * most // usual for each in SETTINGS["num_voters"])}


def _points(settings: Mapping[str, Iterable[Any]], *, hostile: bool) -> list[dict[str, Any]]:
    """Return all combinations, without those that differ in nothing that counts."""
    unknown = sorted(set(settings) - {*SETTINGS, WEIGHT})
    values = {name: tuple(each) for name, each in settings.items() if not (hostile and name in _OWN_ALONE)}
    if unknown or not values or not all(values.values()):
        raise InvalidParameterError(
            f"`settings` must hold values of {', '.join((*SETTINGS, WEIGHT))}, got {', '.join(unknown) or 'none'}. "
            'Write settings={"num_voters": (80, 160)}.'
        )
    points = [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]
    usual = values.get(WEIGHT, (None,))[0]
    return [each for each in points if each.get(LABELS) or each.get(WEIGHT) == usual]


def _smoothing(point: Mapping[str, Any], labels: Any) -> BoundedVotes:
    """Return the smoothing of a setting; ``labels`` as `BoundedVotes` takes them."""
    values = {name: value for name, value in point.items() if name != LABELS}
    return BoundedVotes(**values, label_propagation=labels if point.get(LABELS) else None)


def _training_labels(split: Any) -> IntArray:
    """Return the class of each training node in the validation graph, -1 for all others."""
    train, part = split.train, split.validation
    whole = np.full(int(split.test.data.num_nodes), -1, dtype=np.int64)
    nodes = train.nodes.cpu()
    whole[train.original.cpu()[nodes].numpy()] = train.data.y.cpu()[nodes].numpy()
    labels: IntArray = whole[part.original.cpu().numpy()]
    return labels


def _on_part(threat: NodeFeatureThreat, split: Any) -> NodeFeatureThreat:
    """Return the threat with trusted nodes as a mask of the validation graph."""
    if not isinstance(threat, NodeFeatureThreat):
        raise InvalidParameterError(f"`threat` must be a NodeFeatureThreat, got {type(threat).__name__}.")
    trusted = getattr(with_trusted_nodes(threat, split.test.data), "trusted", None)
    kept = None if trusted is None else np.asarray(trusted)[split.validation.original.cpu().numpy()]
    return dataclasses.replace(threat, trusted=kept)


def _measured(found: Certificates, radii: tuple[int, ...]) -> dict[str, float]:
    """Return accuracy, and what is correct and certified, whole fields included."""
    if found.labels is None:
        raise InvalidParameterError("`split` must have labels, by which settings are compared, got none.")
    counts = certified_accuracy(
        found.radius,
        found.num_eligible,
        prediction=found.prediction,
        labels=found.labels,
        max_radius=max(radii),
        denominator="whole_field",
    ).counts
    correct = {f"correct_{radius}": float(counts[radius]) / len(found) for radius in radii}
    score = float(sum(int(counts[radius]) for radius in radii)) / (len(radii) * len(found))  # equal counts are a tie
    return {"accuracy": float(counts[0]) / len(found), **correct, "score": score}
