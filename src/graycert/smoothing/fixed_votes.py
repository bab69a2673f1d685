"""Votes by a fixed number of draws, and what they can certify at best, said before they are drawn."""

import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._progress import Advance, progress_bar
from graycert._types import IntArray
from graycert.draws import Draws
from graycert.problem import Problem
from graycert.rules import check_can_certify
from graycert.sampling.engine import Engine
from graycert.sampling.streams import Purpose
from graycert.smoothing.open_votes import refuse_open_votes
from graycert.smoothing.protocol import Arrays, FromGraph
from graycert.smoothing.votes_so_far import Stages
from graycert.statistics import EstimationVotes, SelectionVotes


def foresee(problem: Problem, found: FromGraph, *, num_classes: int, num_estimation: int) -> None:
    """Say what votes can certify at best; warn where nothing can be certified, whatever they are."""
    foresight = check_can_certify(
        found.arrays["delta_upper"],
        num_eligible=found.arrays["num_eligible"],
        num_estimation=num_estimation,
        num_classes=num_classes,
        alpha=problem.level,
        rule=problem.setup.rule,
    )
    if problem.execution.say is not None:
        problem.execution.say(foresight.in_words)
    elif not foresight.can_certify and found.arrays["num_eligible"].any():
        warnings.warn(foresight.in_words, stacklevel=4)


def fixed_votes(engine: Engine, problem: Problem) -> Arrays:
    """Draw n0 and n1 votes for every target.

    Raises:
        UnsoundSetupError: ``scores-single-out-no-class``, once the n0 votes show it.
    """
    draws = the_draws(problem)
    with drawing(problem) as advance:
        stages = Stages(engine, problem, advance)
        selection = stages.votes(Purpose.SELECTION, num_samples=draws.num_selection)
        chosen = selection_arrays(problem, selection, num_samples=draws.num_selection)
        estimation = stages.votes(Purpose.ESTIMATION, num_samples=draws.num_estimation)
    return chosen | estimation_arrays(estimation, draws.num_estimation - estimation.sum(axis=1))


def selection_arrays(problem: Problem, votes: IntArray, *, num_samples: int) -> Arrays:
    """Return selection votes for the result; say if some are for no class.

    Raises:
        UnsoundSetupError: ``scores-single-out-no-class``, if most of every target's are.
    """
    no_class = num_samples - votes.sum(axis=1)
    refuse_open_votes(problem, for_none=no_class, total=np.full(no_class.shape, num_samples))
    return {"selection_votes": votes, **({"selection_no_class": no_class} if no_class.any() else {})}


def estimation_arrays(votes: IntArray, no_class: IntArray) -> Arrays:
    """Return estimation votes for the result, and those for no class if there are any."""
    return {"estimation_votes": votes, **({"estimation_no_class": no_class} if no_class.any() else {})}


def counted_votes(drawn: Mapping[str, NDArray[Any]], rows: Any = slice(None)) -> tuple[SelectionVotes, EstimationVotes]:
    """Return both kinds of votes of some targets, from the arrays of a result."""
    selection, estimation = (
        (drawn[f"{kind}_votes"][rows], drawn[f"{kind}_no_class"][rows] if f"{kind}_no_class" in drawn else None)
        for kind in ("selection", "estimation")
    )
    return SelectionVotes.drawn(*selection), EstimationVotes.drawn(*estimation)


def drawing(problem: Problem) -> AbstractContextManager[Advance]:
    """Show how far drawing is, where that was asked for; a context that gives what is called with draws done."""
    draws = problem.setup.draws
    total = 0 if draws is None else draws.most
    return progress_bar("drawing", total=total, unit="draws", shown=problem.execution.progress)


def the_draws(problem: Problem) -> Draws:
    """Return how much is drawn, where it is a fixed number.

    Raises:
        ValueError: If it is not.
    """
    draws = problem.setup.draws
    if not isinstance(draws, Draws):
        raise ValueError(f"expected a fixed number of draws, got {draws!r}")
    return draws
