"""Δ̄ for each target and radius: the graph, the smoothing and the threat brought together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._rounding import FloatArray
from graycert._validation import check_choice, check_integer, check_targets
from graycert.bounds import (
    multiplicative_bound,
    single_source_bounds,
    target_bound,
    union_bound,
)
from graycert.errors import InvalidParameterError
from graycert.graph import BLOCK_ENTRIES, Adjacency, SimplePathCounts, as_adjacency, simple_path_blocks
from graycert.smoothing import InterceptionSmoothing
from graycert.threat import NodeFeatureThreat

Rule = Callable[..., FloatArray]

_RULES: dict[str, Rule] = {"multiplicative": multiplicative_bound, "union": union_bound}
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
    max_radius: int | None = 20,
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
        max_radius: Largest number of hostile nodes ρ, >= 1. None goes as far as a certificate can: to the first ρ at
            which, for each target, Δ̄(ρ) is 1/2 or more or all eligible nodes are hostile.
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
    max_radius: int | None = 20,
    method: str = "multiplicative",
) -> DeltaBounds:
    """Do the work of ``delta_bounds`` and report what the bounds rest on; arguments and errors are the same.

    Besides the result, memory holds one block of ``graycert.graph.BLOCK_ENTRIES`` nodes of receptive fields, or one
    field if that is larger.
    """
    _check_types(adjacency, smoothing, threat)
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    radius = 1 if max_radius is None else check_integer("max_radius", max_radius, at_least=1)
    rule = _RULES[check_choice("method", method, METHODS)]
    delta_upper, num_eligible, field_size, exact = [], [], [], []
    for paths in simple_path_blocks(adjacency, targets, num_layers=num_layers):
        worst = _WorstNodes.of(paths, smoothing, threat, num_nodes=adjacency.num_nodes)
        if max_radius is None:
            radius = max(radius, worst.reach(rule))
        delta_upper.append(worst.bounds(rule, max_radius=radius))
        num_eligible.append(worst.num_eligible)
        field_size.append(np.diff(paths.indptr))
        exact.append(paths.exact)
    if delta_upper[0].shape[1] < radius:  # a later block reaches farther: now the radius is known
        return evaluate_deltas(
            adjacency,
            targets,
            smoothing=smoothing,
            threat=threat,
            num_layers=num_layers,
            max_radius=radius,
            method=method,
        )
    return DeltaBounds(
        targets=targets,
        delta_upper=np.concatenate(delta_upper),
        num_eligible=np.concatenate(num_eligible),
        receptive_field_size=np.concatenate(field_size),
        path_counts_exact=np.concatenate(exact),
    )


@dataclass(frozen=True, eq=False)
class _WorstNodes:
    """Δ̄_w of the nodes of some receptive fields; 0 for nodes that may not be hostile, which changes no bound."""

    single: FloatArray
    indptr: NDArray[np.int64]
    num_eligible: NDArray[np.int64]

    @classmethod
    def of(
        cls, paths: SimplePathCounts, smoothing: InterceptionSmoothing, threat: NodeFeatureThreat, *, num_nodes: int
    ) -> Self:
        """Apply Theorem 2, once to each distinct row of path counts."""
        from graycert.bounds.repeated_counts import distinct_rows  # Numba takes a while to load

        first, which = distinct_rows(paths.counts)
        distinct = single_source_bounds(paths.counts[first], p_delete=smoothing.p_delete, p_ablate=smoothing.p_ablate)
        single = distinct[which]
        # A target, the first of its field, needs no edge to see its own features.
        single[paths.indptr[:-1]] = target_bound(p_ablate=smoothing.p_ablate)
        eligible = threat.eligible(paths.sources, paths.distances, num_nodes=num_nodes)
        single[~eligible] = 0.0
        num_eligible = np.add.reduceat(eligible, paths.indptr[:-1], dtype=np.int64)
        return cls(single=single, indptr=paths.indptr, num_eligible=num_eligible)

    def reach(self, rule: Rule) -> int:
        """Return the first radius at which each Δ̄ is 1/2 or more or all eligible nodes are hostile."""
        radius, farthest, rows = 1, 1, np.arange(self.num_eligible.size)
        while rows.size:  # rows with at least radius / 2 eligible nodes, so the table is no larger than the fields
            below = np.count_nonzero(self._table(rule, rows, radius) < 0.5, axis=1)
            is_open = (below == radius) & (self.num_eligible[rows] > radius)
            needed = np.minimum(below + 1, self.num_eligible[rows])[~is_open]
            farthest = max(farthest, int(needed.max(initial=0)))
            radius, rows = 2 * radius, rows[is_open]
        return farthest

    def bounds(self, rule: Rule, *, max_radius: int) -> FloatArray:
        """Return Δ̄(ρ) for ρ = 1..max_radius, shape (num_targets, max_radius)."""
        rows = np.arange(self.num_eligible.size)
        step = max(1, BLOCK_ENTRIES // max_radius)
        return np.concatenate([self._table(rule, rows[i : i + step], max_radius) for i in range(0, rows.size, step)])

    def _table(self, rule: Rule, rows: NDArray[np.int64], max_radius: int) -> FloatArray:
        from graycert.bounds.worst_nodes import largest_per_group

        worst = largest_per_group(self.single, self.indptr[rows], self.indptr[rows + 1], max_radius=max_radius)
        return rule(worst, max_radius=max_radius)


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
