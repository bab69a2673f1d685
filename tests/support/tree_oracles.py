"""Random trees, and three independent ways to find the worst adversary on them; nothing here uses graycert.

A tree is a list of parents (-1 for the root, node 0). Probabilities may be Fractions, then every result is exact.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass(frozen=True)
class Tree:
    """``parents[i]`` is the end of the edge out of node i; ``p_delete[i]`` belongs to that edge."""

    parents: Sequence[int]
    p_delete: Sequence[Fraction]
    p_ablate: Sequence[Fraction]

    def children(self, node: int) -> list[int]:
        return [child for child, parent in enumerate(self.parents) if parent == node]

    def depth(self, node: int) -> int:
        return 0 if self.parents[node] < 0 else 1 + self.depth(self.parents[node])


def random_tree(rng: np.random.Generator, num_nodes: int, max_depth: int) -> Tree:
    """Draw a tree whose probabilities are all alike, from a coarse grid (many ties), or arbitrary; with zeros, ones."""
    parents, depths = [-1], [0]
    while len(parents) < num_nodes:
        parent = int(rng.integers(len(parents)))
        if depths[parent] < max_depth:
            parents.append(parent)
            depths.append(depths[parent] + 1)
    return Tree(parents, _probabilities(rng, num_nodes), _probabilities(rng, num_nodes))


def _probabilities(rng: np.random.Generator, size: int) -> list[Fraction]:
    kind = rng.integers(5)
    if kind == 0:
        return [Fraction(int(rng.integers(5)), 4)] * size
    if kind == 1:
        return [Fraction(float(rng.random()))] * size
    if kind == 2:
        return [Fraction(int(numerator), 4) for numerator in rng.integers(5, size=size)]
    if kind == 3:
        return [Fraction(float(value)) for value in rng.choice([1e-9, 1e-3, 0.3, 0.794, 1 - 1e-9], size=size)]
    return [Fraction(float(value)) for value in rng.random(size)]


def miss_probability(tree: Tree, attackers: Iterable[int]) -> Fraction:
    """Return 1 - p(E(B)) by recursion."""
    hostile = set(attackers)

    def missed(node: int) -> Fraction:
        result = tree.p_ablate[node] if node in hostile else Fraction(1)
        for child in tree.children(node):
            result *= tree.p_delete[child] + (1 - tree.p_delete[child]) * missed(child)
        return result

    return missed(0)


def listed_miss_probability(tree: Tree, attackers: Iterable[int]) -> Fraction:
    """Return 1 - p(E(B)) by listing every outcome of every coin."""
    hostile, total = set(attackers), Fraction(0)
    size = len(tree.parents)
    for kept in itertools.product((False, True), repeat=size - 1):
        for shown in itertools.product((False, True), repeat=len(hostile)):
            visible = {node for node, is_shown in zip(sorted(hostile), shown, strict=True) if is_shown}
            if any(_arrives(tree, node, (True, *kept)) for node in visible):
                continue
            weight = Fraction(1)
            for node in range(1, size):
                weight *= 1 - tree.p_delete[node] if kept[node - 1] else tree.p_delete[node]
            for node in hostile:
                weight *= 1 - tree.p_ablate[node] if node in visible else tree.p_ablate[node]
            total += weight
    return total


def _arrives(tree: Tree, node: int, kept: Sequence[bool]) -> bool:
    while node > 0 and kept[node]:
        node = tree.parents[node]
    return node == 0


def brute_force_delta(tree: Tree, eligible: Iterable[int], max_radius: int) -> list[Fraction]:
    """Return Δ(ρ) for ρ = 1..max_radius from all sets of ρ eligible nodes."""
    candidates = sorted(eligible)
    return [
        1
        - min(
            miss_probability(tree, attackers)
            for attackers in itertools.combinations(candidates, min(radius, len(candidates)))
        )
        for radius in range(1, max_radius + 1)
    ]


def knapsack_delta(tree: Tree, eligible: Iterable[int], max_radius: int) -> list[Fraction]:
    """Return Δ(ρ) for ρ = 1..max_radius: for each subtree, the least miss probability for each number of attackers."""
    allowed = set(eligible)

    def least(node: int) -> list[Fraction]:
        own = [Fraction(1), tree.p_ablate[node]] if node in allowed else [Fraction(1)]
        for child in tree.children(node):
            p_delete = tree.p_delete[child]
            own = _min_product(own, [p_delete + (1 - p_delete) * missed for missed in least(child)], max_radius)
        return own

    best = least(0)
    return [1 - best[min(radius, len(best) - 1)] for radius in range(1, max_radius + 1)]


def _min_product(left: list[Fraction], right: list[Fraction], most: int) -> list[Fraction]:
    size = min(len(left) + len(right) - 1, most + 1)
    return [
        min(
            left[split] * right[total - split]
            for split in range(max(0, total - len(right) + 1), min(total, len(left) - 1) + 1)
        )
        for total in range(size)
    ]


def greedy_set(tree: Tree, eligible: Iterable[int], radius: int, *, last_of_ties: bool = False) -> list[int]:
    """Add, one after another, the node with which the fewest messages are missed; every candidate is evaluated."""
    chosen: list[int] = []
    candidates = sorted(eligible, reverse=last_of_ties)
    for _ in range(min(radius, len(candidates))):
        rest = [node for node in candidates if node not in chosen]
        chosen.append(min(rest, key=lambda node: miss_probability(tree, [*chosen, node])))
    return chosen
