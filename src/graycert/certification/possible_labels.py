"""Which labels ρ hostile nodes could force, for the targets of a run."""

import numpy as np
from numpy.typing import NDArray

from graycert._validation import check_integer
from graycert.certificates import NodeCertificates
from graycert.errors import UnsoundSetupError
from graycert.rules import is_sound, prediction_sets, simultaneous_level
from graycert.statistics import EstimationVotes, SelectionVotes


def possible_labels(certificates: NodeCertificates, *, radius: int) -> NDArray[np.bool_]:
    r"""Return the labels that the smoothed classifier may have after an attack on ρ nodes, for each target of a run.

    $$\{y^*\} \cup \{c : \underline{p_{y^*} - p_c} \le 2\overline\Delta(\rho)\}$$

    Where a target is not certified at ρ this still excludes the classes that trail too far. The run's votes and Δ̄ are
    used as they are (`prediction_sets`), at its failure probability α, or α / num_targets each if the run is for all
    targets simultaneously.

    Guarantee:
        Take a target, and any attack on at most ρ of its eligible nodes that is chosen without looking at the
        estimation votes. The label of the ideal smoothed classifier on the attacked graph is in the target's set with
        probability at least 1 - α over the run's samples. For a simultaneous run, and one such attack per target or
        one for all, every label is in its set with probability at least 1 - α. Sets that are {y*} alone are
        certificates: with probability at least 1 - α per target none is wrong, for any ρ and any attack, even one
        that depends on the votes.

        Not covered at α: attacks that depend on the estimation votes (whoever knows graph, model and seed can compute
        these) where the set has several labels; pass ``alpha / (num_classes - 1)`` to `prediction_sets` for them. The
        sets and the run's radii are two statements, each of level α, from the same votes: both hold with probability
        at least 1 - 2α. With rule "difference" they are one: the set is {y*} exactly where the run certifies ρ. With
        other rules a set may hold several labels although the run certifies ρ, or {y*} although it does not.

    Args:
        certificates: A run with a sound rule.
        radius: Number ρ of hostile nodes, in [0, max_radius of the run]; 0 gives the labels that the votes cannot tell
            apart on the clean graph.

    Returns:
        Whether a class is possible, shape (num_targets, num_classes). The reported class always is.

    Raises:
        InvalidParameterError: If ``radius`` is out of range.
        UnsoundSetupError: ``unsound-rule``, if the run's rule is "paper".

    References:
        Generalises Scholten et al. (2022), Corollary 1; docs/proofs/prediction_sets.md.
    """
    c = certificates
    if not is_sound(c.rule):
        raise UnsoundSetupError(
            "unsound-rule",
            f"`certificates` must come from a sound rule, got rule {c.rule!r}, whose radii are not proved. Certify "
            "again with rule 'sound'.",
        )
    radius = check_integer(
        "radius", radius, at_least=0, at_most=c.max_radius, hint="The run bounds Δ up to its max_radius."
    )
    sets = prediction_sets(
        SelectionVotes(c.selection_votes, c.num_selection),
        EstimationVotes(c.estimation_votes, c.num_estimation),
        c.delta_upper,
        alpha=simultaneous_level(c.alpha, len(c)) if c.simultaneous else c.alpha,
    )
    return np.asarray(sets[:, radius, :])
