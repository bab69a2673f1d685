"""Group testing for messages: few passes in which every node changes while any other one stays."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from graycert.audit.hostile_rows import LIKE, HostileRows

_MOST_BLOCKS = 15
_PASSES = 9
MILD = 3
"""Words count mild rows from 0 to 2; what is above is loud."""
_LOUD = (("1e4", "NaN"), ("unequal entries", "-1e4", "infinity"))  # no kind is in both


@dataclass(frozen=True)
class Covering:
    """Features of passes in which every node changes while any other one stays.

    Args:
        x: Features of the graph.
        rows: Makes mild and loud rows.
        generator: Deals out words.
    """

    x: Tensor
    rows: HostileRows
    generator: torch.Generator

    @cached_property
    def words(self) -> Tensor:
        """What each node shows in each pass."""
        return covering_words(self.x.size(0), self.generator)

    def passes(self) -> Iterator[Tensor]:
        """Yield the features of every pass."""
        return (self.features(number) for number in range(self.words.size(1)))

    def features(self, number: int) -> Tensor:
        """Return the features of a pass; mild rows are the same in every pass."""
        shown = self.x.clone()
        for symbol in range(1, MILD):
            which = self.words[:, number] == symbol
            shown[which] = self._mild[symbol - 1][which]
        for symbol, kinds in enumerate(_LOUD, start=MILD):
            which = self.words[:, number] == symbol
            shown[which] = self.rows.mixed(kinds, self.x[which], offset=number)
        return shown

    @cached_property
    def _mild(self) -> list[Tensor]:
        return [self.rows.mixed(tuple(LIKE), self.x, offset=offset) for offset in (0, len(LIKE) // 2)]


def separating_blocks(num_nodes: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield sets of nodes, bool (num_nodes,), such that for any u and v one set holds u and not v.

    Every node is in half of the sets, and no two nodes are in the same ones, by Sperner's theorem as many as there are
    halves of the number of sets. Above 6,435 nodes, sets are shared by few random nodes.
    """
    size = next((m for m in range(2, _MOST_BLOCKS) if math.comb(m, m // 2) >= num_nodes), _MOST_BLOCKS)
    halves = torch.tensor(list(itertools.combinations(range(size), size // 2)))
    members = torch.zeros(halves.size(0), size, dtype=torch.bool).scatter_(1, halves, True)
    code = torch.randperm(num_nodes, generator=generator) % halves.size(0)
    yield from members[code].T


def covering_words(num_nodes: int, generator: torch.Generator) -> Tensor:
    """Return what each node shows in each of nine passes: one of three mild rows (0, 1, 2), or of two loud ones (3, 4).

    For any u and v there are two passes in which v shows the same mild row, and u two different ones. Each node shows
    each loud row once. Where its loud passes are others than v's, u is loud in a pass whose mild row v shows in another
    pass, too. Where they are the same, the other seven passes of both are parted differently into two, two and
    three, and no such partition refines another, so two passes of one part of v's lie in different parts of u's.

    Returns:
        int64, shape (num_nodes, 9). Above 3,780 nodes, words are shared by few random nodes.
    """
    words = []
    for loud in itertools.combinations(range(_PASSES), 2):
        others = [number for number in range(_PASSES) if number not in loud]
        for first in itertools.combinations(others, 2):
            rest = [number for number in others if number not in first]
            for second in itertools.combinations(rest, 2):
                if first < second:  # the two parts of two are interchangeable
                    word = [2] * _PASSES
                    for symbol, passes in enumerate((first, second)):
                        for number in passes:
                            word[number] = symbol
                    word[loud[0]], word[loud[1]] = MILD, MILD + 1
                    words.append(word)
    order = torch.randperm(len(words), generator=generator)
    return torch.tensor(words)[order[torch.arange(num_nodes) % len(words)]]
