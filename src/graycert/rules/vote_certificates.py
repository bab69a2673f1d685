"""From votes and Δ̄ to a certificate per target."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._types import FloatArray, IntArray
from graycert._validation import check_choice, check_open_unit
from graycert.errors import InvalidParameterError
from graycert.rules.binary import binary_bounds, binary_margin
from graycert.rules.difference import difference_margin_lower
from graycert.rules.multiclass import intersection_union_bounds, multiclass_margin, paper_bounds
from graycert.rules.radius import certified_radius
from graycert.rules.status import Status
from graycert.statistics import EstimationVotes, SelectionVotes
from graycert.statistics.votes import row_sum

VOTE_RULES = ("sound", "difference", "paper")
RULES = (*VOTE_RULES, "event-aware")  # the last one needs to know what arrived in each sample
RULE_HINT = (
    "'sound', 'difference' and 'event-aware' are certificates; 'paper' only reproduces published numbers and is not "
    "sound."
)


def is_sound(rule: str) -> bool:
    """Return whether a rule gives certificates at all."""
    return rule != "paper"


@dataclass(frozen=True, kw_only=True)
class VoteCertificates:
    """Certificates of all targets, in the order of the votes.

    Attributes:
        prediction: The reported class, shape (num_targets,). Where the classifier abstains it is only the
            class with most selection votes.
        status: A value of ``Status`` per target.
        p_lower: Lower bound on the probability of the reported class.
        p_upper: Upper bound on the probability of every other class (with rule "paper" of one other class).
        radius: Certified radius, -1 where the classifier abstains; capped at the columns of ``delta_upper``.
        rule: The rule; "paper" is NOT SOUND: it bounds only one of the other classes.
        alpha: Failure probability per target; all radii of a target hold jointly.
    """

    prediction: IntArray
    status: NDArray[np.str_]
    p_lower: FloatArray
    p_upper: FloatArray
    radius: IntArray
    rule: str
    alpha: float


def certify_votes(
    selection_votes: ArrayLike | SelectionVotes,
    estimation_votes: ArrayLike | EstimationVotes,
    delta_upper: ArrayLike,
    *,
    alpha: float = 0.01,
    rule: str = "sound",
) -> VoteCertificates:
    r"""Certify the predictions of the smoothed classifier from vote counts.

    $$\underline{p}_{v,y^*} - \overline{\Delta}_v(\rho) > \overline{p}_{v,c} + \overline{\Delta}_v(\rho)
    \quad\text{for all } c \ne y^*$$

    The reported class y* has most selection votes (at a tie the lowest index). Abstaining is the same
    rule at ρ = 0, where Δ = 0.

    Guarantee:
        With rules "sound" and "difference", and estimation votes independent of the selection votes, the event "some
        radius of this target is larger than the true one" has probability at most ``alpha``, per target. Holds in
        floating point, if ``delta_upper`` holds. With rule "paper" there is NO guarantee: it does what the
        authors' implementation does, which bounds only one of the other classes (see
        ``graycert.rules.multiclass.paper_bounds``).

    Args:
        selection_votes: n0 votes per target and class, integers, shape (num_targets, num_classes),
            num_classes >= 2.
        estimation_votes: n1 votes, drawn independently of the former, same shape.
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, in [0, 1], never falling with ρ, shape
            (num_targets, max_radius).
        alpha: Failure probability per target, in (0, 1).
        rule: "sound" bounds the probabilities of two classes, "difference" tests their difference (tighter from three
            classes on; ``p_lower`` and ``p_upper`` are then for display and need not lead to the radius), or "paper".
            Choose it before looking at estimation votes: the larger of two radii has no level.

    Returns:
        One certificate per target.

    Raises:
        InvalidParameterError: If an argument is outside its domain or the shapes disagree.

    Example:
        >>> certificates = certify_votes([[10, 0, 0]], [[290, 6, 4]], [[0.2, 0.36, 0.488]])
        >>> certificates.radius.tolist(), certificates.status.tolist()
        ([2], ['certified'])

    References:
        Scholten et al. (2022), Corollaries 1 and 2, Appendix A, Section 5.
    """
    selection = _selection(selection_votes)
    estimation = _estimation(estimation_votes)
    if selection.counts.shape != estimation.counts.shape:
        raise InvalidParameterError(
            f"`estimation_votes` must have the shape of `selection_votes`, {selection.counts.shape}, "
            f"got {estimation.counts.shape}. Both count the same classes for the same targets."
        )
    deltas = check_delta_upper(delta_upper, num_targets=selection.num_targets)
    alpha = check_open_unit("alpha", alpha, hint="It is the chance of failure, not the confidence level.")
    rule = check_choice("rule", rule, VOTE_RULES, hint=RULE_HINT)

    majority = selection.counts.argmax(axis=1)  # the first one at a tie
    if rule == "paper":
        runner_up = _paper_runner_up(selection, majority)
        p_lower, p_upper = paper_bounds(estimation, majority, runner_up, alpha=alpha)
        margin = p_lower - p_upper
    elif selection.num_classes == 2:
        p_lower, p_upper = binary_bounds(estimation, majority, alpha=alpha)
        margin = binary_margin(p_lower)
    else:
        p_lower, p_upper = intersection_union_bounds(estimation, majority, alpha=alpha)
        margin = multiclass_margin(p_lower, p_upper)
        if rule == "difference":
            margin = difference_margin_lower(estimation, majority, alpha=alpha)
    radius = certified_radius(margin, deltas)
    return VoteCertificates(
        prediction=majority.astype(np.int64),
        status=status_of(radius),
        p_lower=p_lower,
        p_upper=p_upper,
        radius=radius,
        rule=rule,
        alpha=alpha,
    )


def status_of(radius: IntArray) -> NDArray[np.str_]:
    """Return the status that belongs to each radius.

    Example:
        >>> status_of(np.array([-1, 0, 3])).tolist()
        ['abstained', 'predicted', 'certified']
    """
    names = np.array([Status.ABSTAINED.value, Status.PREDICTED.value, Status.CERTIFIED.value])
    return names[np.clip(radius, -1, 1) + 1]


def check_delta_upper(delta_upper: ArrayLike, *, num_targets: int) -> FloatArray:
    """Return ``delta_upper`` as a float64 table of shape (num_targets, max_radius), checked.

    Raises:
        InvalidParameterError: If it has another shape, holds values outside [0, 1], or falls with the radius.
    """
    deltas = np.asarray(delta_upper)
    if deltas.dtype.kind != "f":
        raise InvalidParameterError(
            f"`delta_upper` must hold floats, got dtype {deltas.dtype}. Use the result of delta_bounds."
        )
    if deltas.ndim != 2 or deltas.shape[0] != num_targets or deltas.shape[1] < 1:
        raise InvalidParameterError(
            f"`delta_upper` must have shape (num_targets, max_radius) with {num_targets} targets and at "
            f"least one radius, got {deltas.shape}. Column ρ - 1 belongs to radius ρ."
        )
    wrong = ~((deltas >= 0.0) & (deltas <= 1.0))  # also NaN
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InvalidParameterError(
            f"`delta_upper` must be in [0, 1], got {deltas[row, column]} for target {row} at radius "
            f"{column + 1}. It bounds a probability."
        )
    falling = np.diff(deltas, axis=1) < 0.0
    if falling.any():
        row, column = np.argwhere(falling)[0]
        raise InvalidParameterError(
            f"`delta_upper` must not fall with the radius, got {deltas[row, column]} and then "
            f"{deltas[row, column + 1]} for target {row} at radius {column + 2}. One more hostile node "
            "never lowers the probability of a hostile message: are the columns in order?"
        )
    return np.ascontiguousarray(deltas, dtype=np.float64)


def _selection(votes: ArrayLike | SelectionVotes) -> SelectionVotes:
    if isinstance(votes, SelectionVotes):
        return votes
    if isinstance(votes, EstimationVotes):
        raise InvalidParameterError(
            "`selection_votes` must be selection votes, got EstimationVotes. Are the two arguments swapped?"
        )
    return SelectionVotes(np.asarray(votes), row_sum("selection_votes", votes))


def _estimation(votes: ArrayLike | EstimationVotes) -> EstimationVotes:
    if isinstance(votes, EstimationVotes):
        return votes
    if isinstance(votes, SelectionVotes):
        raise InvalidParameterError(
            "`estimation_votes` must be estimation votes, got SelectionVotes. The votes that chose the "
            "class cannot bound its probability: draw new ones."
        )
    return EstimationVotes(np.asarray(votes), row_sum("estimation_votes", votes))


def _paper_runner_up(selection: SelectionVotes, majority: IntArray) -> IntArray:
    """Return the class that the authors' implementation bounds.

    That is the last but one of a stable sort. At a tie for the first place the last but one can be the
    reported class itself; then the last one is bounded, so that two different classes are compared.
    """
    order = np.argsort(selection.counts, axis=1, kind="stable")
    second = order[:, -2]
    return np.where(second == majority, order[:, -1], second)
