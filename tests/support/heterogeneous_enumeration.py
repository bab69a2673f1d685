"""Ground truth with a probability per edge and node: every outcome of every coin is listed.

Nothing here uses graycert. Probabilities may be floats or Fractions; with Fractions all results are exact.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from support.enumeration import Edge, Law, Number, nodes_that_reach


def arrival_law(p_delete: Mapping[Edge, Number], target: int, num_layers: int) -> Law:
    """Return the law of the set of nodes with a surviving path of at most ``num_layers`` edges to the target.

    Args:
        p_delete: Probability of deleting each directed edge (source, target) of the graph.
        target: The node v.
        num_layers: Number of message-passing steps k.
    """
    inner = nodes_that_reach(p_delete, target, num_layers - 1)
    useful = sorted(edge for edge in p_delete if edge[0] != edge[1] and edge[1] in inner)
    law: Law = {}
    for outcome in itertools.product((True, False), repeat=len(useful)):
        probability: Number = Fraction(1)
        for edge, kept in zip(useful, outcome, strict=True):
            probability *= (1 - p_delete[edge]) if kept else p_delete[edge]
        if probability == 0:
            continue
        reached = nodes_that_reach(itertools.compress(useful, outcome), target, num_layers)
        law[reached] = law.get(reached, Fraction(0)) + probability
    return law


def arrival_probability(law: Law, attackers: Iterable[int], p_ablate: Sequence[Number]) -> Number:
    """Return p(E(B)): some attacker reaches the target and its features were not ablated.

    Given who reaches the target, the ablations of these nodes are independent of each other.
    """
    hostile = frozenset(attackers)
    total: Number = Fraction(0)
    for reached, probability in law.items():
        all_hidden: Number = Fraction(1)
        for node in reached & hostile:
            all_hidden *= p_ablate[node]
        total += probability * (1 - all_hidden)
    return total
