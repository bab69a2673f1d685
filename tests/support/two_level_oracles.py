"""Small graphs with a probability per edge and per node, and four ways to find what an adversary can do to node 0.

Nothing here uses graycert. Probabilities are floats and stand for the rational numbers they are; every result is an
exact Fraction.
"""

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np

from support.random_graphs import random_edges

Edge = tuple[int, int]  # (source, target): the message flows from source to target
KINDS = ["directed", "two coins", "one coin"]


@dataclass(frozen=True)
class SmallGraph:
    """Edges in the order of an Adjacency; each is deleted by its coin, and edges may share one."""

    num_nodes: int
    num_layers: int
    edges: Sequence[Edge]
    coin_of: Sequence[int]
    p_coin: Sequence[float]
    p_ablate: Sequence[float]

    @property
    def p_delete(self) -> list[float]:
        return [self.p_coin[coin] for coin in self.coin_of]

    @cached_property
    def deletes(self) -> dict[Edge, Fraction]:
        return {edge: Fraction(p) for edge, p in zip(self.edges, self.p_delete, strict=True)}

    @cached_property
    def ablates(self) -> list[Fraction]:
        return [Fraction(p) for p in self.p_ablate]

    def in_neighbors(self, node: int) -> list[int]:
        return [source for source, end in self.edges if end == node]

    def field(self) -> list[int]:
        """Return the nodes within ``num_layers`` hops of node 0, sorted by (distance, node)."""
        found, front = [0], {0}
        for _ in range(self.num_layers):
            front = {source for source, end in self.edges if end in front} - set(found)
            found += sorted(front)
        return found


def random_graph(rng: np.random.Generator, kind: str, num_layers: int, *, most_coins: int = 11) -> SmallGraph:
    """Draw a graph on 2 to 7 nodes; probabilities all alike, from a coarse grid, or arbitrary, with zeros and ones."""
    while True:
        num_nodes = int(rng.integers(2, 8))
        edges = random_edges(rng, num_nodes, rng.uniform(0.15, 0.9), directed=kind == "directed")
        edges.sort(key=lambda edge: edge[::-1])
        keys = [tuple(sorted(edge)) if kind == "one coin" else edge for edge in edges]
        coins = sorted(set(keys))
        if 0 < len(coins) <= most_coins:
            break
    coin_of = [coins.index(key) for key in keys]
    p_coin = random_probabilities(rng, len(coins))
    return SmallGraph(num_nodes, num_layers, edges, coin_of, p_coin, random_probabilities(rng, num_nodes))


def random_probabilities(rng: np.random.Generator, size: int) -> list[float]:
    kind = rng.integers(5)
    if kind == 0:
        return [float(rng.choice([0.0, 0.25, 0.5, 0.85, 1.0]))] * size
    if kind == 1:
        return [float(rng.random())] * size
    if kind == 2:
        return rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], size=size).tolist()
    if kind == 3:
        return rng.choice([2.0**-30, 1 / 8, 0.3, 0.794, 1 - 2.0**-30], size=size).tolist()
    return rng.random(size).tolist()


def optimum(miss: Callable[[Collection[int]], Fraction], eligible: Collection[int], radius: int) -> Fraction:
    """Return the largest 1 - ``miss`` of ``radius`` eligible nodes, or of all of them if they are fewer."""
    size = min(radius, len(eligible))
    return 1 - min(miss(attackers) for attackers in itertools.combinations(sorted(eligible), size))


class Outcomes:
    """Every outcome of every coin: the truth."""

    def __init__(self, graph: SmallGraph) -> None:
        self._graph = graph
        self._law: dict[int, Fraction] = {}
        self._list(0, Fraction(1), [])

    def _list(self, coin: int, weight: Fraction, kept: list[int]) -> None:
        if weight == 0:
            return
        if coin == len(self._graph.p_coin):
            reached = self._reached(set(kept))
            self._law[reached] = self._law.get(reached, Fraction(0)) + weight
            return
        p = Fraction(self._graph.p_coin[coin])
        self._list(coin + 1, weight * p, kept)
        self._list(coin + 1, weight * (1 - p), [*kept, coin])

    def _reached(self, kept: set[int]) -> int:
        left = [
            (1 << source, 1 << end)
            for (source, end), coin in zip(self._graph.edges, self._graph.coin_of, strict=True)
            if coin in kept
        ]
        reached = 1
        for _ in range(self._graph.num_layers):
            before = reached
            for source, end in left:
                if before & end:
                    reached |= source
        return reached

    def miss(self, attackers: Collection[int]) -> Fraction:
        """Return 1 - p(E(B)): whatever reaches the target is ablated."""
        hostile = {1 << node: self._graph.ablates[node] for node in attackers}
        return sum(
            (
                weight * prod((a for bit, a in hostile.items() if bit & reached), start=Fraction(1))
                for reached, weight in self._law.items()
            ),
            Fraction(0),
        )


