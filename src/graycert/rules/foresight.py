"""What (n1, α, Δ̄) can certify at best, known before any sample is drawn."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._validation import check_choice, check_integer, check_integer_array, check_open_unit
from graycert.errors import InvalidParameterError
from graycert.rules.radius import certified_radius
from graycert.rules.rule import RULES
from graycert.rules.vote_certificates import check_delta_upper
from graycert.statistics import EstimationVotes, SelectionVotes


@dataclass(frozen=True, kw_only=True)
class Foresight:
    """The best that a set-up can reach: all estimation votes of a target go to one class.

    Attributes:
        num_targets: Number of targets.
        best_margin: Largest reachable lower bound on the lead of the majority class, in [-1, 1].
        can_predict: Whether the classifier can do anything but abstain.
        best_radius: Largest reachable radius per target, at most as many as could be hostile to it where that is
            known; -1 if it must abstain, shape (num_targets,).
        certifiable: For ρ = 1..max_radius, how many targets can reach radius ρ, shape (max_radius,).
        in_words: What that means and, if nothing can be certified, what to change.
    """

    num_targets: int
    best_margin: float
    can_predict: bool
    best_radius: NDArray[np.int64]
    certifiable: NDArray[np.int64]
    in_words: str

    @property
    def can_certify(self) -> bool:
        """Whether any target can reach radius 1."""
        return bool(self.certifiable[0] > 0)


def check_can_certify(
    delta_upper: ArrayLike,
    *,
    num_estimation: int,
    num_classes: int,
    alpha: float = 0.01,
    rule: str = "sound",
    num_eligible: ArrayLike | None = None,
) -> Foresight:
    """Say before sampling what the set-up can certify at best.

    Args:
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, in [0, 1], never falling with ρ, shape
            (num_targets, max_radius).
        num_estimation: n1 >= 1.
        num_classes: Number of classes, >= 2.
        alpha: Failure probability per target, in (0, 1).
        rule: "sound", "difference", "event-aware" or "paper".
        num_eligible: How many could be hostile to each target, >= 0, shape (num_targets,); no radius is larger.

    Returns:
        The best reachable lead and radii. No votes with these parameters give a larger radius.

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    Example:
        >>> foresight = check_can_certify([[0.4]], num_estimation=20, num_classes=3)
        >>> round(foresight.best_margin, 3), foresight.can_certify
        (0.535, False)
    """
    num_estimation = check_integer("num_estimation", num_estimation, at_least=1)
    num_classes = check_integer("num_classes", num_classes, at_least=2)
    alpha = check_open_unit("alpha", alpha, hint="It is the chance of failure, not the confidence level.")
    rule = check_choice("rule", rule, tuple(name for name, each in RULES.items() if each.lead is not None))
    rows = np.shape(delta_upper)[0] if np.ndim(delta_upper) else 0
    if rows == 0:
        raise InvalidParameterError(
            f"`delta_upper` must have at least one target, got shape {np.shape(delta_upper)}. Name a target."
        )
    deltas = check_delta_upper(delta_upper, num_targets=rows)
    margin = _best_margin(num_estimation, num_classes, alpha, rule)
    best = certified_radius(np.full(rows, margin), deltas)
    attackable = deltas
    if num_eligible is not None:
        eligible = check_integer_array("num_eligible", num_eligible, ndim=1, at_least=0)
        best, attackable = np.minimum(best, eligible), deltas[eligible > 0]
    certifiable = np.array([np.count_nonzero(best >= radius) for radius in range(1, deltas.shape[1] + 1)])
    return Foresight(
        num_targets=rows,
        best_margin=margin,
        can_predict=margin > 0.0,
        best_radius=best,
        certifiable=certifiable.astype(np.int64),
        in_words=_in_words(margin, best, attackable, num_estimation, alpha),
    )


def _best_margin(num_estimation: int, num_classes: int, alpha: float, rule: str) -> float:
    """Return the lead if all votes go to one class."""
    votes = np.zeros((1, num_classes), dtype=np.int64)
    votes[0, 0] = num_estimation
    selection, estimation = SelectionVotes(votes, num_estimation), EstimationVotes(votes, num_estimation)
    lead = RULES[rule].lead_of(selection, estimation, np.zeros(1, dtype=np.int64), alpha)
    return float(lead.margin[0])


def _in_words(
    margin: float, best: NDArray[np.int64], deltas: NDArray[np.float64], num_estimation: int, alpha: float
) -> str:
    samples = f"even if all n1 = {num_estimation:,} estimation votes of a target agree"
    if margin <= 0.0:
        return (
            f"Nothing can be predicted: {samples}, α = {alpha:g} is too strict to tell the classes apart, "
            "so every target abstains. Raise n1 (`num_estimation`) or `alpha`."
        )
    if not deltas.size:
        return "Nobody could attack: for no target is there a node that may be hostile."
    smallest = float(deltas[:, 0].min())
    if best.max() < 1:
        advice = "Raise n1 (`num_estimation`)."
        if smallest >= 0.5:
            advice = (
                "No number of samples can help, because Δ̄(1) >= 1/2 for every target: raise `p_delete` or "
                "`p_ablate`, or restrict the threat (`min_distance`, `trusted`)."
            )
        return (
            f"Nothing can be certified: {samples}, its class leads by at most "
            f"{math.ceil(margin * 1000) / 1000:.3f} at α = {alpha:g}, and a certificate needs more than "
            f"2·Δ̄(1) >= {math.floor(2000 * smallest) / 1000:.3f}. {advice}"
        )
    reachable = int(np.count_nonzero(best >= 1))
    top = int(best.max())
    beyond = (
        f"{int(np.count_nonzero(best == top)):,} at radius {top}, the largest that is looked at"
        if top == deltas.shape[1]
        else f"none beyond radius {top}"
    )
    return f"At best {reachable:,} of {best.size:,} targets can be certified at radius 1, and {beyond}."
