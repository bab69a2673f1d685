"""Node retention by listing every kept set; nothing here uses graycert."""

import itertools
from fractions import Fraction
from math import comb

from support.enumeration import Edge, nodes_that_reach


def induced(edges: list[Edge], nodes) -> list[Edge]:
    """The edges between the given nodes."""
    return [(source, target) for source, target in edges if source in nodes and target in nodes]


def connected_part(edges: list[Edge], kept: frozenset[int], target: int, hops: int | None) -> frozenset[int]:
    """The kept nodes with a path of at most ``hops`` edges (None: any number) inside ``kept`` to the target."""
    return nodes_that_reach(induced(edges, kept), target, len(kept) if hops is None else hops)


def kept_sets(edges: list[Edge], target: int, num_layers: int, num_kept: int) -> list[frozenset[int]]:
    """The target with every choice of ``num_kept`` further nodes of its receptive field."""
    others = sorted(nodes_that_reach(edges, target, num_layers) - {target})
    return [frozenset({target, *choice}) for choice in itertools.combinations(others, num_kept)]


def class_sizes(edges, target, num_layers, num_kept, hops) -> dict[frozenset[int], int]:
    """How many kept sets have each connected part."""
    counts: dict[frozenset[int], int] = {}
    for kept in kept_sets(edges, target, num_layers, num_kept):
        part = connected_part(edges, kept, target, hops)
        counts[part] = counts.get(part, 0) + 1
    assert sum(counts.values()) == comb(len(nodes_that_reach(edges, target, num_layers)) - 1, num_kept)
    return counts


def arrival_law(edges, target, num_layers, num_kept) -> dict[frozenset[int], Fraction]:
    """The law of the set of nodes whose messages arrive within ``num_layers`` hops."""
    sizes = class_sizes(edges, target, num_layers, num_kept, num_layers)
    total = sum(sizes.values())
    return {arriving: Fraction(size, total) for arriving, size in sizes.items()}


def exact_delta(law, eligible, radius: int) -> Fraction:
    """The largest probability that some node of B arrives, over all sets B of at most ``radius`` eligible nodes."""
    nodes = sorted(eligible)
    return max(
        sum((share for arriving, share in law.items() if arriving & set(hostile)), Fraction(0))
        for hostile in itertools.combinations(nodes, min(radius, len(nodes)))
    )


def random_setting(rng, *, max_nodes=9):
    """A random graph as edges with a number of nodes, layers, and kept nodes; the target is node 0."""
    from support.random_graphs import random_edges

    num_nodes = int(rng.integers(1, max_nodes + 1))
    edges = random_edges(rng, num_nodes, float(rng.choice([0.15, 0.3, 0.5])), directed=bool(rng.integers(2)))
    num_layers = int(rng.integers(1, 5))
    num_kept = int(rng.integers(0, len(nodes_that_reach(edges, 0, num_layers))))
    return edges, num_nodes, num_layers, num_kept
