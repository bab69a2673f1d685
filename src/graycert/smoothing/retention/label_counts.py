r"""Exact label probabilities and exact Δ of node-retention smoothing, from its classes of kept sets (App. J)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._rounding import fraction_up
from graycert._types import NO_CLASS, FloatArray, IntArray
from graycert._validation import check_integer, check_integer_array
from graycert.errors import InvalidParameterError
from graycert.graph.reduced_representatives import ReducedRepresentatives
from graycert.smoothing.retention.maximum_coverage import WeightedSets, maximum_coverage

MAX_STEPS = 1_000
"""Steps of the search for the worst set of nodes, per radius and rival class."""


@dataclass(frozen=True, kw_only=True)
class LabelCounts:
    r"""How many of the C(d, k) kept sets the base classifier labels with each class.

    Guarantee:
        The probability of class y lies in [counts[y], counts[y] + num_unlisted + num_for_none] / num_kept_sets, however
        scores that single out no class are decided, and equals both ends if every class of kept sets is listed and has
        a label. No confidence level is involved.

    Args:
        counts: Kept sets that are known to give each class.
        num_unlisted: Kept sets whose label is unknown.
        num_kept_sets: C(d, k).
        num_for_none: Kept sets for which the scores single out no class.
    """

    counts: tuple[int, ...]
    num_unlisted: int
    num_kept_sets: int
    num_for_none: int = 0

    @property
    def p_lower(self) -> tuple[Fraction, ...]:
        """Lower bounds on the label probabilities."""
        return tuple(Fraction(count, self.num_kept_sets) for count in self.counts)

    @property
    def p_upper(self) -> tuple[Fraction, ...]:
        """Upper bounds on the label probabilities."""
        more = self.num_unlisted + self.num_for_none
        return tuple(Fraction(count + more, self.num_kept_sets) for count in self.counts)


def count_labels(representatives: ReducedRepresentatives, labels: ArrayLike, *, num_classes: int) -> LabelCounts:
    r"""Add up how many kept sets each label stands for.

    $$p_{v,y}(G) = \binom{d}{k}^{-1} \sum_{S} \beta_S\, [f(\mathcal{R}_S) = y]$$

    Guarantee:
        Exact whole numbers. If the enumeration was stopped early, ``num_unlisted`` more kept sets may have any label.

    Args:
        representatives: Classes of kept sets.
        labels: Label of the base classifier for each class of kept sets, in [0, num_classes), or `NO_CLASS`, shape
            (num_classes of ``representatives``,).
        num_classes: Number C of labels, >= 2.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> from graycert.graph.reduced_representatives import reduced_representatives
        >>> from graycert.graph.toy_graphs import path_graph
        >>> found = reduced_representatives(path_graph(3), 0, num_layers=2, num_kept=1)  # {0} and {0, 1}
        >>> count_labels(found, [0, 1], num_classes=2).p_lower
        (Fraction(1, 2), Fraction(1, 2))

    References:
        Scholten et al. (2022), Appendix J, Corollary on label probabilities.
    """
    num_classes = check_integer("num_classes", num_classes, at_least=2)
    known = check_labels(representatives, labels, num_classes=num_classes)
    counts = [0] * (num_classes + 1)  # the last one for no class
    for label, size in zip(known.tolist(), representatives.class_sizes, strict=True):
        counts[label] += size
    return LabelCounts(
        counts=tuple(counts[:NO_CLASS]),
        num_unlisted=representatives.num_unlisted,
        num_kept_sets=representatives.num_kept_sets,
        num_for_none=counts[NO_CLASS],
    )


def retention_delta(
    representatives: ReducedRepresentatives,
    *,
    eligible: ArrayLike,
    num_layers: int,
    max_radius: int,
    max_steps: int = MAX_STEPS,
) -> FloatArray:
    r"""Return Δ(ρ) of node-retention smoothing, from the classes of kept sets.

    $$p(E(B)) = \binom{d}{k}^{-1} \sum_{S:\ S \cap B \ne \emptyset} \beta_S, \qquad
    \Delta(\rho) = \max_{|B| \le \rho} p(E(B))$$

    Here S counts only the members whose messages arrive: those within ``num_layers`` hops inside S.

    Guarantee:
        At least Δ(ρ), for every model of ``num_layers`` message-passing steps. Equal to it, rounded up to the next
        float64, if all classes are listed and the search ends within ``max_steps``; otherwise unlisted kept sets count
        as hit, and the search's upper bound is taken (`maximum_coverage`), or 1 - C(d - ρ, k) / C(d, k) if that is
        less: the probability that a hostile node is kept. The maximum is computed in whole numbers.

    Args:
        representatives: Classes of kept sets.
        eligible: Which of ``representatives.nodes`` may be hostile, boolean, shape (d + 1,). If the target may, Δ = 1:
            it is always kept.
        num_layers: Number h of message-passing steps, >= 1.
        max_radius: Largest ρ, >= 1.
        max_steps: Steps of the search per radius, >= 1.

    Returns:
        Shape (max_radius,), in [0, 1], never falling. With fewer eligible nodes than ρ, the value for all of them.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> from graycert.graph.reduced_representatives import reduced_representatives
        >>> from graycert.graph.toy_graphs import star_graph
        >>> found = reduced_representatives(star_graph(4), 0, num_layers=1, num_kept=2)
        >>> mask = found.nodes > 0
        >>> retention_delta(found, eligible=mask, num_layers=1, max_radius=2).round(12)
        array([0.5       , 0.83333333])

    References:
        Beyond Scholten et al. (2022), Appendix J, which states no Δ; docs/proofs/derandomization.md.
    """
    max_radius = check_integer("max_radius", max_radius, at_least=1)
    mask = check_eligible(representatives, eligible)
    deltas = np.zeros(max_radius)
    if not mask.any():
        return deltas
    sets = arriving_sets(representatives, representatives.class_sizes, eligible=mask, num_layers=num_layers)
    for radius in range(1, max_radius + 1):
        hit = maximum_coverage(sets, size=radius, max_steps=max_steps).upper + representatives.num_unlisted
        kept = _kept_sets_with_any(representatives, mask, radius)
        deltas[radius - 1] = fraction_up(Fraction(min(hit, kept), representatives.num_kept_sets))
    return np.maximum.accumulate(deltas)


def _kept_sets_with_any(representatives: ReducedRepresentatives, eligible: NDArray[np.bool_], radius: int) -> int:
    """Return how many kept sets contain one of ``radius`` eligible nodes, connected or not."""
    if eligible[0]:
        return representatives.num_kept_sets
    others = representatives.nodes.size - 1
    hostile = min(radius, int(eligible.sum()))
    return representatives.num_kept_sets - comb(others - hostile, representatives.num_kept)


def arriving_sets(
    representatives: ReducedRepresentatives,
    weights: Sequence[int],
    *,
    eligible: NDArray[np.bool_],
    num_layers: int,
) -> WeightedSets:
    """Return, for each class of kept sets, the eligible nodes whose messages arrive, with the given weights.

    Nodes are positions in ``representatives.nodes``.
    """
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    arrives = eligible[representatives.members] & (representatives.distances <= num_layers)
    return WeightedSets(representatives.class_of_member[arrives], representatives.members[arrives], weights)


def check_labels(representatives: ReducedRepresentatives, labels: ArrayLike, *, num_classes: int) -> IntArray:
    """Return ``labels`` if there is one in [0, num_classes), or `NO_CLASS`, per class of kept sets.

    Raises:
        InvalidParameterError: If there is not.
    """
    known = check_integer_array("labels", labels, ndim=1, at_least=NO_CLASS, less_than=num_classes)
    if known.size != representatives.num_classes:
        raise InvalidParameterError(
            f"`labels` must have one entry per class of kept sets, {representatives.num_classes}, got {known.size}."
        )
    return known


def check_eligible(representatives: ReducedRepresentatives, eligible: ArrayLike) -> NDArray[np.bool_]:
    """Return ``eligible`` if it is a boolean mask over ``representatives.nodes``.

    Raises:
        InvalidParameterError: If it is not.
    """
    mask = np.asarray(eligible)
    if mask.dtype != np.bool_ or mask.shape != representatives.nodes.shape:
        raise InvalidParameterError(
            f"`eligible` must be a boolean array of shape {representatives.nodes.shape}, one entry per node of the "
            f"receptive field, got dtype {mask.dtype} and shape {mask.shape}."
        )
    return mask
