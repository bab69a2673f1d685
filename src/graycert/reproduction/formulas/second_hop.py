"""Exact Δ and Theorem 3 of small graphs whose hostile nodes are two hops from the target, node 0."""

from collections.abc import Iterable

import numpy as np

from graycert._types import FloatArray
from graycert.bounds import arrival_probability
from graycert.bounds.evaluation import delta_bounds
from graycert.graph import Adjacency
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat


def exact_delta(graph: Adjacency, sources: Iterable[int], *, p_delete: float, p_ablate: float) -> float:
    """Return the probability that a message of any of the sources arrives; `delta_bounds` stops at the first >= 1/2."""
    return arrival_probability(graph, 0, sources, p_delete=p_delete, p_ablate=p_ablate, num_layers=2).p_upper


def theorem_3(graph: Adjacency, *, p_delete: float, p_ablate: float, max_radius: int) -> FloatArray:
    """Return Theorem 3 for ρ = 1..``max_radius`` second-hop nodes, shape (max_radius,)."""
    bounds = delta_bounds(
        graph,
        [0],
        smoothing=InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate),
        threat=NodeFeatureThreat(min_distance=2),
        max_radius=max_radius,
        bound="multiplicative",
        num_layers=2,
    )
    values: FloatArray = np.asarray(bounds)[0]
    return values
