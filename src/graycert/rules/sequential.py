r"""Certificates that may be looked at after every batch of votes: sampling of a target stops once it is decided."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer_array, check_open_unit
from graycert.errors import InvalidParameterError
from graycert.rules.vote_certificates import check_delta_upper, status_of
from graycert.statistics import SelectionVotes
from graycert.statistics.betting import STAKES, log_wealth_lower, stake_weights

_ENTRIES_AT_ONCE = 2**20  # some dozen arrays of this size are in memory at a time


class SequentialCertificates:
    r"""Certified radii that hold at every moment while votes come in.

    For each other class c and each radius ρ there is a bet on $p_{y^*} - p_c > 2\overline\Delta(\rho)$. A radius is
    certified once the bets against all other classes have multiplied their wealth by 1/α, each at some time, and the
    radius before it is certified. It is never taken back.

    Guarantee:
        For votes independent of the selection votes, the event "at some time the radius of this target is larger than
        the true one" has probability at most ``alpha``, per target. The number of votes may depend on anything seen so
        far, and differ between targets. There is no correction for the number of classes, radii or looks.

    Args:
        selection_votes: n0 votes per target and class, integers, shape (num_targets, num_classes), num_classes >= 2.
            They choose the reported class, and the stakes.
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, in [0, 1], never falling with ρ, shape (num_targets, max_radius).
        alpha: Failure probability per target, in (0, 1).
        give_up: A target counts as decided once bets *against* its next radius have multiplied their wealth by
            1 / give_up, in (0, 1). A larger value saves votes and may lose radii; the guarantee does not depend on it.

    Attributes:
        prediction: The reported class, shape (num_targets,).
        alpha: As given.

    Raises:
        InvalidParameterError: If an argument is outside its domain or the shapes disagree.

    Example:
        >>> certificates = SequentialCertificates([[98, 1, 1]], [[0.2, 0.45]])
        >>> certificates.update([[98, 1, 1]])
        >>> certificates.radius.tolist(), certificates.undecided.tolist()
        ([1], [True])
        >>> certificates.update([[395, 3, 2]])
        >>> certificates.radius.tolist(), certificates.undecided.tolist()
        ([2], [False])

    References:
        Ville (1939); Waudby-Smith and Ramdas (2024); docs/proofs/sequential.md.
    """

    def __init__(
        self,
        selection_votes: ArrayLike | SelectionVotes,
        delta_upper: ArrayLike,
        *,
        alpha: float = 0.01,
        give_up: float = 0.05,
    ) -> None:
        if not isinstance(selection_votes, SelectionVotes):
            selection_votes = SelectionVotes.drawn(selection_votes)
        self._selection = selection_votes.counts
        self._selection_possible = selection_votes.possible()
        self._num_selection = selection_votes.num_samples
        deltas = check_delta_upper(delta_upper, num_targets=selection_votes.num_targets)
        self._thresholds = np.hstack([np.zeros((len(deltas), 1)), 2.0 * deltas])  # doubling is exact
        self.alpha = check_open_unit("alpha", alpha, hint="It is the chance of failure, not the confidence level.")
        give_up = check_open_unit("give_up", give_up)
        self._enough = math.nextafter(-math.log(self.alpha), math.inf) * (1.0 + 2.0**-50)
        self._hopeless = -math.log(give_up)

        self.prediction: IntArray = self._selection.argmax(axis=1).astype(np.int64)  # the first one at a tie
        self._counts = np.zeros_like(self._selection)
        self._no_class = np.zeros(len(deltas), dtype=np.int64)
        self._radius = np.full(len(deltas), -1, dtype=np.int64)
        self._beaten = self._only_itself(np.arange(len(deltas)))
        self._given_up = np.zeros(len(deltas), dtype=np.bool_)
        self._block = max(_ENTRIES_AT_ONCE // (selection_votes.num_classes * STAKES.size), 1)

    @property
    def radius(self) -> IntArray:
        """Certified radius so far, -1 where no class is singled out yet, shape (num_targets,)."""
        return self._radius.copy()

    @property
    def status(self) -> NDArray[np.str_]:
        """A value of ``Status`` per target."""
        return status_of(self._radius)

    @property
    def num_samples(self) -> IntArray:
        """Votes so far, shape (num_targets,)."""
        return np.asarray(self._counts.sum(axis=1) + self._no_class, dtype=np.int64)

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Targets that more votes may help: a larger radius is possible and has not been given up."""
        return self._possible(np.arange(self._radius.size)) & ~self._given_up

    def worth_drawing(self, most: int) -> NDArray[np.bool_]:
        """Return undecided targets whose next radius still is within reach of ``most`` votes, by what is seen so far.

        Wealth has to grow by g = (log 1/α - log K) / (votes left) per vote. Bets on a lead that is d above the
        threshold, with variance σ² of a vote, grow by about d² / 2σ²; so the lead has to be σ √2g above. It counts as
        out of reach where the n votes so far, those that chose the class among them, show a lead that is smaller by
        more than σ √(2 log(1 / give_up) / n).
        """
        found = self.undecided
        targets = np.flatnonzero(found)
        for start in range(0, targets.size, self._block):
            some = targets[start : start + self._block]
            found[some] = ~self._out_of_reach(some, most)
        return found

    def _out_of_reach(self, targets: IntArray, most: int) -> NDArray[np.bool_]:
        wins, losses, samples = (sum(both) for both in zip(*self._seen(targets), strict=True))
        lead = (wins - losses) / samples
        variance = np.maximum((wins + losses) / samples - lead**2, 1.0 / samples)
        left = np.maximum(most - self.num_samples[targets], 1)[:, None]
        needed = np.maximum(self._enough - self._log_wealth(targets), 0.0) / left  # infinite for the class itself
        surely = lead + np.sqrt(2.0 * variance * self._hopeless / samples)
        threshold = self._thresholds[targets, self._radius[targets] + 1][:, None]
        return np.asarray(
            (~self._beaten[targets] & (surely < threshold + np.sqrt(2.0 * variance * needed))).any(axis=1)
        )

    def update(self, batch_counts: ArrayLike, no_class: ArrayLike | None = None) -> None:
        """Add the votes of a batch.

        Args:
            batch_counts: New votes per target and class, integers >= 0, shape (num_targets, num_classes). A row of
                zeros leaves its target as it is: decided targets need no votes.
            no_class: New votes for no class, shape (num_targets,); None if there are none. They count against the
                reported class, for every other one.

        Raises:
            InvalidParameterError: If they are no such tables.
        """
        batch = check_integer_array("batch_counts", batch_counts, ndim=2, at_least=0, hint="Votes are counts.")
        if batch.shape != self._counts.shape:
            raise InvalidParameterError(
                f"`batch_counts` must have the shape of the selection votes, {self._counts.shape}, got {batch.shape}. "
                "Give a row of zeros to targets without new votes."
            )
        nowhere = np.zeros_like(self._no_class)
        if no_class is not None:
            nowhere = check_integer_array("no_class", no_class, ndim=1, at_least=0, hint="Votes are counts.")
            if nowhere.shape != self._no_class.shape:
                raise InvalidParameterError(
                    f"`no_class` must have one entry per target ({self._no_class.size}), got shape {nowhere.shape}."
                )
        self._counts += batch
        self._no_class += nowhere
        touched = np.flatnonzero(batch.any(axis=1) | (nowhere > 0))
        for start in range(0, touched.size, self._block):
            self._decide(touched[start : start + self._block])

    def _decide(self, targets: IntArray) -> None:
        """Certify as many further radii as the wealth allows, then see whether the next one is hopeless."""
        waiting = targets[self._possible(targets)]
        while waiting.size:
            self._beaten[waiting] |= self._log_wealth(waiting) >= self._enough
            certified = waiting[self._beaten[waiting].all(axis=1)]
            self._radius[certified] += 1
            self._beaten[certified] = self._only_itself(certified)
            waiting = certified[self._possible(certified)]
        open_targets = targets[self._possible(targets)]
        self._given_up[open_targets] = (self._log_wealth(open_targets, against=True) >= self._hopeless).any(axis=1)

    def _possible(self, targets: IntArray) -> NDArray[np.bool_]:
        """Whether there is a next radius, and a lead in [-1, 1] that could exceed its threshold."""
        following = np.minimum(self._radius[targets] + 1, self._thresholds.shape[1] - 1)
        more = self._radius[targets] + 1 < self._thresholds.shape[1]
        return np.asarray(more & (self._thresholds[targets, following] < 1.0))

    def _log_wealth(self, targets: IntArray, *, against: bool = False) -> FloatArray:
        """Log-wealth of the bets on (or against) the next radius, for each other class; -inf for the class itself."""
        sign = -1.0 if against else 1.0
        threshold = sign * self._thresholds[targets, self._radius[targets] + 1][:, None]
        earlier, now = self._seen(targets)
        if against:
            earlier, now = ((losses, wins, samples) for wins, losses, samples in (earlier, now))
        weights = stake_weights(*earlier, threshold=threshold)
        wealth = log_wealth_lower(*now, threshold=threshold, weights=weights)
        wealth[np.arange(targets.size), self.prediction[targets]] = -np.inf
        return wealth

    def _seen(self, targets: IntArray) -> tuple[tuple[IntArray, IntArray, IntArray], ...]:
        """Return outcomes of the votes that chose the class, and of those since."""
        majority = self.prediction[targets][:, None]
        earlier = self._outcomes(
            np.take_along_axis(self._selection[targets], majority, axis=1),
            self._selection_possible[targets],
            np.full((targets.size, 1), self._num_selection),
        )
        now = self._outcomes(
            np.take_along_axis(self._counts[targets], majority, axis=1),
            self._counts[targets] + self._no_class[targets][:, None],
            self.num_samples[targets][:, None],
        )
        return earlier, now

    @staticmethod
    def _outcomes(wins: IntArray, losses: IntArray, samples: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return wins, losses and samples of the reported class against each class."""
        return np.broadcast_to(wins, losses.shape), losses, samples

    def _only_itself(self, targets: IntArray) -> NDArray[np.bool_]:
        return np.asarray(np.arange(self._selection.shape[1]) == self.prediction[targets][:, None])
