"""What the model beside a run predicts without smoothing, compared with what the run says that it does."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from graycert._types import NO_CLASS, IntArray
from graycert.certificates import Certificates
from graycert.runs.verify.findings import VerificationCheck

if TYPE_CHECKING:  # loads torch
    from torch import Tensor, nn

WITHOUT_SMOOTHING = ("model: as trained", "model: without messages")
"""Names of the two comparisons."""

NEAR_TIE = 1e-4
"""Difference of scores, beside the largest one, up to which another machine may round to another class."""


def compare_as_trained(stored: Certificates, graph: Any, model: "nn.Module") -> Iterator[VerificationCheck]:
    """Evaluate the model once on the graph, and once without edges, where the run holds what it predicts there."""
    trained, alone = WITHOUT_SMOOTHING
    for name, words, classes, messages in (
        (trained, "without smoothing", stored.prediction_as_trained, True),
        (alone, "on the graph without edges", stored.prediction_without_messages, False),
    ):
        if classes is None:
            continue
        try:
            wrong = _disagreeing(stored, graph, model, classes, messages=messages)
        except Exception as error:  # whatever a model raises that is not the one of the run
            detail = f"the model cannot be evaluated {words} ({type(error).__name__}: {error})"
            yield VerificationCheck(name=name, passed=False, detail=detail)
            continue
        detail = f"the model predicts {words} what the run says, {len(stored):,} targets"
        if wrong.size:
            detail = (
                f"node {stored.targets[wrong[0]]}: stored {classes[wrong[0]]}, the model predicts another class "
                f"{words}; {wrong.size:,} of {len(stored):,} targets differ"
            )
        yield VerificationCheck(name=name, passed=not wrong.size, detail=detail)


def _disagreeing(
    stored: Certificates, graph: Any, model: "nn.Module", classes: IntArray, *, messages: bool
) -> IntArray:
    """Return the positions of targets whose stored class is not the one with the largest score, nor nearly so."""
    from graycert.sampling.as_trained import scores_without_smoothing

    scores = scores_without_smoothing(
        model, graph, stored.targets, edge_inputs=stored.setup.edge_inputs, messages=messages
    )
    return disagreeing(classes, scores)


def disagreeing(classes: IntArray, scores: "Tensor") -> IntArray:
    """Return the positions of classes that do not have the largest score, nor nearly so.

    Args:
        classes: As stored, shape (num_targets,).
        scores: As found, shape (num_targets, num_classes).
    """
    from graycert.sampling.scores import voted_class

    found, values = voted_class(scores).numpy(), scores.double().numpy()
    rows = np.arange(found.size)
    with np.errstate(invalid="ignore"):
        behind = values.max(axis=1) - values[rows, np.maximum(classes, 0)]
        near = (classes != NO_CLASS) & (behind <= NEAR_TIE * np.abs(values).max(axis=1))
    wrong: IntArray = np.flatnonzero((found != classes) & ~near)
    return wrong
