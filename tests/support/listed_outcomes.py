"""Base classifiers that may be any function of the coins, and every adversary, in whole numbers.

All probabilities are multiples of 1/2 or 1/4, so that equally probable draws can be listed.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from support.random_graphs import random_edges
from support.two_level_oracles import SmallGraph


@dataclass(frozen=True)
class ListedOutcomes:
    """Every outcome of the coins of a small graph.

    Args:
        graph: The graph; node 0 is the target.
        arrived: Whether the message of a node arrives, shape (num_outcomes, num_nodes).
        weights: How many of the equally probable draws an outcome stands for, shape (num_outcomes,).
    """

    graph: SmallGraph
    arrived: np.ndarray
    weights: np.ndarray

    def votes(self, votes_for, num_classes):
        return np.bincount(votes_for, weights=self.weights, minlength=num_classes).astype(np.int64)

    def hit(self, hostile):
        return self.arrived[:, list(hostile)].any(axis=1)

    def attacked(self, votes_for, hostile, wanted):
        """What the base classifier votes for if each message of ``hostile`` makes it vote for ``wanted``."""
        return np.where(self.hit(hostile), wanted, votes_for)

    def all_attacks(self, votes_for, hostile, num_classes):
        """Yield the votes under every adversary: any class wherever one of its messages arrives."""
        hit = np.flatnonzero(self.hit(hostile))
        for choice in itertools.product(range(num_classes), repeat=hit.size):
            attacked = votes_for.copy()
            attacked[hit] = choice
            yield attacked


def wins(counts, label) -> bool:
    """Whether ``label`` has strictly more votes than every other class."""
    return all(count < counts[label] for other, count in enumerate(counts) if other != label)


def list_outcomes(graph: SmallGraph, denominator: int) -> ListedOutcomes:
    arrived, weights = [], []
    coins = [round(p * denominator) for p in [*graph.p_coin, *graph.p_ablate]]
    for lost in itertools.product((True, False), repeat=len(coins)):
        weight = np.prod([c if is_lost else denominator - c for c, is_lost in zip(coins, lost, strict=True)])
        if weight == 0:
            continue
        deleted, ablated = lost[: len(graph.p_coin)], lost[len(graph.p_coin) :]
        reached = {0}
        for _ in range(graph.num_layers):
            reached |= {
                source
                for (source, end), coin in zip(graph.edges, graph.coin_of, strict=True)
                if end in reached and not deleted[coin]
            }
        arrived.append([node in reached and not ablated[node] for node in range(graph.num_nodes)])
        weights.append(int(weight))
    return ListedOutcomes(graph, np.array(arrived), np.array(weights))


def random_listed(rng, num_layers) -> ListedOutcomes:
    """At most ten coins of 1/2, or seven of multiples of 1/4, zeros and ones included, most of them 3/4."""
    denominator = int(rng.choice([2, 4, 4]))
    most = 10 if denominator == 2 else 7
    while True:
        num_nodes = int(rng.integers(3, 6))
        edges = random_edges(rng, num_nodes, rng.uniform(0.2, 0.7), directed=bool(rng.integers(2)))
        edges.sort(key=lambda edge: edge[::-1])
        if any(end == 0 for _, end in edges) and len(edges) + num_nodes <= most:
            break
    share = np.array([0.5]) if denominator == 2 else np.array([0.0, 0.25, 0.5, 0.5, 0.5, 0.75, 0.75, 1.0])
    p_coin, p_ablate = rng.choice(share, len(edges)).tolist(), rng.choice(share, num_nodes).tolist()
    return list_outcomes(SmallGraph(num_nodes, num_layers, edges, range(len(edges)), p_coin, p_ablate), denominator)
