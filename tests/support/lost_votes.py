"""Lost votes of one target with what arrived in them, and every hostile set tested by definition.

p(E(B)) comes from ``TwoLevels``: exact for k <= 2, the surrogate for more. The table of confidence bounds is made up,
such that the worst set just passes or just fails: the search must find it among the others.
"""

import itertools
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from support.random_graphs import random_edges
from support.two_level_oracles import SmallGraph, TwoLevels, random_probabilities

MARGINS = [1e-6, 1e-3, 0.05, 0.3]  # far above rounding


@dataclass(frozen=True)
class LostVotesCase:
    """What a certificate beyond the votes is computed from; ``arrived`` has a column per node of ``eligible``."""

    graph: SmallGraph
    eligible: list[int]
    classes: np.ndarray
    arrived: np.ndarray
    upper: np.ndarray
    two_classes: bool
    known: dict = field(default_factory=dict)  # p(E(B)) of the sets seen so far

    @cached_property
    def oracle(self) -> TwoLevels:
        return TwoLevels(self.graph)

    @property
    def nodes(self) -> np.ndarray:
        return np.array(self.graph.field())

    @property
    def positions(self) -> np.ndarray:
        return np.flatnonzero(np.isin(self.nodes, self.eligible))

    def arrival_probability(self, hostile) -> float:
        key = frozenset(hostile)
        if key not in self.known:
            self.known[key] = float(1 - self.oracle.miss(hostile))
        return self.known[key]

    def counts(self, hostile):
        """Return e(B) and m(B)."""
        columns = [self.eligible.index(node) for node in hostile]
        left = self.classes[~self.arrived[:, columns].any(axis=1)]
        return left.size, int(np.bincount(left).max(initial=0)) if left.size else 0

    def harm(self, hostile) -> float:
        """What must be below 1."""
        lost, largest = self.counts(hostile)
        bound = 2 * self.upper[lost] if self.two_classes else self.upper[lost] + self.upper[largest]
        return bound + 2 * self.arrival_probability(hostile)

    def of_arriving_nodes(self):
        """Leave out the nodes that never arrive."""
        kept = [column for column, node in enumerate(self.eligible) if self.arrival_probability([node]) > 0]
        return replace(self, eligible=[self.eligible[column] for column in kept], arrived=self.arrived[:, kept])

    def sets(self, size):
        return itertools.combinations(self.eligible, min(size, len(self.eligible)))

    def worst(self, size) -> float:
        return max(self.harm(hostile) for hostile in self.sets(size))

    def true_radius(self, max_radius) -> int:
        """The largest radius up to which all sets pass."""
        passed = [self.worst(size) < 1.0 for size in range(max_radius + 1)]
        return passed.index(False) - 1 if False in passed else max_radius


def mild_probabilities(rng, size):
    """Probabilities with which certificates are possible; half of the time all alike, so that nodes may be."""
    if rng.integers(2):
        return [rng.uniform(0.4, 0.95)] * size
    return np.where(rng.random(size) < 0.1, 1.0, rng.uniform(0.4, 0.95, size)).tolist()


def random_field(rng, num_layers, *, max_nodes=8) -> SmallGraph:
    """Draw a graph on which node 0 has some neighbour; half of them with probabilities that allow certificates."""
    while True:
        num_nodes = int(rng.integers(2, max_nodes + 1))
        edges = random_edges(rng, num_nodes, rng.uniform(0.2, 0.6), directed=bool(rng.integers(2)))
        edges.sort(key=lambda edge: edge[::-1])
        if 0 < sum(end == 0 for _, end in edges) <= 4:
            break
    draw = mild_probabilities if rng.integers(2) else random_probabilities
    return SmallGraph(
        num_nodes, num_layers, edges, list(range(len(edges))), draw(rng, len(edges)), draw(rng, num_nodes)
    )


def random_case(rng, num_layers) -> LostVotesCase:
    """Draw lost votes, up to two words per class and none at all; some nodes arrive in exactly the same samples."""
    graph = random_field(rng, num_layers)
    nodes = graph.field()
    eligible = nodes[int(rng.integers(2)) :] if rng.integers(2) else [node for node in nodes if rng.random() < 0.7]
    eligible = eligible or nodes[1:]
    two_classes = bool(rng.integers(4) == 0)
    num_lost = 0 if rng.integers(12) == 0 else int(rng.integers(1, 160))
    classes = np.full(num_lost, 1) if two_classes else rng.choice([0, 2, 3, 5], size=num_lost, p=[0.7, 0.1, 0.1, 0.1])
    arrived = rng.random((num_lost, len(eligible))) < rng.uniform(0, 0.6, len(eligible))
    for column in range(1, len(eligible)):
        if rng.random() < 0.4:
            arrived[:, column] = arrived[:, rng.integers(column)]
    case = LostVotesCase(
        graph, eligible, classes.astype(np.int64), arrived, np.cumsum(rng.random(num_lost + 1)), two_classes
    )
    for column, node in enumerate(eligible):
        arrived[:, column] &= case.arrival_probability([node]) > 0
    return case


def made_critical(case, size, rng) -> LostVotesCase:
    """Scale the bounds such that the worst set of ``size`` nodes has harm 1 plus or minus a margin."""
    goal = 1.0 + rng.choice(MARGINS) * rng.choice([-1, 1])
    without = replace(case, upper=0 * case.upper)
    scale = min((goal - without.harm(b)) / (case.harm(b) - without.harm(b)) for b in case.sets(size))
    return replace(case, upper=case.upper * max(scale, 1e-3))
