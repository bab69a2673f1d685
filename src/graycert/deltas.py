"""Δ̄ for each target and radius: the graph, the smoothing and the threat brought together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._rounding import FloatArray
from graycert._validation import check_choice, check_integer, check_targets
from graycert.bounds import (
    largest_per_group,
    multiplicative_bound,
    single_source_bounds,
    target_bound,
    union_bound,
)
from graycert.errors import InvalidParameterError
from graycert.graph import Adjacency, as_adjacency, count_simple_paths, target_blocks
from graycert.smoothing import InterceptionSmoothing
from graycert.threat import NodeFeatureThreat

_RULES = {"multiplicative": multiplicative_bound, "union": union_bound}
METHODS = tuple(_RULES)


@dataclass(frozen=True, kw_only=True, eq=False)
class DeltaBounds:
    """Upper bounds of Δ and what they were computed from.

    Args:
        targets: Node indices, shape (num_targets,).
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, shape (num_targets, max_radius).
        num_eligible: Number of nodes of the receptive field that the adversary may control, shape (num_targets,).
        receptive_field_size: Nodes within num_layers hops, target included, shape (num_targets,).
        path_counts_exact: Whether simple paths were counted, rather than over-counted by walks, shape (num_targets,).
    """

    targets: NDArray[np.int64]
    delta_upper: FloatArray
    num_eligible: NDArray[np.int64]
    receptive_field_size: NDArray[np.int64]
    path_counts_exact: NDArray[np.bool_]


def delta_bounds(
    data_or_adjacency: Any,
    targets: ArrayLike,
    *,
    smoothing: InterceptionSmoothing,
    threat: NodeFeatureThreat,
    num_layers: int = 2,
    max_radius: int = 20,
    method: str = "multiplicative",
) -> FloatArray:
    """Bound, for each target and radius, the probability that a message from hostile nodes reaches the target.

    Guarantee:
        Entry [i, ρ - 1] is at least Δ(ρ), the largest p(E(B)) over all sets B of at most ρ eligible nodes, for any
        message-passing model of ``num_layers`` steps that satisfies Lemma 1. It never falls with ρ; with fewer than ρ
        eligible nodes it is the bound for all of them. Rounded upward.

    Args:
        data_or_adjacency: PyTorch Geometric ``Data`` (or any object with ``edge_index`` and ``num_nodes``), a square
            SciPy sparse matrix with entry [w, v] for edge w -> v, or an ``Adjacency``.
        targets: Distinct node indices, shape (num_targets,).
        smoothing: The probabilities p_d and p_a.
        threat: Which nodes may be hostile.
        num_layers: Number of message-passing steps k of the model, >= 1.
        max_radius: Largest number of hostile nodes ρ, >= 1.
        method: "multiplicative" (Theorem 3) or "union" (App. F, looser).

    Returns:
        Δ̄(ρ) for ρ = 1..max_radius, float64, shape (num_targets, max_radius).

    Raises:
        InvalidParameterError: If an argument is malformed or out of range.
        UnsoundSetupError: ``parallel-edges``, if the graph holds an edge twice.

    Example:
        >>> from graycert.graph import bottleneck_graph
        >>> smoothing = InterceptionSmoothing(p_delete=0.5, p_ablate=0.0)
        >>> threat = NodeFeatureThreat(min_distance=2)
        >>> delta_bounds(bottleneck_graph(3), [0], smoothing=smoothing, threat=threat, max_radius=2).round(12)
        array([[0.25  , 0.4375]])

    References:
        Scholten et al. (2022), Theorems 2 and 3.
    """
    return evaluate_deltas(
        as_adjacency(data_or_adjacency),
        targets,
        smoothing=smoothing,
        threat=threat,
        num_layers=num_layers,
        max_radius=max_radius,
        method=method,
    ).delta_upper


def evaluate_deltas(
    adjacency: Adjacency,
    targets: ArrayLike,
    *,
    smoothing: InterceptionSmoothing,
    threat: NodeFeatureThreat,
    num_layers: int = 2,
    max_radius: int = 20,
    method: str = "multiplicative",
) -> DeltaBounds:
    """Do the work of ``delta_bounds`` and report what the bounds rest on; arguments and errors are the same."""
    _check_types(adjacency, smoothing, threat)
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    max_radius = check_integer("max_radius", max_radius, at_least=1)
    rule = _RULES[check_choice("method", method, METHODS)]
    own = target_bound(p_ablate=smoothing.p_ablate)
    delta_upper, num_eligible, field_size, exact = [], [], [], []
    for block in target_blocks(adjacency, targets, num_layers=num_layers):
        paths = count_simple_paths(adjacency, block, num_layers=num_layers)
        eligible = threat.eligible(paths.sources, paths.distances, num_nodes=adjacency.num_nodes)
        rows = paths.rows[eligible]
        single = single_source_bounds(paths.counts[eligible], p_delete=smoothing.p_delete, p_ablate=smoothing.p_ablate)
        single[paths.distances[eligible] == 0] = own  # a target needs no edge to see its own features
        worst = largest_per_group(single, rows, num_groups=block.size, max_radius=max_radius)
        delta_upper.append(rule(worst, max_radius=max_radius))
        num_eligible.append(np.bincount(rows, minlength=block.size).astype(np.int64))
        field_size.append(np.diff(paths.indptr))
        exact.append(paths.exact)
    return DeltaBounds(
        targets=targets,
        delta_upper=np.concatenate(delta_upper),
        num_eligible=np.concatenate(num_eligible),
        receptive_field_size=np.concatenate(field_size),
        path_counts_exact=np.concatenate(exact),
    )


def _check_types(adjacency: object, smoothing: object, threat: object) -> None:
    expected = {
        "adjacency": (adjacency, Adjacency, "graycert.graph.as_adjacency"),
        "smoothing": (smoothing, InterceptionSmoothing, "graycert.InterceptionSmoothing"),
        "threat": (threat, NodeFeatureThreat, "graycert.NodeFeatureThreat"),
    }
    for name, (value, wanted, maker) in expected.items():
        if not isinstance(value, wanted):
            raise InvalidParameterError(
                f"`{name}` must be of type {wanted.__name__}, got {type(value).__name__}. Make one with {maker}."
            )