class TwoLevels:
    """The sum over the surviving last edges, by definition; the truth for k <= 2, the surrogate for more."""

    def __init__(self, graph: SmallGraph) -> None:
        self._graph = graph
        self.hops = graph.in_neighbors(0)
        self.miss_hop = {
            (node, hop): self._miss(node, hop, graph.num_layers - 1, frozenset({0}))
            for node in range(1, graph.num_nodes)
            for hop in self.hops
        }

    def _miss(self, node: int, end: int, steps: int, visited: frozenset[int]) -> Fraction:
        """Return the probability that no branch of the tree of self-avoiding walks brings ``node`` to ``end``."""
        if node == end:
            return Fraction(0)
        missed = Fraction(1)
        for source in self._graph.in_neighbors(end) if steps > 0 else []:
            if source not in visited:
                p = self._graph.deletes[source, end]
                missed *= p + (1 - p) * self._miss(node, source, steps - 1, visited | {end})
        return missed

    def factor(self, node: int, survivors: Collection[int]) -> Fraction:
        a = self._graph.ablates[node]
        if node == 0:
            return a
        return a + (1 - a) * prod((self.miss_hop[node, hop] for hop in survivors), start=Fraction(1))

    def subsets(self) -> Iterator[tuple[list[int], Fraction]]:
        for kept in itertools.product((False, True), repeat=len(self.hops)):
            weight = Fraction(1)
            for hop, is_kept in zip(self.hops, kept, strict=True):
                p = self._graph.deletes[hop, 0]
                weight *= 1 - p if is_kept else p
            yield [hop for hop, is_kept in zip(self.hops, kept, strict=True) if is_kept], weight

    def miss(self, attackers: Collection[int]) -> Fraction:
        return sum(
            (
                weight * prod((self.factor(node, survivors) for node in attackers), start=Fraction(1))
                for survivors, weight in self.subsets()
            ),
            Fraction(0),
        )

    def miss_by_ablation(self, attackers: Collection[int]) -> Fraction:
        """Return the same as a sum over the attackers that are not ablated."""
        total = Fraction(0)
        for shown in itertools.product((False, True), repeat=len(attackers)):
            weight = Fraction(1)
            for node, is_shown in zip(attackers, shown, strict=True):
                a = self._graph.ablates[node]
                weight *= 1 - a if is_shown else a
            visible = [node for node, is_shown in zip(attackers, shown, strict=True) if is_shown]
            if 0 in visible:
                continue
            for hop in self.hops:
                p = self._graph.deletes[hop, 0]
                weight *= p + (1 - p) * prod((self.miss_hop[node, hop] for node in visible), start=Fraction(1))
            total += weight
        return total


class Theorems:
    """Theorems 2 and 3 with a probability per edge and node: simple paths as if they shared no edge."""

    def __init__(self, graph: SmallGraph) -> None:
        self._graph = graph

    def single(self, node: int) -> Fraction:
        blocked = prod((1 - keep for keep in self._paths(node, (0,))), start=Fraction(1))
        return (1 - self._graph.ablates[node]) * (1 - blocked)

    def _paths(self, node: int, path: tuple[int, ...]) -> Iterator[Fraction]:
        """Yield the survival probability of each simple path from ``node`` that ends with ``path``."""
        if path[-1] == node:
            yield Fraction(1)
        elif len(path) <= self._graph.num_layers:
            for source in self._graph.in_neighbors(path[-1]):
                if source not in path:
                    keep = 1 - self._graph.deletes[source, path[-1]]
                    yield from (keep * rest for rest in self._paths(node, (*path, source)))

    def miss(self, attackers: Collection[int]) -> Fraction:
        return prod((1 - self.single(node) for node in attackers), start=Fraction(1))


def greedy_set(miss: Callable[[Collection[int]], Fraction], eligible: Collection[int], radius: int) -> tuple[int, ...]:
    """Add, one after another, the node with which the fewest messages are missed."""
    chosen: tuple[int, ...] = ()
    for _ in range(min(radius, len(eligible))):
        rest = [node for node in sorted(eligible) if node not in chosen]
        chosen += (min(rest, key=lambda node: miss([*chosen, node])),)
    return chosen
