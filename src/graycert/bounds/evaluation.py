"""Δ̄ for each target and radius, by the method asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._types import FloatArray
from graycert._validation import check_choice, check_integer, check_targets
from graycert.bounds.block import Block, Setting, TargetDeltas
from graycert.bounds.by_paths import RULES, PathBounds
from graycert.bounds.by_search import SearchBounds
from graycert.errors import InvalidParameterError
from graycert.graph import Adjacency, as_adjacency, receptive_fields, smoothing_on, target_blocks
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat

PATH_METHODS = tuple(RULES)
METHODS = ("auto", "exact", "surrogate", "tree", *PATH_METHODS)
DEFAULT_BUDGET = 2**26  # products per target: a tenth of a second


@dataclass(frozen=True, kw_only=True, eq=False)
class DeltaBounds:
    """Upper bounds of Δ, what they were computed from, and who attains them.

    Args:
        targets: Node indices, shape (num_targets,).
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, shape (num_targets, max_radius).
        proved: Whether the bound is proved to be the largest value: of Δ for methods "exact" and "tree", of the
            surrogate for "surrogate"; same shape. Theorem 3 and the union bound prove no such thing.
        methods: What each target's bound comes from: "exact", "tree", "surrogate", "multiplicative" or "union"; or
            "prefix" where the budget was spent before each worst set was proved, up to the first ρ with Δ̄(ρ) >= 1/2,
            so that some bounds come from prefixes of the greedy set. Shape (num_targets,).
        num_eligible: Number of nodes of the receptive field that the adversary may control, shape (num_targets,).
        receptive_field_size: Nodes within num_layers hops, target included, shape (num_targets,).
        path_counts_exact: Whether simple paths were counted, rather than over-counted by walks, shape (num_targets,);
            True where no paths were counted.
        attackers: For each target the worst sets found, up to the first ρ with Δ̄(ρ) >= 1/2 (a certificate never asks
            for more): row ρ - 1 of an array of shape (num_radii, num_radii) holds node indices, padded with -1.
    """

    targets: NDArray[np.int64]
    delta_upper: FloatArray
    proved: NDArray[np.bool_]
    methods: NDArray[np.str_]
    num_eligible: NDArray[np.int64]
    receptive_field_size: NDArray[np.int64]
    path_counts_exact: NDArray[np.bool_]
    attackers: tuple[NDArray[np.int32], ...]

    def worst_set(self, row: int, radius: int) -> NDArray[np.int64]:
        """Return the nodes by which ``radius`` >= 0 hostile nodes harm target number ``row`` most, as far as is known.

        With a larger radius than a certificate can have, the largest set kept.
        """
        sets = self.attackers[row]
        if radius == 0:
            return np.empty(0, dtype=np.int64)
        members = sets[min(radius, len(sets)) - 1]
        nodes: NDArray[np.int64] = members[members >= 0].astype(np.int64)
        return nodes


def delta_bounds(
    data_or_adjacency: Any,
    targets: ArrayLike,
    *,
    smoothing: InterceptionSmoothing,
    threat: NodeFeatureThreat,
    num_layers: int = 2,
    max_radius: int | None = 20,
    method: str = "auto",
    budget: int = DEFAULT_BUDGET,
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
        smoothing: The probabilities p_d and p_a; an array of p_d has one entry per column of ``edge_index``, or per
            edge of an ``Adjacency`` in its order.
        threat: Which nodes may be hostile.
        num_layers: Number of message-passing steps k of the model, >= 1.
        max_radius: Largest number of hostile nodes ρ, >= 1. None goes as far as a certificate can: to the first ρ at
            which, for each target, Δ̄(ρ) is 1/2 or more or all eligible nodes are hostile.
        method: "auto" takes, per target, the tightest that the budget allows: "exact" for at most two layers; for
            more "tree" where each node has one simple path to the target (App. D), "surrogate" elsewhere. These may
            also be asked for by name. "multiplicative" is Theorem 3, "union" App. F, looser.
        budget: Work per target, in products, after which a search for the worst set is given up. What it has proved so
            far is returned, never above Theorem 3 (for more than two layers up to rounding).

    Returns:
        Δ̄(ρ) for ρ = 1..max_radius, float64, shape (num_targets, max_radius).

    Raises:
        InvalidParameterError: If an argument is malformed or out of range.
        UnsoundSetupError: ``parallel-edges``, if the graph holds an edge twice.

    Example:
        >>> from graycert.graph import bottleneck_graph
        >>> smoothing = InterceptionSmoothing(p_delete=0.5, p_ablate=0.0)
        >>> threat = NodeFeatureThreat(min_distance=2)
        >>> arguments = {"smoothing": smoothing, "threat": threat, "max_radius": 2}
        >>> delta_bounds(bottleneck_graph(3), [0], **arguments).round(9)  # both need the one edge into the target
        array([[0.25 , 0.375]])
        >>> delta_bounds(bottleneck_graph(3), [0], **arguments, method="multiplicative").round(9)
        array([[0.25  , 0.4375]])

    References:
        Scholten et al. (2022), Theorems 2 and 3, App. D and F; docs/proofs/two_level.md ("exact", "surrogate").
    """
    _check_types(as_adjacency(data_or_adjacency), smoothing, threat)
    return evaluate_deltas(
        as_adjacency(data_or_adjacency),
        targets,
        smoothing=smoothing_on(data_or_adjacency, smoothing),
        threat=threat,
        num_layers=num_layers,
        max_radius=max_radius,
        method=method,
        budget=budget,
    ).delta_upper


