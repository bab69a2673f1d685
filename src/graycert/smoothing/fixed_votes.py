"""Votes by a fixed number of draws, and what they can certify at best, said before they are drawn."""

import warnings
from contextlib import AbstractContextManager

from graycert._progress import Advance, progress_bar
from graycert._types import FloatArray
from graycert.draws import Draws
from graycert.problem import Problem
from graycert.rules import check_can_certify
from graycert.sampling.engine import Engine
from graycert.sampling.streams import Purpose
from graycert.smoothing.protocol import Arrays


def foresee(problem: Problem, delta_upper: FloatArray, *, num_classes: int, num_estimation: int) -> None:
    """Say what votes can certify at best; warn where nothing can be certified, whatever they are."""
    foresight = check_can_certify(
        delta_upper,
        num_estimation=num_estimation,
        num_classes=num_classes,
        alpha=problem.level,
        rule=problem.setup.rule,
    )
    if problem.execution.say is not None:
        problem.execution.say(foresight.in_words)
    elif not foresight.can_certify:
        warnings.warn(foresight.in_words, stacklevel=4)


def fixed_votes(engine: Engine, problem: Problem) -> Arrays:
    """Draw n0 and n1 votes for every target."""
    draws = the_draws(problem)
    seed = problem.setup.seed
    with drawing(problem) as advance:
        selection = engine.votes(seed, Purpose.SELECTION, num_samples=draws.num_selection, progress=advance)
        estimation = engine.votes(seed, Purpose.ESTIMATION, num_samples=draws.num_estimation, progress=advance)
    return {"selection_votes": selection, "estimation_votes": estimation}


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
