"""From votes and Δ̄ to a certificate per target."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from graycert._origin import Origin
from graycert._types import FloatArray, IntArray, TextArray
from graycert._validation import check_choice, check_open_unit
from graycert.errors import InvalidParameterError
from graycert.rules.radius import certified_radius
from graycert.rules.rule import COUNT_RULES, RULES
from graycert.rules.status import Status
from graycert.statistics import EstimationVotes, SelectionVotes

if TYPE_CHECKING:
    from graycert.bounds import DeltaBounds


@dataclass(frozen=True, kw_only=True)
class VoteCertificates:
    """Certificates of all targets, in the order of the votes.

    Attributes:
        prediction: The reported class, shape (num_targets,). Where the classifier abstains it is only the
            class with most selection votes.
        status: A value of ``Status`` per target.
        p_lower: Lower bound on the probability of the reported class.
        p_upper: Upper bound on the probability of every other class (with rule "paper" of one other class).
        radius: Certified radius, -1 where the classifier abstains; capped at the columns of ``delta_upper``, and at
            the number of eligible nodes where the bounds say it.
        rule: The rule; "paper" is NOT SOUND: it bounds only one of the other classes.
        alpha: Failure probability per target; all radii of a target hold jointly.
        belongs_to: What the caller said that bare arrays belong to; empty if all of them say so themselves.
    """

    prediction: IntArray
    status: TextArray
    p_lower: FloatArray
    p_upper: FloatArray
    radius: IntArray
    rule: str
    alpha: float
    belongs_to: str = ""


def certify_votes(
    selection_votes: ArrayLike | SelectionVotes,
    estimation_votes: ArrayLike | EstimationVotes,
    delta_upper: "ArrayLike | DeltaBounds",
    *,
    alpha: float = 0.01,
    rule: str = "sound",
    belongs_to: str = "",
) -> VoteCertificates:
    r"""Certify the predictions of the smoothed classifier from vote counts.

    $$\underline{p}_{v,y^*} - \overline{\Delta}_v(\rho) > \overline{p}_{v,c} + \overline{\Delta}_v(\rho)
    \quad\text{for all } c \ne y^*$$

    The reported class y* has most selection votes (at a tie the lowest index). Abstaining is the same
    rule at ρ = 0, where Δ = 0. Votes for no class (draws whose scores single out none) count against y*, for every
    other class.

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
        delta_upper: The result of `delta_bounds`, or Δ̄(ρ) for ρ = 1..max_radius, in [0, 1], never falling with ρ, shape
            (num_targets, max_radius).
        alpha: Failure probability per target, in (0, 1).
        rule: "sound" bounds the probabilities of two classes, "difference" tests their difference (tighter from three
            classes on; ``p_lower`` and ``p_upper`` are then for display and need not lead to the radius), or "paper".
            Choose it before looking at estimation votes: the larger of two radii has no level.
        belongs_to: What bare arrays belong to, in words: by giving it you state that votes and bounds are of one graph,
            one list of targets, one smoothing, and one model, whose number of propagation steps is that of the bounds.
            With votes of a result (`Certificates.votes`) and the result of `delta_bounds` this is compared instead.

    Returns:
        One certificate per target.

    Raises:
        InvalidParameterError: If an argument is outside its domain, the shapes disagree, votes and bounds are of
            different set-ups, or what bare arrays belong to is not said.

    Example:
        >>> votes, bounds = ([[10, 0, 0]], [[290, 6, 4]]), [[0.2, 0.36, 0.488]]
        >>> certificates = certify_votes(*votes, bounds, belongs_to="a made-up target, k = 2")
        >>> certificates.radius.tolist(), certificates.status.tolist()
        ([2], ['certified'])

    References:
        Scholten et al. (2022), Corollaries 1 and 2, Appendix A, Section 5.
    """
    selection = _selection(selection_votes)
    estimation = _estimation(estimation_votes)
    _check_origin(selection, estimation, delta_upper, belongs_to)
    found = certify_counts(selection, estimation, np.asarray(delta_upper), alpha=alpha, rule=rule)
    eligible = getattr(delta_upper, "num_eligible", None)
    radius = found.radius if eligible is None else np.minimum(found.radius, eligible)
    return replace(found, radius=radius, status=status_of(radius), belongs_to=belongs_to)


def certify_counts(
    selection: SelectionVotes, estimation: EstimationVotes, delta_upper: ArrayLike, *, alpha: float, rule: str
) -> VoteCertificates:
    """Do the work of `certify_votes` for votes and bounds that belong together."""
    if selection.counts.shape != estimation.counts.shape:
        raise InvalidParameterError(
            f"`estimation_votes` must have the shape of `selection_votes`, {selection.counts.shape}, "
            f"got {estimation.counts.shape}. Both count the same classes for the same targets."
        )
    deltas = check_delta_upper(delta_upper, num_targets=selection.num_targets)
    alpha = check_open_unit("alpha", alpha, hint="It is the chance of failure, not the confidence level.")
    rule = check_choice("rule", rule, COUNT_RULES, hint="Other rules need more than numbers of votes.")
    majority = selection.counts.argmax(axis=1).astype(np.int64)  # the first one at a tie
    lead = RULES[rule].lead_of(selection, estimation, majority, alpha)
    radius = certified_radius(lead.margin, deltas)
    return VoteCertificates(
        prediction=majority,
        status=status_of(radius),
        p_lower=lead.p_lower,
        p_upper=lead.p_upper,
        radius=radius,
        rule=rule,
        alpha=alpha,
    )


def _check_origin(selection: SelectionVotes, estimation: EstimationVotes, bounds: object, belongs_to: str) -> None:
    origins = {
        "selection_votes": selection.origin,
        "estimation_votes": estimation.origin,
        "delta_upper": getattr(bounds, "origin", None),
    }
    known = {name: origin for name, origin in origins.items() if isinstance(origin, Origin)}
    for (name, origin), (other, theirs) in combinations(known.items(), 2):
        differences = origin.differences(theirs)
        if differences:
            raise InvalidParameterError(
                f"`{name}` and `{other}` must be of one set-up, but they differ in: {', '.join(differences)}. Bounds "
                "certify the votes that were drawn on the same graph, for the same targets, smoothing and number of "
                "layers, and no others."
            )
    bare = [name for name in origins if name not in known]
    if bare and not belongs_to.strip():
        raise InvalidParameterError(
            f"`belongs_to` must say what bare arrays belong to, got nothing about `{'`, `'.join(bare)}`. Pass votes of "
            "a result (certificates.votes) and the result of delta_bounds, or name graph, targets, smoothing and "
            "number of layers in words, if you know that they are the same for all of these."
        )


def status_of(radius: IntArray) -> TextArray:
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
    return SelectionVotes.drawn(votes)


def _estimation(votes: ArrayLike | EstimationVotes) -> EstimationVotes:
    if isinstance(votes, EstimationVotes):
        return votes
    if isinstance(votes, SelectionVotes):
        raise InvalidParameterError(
            "`estimation_votes` must be estimation votes, got SelectionVotes. The votes that chose the "
            "class cannot bound its probability: draw new ones."
        )
    return EstimationVotes.drawn(votes)
