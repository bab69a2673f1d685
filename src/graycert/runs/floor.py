"""The floor in words: what a target's own features give at every ρ, and whether that is more than is certified."""

import shlex
from typing import Any

import numpy as np

from graycert._types import IntArray
from graycert.certificates import Certificates
from graycert.metrics.floor import Floor, best_floor
from graycert.models.names import PER_NODE
from graycert.runs.shares import percent

MOST_RADII = 1_000
"""Radii that are counted, where every radius is known."""

FOLDER, WHERE = "THIS-RUN", ", THIS-RUN being the folder of this run"
"""What stands for the folder of a result, which does not know where it lies, and says so."""

FLOOR_FILE = "floor.safetensors"
"""Weights of a floor that a run keeps, in its folder."""

WITHOUT_MESSAGES = "the same model without messages"
"""What is a floor of every run whose model is not of single nodes."""

LABEL = "from its own features alone"
"""What the floor is called in tables and figures."""

OF_LABELS = "from the labels of training nodes alone"
"""What the floor with a memory is called there."""


def last_radius(c: Certificates) -> int:
    """Return the largest radius that is counted."""
    last = c.setup.max_radius if c.setup.max_radius is not None else max(1, int(c.radius.max()))
    return min(last, MOST_RADII)


def floor_of_run(c: Certificates) -> Floor | None:
    """Return the best floor that a run holds; None where it holds none, no class is known or a target is exposed."""
    if c.setup.threat.exposes(c.targets).any():
        return None
    return best_floor(
        _candidates(c),
        labels=c.labels,
        prediction=c.prediction,
        radius=c.radius,
        num_eligible=c.num_eligible,
        max_radius=last_radius(c),
    )


def floor_of_labels(c: Certificates) -> Floor | None:
    """Return the floor with a memory, labels that read no feature, so that every threat to features leaves them.

    None where a run spreads no labels, or no class is known.
    """
    return best_floor(
        {OF_LABELS: c.adds.get("prediction_of_labels")},
        labels=c.labels,
        prediction=c.prediction,
        radius=c.radius,
        num_eligible=c.num_eligible,
        max_radius=last_radius(c),
    )


def floor_paragraphs(c: Certificates) -> tuple[str, ...]:
    """Return the sentences about the floors: what they are, what they beat, what computes one."""
    found = floor_of_labels(c)
    if found is None:
        return _floor_of_features(c)
    text = (
        f"From the labels of training nodes alone, spread over the graph (the floor with a memory), "
        f"{percent(found.correct, found.targets)} of the targets are predicted correctly at every ρ, whatever the "
        f"features of all nodes are, their own too. {_compared(c, found)}"
    )
    return (*_floor_of_features(c), text)


def _floor_of_features(c: Certificates) -> tuple[str, ...]:
    missing = how_to_compute(c)
    found = floor_of_run(c)
    if found is None:
        return () if missing is None else (f"From its own features alone (the floor): not computed. {missing}",)
    text = (
        f"From its own features alone (the floor) {percent(found.correct, found.targets)} of the targets are predicted "
        f"correctly at every ρ, whatever all other nodes do: by {found.source}. {_compared(c, found)}"
    )
    return (text if missing is None else f"{text} A distilled model is mostly a higher floor: not computed. {missing}",)


def how_to_compute(c: Certificates) -> str | None:
    """Return the line that computes the distilled floor; None where it is there, or says nothing."""
    known = c.labels is not None and bool((c.labels >= 0).any())
    if not known or c.prediction_of_floor is not None or c.setup.smoothing.sees_single_nodes:
        return None
    if c.setup.threat.exposes(c.targets).any():
        return None
    if c.setup.provenance.get("options"):
        return f"It takes seconds: `graycert certify --config {FOLDER}/config.toml --floor distill`{WHERE}"
    return "It takes seconds: `graycert.certify(..., floor=graycert.distill(split))`"


def floor_in_summary(c: Certificates) -> dict[str, Any]:
    """Return the floor as plain values."""
    found = floor_of_run(c)
    record: dict[str, Any] = {"not_computed": how_to_compute(c)}
    if found is not None:
        record |= {name: getattr(found, name) for name in ("source", "correct", "targets", "beats_from")}
    of_labels = floor_of_labels(c)
    if of_labels is not None:
        record["labels_alone"] = {name: getattr(of_labels, name) for name in ("correct", "targets", "beats_from")}
    return record


def floor_classes(c: Certificates) -> IntArray | None:
    """Return the class of each target by the best floor, shape (num_targets,); None where there is no floor."""
    found = floor_of_run(c)
    return None if found is None else _candidates(c)[found.source]


def _candidates(c: Certificates) -> dict[str, IntArray | None]:
    return {_given(c): c.prediction_of_floor, WITHOUT_MESSAGES: c.prediction_without_messages}


def _given(c: Certificates) -> str:
    record = c.setup.provenance.get("floor")
    distilled = isinstance(record, dict) and record.get("architecture") == PER_NODE
    return "a distilled model" if distilled else "the model that was given as the floor, shown each target alone"


def _how_far(c: Certificates, found: Floor) -> str:
    """Say up to which ρ it is known that no fewer targets are correct and certified."""
    right = c.whole_field & (c.prediction == c.labels)
    return "at every ρ" if np.count_nonzero(right) >= found.correct else f"up to ρ = {len(found.certified) - 1}"


def _compared(c: Certificates, found: Floor) -> str:
    if found.beats_from is None:
        return f"What is correct and certified, whole fields included, is no less {_how_far(c, found)}."
    if found.beats_from == 0:
        return "That is more than the smoothed classifier predicts correctly without any attack."
    return f"That is more than is correct and certified, whole fields included, from ρ = {found.beats_from} on."


def with_folder(text: str, folder: str) -> str:
    """Return what was said of a result with the folder where it lies."""
    return text.replace(WHERE, "").replace(f"{FOLDER}/config.toml", shlex.quote(f"{folder}/config.toml"))
