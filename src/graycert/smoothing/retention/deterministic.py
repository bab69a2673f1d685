r"""Certificates without a confidence level, from the exact law of (prediction, arriving nodes)."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from graycert._types import NO_CLASS
from graycert._validation import check_integer
from graycert.graph.reduced_representatives import ReducedRepresentatives
from graycert.rules.status import Status
from graycert.smoothing.retention.label_counts import (
    MAX_STEPS,
    LabelCounts,
    arriving_sets,
    check_eligible,
    check_labels,
    count_labels,
)
from graycert.smoothing.retention.maximum_coverage import maximum_coverage


@dataclass(frozen=True, kw_only=True)
class DeterministicCertificate:
    """What no adversary can change, for one target. There is no failure probability.

    Attributes:
        prediction: The class with most kept sets, the lowest index at a tie.
        status: Whether the target is certified; ABSTAINED only at a tie, or if kept sets that are unlisted or have no
            label could make one.
        radius: Certified radius, -1 where the classifier abstains; capped at ``max_radius``.
        broken_by: Nodes, at most radius + 1, with which some base classifier of the same behaviour is brought to a tie
            at least; None if no such nodes were found (the cap is reached, or the search was stopped).
        labels: How many kept sets have each label.
    """

    prediction: int
    status: Status
    radius: int
    broken_by: tuple[int, ...] | None
    labels: LabelCounts


def holds_against(
    representatives: ReducedRepresentatives,
    labels: ArrayLike,
    *,
    hostile: Collection[int],
    num_classes: int,
    num_layers: int,
) -> bool:
    r"""Say whether the nodes in B cannot change the prediction, whatever their features become.

    $$P(f = y^*, \neg E(B)) - P(f = c, \neg E(B)) > P(E(B)) \quad \text{for all } c \ne y^*$$

    Where the scores single out no class, f counts as c, whichever it is.

    Guarantee:
        If True, the smoothed prediction stays, with no tie, for every change of the features of B. If False and all
        classes are listed, some base classifier with the same labels and the same arriving nodes is at best tied: the
        one that outputs c whenever a message of B arrives.

    Args:
        representatives: Classes of kept sets.
        labels: Label of the base classifier per class of kept sets, on the clean features.
        hostile: The set B, as nodes of the graph.
        num_classes: Number C of labels, >= 2.
        num_layers: Number h of message-passing steps, >= 1.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> from graycert.graph.reduced_representatives import reduced_representatives
        >>> from graycert.graph.toy_graphs import star_graph
        >>> found = reduced_representatives(star_graph(4), 0, num_layers=1, num_kept=1)
        >>> holds_against(found, [0, 0, 0, 0], hostile=[2], num_classes=2, num_layers=1)
        True
        >>> holds_against(found, [0, 0, 0, 0], hostile=[2, 3], num_classes=2, num_layers=1)
        False

    References:
        Sharpens Scholten et al. (2022), Corollaries 1 and 2; docs/proofs/derandomization.md.
    """
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    problem = _Problem(representatives, labels, num_classes)
    mask = np.isin(representatives.nodes, np.array(sorted(hostile), dtype=np.int64))
    arrives = mask[representatives.members] & (representatives.distances <= num_layers)
    hit = np.unique(representatives.class_of_member[arrives]).tolist()
    for rival in problem.rivals():
        weights = problem.weights(rival)
        if sum(weights[index] for index in hit) >= problem.lead(rival):
            return False
    return True


def certify_derandomized(
    representatives: ReducedRepresentatives,
    labels: ArrayLike,
    *,
    num_classes: int,
    eligible: ArrayLike,
    num_layers: int,
    max_radius: int = 20,
    max_steps: int = MAX_STEPS,
) -> DeterministicCertificate:
    r"""Certify one target: up to how many eligible nodes can the smoothed prediction not be changed by?

    With the lead $L_c = P(f = y^*) - P(f = c)$, `holds_against` for all B of at most ρ nodes is

    $$\max_{|B| \le \rho} \sum_{S:\ S \cap B \ne \emptyset} \beta_S\,\bigl(1 + [f = y^*] - [f = c]\bigr)
    < L_c \binom{d}{k} \quad \text{for all } c \ne y^*,$$

    a maximum coverage problem (`maximum_coverage`). The weights are at most 2 β_S, which gives the condition
    $L_c > 2\Delta(\rho)$ of the paper.

    Guarantee:
        No change of all features of ``radius`` eligible nodes changes the prediction of the smoothed classifier, with
        certainty. If all classes are listed and the search ends within ``max_steps``, the radius is the largest that
        follows from the labels and the arriving nodes (and then ``broken_by`` shows why the next one fails, unless
        ``max_radius`` is reached). Stopped early, it is never larger: unlisted kept sets count as hit and lost, and the
        search's upper bound is at most twice the sum of the ρ largest $p(E(\{w\}))$. Whole numbers, no rounding.

    Args:
        representatives: Classes of kept sets.
        labels: Label of the base classifier per class of kept sets, on the clean features.
        num_classes: Number C of labels, >= 2.
        eligible: Which of ``representatives.nodes`` may be hostile, boolean, shape (d + 1,). If the target may, the
            radius is 0: it is always kept.
        num_layers: Number h of message-passing steps, >= 1.
        max_radius: Largest radius looked at, >= 1.
        max_steps: Steps of the search per radius and rival class, >= 1.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> from graycert.graph.reduced_representatives import reduced_representatives
        >>> from graycert.graph.toy_graphs import star_graph
        >>> found = reduced_representatives(star_graph(6), 0, num_layers=1, num_kept=1)
        >>> found.num_classes
        6
        >>> mask = found.nodes > 0
        >>> certify_derandomized(found, [0] * 6, num_classes=2, eligible=mask, num_layers=1).radius
        2

    References:
        Scholten et al. (2022), Appendix J and Corollary 1; docs/proofs/derandomization.md.
    """
    max_radius = check_integer("max_radius", max_radius, at_least=1)
    mask = check_eligible(representatives, eligible)
    problem = _Problem(representatives, labels, num_classes)
    rivals = problem.rivals()
    if problem.lead(rivals[0]) <= 0:
        return problem.certificate(Status.ABSTAINED, -1, None)
    sets = {c: arriving_sets(representatives, problem.weights(c), eligible=mask, num_layers=num_layers) for c in rivals}
    for radius in range(1, max_radius + 1):
        for rival in rivals:
            lead = problem.lead(rival)
            found = maximum_coverage(sets[rival], size=radius, max_steps=max_steps, enough=lead)
            if found.upper >= lead:
                attained = found.lower >= lead and representatives.is_complete
                broken_by = tuple(representatives.nodes[list(found.nodes)].tolist()) if attained else None
                status = Status.CERTIFIED if radius > 1 else Status.PREDICTED
                return problem.certificate(status, radius - 1, broken_by)
    return problem.certificate(Status.CERTIFIED, max_radius, None)


class _Problem:
    """Leads and weights, as numbers of kept sets."""

    def __init__(self, representatives: ReducedRepresentatives, labels: ArrayLike, num_classes: int) -> None:
        self.labels = check_labels(representatives, labels, num_classes=num_classes).tolist()
        self.sizes = representatives.class_sizes
        self.counted = count_labels(representatives, labels, num_classes=num_classes)
        self.majority = self.counted.counts.index(max(self.counted.counts))

    def lead(self, rival: int) -> int:
        """Return the least lead over ``rival``; an unlisted kept set takes at most one vote from it once it is hit.

        Votes for no class count for the rival.
        """
        counted = self.counted
        counts = counted.counts
        return counts[self.majority] - counts[rival] - counted.num_for_none - counted.num_unlisted

    def rivals(self) -> list[int]:
        """Return the other classes, the closest first; classes without any kept set are alike, so one is enough."""
        others = [c for c in range(len(self.counted.counts)) if c != self.majority]
        voted = [c for c in others if self.counted.counts[c]]
        silent = [c for c in others if not self.counted.counts[c]][:1]
        return sorted(voted, key=self.lead) + silent

    def weights(self, rival: int) -> list[int]:
        """Return by how much the lead over ``rival`` falls if each class of kept sets is hit."""
        return [
            size * (1 + (label == self.majority) - (label in (rival, NO_CLASS)))
            for size, label in zip(self.sizes, self.labels, strict=True)
        ]

    def certificate(self, status: Status, radius: int, broken_by: tuple[int, ...] | None) -> DeterministicCertificate:
        return DeterministicCertificate(
            prediction=self.majority, status=status, radius=radius, broken_by=broken_by, labels=self.counted
        )
