r"""The event-aware rule: votes lost where no hostile message arrived cannot be blamed on the adversary twice."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graycert._types import NO_CLASS, FloatArray, IntArray
from graycert._validation import check_integer, check_open_unit
from graycert.bounds.interception_state import memory_needed, start_state
from graycert.bounds.routes import Routes
from graycert.errors import InvalidParameterError
from graycert.rules.event_search import CERTIFIED, REFUTED, SPARE, LostVotes, search
from graycert.statistics import clopper_pearson_upper

DEFAULT_MAX_SETS = 20_000  # per radius
_MAX_WORK = 2**28
_SUBSETS_UP_TO = 10
_MEMORY = 2**21


@dataclass(frozen=True, kw_only=True, eq=False)
class EventAwareRadius:
    """How far one target is certified.

    Args:
        radius: Certified radius, -1 where even ρ = 0 fails.
        decided: False if the search for the next radius was given up.
        counterexample: Nodes of a set of ``radius + 1`` for which the test fails, where the search found one.
    """

    radius: int
    decided: bool
    counterexample: IntArray


class EventAwareRule:
    r"""Certify targets from what arrived in their samples.

    $$\overline{CP}(e(B)) + \overline{CP}(m(B)) + 2\,p(\mathbb{E}(B)) < 1\quad\text{for all eligible } |B|\le\rho$$

    where e(B) counts the samples that did not vote for the reported class y* and in which nothing from B arrived, and
    m(B) the largest number of these that voted for one class or for none; the bounds are Clopper-Pearson's at α/2. With
    two classes both counts are equal and one bound at α is doubled.

    Guarantee:
        For y* fixed without these samples, with probability at least 1 - α: if radius ρ is certified, no set of ρ
        eligible nodes changes the predicted class. There is no correction for the number of sets or classes: if the
        certificate is wrong, it is wrong for some fixed B and class c, and this one test passes with probability at
        most α (docs/proofs/event_aware.md). Never weaker than the same bounds with 2Δ̄(ρ), up to rounding in the
        last digits. Rounded outward. If a search is given up, the radius is not certified.

    Args:
        num_samples: n1, the number of estimation samples.
        most_lost: Largest number of lost votes of any target that will be asked for.
        num_classes: C >= 2.
        alpha: Failure probability per target, in (0, 1).
        max_sets: Sets to branch on per radius before giving up.

    References:
        Beyond Scholten et al. (2022), whose Corollary 2 is the case B = {} in both counts.
    """

    def __init__(
        self, *, num_samples: int, most_lost: int, num_classes: int, alpha: float, max_sets: int = DEFAULT_MAX_SETS
    ) -> None:
        num_samples = check_integer("num_samples", num_samples, at_least=1)
        most_lost = check_integer("most_lost", most_lost, at_least=0, at_most=num_samples)
        num_classes = check_integer("num_classes", num_classes, at_least=2)
        alpha = check_open_unit("alpha", alpha, hint="It is the chance of failure, not the confidence level.")
        self._two_classes = num_classes == 2
        level = alpha if self._two_classes else alpha / 2
        self._upper = clopper_pearson_upper(np.arange(most_lost + 1), num_samples, alpha=level)
        self._max_sets = check_integer("max_sets", max_sets, at_least=1)
        self._memory = np.empty(_MEMORY)

    def certify(
        self,
        routes: Routes,
        *,
        classes: IntArray,
        arrived: NDArray[np.bool_],
        eligible: IntArray,
        delta_upper: FloatArray,
    ) -> EventAwareRadius:
        """Return how far one target is certified, up to ``delta_upper.size``.

        Args:
            routes: Of its field, from ``TwoLevelSearch.routes``.
            classes: What each lost sample voted for, `NO_CLASS` for none, shape (num_lost,).
            arrived: Whether the message of each eligible node arrived in it, shape (num_lost, num_eligible).
            eligible: Positions of the eligible nodes in the receptive field, shape (num_eligible,).
            delta_upper: Δ̄(ρ) for ρ = 1..max_radius, shape (max_radius,).

        Raises:
            InvalidParameterError: If shapes disagree or more votes were lost than announced.
        """
        if arrived.shape != (classes.size, eligible.size) or classes.size >= self._upper.size:
            raise InvalidParameterError(
                f"`arrived` must have shape (num_lost, num_eligible) with at most {self._upper.size - 1} lost votes, "
                f"got {arrived.shape} for {classes.size} lost votes and {eligible.size} eligible nodes."
            )
        none = np.empty(0, dtype=np.int64)
        if not self._bound(classes) < 1.0 - SPARE:
            return EventAwareRadius(radius=-1, decided=True, counterexample=none)
        if not routes.p_first.size:  # too many walks to tell who can arrive: only Δ̄ is known
            by_delta = self._bound(classes) + 2.0 * delta_upper < 1.0 - SPARE
            radius = int(np.logical_and.accumulate(by_delta).sum())
            return EventAwareRadius(radius=radius, decided=radius == delta_upper.size, counterexample=none)
        votes, candidates = self._lost_votes(routes.type_of[eligible], classes, arrived)
        memory = self._scratch(memory_needed(routes, delta_upper.size))
        for radius in range(1, min(delta_upper.size, candidates.size) + 1):  # more nodes than there are change nothing
            found = np.zeros(radius, dtype=np.int64)
            state = start_state(routes, _SUBSETS_UP_TO, radius, _MAX_WORK, memory)
            outcome, _ = search(routes, state, votes, radius, delta_upper[radius - 1], self._max_sets, found)
            if outcome != CERTIFIED:
                failing = eligible[candidates[found]] if outcome == REFUTED else none
                return EventAwareRadius(radius=radius - 1, decided=outcome == REFUTED, counterexample=failing)
        return EventAwareRadius(radius=delta_upper.size, decided=True, counterexample=none)

    def _bound(self, classes: IntArray) -> float:
        for_none = np.count_nonzero(classes == NO_CLASS)
        largest = for_none + int(np.unique(classes[classes != NO_CLASS], return_counts=True)[1].max(initial=0))
        if self._two_classes:
            return float(2.0 * self._upper[classes.size])
        return float(self._upper[classes.size] + self._upper[largest])

    def _lost_votes(self, kinds: IntArray, classes: IntArray, arrived: NDArray[np.bool_]) -> tuple[LostVotes, IntArray]:
        """Pack the arrivals of nodes that can arrive, class by class; and return these nodes' positions."""
        from graycert.bounds.repeated_counts import distinct_rows

        names, counts = np.unique(classes, return_counts=True)  # rising: votes for no class are first
        num_words = -(-counts // 64)
        class_starts = np.concatenate([[0], np.cumsum(num_words)]).astype(np.int64)
        place = np.empty(classes.size, dtype=np.int64)
        for number, name in enumerate(names):
            place[classes == name] = 64 * class_starts[number] + np.arange(counts[number])
        candidates = np.flatnonzero(kinds >= 0)
        bits = np.zeros((candidates.size + 1, 64 * int(class_starts[-1])), dtype=np.bool_)
        bits[:-1, place] = arrived.T[candidates]
        bits[-1, place] = True
        words = np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)
        rows = np.column_stack([kinds[candidates].astype(np.uint64), words[:-1]])
        _, twins = distinct_rows(np.ascontiguousarray(rows).view(np.float64))
        order = np.argsort(twins, kind="stable")
        votes = LostVotes(
            kinds=kinds[candidates][order],
            twins=twins[order],
            arrived=np.ascontiguousarray(words[:-1][order]),
            valid=words[-1].copy(),
            class_starts=class_starts,
            upper=self._upper,
            two_classes=self._two_classes,
            for_none=bool((classes == NO_CLASS).any()),
        )
        return votes, candidates[order]

    def _scratch(self, size: int) -> FloatArray:
        if self._memory.size < size:
            self._memory = np.empty(size)
        return self._memory