def evaluate_deltas(
    adjacency: Adjacency,
    targets: ArrayLike,
    *,
    smoothing: InterceptionSmoothing,
    threat: NodeFeatureThreat,
    num_layers: int = 2,
    max_radius: int | None = 20,
    method: str = "auto",
    budget: int = DEFAULT_BUDGET,
) -> DeltaBounds:
    """Do the work of ``delta_bounds`` and report what the bounds rest on; arguments and errors are the same.

    Besides the result, memory holds one block of ``graycert.graph.BLOCK_ENTRIES`` nodes of receptive fields, or one
    field if that is larger.
    """
    _check_types(adjacency, smoothing, threat)
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    if max_radius is not None:
        max_radius = check_integer("max_radius", max_radius, at_least=1)
    method = check_method(method, num_layers=num_layers)
    smoothing = smoothing_on(adjacency, smoothing)  # lengths are checked
    setting = Setting(
        adjacency=adjacency,
        p_delete=smoothing.p_delete,
        p_ablate=smoothing.p_ablate,
        num_layers=num_layers,
        budget=check_integer("budget", budget, at_least=1),
    )
    found: list[TargetDeltas] = []
    num_eligible, sizes = [], []
    for block in _blocks(setting, threat, targets):
        found += _by_method(setting, block, method=method, max_radius=max_radius)
        num_eligible.append(block.num_eligible)
        sizes.append(block.fields.sizes)
    radius = max(each.delta_upper.size for each in found)
    if any(each.delta_upper.size < radius for each in found):  # now it is known how far a certificate can reach
        return evaluate_deltas(
            adjacency,
            targets,
            smoothing=smoothing,
            threat=threat,
            num_layers=num_layers,
            max_radius=radius,
            method=method,
            budget=budget,
        )
    return DeltaBounds(
        targets=targets,
        delta_upper=np.stack([each.delta_upper for each in found]),
        proved=np.stack([each.proved for each in found]),
        methods=np.array([each.method for each in found]),
        num_eligible=np.concatenate(num_eligible),
        receptive_field_size=np.concatenate(sizes),
        path_counts_exact=np.array([each.path_counts_exact for each in found]),
        attackers=tuple(each.attackers for each in found),
    )


def check_method(method: str, *, num_layers: int) -> str:
    """Return ``method`` if it exists and applies to so many layers.

    Raises:
        InvalidParameterError: If not.
    """
    method = check_choice("method", method, METHODS)
    if method == "exact" and num_layers > 2:
        raise InvalidParameterError(
            f"`method` 'exact' needs at most two layers, got num_layers = {num_layers}. Use 'auto', which is exact "
            "on trees and takes a bound tighter than Theorem 3 elsewhere."
        )
    return method


def _blocks(setting: Setting, threat: NodeFeatureThreat, targets: NDArray[np.int64]) -> Iterator[Block]:
    """Yield the receptive fields of a few targets at a time, in bounded memory."""
    adjacency, num_layers = setting.adjacency, setting.num_layers
    for some in target_blocks(adjacency, targets, num_layers=num_layers):
        fields = receptive_fields(adjacency, some, num_layers=num_layers)
        eligible = threat.eligible(fields.nodes, fields.distances, num_nodes=adjacency.num_nodes)
        yield Block(fields=fields, eligible=eligible)


def _by_method(setting: Setting, block: Block, *, method: str, max_radius: int | None) -> list[TargetDeltas]:
    rows = np.arange(block.num_targets)
    if method in RULES:
        paths = PathBounds(setting, block, method=method)
        return paths.of(rows, max_radius=paths.reach() if max_radius is None else max_radius)
    search = SearchBounds(setting, block, method=method)
    found = [search.of(row, max_radius=max_radius) for row in rows.tolist()]
    too_many_walks = np.array([row for row, each in enumerate(found) if each is None], dtype=np.int64)
    if too_many_walks.size:
        paths = PathBounds(setting, block, method="multiplicative")
        reach = paths.reach() if max_radius is None else max_radius
        for row, each in zip(too_many_walks.tolist(), paths.of(too_many_walks, max_radius=reach), strict=True):
            found[row] = each
    return [each for each in found if each is not None]


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
