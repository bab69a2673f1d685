"""Votes for no class: said where there are any, refused where no target has half of its votes for classes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._types import NO_CLASS
from graycert.errors import UnsoundSetupError
from graycert.problem import Problem


def refuse_open_votes(problem: Problem, *, for_none: NDArray[Any], total: NDArray[Any]) -> None:
    """Say which share of votes is for no class; refuse if that is more than half of every target's votes.

    Of a block of targets nothing is refused: what counts is all of them (`refuse_open_results`).

    A class that is to be certified needs more than half of a target's votes, because those for no class count for
    every other class. So no target could be certified, and what is smoothed is the model's failure.

    Args:
        problem: The problem.
        for_none: Votes for no class, shape (num_targets,).
        total: All votes, shape (num_targets,).

    Raises:
        UnsoundSetupError: ``scores-single-out-no-class``.
    """
    share = f"{int(for_none.sum()):,} of {int(total.sum()):,} votes"
    if problem.among is None and total.size and np.all(2 * for_none > total):
        raise UnsoundSetupError(
            "scores-single-out-no-class",
            f"In {share} the scores of `model` single out no class: one is NaN (a mean over no neighbour, 0 / 0, needs "
            "`degree.clamp(min=1)`), or several classes have exactly the largest one (a ReLU after the last layer, "
            "constant scores, no bias where nothing arrives). Such votes count for no class, and no target has fewer "
            "than half of its votes among them: none could be certified.",
        )
    if for_none.any() and problem.execution.say is not None:
        problem.execution.say(
            f"in {share} the model's scores single out no class (NaN, or exactly tied): they count for none, against "
            "the reported class"
        )


def refuse_open_results(problem: Problem, drawn: Mapping[str, NDArray[Any]]) -> None:
    """Refuse what `refuse_open_votes` refuses, once the votes of all blocks are there.

    Args:
        problem: The problem of all targets.
        drawn: Arrays of stage "drawn".

    Raises:
        UnsoundSetupError: ``scores-single-out-no-class``.
    """
    for_none, total = (np.zeros(problem.targets.size, dtype=np.int64) for _ in range(2))
    if "selection_no_class" in drawn:
        for_none += drawn["selection_no_class"]
        total += for_none + drawn["selection_votes"].sum(axis=1)
    for name in ("own_prediction", "subgraph_predictions"):
        if name in drawn:
            classes = drawn[name].reshape(total.size, -1)
            for_none += np.count_nonzero(classes == NO_CLASS, axis=1)
            total += classes.shape[1]
    refuse_open_votes(problem, for_none=for_none, total=total)
