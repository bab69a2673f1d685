"""Δ̄ of some targets, with the graph, smoothing, threat and number of layers that it belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._origin import Origin
from graycert._types import BoolArray, FloatArray, IntArray, TextArray
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats import Threat


@dataclass(frozen=True, kw_only=True, eq=False)
class DeltaBounds:
    """Upper bounds of Δ, what they were computed from, and who attains them.

    Args:
        targets: Node indices, shape (num_targets,).
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, shape (num_targets, max_radius).
        proved: Whether the bound is proved to be the largest value: of Δ for methods "exact" and "tree", of the
            surrogate for "surrogate"; same shape. Theorem 3 and the union bound prove no such thing.
        methods: What each target's bound comes from, up to the first ρ with Δ̄(ρ) >= 1/2 (beyond it no certificate
            asks, and only ``proved`` says what is exact): "exact", "tree", "surrogate", "multiplicative" or "union"; or
            "prefix" where the budget was spent before each worst set was proved, so that some bounds come from prefixes
            of the greedy set. Shape (num_targets,).
        num_eligible: Number of nodes of the receptive field that the adversary may control, shape (num_targets,).
        receptive_field_size: Nodes within num_layers hops, target included, shape (num_targets,).
        path_counts_exact: Whether simple paths were counted, rather than over-counted by walks, shape (num_targets,);
            True where no paths were counted.
        attackers: For each target the worst sets found, up to the first ρ with Δ̄(ρ) >= 1/2 (a certificate never asks
            for more): row ρ - 1 of an array of shape (num_sets, num_sets) holds node indices, padded with -1; its last
            row is also the set of every larger ρ. Empty where edges are attacked.
        bound: How Δ was to be bounded, e.g. "auto".
        num_layers: Number of message-passing steps k that the bounds hold for.
        smoothing: The smoothing; an array of p_d is in the order of ``CanonicalGraph``.
        threat: The adversary.
        graph: Fingerprint of the edges.

    Example:
        >>> from graycert import NodeFeatureThreat, delta_bounds
        >>> from graycert.graph import star_graph
        >>> smoothing, threat = InterceptionSmoothing(p_delete=0.5, p_ablate=0.0), NodeFeatureThreat(min_distance=1)
        >>> bounds = delta_bounds(star_graph(2), [0], smoothing=smoothing, threat=threat, num_layers=1, max_radius=2)
        >>> np.asarray(bounds).round(9)
        array([[0.5 , 0.75]])
    """

    targets: IntArray
    delta_upper: FloatArray
    proved: BoolArray
    methods: TextArray
    num_eligible: IntArray
    receptive_field_size: IntArray
    path_counts_exact: BoolArray
    attackers: Sequence[NDArray[np.int32]]
    bound: str
    num_layers: int
    smoothing: InterceptionSmoothing
    threat: Threat
    graph: str

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return Δ̄, shape (num_targets, max_radius)."""
        return np.array(self.delta_upper, dtype=dtype, copy=copy is not False)

    @property
    def origin(self) -> Origin:
        """What votes must belong to, to be certified with these bounds."""
        return Origin.of(graph=self.graph, targets=self.targets, smoothing=self.smoothing, num_layers=self.num_layers)

    def worst_set(self, row: int, radius: int) -> IntArray:
        """Return the nodes by which ``radius`` >= 0 hostile nodes harm target number ``row`` most, as far as is known.

        With a larger radius than a certificate can have, the largest set kept.
        """
        sets = self.attackers[row]
        if radius == 0 or not len(sets):
            return np.empty(0, dtype=np.int64)
        members = sets[min(radius, len(sets)) - 1]
        nodes: IntArray = members[members >= 0].astype(np.int64)
        return nodes
