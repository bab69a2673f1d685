"""The worst adversary against a base classifier whose votes are listed exactly.

A base classifier is described by what it does for each set of nodes whose features it sees: a table from such sets to
a distribution over classes. The adversary who owns the nodes B turns every draw in which it sees a node of B into a
vote for the class of its choice. All numbers are Fractions: nothing is rounded.
"""

import itertools
from fractions import Fraction

import numpy as np

from support.enumeration import Law


def seen_law(law: Law, p_ablate: Fraction) -> dict[frozenset[int], Fraction]:
    """Return the law of the set of nodes that reach the target and were not ablated."""
    seen: dict[frozenset[int], Fraction] = {}
    for reached, probability in law.items():
        nodes = sorted(reached)
        for shown in itertools.product((True, False), repeat=len(nodes)):
            kept = frozenset(node for node, is_shown in zip(nodes, shown, strict=True) if is_shown)
            weight = probability * (1 - p_ablate) ** len(kept) * p_ablate ** (len(nodes) - len(kept))
            if weight:
                seen[kept] = seen.get(kept, Fraction(0)) + weight
    return seen


class ListedClassifier:
    """The smoothed classifier of one target: law of what is seen, and class distribution for each seen set."""

    def __init__(self, seen, votes, num_classes):
        self.seen, self.votes, self.num_classes = seen, votes, num_classes

    def clean(self) -> list[Fraction]:
        return self.attacked(frozenset(), 0)

    def attacked(self, hostile: frozenset[int], wanted: int) -> list[Fraction]:
        """Class probabilities when every draw that sees a node of ``hostile`` votes for ``wanted``."""
        total = [Fraction(0)] * self.num_classes
        for kept, probability in self.seen.items():
            if kept & hostile:
                total[wanted] += probability
            else:
                for label, share in enumerate(self.votes[kept]):
                    total[label] += probability * share
        return total

    def is_broken(self, majority: int, hostile: frozenset[int]) -> bool:
        """Whether some other class reaches at least a tie with ``majority``."""
        for wanted in range(self.num_classes):
            if wanted != majority:
                scores = self.attacked(hostile, wanted)
                if scores[majority] <= scores[wanted] or scores[majority] <= max(
                    scores[c] for c in range(self.num_classes) if c != majority
                ):
                    return True
        return False

    def true_radius(self, majority: int, eligible: list[int], max_radius: int) -> int:
        """Return the largest radius that no adversary breaks, -1 if ``majority`` does not even lead when clean."""
        if self.is_broken(majority, frozenset()):
            return -1
        for radius in range(1, max_radius + 1):
            size = min(radius, len(eligible))
            if any(self.is_broken(majority, frozenset(b)) for b in itertools.combinations(eligible, size)):
                return radius - 1
        return max_radius

    def margin(self) -> Fraction:
        ordered = sorted(self.clean())
        return ordered[-1] - ordered[-2]


def random_classifier(seen, rng: np.random.Generator, *, num_classes: int, lean: float) -> ListedClassifier:
    """Each seen set votes for one class; class 0 with probability ``lean``."""
    votes = {}
    for kept in seen:
        label = 0 if rng.random() < lean else int(rng.integers(num_classes))
        votes[kept] = [Fraction(int(c == label)) for c in range(num_classes)]
    return ListedClassifier(seen, votes, num_classes)


def critical_classifier(seen, hostile: frozenset[int], lead_beyond: Fraction, *, num_classes: int):
    """Build the classifier that ``hostile`` can just about break, or None if its messages arrive too often.

    Whatever sees a hostile node votes for class 0; the rest is split so that class 0 leads class 1 by
    2 p(E(B)) + ``lead_beyond``. The adversary moves exactly p(E(B)) from class 0 to class 1.
    """
    arrives = sum((p for kept, p in seen.items() if kept & hostile), Fraction(0))
    second = (1 - 2 * arrives - lead_beyond) / 2
    if second <= 0:
        return None
    share = second / (1 - arrives)
    sure = [Fraction(int(c == 0)) for c in range(num_classes)]
    split = [1 - share, share] + [Fraction(0)] * (num_classes - 2)
    votes = {kept: sure if kept & hostile else split for kept in seen}
    return ListedClassifier(seen, votes, num_classes)
