"""Ground truth for small graphs: every outcome of every coin is listed.

Nothing here uses graycert. Probabilities may be floats or Fractions; with Fractions all results are exact.
"""

import itertools
from collections.abc import Collection, Iterable
from fractions import Fraction

Edge = tuple[int, int]  # (source, target): the message flows from source to target
Number = float | Fraction
Law = dict[frozenset[int], Number]


def nodes_that_reach(edges: Iterable[Edge], target: int, num_layers: int) -> frozenset[int]:
    """Return the nodes with a path of at most ``num_layers`` of the given edges to ``target``, itself included."""
    edges = list(edges)
    reached = {target}
    for _ in range(num_layers):
        reached |= {source for source, end in edges if end in reached}
    return frozenset(reached)


def arrival_law(edges: Collection[Edge], target: int, num_layers: int, p_delete: Number, *, joint: bool = False) -> Law:
    """Return the law of the set of nodes whose messages could reach the target after edges were deleted.

    Args:
        edges: Directed edges (source, target), no repeats.
        target: The node v.
        num_layers: Number of message-passing steps k.
        p_delete: Probability of deleting an edge.
        joint: Whether the two directions of an undirected edge share one coin.
    """
    field = nodes_that_reach(edges, target, num_layers)
    useful = sorted(
        edge
        for edge in edges
        if edge[0] != edge[1] and edge[1] in nodes_that_reach(edges, target, num_layers - 1) and edge[0] in field
    )
    coin_of = {edge: tuple(sorted(edge)) if joint else edge for edge in useful}
    coins = sorted(set(coin_of.values()))
    law: Law = {}
    for outcome in itertools.product((True, False), repeat=len(coins)):
        probability: Number = type(p_delete)(1)
        for kept in outcome:
            probability *= (1 - p_delete) if kept else p_delete
        if probability == 0:
            continue
        survivors = {coin for coin, kept in zip(coins, outcome, strict=True) if kept}
        reached = nodes_that_reach([edge for edge in useful if coin_of[edge] in survivors], target, num_layers)
        law[reached] = law.get(reached, type(p_delete)(0)) + probability
    return law


def arrival_probability(law: Law, attackers: Iterable[int], p_ablate: Number) -> Number:
    """Return p(E(B)): some attacker reaches the target and its features were not ablated.

    Every subset of un-ablated attackers is listed.
    """
    attackers = sorted(set(attackers))
    total: Number = type(p_ablate)(0)
    for shown in itertools.product((True, False), repeat=len(attackers)):
        features: Number = type(p_ablate)(1)
        for is_shown in shown:
            features *= (1 - p_ablate) if is_shown else p_ablate
        visible = {node for node, is_shown in zip(attackers, shown, strict=True) if is_shown}
        arrives = sum((probability for reached, probability in law.items() if reached & visible), type(p_ablate)(0))
        total += features * arrives
    return total


def exact_delta(law: Law, eligible: Iterable[int], radius: int, p_ablate: Number) -> Number:
    """Return Δ(ρ), the largest p(E(B)) over all sets B of at most ``radius`` eligible nodes."""
    candidates = sorted(set(eligible))
    size = min(radius, len(candidates))  # p(E(B)) never falls when a node joins B
    if size == 0:
        return type(p_ablate)(0)
    return max(arrival_probability(law, attackers, p_ablate) for attackers in itertools.combinations(candidates, size))


def hop_distances(edges: Collection[Edge], target: int, num_layers: int) -> dict[int, int]:
    """Return the length of the shortest path to the target for each node of the receptive field."""
    distances: dict[int, int] = {}
    for hops in range(num_layers + 1):
        for node in nodes_that_reach(edges, target, hops):
            distances.setdefault(node, hops)
    return distances
