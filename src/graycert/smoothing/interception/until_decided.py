"""Sampling that stops for a target once its radius is decided, and the same conclusion from the stored batches."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._types import BoolArray, FloatArray, IntArray
from graycert.draws import UntilDecided
from graycert.problem import Problem
from graycert.rules import SequentialCertificates
from graycert.sampling import Purpose
from graycert.smoothing.fixed_votes import drawing, estimation_arrays, selection_arrays
from graycert.smoothing.protocol import Arrays
from graycert.smoothing.votes_so_far import Stages
from graycert.statistics import SelectionVotes


def draw_until_decided(
    problem: Problem, delta_upper: FloatArray, engine: Any, engine_for: Callable[[IntArray], Any]
) -> Arrays:
    """Draw votes batch by batch, of fewer and fewer targets.

    Args:
        problem: The problem, whose draws are `UntilDecided`.
        delta_upper: Δ̄(ρ), shape (num_targets, max_radius).
        engine: Draws for all targets.
        engine_for: Returns the engine for some nodes.

    Returns:
        Votes in all, and per batch: ``estimation_batches``, shape (num_targets, num_batches, num_classes).

    Raises:
        UnsoundSetupError: ``scores-single-out-no-class``, once the selection votes show it.
    """
    draws, seed = _draws(problem), problem.setup.seed
    batches: list[IntArray] = []
    for_none: list[IntArray] = []
    with drawing(problem) as advance:
        stages = Stages(engine, problem, advance)
        selection = stages.votes(Purpose.SELECTION, num_samples=draws.num_selection)
        chosen = selection_arrays(problem, selection, num_samples=draws.num_selection)
        certificates = _certificates(problem, chosen, delta_upper)
        shrinking = _ShrinkingEngine(engine, problem.targets, engine_for)
        for number, first in enumerate(range(0, draws.max_estimation, draws.batch)):
            wanted = certificates.worth_drawing(draws.max_estimation)
            if not wanted.any():
                break
            size = min(draws.batch, draws.max_estimation - first)
            votes = stages.batch(number, partial(shrinking.votes, wanted, seed, first_sample=first, num_samples=size))
            no_class = np.where(wanted, size - votes.sum(axis=1), 0)
            certificates.update(votes, no_class)
            batches.append(votes)
            for_none.append(no_class)
            advance(size, f"{int(certificates.undecided.sum()):,} targets undecided")
    table = np.stack(batches, axis=1) if batches else np.zeros((selection.shape[0], 0, selection.shape[1]), np.int64)
    beside = np.stack(for_none, axis=1) if for_none else np.zeros(table.shape[:2], np.int64)
    return {
        **chosen,
        **estimation_arrays(table.sum(axis=1, dtype=np.int64), beside.sum(axis=1)),
        "estimation_batches": table,
        **({"estimation_batches_no_class": beside} if beside.any() else {}),
    }


def conclude_batches(problem: Problem, delta_upper: FloatArray, drawn: Mapping[str, NDArray[Any]]) -> Arrays:
    """Look at the stored batches once more, in their order: no target has votes after it was decided.

    A radius is never taken back, so batches that a wider threat or a stricter level would still have asked for are
    only missed: the radius is then smaller than it could be, and the target is marked as undecided.
    """
    certificates = _certificates(problem, drawn, delta_upper)
    batches, for_none = drawn["estimation_batches"], drawn.get("estimation_batches_no_class")
    for number in range(batches.shape[1]):
        certificates.update(batches[:, number], None if for_none is None else for_none[:, number])
    return {
        "prediction": certificates.prediction,
        "radius": certificates.radius,
        "num_samples": certificates.num_samples,
        "undecided": certificates.undecided,
    }


def _certificates(
    problem: Problem, drawn: Mapping[str, NDArray[Any]], delta_upper: FloatArray
) -> SequentialCertificates:
    selection = SelectionVotes.drawn(drawn["selection_votes"], drawn.get("selection_no_class"))
    return SequentialCertificates(selection, delta_upper, alpha=problem.level, give_up=_draws(problem).give_up)


def _draws(problem: Problem) -> UntilDecided:
    draws = problem.setup.draws
    if not isinstance(draws, UntilDecided):
        raise ValueError(f"expected draws that stop, got {draws!r}")
    return draws


class _ShrinkingEngine:
    """Votes on fewer and fewer targets. Which votes a target gets does not depend on when the engine shrinks."""

    def __init__(self, engine: Any, targets: IntArray, engine_for: Callable[[IntArray], Any]) -> None:
        self._engine, self._targets, self._engine_for = engine, targets, engine_for
        self._rows = np.arange(targets.size)

    def votes(self, wanted: BoolArray, seed: int, *, first_sample: int, num_samples: int) -> IntArray:
        """Return votes per target and class; rows of zeros where ``wanted`` is False."""
        if _is_worth_shrinking(num_wanted=int(wanted.sum()), num_drawn=self._rows.size):
            self._shrink(wanted)
        found = self._engine.votes(seed, Purpose.ESTIMATION, num_samples=num_samples, first_sample=first_sample)
        votes = np.zeros((wanted.size, found.shape[1]), dtype=np.int64)
        votes[self._rows] = found
        votes[~wanted] = 0
        return votes

    def _shrink(self, wanted: BoolArray) -> None:
        from graycert.sampling.compiled import CompiledEngine

        stays = wanted[self._rows]
        self._rows = self._rows[stays]
        if isinstance(self._engine, CompiledEngine):  # knows the whole graph
            self._engine = self._engine.restricted(stays)
        else:
            self._engine = self._engine_for(self._targets[self._rows])


def _is_worth_shrinking(*, num_wanted: int, num_drawn: int) -> bool:
    """Say whether at least half of the targets that are drawn are decided: then each target is paid for twice."""
    return 2 * num_wanted <= num_drawn
