"""Message passing that forgets nothing, on every outcome of the edge coins. Nothing here uses graycert.

The state of a node after a step stands for the pair of its last state and the multiset of received messages, so two
states are equal only if every model of the family would have the same input. States are numbered in a dictionary.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from fractions import Fraction

import numpy as np

Edge = tuple[int, int]  # (source, target)
Names = dict[Hashable, int]


def state(
    edges: Collection[Edge],
    features: Mapping[int, Hashable],
    target: int,
    num_layers: int,
    family: str,
    names: Names,
) -> int:
    """Return the number of the target's state after ``num_layers`` steps along ``edges``.

    Args:
        edges: The edges that are left.
        features: Initial state of every node.
        target: The node v.
        num_layers: Number of steps k.
        family: "local": a message is its sender's state; "degree-normalised": and the sender's in-degree;
            "out-degree": and the sender's out-degree.
        names: Numbers of the states met so far; shared between calls whose results are compared.
    """
    received: dict[int, list[int]] = {node: [] for node in features}
    for source, end in edges:
        received[end].append(source)
    side = {"degree-normalised": 1, "out-degree": 0}.get(family)
    degree = Counter(edge[side] for edge in edges) if side is not None else Counter()
    states = {node: names.setdefault(("start", value), len(names)) for node, value in features.items()}
    for _ in range(num_layers):
        states = {
            node: names.setdefault(
                (states[node], tuple(sorted((states[source], degree[source]) for source in received[node]))),
                len(names),
            )
            for node in features
        }
    return states[target]


def states_of_all_draws(edges: Sequence[Edge], features: Mapping[int, Hashable], target: int, **kind) -> np.ndarray:
    """Return the target's state in each draw, shape (2 ** num_edges,); bit i of the index says edge i is left."""
    return np.array(
        [
            state([edge for i, edge in enumerate(edges) if draw >> i & 1], features, target, **kind)
            for draw in range(2 ** len(edges))
        ]
    )


def reach_of_all_draws(edges: Sequence[Edge], source: int, target: int, num_edges: int) -> np.ndarray:
    """Return in which draws a path of at most ``num_edges`` edges is left from source to target (0 edges: the same)."""
    draws = np.arange(2 ** len(edges))
    reached = {target: np.ones(draws.size, dtype=bool)}
    for _ in range(num_edges):
        earlier = dict(reached)
        for i, (start, end) in enumerate(edges):
            if end in earlier:
                arrives = earlier[end] & (draws >> i & 1 == 1)
                reached[start] = reached.get(start, np.zeros(draws.size, dtype=bool)) | arrives
    return reached.get(source, np.zeros(draws.size, dtype=bool))


def probability(event: np.ndarray, p_delete: Fraction) -> Fraction:
    """Return the probability of the draws where ``event`` is True, shape (2 ** num_edges,), exactly."""
    num_edges = event.size.bit_length() - 1
    kept = Counter(int(draw).bit_count() for draw in np.flatnonzero(event))
    return sum(
        (times * (1 - p_delete) ** m * p_delete ** (num_edges - m) for m, times in kept.items()), start=Fraction(0)
    )
