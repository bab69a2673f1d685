r"""Which labels ρ hostile nodes could force: more than certified or not."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._validation import check_open_unit
from graycert.errors import InvalidParameterError
from graycert.rules.difference import difference_leads_lower
from graycert.rules.vote_certificates import check_delta_upper
from graycert.statistics import EstimationVotes, SelectionVotes


def prediction_sets(
    selection: SelectionVotes, estimation: EstimationVotes, delta_upper: ArrayLike, *, alpha: float = 0.01
) -> NDArray[np.bool_]:
    r"""Return the labels that the smoothed classifier may have after an attack on ρ nodes.

    $$c \in \hat S(\rho) \iff c = y^* \ \text{ or }\ \underline{p_{y^*} - p_c} \le 2\overline\Delta(\rho)$$

    An attack changes each class probability by at most Δ(ρ), so a class that trails by more than 2Δ(ρ) cannot win.
    Votes for no class count for the class that trails.
    The reported class y* has most selection votes (at a tie the lowest index) and is always a member.

    Guarantee:
        Take any attack on at most ρ eligible nodes that is chosen without looking at the estimation votes. The set for
        ρ contains the label of the ideal smoothed classifier on the attacked graph with probability at least
        1 - ``alpha``, per target; so do the sets for larger ρ, jointly. If the attack may depend on the estimation
        votes, or for all attacks at once, pass ``alpha / (num_classes - 1)``. Where the set is {y*} no correction is
        needed: it is a certificate, and "some such set misses a label that some attack forces" has probability at most
        ``alpha``. Holds in floating point, if ``delta_upper`` holds.

    Args:
        selection: The n0 votes that choose the reported class.
        estimation: The n1 votes, drawn independently of the former, same shape.
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, in [0, 1], never falling with ρ, shape (num_targets, max_radius).
        alpha: Failure probability per target and attack, in (0, 1).

    Returns:
        Whether a class is in the set, shape (num_targets, max_radius + 1, num_classes). Index ρ of the second axis;
        ρ = 0 is the clean graph. Sets grow with ρ.

    Raises:
        InvalidParameterError: If an argument is outside its domain or the shapes disagree.

    Example:
        >>> selection, estimation = SelectionVotes([[70, 20, 10]], 100), EstimationVotes([[700, 200, 100]], 1_000)
        >>> sets = prediction_sets(selection, estimation, [[0.2, 0.25, 0.4]])
        >>> [np.flatnonzero(labels).tolist() for labels in sets[0]]
        [[0], [0], [0, 1], [0, 1, 2]]

    References:
        Generalises Scholten et al. (2022), Corollary 1; docs/proofs/prediction_sets.md.
    """
    _check_type("selection", selection, SelectionVotes)
    _check_type("estimation", estimation, EstimationVotes)
    if selection.counts.shape != estimation.counts.shape:
        raise InvalidParameterError(
            f"`estimation` must have the shape of `selection`, {selection.counts.shape}, got "
            f"{estimation.counts.shape}. Both count the same classes for the same targets."
        )
    deltas = check_delta_upper(delta_upper, num_targets=selection.num_targets)
    alpha = check_open_unit("alpha", alpha, hint="It is the chance of failure, not the confidence level.")
    thresholds = np.hstack([np.zeros((len(deltas), 1)), 2.0 * deltas])  # doubling is exact
    majority = selection.counts.argmax(axis=1)
    leads = difference_leads_lower(estimation, majority, alpha=alpha)  # -1 for y*, which keeps it in every set
    return np.asarray(leads[:, None, :] <= thresholds[:, :, None])


def _check_type(name: str, votes: object, wanted: type) -> None:
    if not isinstance(votes, wanted):
        raise InvalidParameterError(
            f"`{name}` must be {wanted.__name__}, got {type(votes).__name__}. The votes that chose the class cannot "
            "bound its probability, so the two have different types."
        )
