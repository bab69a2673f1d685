"""Small networks in which a path of few edges is looked for, and the probability that there is none.

Sets of nodes are bit masks, probabilities are enclosed by integers; docs/proofs/hop_limited.md.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from graycert._types import FloatArray, IntArray
from graycert.graph import Adjacency

# Probabilities are enclosed by integers in units of 2^-128: sums of many terms cost no digits of the float64 result.
BITS = 128
ONE = 1 << BITS

_ORIGIN, _TARGET = 0, 1  # numbers of these two nodes in the relevant part of the graph

Enclosure = tuple[int, int]
CERTAIN: Enclosure = (ONE, ONE)
NEVER: Enclosure = (0, 0)


class HopState(NamedTuple):
    """Is there a path of at most ``hops`` edges from ``sources`` to ``targets`` with all inner nodes in ``between``?

    The three disjoint sets of nodes are bit masks. No coin of an edge between them has been looked at.
    """

    hops: int
    sources: int
    targets: int
    between: int


@dataclass(frozen=True, eq=False)
class HopNetwork:
    """Useful edges of the graph and of the origin, their ends renumbered.

    Args:
        out: Bit mask of the ends of edges from each node.
        into: Bit mask of the starts of edges to each node.
        lost: Probability that the edge (start, end) is deleted, or for the origin, that its end is ablated.
    """

    out: list[int]
    into: list[int]
    lost: dict[tuple[int, int], Enclosure]

    @classmethod
    def around(
        cls,
        adjacency: Adjacency,
        target: int,
        hostile: IntArray,
        lost: FloatArray,
        ablated: FloatArray,
        num_layers: int,
    ) -> tuple[Self, HopState]:
        """Keep edges on a walk of at most ``num_layers`` edges from an attacker to the target; return the start too."""
        alive = lost < 1.0
        sources, targets, lost = adjacency.sources[alive], adjacency.targets[alive], lost[alive]
        hostile, ablated = hostile[ablated < 1.0], ablated[ablated < 1.0]
        behind = _distances(hostile, sources, targets, adjacency.num_nodes, num_layers)
        ahead = _distances(np.array([target]), targets, sources, adjacency.num_nodes, num_layers)
        useful = behind[sources] + 1 + ahead[targets] <= num_layers
        close = ahead[hostile] <= num_layers
        origin = adjacency.num_nodes
        edges = [
            *zip(sources[useful].tolist(), targets[useful].tolist(), lost[useful].tolist(), strict=True),
            *((origin, node, p) for node, p in zip(hostile[close].tolist(), ablated[close].tolist(), strict=True)),
        ]
        position = {origin: _ORIGIN, target: _TARGET}
        for node in itertools.chain.from_iterable(edge[:2] for edge in edges):
            position.setdefault(node, len(position))
        network = cls(out=[0] * len(position), into=[0] * len(position), lost={})
        for source, end, probability in edges:
            network._add(position[source], position[end], probability)
        ends = 1 << _ORIGIN, 1 << _TARGET
        return network, HopState(num_layers + 1, *ends, ((1 << len(position)) - 1) & ~sum(ends))

    def _add(self, source: int, end: int, probability: float) -> None:
        scaled = Fraction(probability) * ONE
        self.out[source] |= 1 << end
        self.into[end] |= 1 << source
        self.lost[source, end] = (int(scaled), -int(-scaled // 1))

    def all_lost(self, sources: int, targets: int) -> Enclosure:
        """Enclose the probability that no edge from ``sources`` to ``targets`` survives."""
        result = CERTAIN
        for source in nodes_of(sources):
            for end in nodes_of(self.out[source] & targets):
                result = times(result, self.lost[source, end])
        return result

    def parts(self, state: HopState) -> list[HopState]:
        """Split off nodes that no path needs, and split the others where no path leads from one part to another."""
        hops, sources, targets, between = state
        behind = self._within(self.out, sources, between, hops)
        ahead = self._within(self.into, targets, between, hops)
        left = union(behind[i] & ahead[hops - i] for i in range(1, hops))
        parts = []
        while left:
            part = new = left & -left
            while new:
                linked = 0
                for i in range(1, hops - 1):
                    # One edge of a path of at most `hops` edges: i before it, so hops - 1 - i after it, or vice versa.
                    linked |= self._beyond(self.out, new & behind[i] & ~behind[i - 1]) & ahead[hops - 1 - i]
                    linked |= self._beyond(self.into, new & ahead[i] & ~ahead[i - 1]) & behind[hops - 1 - i]
                new = linked & left & ~part
                part |= new
            left &= ~part
            useful_sources = sources & self._beyond(self.into, part)
            useful_targets = targets & self._beyond(self.out, part)
            # A path visits no node twice, so a larger number of hops means the same.
            parts.append(HopState(min(hops, part.bit_count() + 1), useful_sources, useful_targets, part))
        return parts

    @staticmethod
    def _beyond(neighbours: list[int], start: int) -> int:
        """Return the nodes one step away from any node of ``start``."""
        result = 0
        for node in nodes_of(start):
            result |= neighbours[node]
        return result

    @classmethod
    def _within(cls, neighbours: list[int], start: int, allowed: int, hops: int) -> list[int]:
        """Return, for i = 0..hops - 1, the nodes of ``allowed`` at most i steps away from ``start``."""
        within, new = [0], start
        for _ in range(1, hops):
            new = cls._beyond(neighbours, new) & allowed & ~within[-1]
            within.append(within[-1] | new)
        return within

    def after_sources(self, state: HopState) -> list[tuple[int, Enclosure]]:
        """Return the nodes that one step from ``sources`` may reach, each with the probability that it does not."""
        reachable = self._beyond(self.out, state.sources) & state.between
        return [(1 << node, self.all_lost(state.sources, 1 << node)) for node in nodes_of(reachable)]

    def before_targets(self, state: HopState) -> list[tuple[int, Enclosure]]:
        """Return the same for one step backwards from ``targets``."""
        reachable = self._beyond(self.into, state.targets) & state.between
        return [(1 << node, self.all_lost(1 << node, state.targets)) for node in nodes_of(reachable)]

    def no_walk(self, max_hops: int) -> list[list[int]]:
        """Bound P(no path of at most h edges leads to the target) from below for h = 0..max_hops and each node.

        Different first steps are treated as independent and walks may return: both only lower the result.
        """
        table = [[0 if node == _TARGET else ONE for node in range(len(self.out))]]
        for _ in range(max_hops):
            row = []
            for node, ends in enumerate(self.out):
                silent = 0 if node == _TARGET else ONE
                for end in nodes_of(ends) if silent else ():
                    lost = self.lost[node, end][0]
                    silent = silent * (lost + ((ONE - lost) * table[-1][end] >> BITS)) >> BITS
                row.append(silent)
            table.append(row)
        return table


def after_step(state: HopState, reached: int, *, forward: bool) -> HopState:
    """Return what is left to ask once one step from the sources, or backwards from the targets, was looked at."""
    hops, sources, targets, between = state
    rest = between & ~reached
    return HopState(hops - 1, reached, targets, rest) if forward else HopState(hops - 1, sources, reached, rest)


def times(left: Enclosure, right: Enclosure) -> Enclosure:
    """Enclose the probability that two independent events both occur."""
    return left[0] * right[0] >> BITS, -(-left[1] * right[1] >> BITS)


def either(left: Enclosure, right: Enclosure) -> Enclosure:
    """Enclose the probability that at least one of two independent events occurs."""
    neither = times((ONE - left[1], ONE - left[0]), (ONE - right[1], ONE - right[0]))
    return ONE - neither[1], ONE - neither[0]


def mix(lost: Enclosure, if_lost: Enclosure, if_kept: Enclosure) -> Enclosure:
    """Enclose p·x + (1 - p)·y for p, x, y in the three enclosures and x >= y: this rises with each of them."""
    low = lost[0] * if_lost[0] + (ONE - lost[0]) * if_kept[0]
    high = lost[1] * if_lost[1] + (ONE - lost[1]) * if_kept[1]
    return low >> BITS, -(-high >> BITS)


def nodes_of(mask: int) -> Iterator[int]:
    """Yield the nodes of a bit mask, smallest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def union(masks: Iterable[int]) -> int:
    """Return the nodes that are in any of the bit masks."""
    result = 0
    for mask in masks:
        result |= mask
    return result


def _distances(starts: IntArray, tails: IntArray, heads: IntArray, num_nodes: int, num_layers: int) -> IntArray:
    """Return the number of steps tail -> head from ``starts`` to each node; num_layers + 1 if there are more."""
    distances = np.full(num_nodes, num_layers + 1, dtype=np.int64)
    distances[starts] = 0
    for step in range(num_layers):
        reached = heads[distances[tails] == step]
        distances[reached] = np.minimum(distances[reached], step + 1)
    return distances
