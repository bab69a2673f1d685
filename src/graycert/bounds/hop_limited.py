"""The exact probability of an arrival for a fixed set of hostile nodes, any depth, on small fields.

A message from an un-ablated hostile node is a path of at most k edges. One more node, the origin, with an edge to each
hostile node w that is "deleted" with p_a(w), turns the event into: some path of at most k + 1 surviving edges leads
from the origin to the target. Everything below asks for the probability that there is none, docs/proofs/hop_limited.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from graycert._rounding import fraction_up
from graycert._validation import check_integer, check_integer_array, check_probabilities
from graycert.bounds.hop_network import (
    BITS,
    CERTAIN,
    NEVER,
    ONE,
    Enclosure,
    HopNetwork,
    HopState,
    after_step,
    either,
    mix,
    times,
    union,
)
from graycert.graph import Adjacency

DEFAULT_MAX_STATES = 20_000  # a few seconds
DEEPEST = 100  # the recursion has a few Python frames per layer


@dataclass(frozen=True, kw_only=True)
class ArrivalProbability:
    """An enclosure of p(E(B)).

    Args:
        p_lower: At most p(E(B)).
        p_upper: At least p(E(B)).
        exact: Whether all states were visited; then both ends differ by rounding only, at most 2^-52.
    """

    p_lower: float
    p_upper: float
    exact: bool


def arrival_probability(
    adjacency: Adjacency,
    target: int,
    attackers: Iterable[int],
    *,
    p_delete: ArrayLike,
    p_ablate: ArrayLike,
    num_layers: int,
    max_states: int = DEFAULT_MAX_STATES,
) -> ArrivalProbability:
    r"""Enclose p(E(B)), the probability that a message from any of the attackers B reaches the target.

    $$p(E(B)) = P\bigl(\exists\, w\in B:\ w \text{ un-ablated},\ w\to\dots\to v \text{ along} \le k
    \text{ surviving edges}\bigr)$$

    Guarantee:
        ``p_lower`` <= p(E(B)) <= ``p_upper`` for edges deleted and features ablated independently, on any graph. Also
        if the two directions of an undirected edge share one coin. If ``exact``, the ends differ by at most 2^-52.
        If not, ``p_upper`` treats the messages of different attackers as independent (Theorem 3) with the exact
        probability of a single attacker wherever the states suffice; elsewhere different first steps too, and in the
        last resort walks that return. ``multiplicative_bound`` may then be smaller: take the minimum. Rounded outward.

    Args:
        adjacency: The graph.
        target: The node v.
        attackers: The nodes of B; the target may be one of them.
        p_delete: Probability of deleting each edge, in [0, 1]; a number or shape (num_edges,), in the order of
            ``adjacency``.
        p_ablate: Probability of ablating each node's features, in [0, 1]; a number or shape (num_nodes,).
        num_layers: Number of message-passing steps k, in [1, 100].
        max_states: How many states to visit before giving up on an exact answer, >= 1. Their number can double with
            every edge on a path from B to the target, but with most of them it does not.

    Returns:
        The enclosure.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> from graycert.graph.toy_graphs import shared_edge_graph
        >>> result = arrival_probability(shared_edge_graph(), 0, [4], p_delete=0.5, p_ablate=0.0, num_layers=3)
        >>> round(result.p_upper, 12), result.exact
        (0.21875, True)

    References:
        Beyond the paper (Scholten et al. 2022, App. C enumerates paths instead); docs/proofs/hop_limited.md.
    """
    target = check_integer("target", target, at_least=0, at_most=adjacency.num_nodes - 1)
    hostile = np.unique(
        check_integer_array("attackers", list(attackers), ndim=1, at_least=0, less_than=adjacency.num_nodes)
    )
    lost = check_probabilities("p_delete", p_delete, size=adjacency.num_edges, per="edge")
    ablated = check_probabilities("p_ablate", p_ablate, size=adjacency.num_nodes, per="node")[hostile]
    num_layers = check_integer("num_layers", num_layers, at_least=1, at_most=DEEPEST)
    max_states = check_integer("max_states", max_states, at_least=1)
    network, start = HopNetwork.around(adjacency, target, hostile, lost, ablated, num_layers)
    try:
        silent, exact = _Exploration(network, max_states).silent(start), True
    except _StatesSpentError:
        silent, exact = _SplitBound(network, start.hops).silent(start, max_states), False
    return ArrivalProbability(
        p_lower=0.0 - fraction_up(Fraction(silent[1] - ONE, ONE)),
        p_upper=fraction_up(Fraction(ONE - silent[0], ONE)),
        exact=exact,
    )


class _StatesSpentError(Exception):
    """An exact answer needs more states than allowed."""


class _Exploration:
    """Visit all states that can follow, at most ``num_left`` of them, each once."""

    def __init__(self, network: HopNetwork, num_left: int) -> None:
        self.network = network
        self.num_left = num_left
        self.known: dict[HopState, Enclosure] = {}

    def silent(self, state: HopState) -> Enclosure:
        """Enclose the probability that the path of the state does not exist."""
        result = self.network.all_lost(state.sources, state.targets)
        if result != NEVER:
            for part in self.network.parts(state):
                result = times(result, self.part_silent(part))
        return result

    def part_silent(self, part: HopState) -> Enclosure:
        """Do the same for a part, whose paths have at least one inner node."""
        if part.between & (part.between - 1) == 0:
            first = self.network.all_lost(part.sources, part.between)
            return either(first, self.network.all_lost(part.between, part.targets))
        if part not in self.known:
            self.known[part] = self._by_next_step(part)
        return self.known[part]

    def _by_next_step(self, part: HopState) -> Enclosure:
        """Look at one step from the sources, or backwards from the targets: whichever has fewer outcomes."""
        forward, backward = self.network.after_sources(part), self.network.before_targets(part)
        go_forward = sum(lost != NEVER for _, lost in forward) < sum(lost != NEVER for _, lost in backward)
        candidates = forward if go_forward else backward
        open_candidates = [(node, lost) for node, lost in candidates if lost != NEVER]
        self.num_left -= 1 << len(open_candidates)
        if self.num_left < 0:
            raise _StatesSpentError
        outcomes = [union(node for node, lost in candidates if lost == NEVER)]
        for node, _ in open_candidates:
            outcomes = [reached for before in outcomes for reached in (before, before | node)]
        silent = [self.silent(after_step(part, reached, forward=go_forward)) for reached in outcomes]
        for _, lost in reversed(open_candidates):
            silent = [mix(lost, *pair) for pair in zip(silent[::2], silent[1::2], strict=True)]
        return silent[0]


class _SplitBound:
    """Bound the same probability with few states, by treating paths with different first steps as independent.

    "No path begins with this step" is an event that becomes no likelier when an edge survives, so by Harris' inequality
    these events occur together at least as often as if they were independent; and at most as often as each of them.
    """

    def __init__(self, network: HopNetwork, max_hops: int) -> None:
        self.network = network
        self.no_walk = network.no_walk(max_hops)

    def silent(self, state: HopState, num_states: int) -> Enclosure:
        """Enclose the probability, with at most about ``num_states`` states for each of the ``state.hops`` steps."""
        result = self.network.all_lost(state.sources, state.targets)
        parts = self.network.parts(state)
        for part in parts:
            share = num_states // len(parts)
            try:
                silent = _Exploration(self.network, share).part_silent(part)
            except _StatesSpentError:
                silent = self._part_silent(part, share)
            result = times(result, silent)
        return result

    def _part_silent(self, part: HopState, num_states: int) -> Enclosure:
        steps = self.network.after_sources(part)
        share = num_states // len(steps)
        low = high = ONE
        for node, lost in steps:
            if share:
                silent = self.silent(after_step(part, node, forward=True), share)
            else:  # all steps were forward, so the targets are still the one that `no_walk` is about
                silent = (self.no_walk[part.hops - 1][node.bit_length() - 1], ONE)
            begins_no_path = mix(lost, CERTAIN, silent)
            low, high = low * begins_no_path[0] >> BITS, min(high, begins_no_path[1])
        return low, high
