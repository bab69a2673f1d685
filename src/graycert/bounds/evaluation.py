"""Δ̄ for each target and radius, by the bound asked for."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graycert._types import IntArray
from graycert._validation import check_choice, check_integer, check_targets
from graycert.bounds.block import Block, Setting, TargetDeltas, memory_limits
from graycert.bounds.by_paths import RULES, PathBounds
from graycert.bounds.by_search import SearchBounds
from graycert.bounds.delta_bounds import DeltaBounds
from graycert.bounds.in_order import in_order
from graycert.errors import InvalidParameterError
from graycert.graph import (
    Adjacency,
    CanonicalGraph,
    adjacency_fingerprint,
    longest_chain,
    receptive_fields,
    target_blocks,
)
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats import EdgeDeletionThreat, NodeFeatureThreat, NodeThreat, Threat
from graycert.threats.named_nodes import target_nodes, with_trusted_nodes

PATH_BOUNDS = tuple(RULES)
BOUNDS = InterceptionSmoothing.bounds
DEFAULT_BUDGET = 2**26  # products per target: a tenth of a second
_LOOKED_UP = 2**24  # walks to the targets of a block: a sixth of a second
_FEW = 64  # worst nodes that insertion keeps in order


def delta_bounds(
    data_or_adjacency: Any,
    targets: ArrayLike,
    *,
    smoothing: InterceptionSmoothing,
    threat: Threat,
    num_layers: int,
    max_radius: int | None = 20,
    bound: str = "auto",
    budget: int = DEFAULT_BUDGET,
    num_threads: int = 1,
) -> DeltaBounds:
    """Bound, for each target and radius, the probability that a message from hostile nodes reaches the target.

    Guarantee:
        Entry [i, ρ - 1] is at least Δ(ρ), the largest p(E(B)) over all sets B of at most ρ eligible nodes, for any
        message-passing model of ``num_layers`` steps that satisfies Lemma 1 (of structural threats see
        `graycert.bounds.structural_deltas`). It never falls with ρ; with fewer than ρ
        eligible nodes it is the bound for all of them. Rounded upward.

    Args:
        data_or_adjacency: PyTorch Geometric ``Data`` (or any object with ``edge_index`` and ``num_nodes``), a square
            SciPy sparse matrix with entry [w, v] for edge w -> v, or an ``Adjacency``.
        targets: Distinct node indices, shape (num_targets,); or names in ``data.node_ids``.
        smoothing: The probabilities p_d and p_a; an array of p_d has one entry per column of ``edge_index``, or per
            edge of an ``Adjacency`` in its order.
        threat: The adversary: on features, or on the structure.
        num_layers: Number of message-passing steps k of the model, >= 1.
        max_radius: Largest number of hostile nodes ρ, >= 1. None goes as far as a certificate can: to the first ρ at
            which, for each target, Δ̄(ρ) is 1/2 or more or all eligible nodes are hostile; but no further than 2,048,
            or than 128 MB of bounds.
        bound: "auto" takes, per target, the tightest that the budget allows: "exact" for at most two layers; for
            more "tree" where each node has one simple path to the target (App. D), "surrogate" elsewhere. These may
            also be asked for by name. "multiplicative" is Theorem 3, "union" App. F, looser. Deleted edges have the
            last two.
        budget: Work per target, in products, after which a search for the worst set is given up. What it has proved so
            far is returned, never above Theorem 3 (for more than two layers up to rounding).
        num_threads: Blocks of targets that are worked on at once, >= 1; the bounds do not depend on it.

    Returns:
        The bounds, with what they belong to: ``np.asarray(bounds)`` is Δ̄(ρ) for ρ = 1..max_radius, float64, shape
        (num_targets, max_radius).

    Raises:
        InvalidParameterError: If an argument is malformed or out of range.
        UnsoundSetupError: ``parallel-edges``, if the graph holds an edge twice; of structural threats
            ``ablation-cannot-certify-structure``, if p_d = 0, ``structure-dependent-smoothing``, if there is more than
            one p_d or p_a, ``unknown-convolution``, if the threat does not say what messages depend on.

    Example:
        >>> from graycert.graph import bottleneck_graph
        >>> smoothing = InterceptionSmoothing(p_delete=0.5, p_ablate=0.0)
        >>> threat = NodeFeatureThreat(min_distance=2)
        >>> arguments = {"smoothing": smoothing, "threat": threat, "num_layers": 2, "max_radius": 2}
        >>> bounds = delta_bounds(bottleneck_graph(3), [0], **arguments)  # both need the one edge into the target
        >>> np.asarray(bounds).round(9)
        array([[0.25 , 0.375]])
        >>> np.asarray(delta_bounds(bottleneck_graph(3), [0], **arguments, bound="multiplicative")).round(9)
        array([[0.25  , 0.4375]])

    References:
        Scholten et al. (2022), Theorems 2 and 3, App. D and F; docs/proofs/two_level.md ("exact", "surrogate").
    """
    if not isinstance(smoothing, InterceptionSmoothing):
        raise InvalidParameterError(
            f"`smoothing` must be an InterceptionSmoothing, got {type(smoothing).__name__}. Other smoothings have no Δ "
            "of messages; graycert.certify computes what they have."
        )
    graph = CanonicalGraph.of(data_or_adjacency)
    canonical = smoothing.with_canonical_edges(graph.sorted)
    if getattr(data_or_adjacency, "node_ids", None) is not None:  # by which nodes may be named
        targets = target_nodes(targets, data_or_adjacency)
        threat = with_trusted_nodes(threat, data_or_adjacency)
    found = evaluate_bounds(
        graph.adjacency,
        targets,
        smoothing=canonical.with_canonical_edges(graph.proper),
        threat=threat,
        num_layers=num_layers,
        max_radius=max_radius,
        bound=bound,
        budget=budget,
        num_threads=num_threads,
    )
    return replace(found, smoothing=canonical)


def evaluate_bounds(adjacency: Adjacency, targets: ArrayLike, *, threat: Threat, **options: Any) -> DeltaBounds:
    """Do the work of `delta_bounds`, with an array of p_d in the order of ``adjacency``."""
    if isinstance(threat, NodeFeatureThreat) and not threat.hostile_edge_inputs:
        return evaluate_deltas(adjacency, targets, threat=threat, **options)
    if isinstance(threat, NodeFeatureThreat | NodeThreat | EdgeDeletionThreat):
        from graycert.bounds.structural_deltas import structural_deltas

        return structural_deltas(adjacency, targets, threat=threat, **options)
    raise InvalidParameterError(
        f"`threat` must be one on features of nodes or on the structure, got {type(threat).__name__}. Messages say "
        "nothing about other adversaries."
    )


def evaluate_deltas(
    adjacency: Adjacency,
    targets: ArrayLike,
    *,
    smoothing: InterceptionSmoothing,
    threat: NodeFeatureThreat,
    num_layers: int,
    max_radius: int | None = 20,
    bound: str = "auto",
    budget: int = DEFAULT_BUDGET,
    num_threads: int = 1,
) -> DeltaBounds:
    """Do the work of ``delta_bounds`` and report what the bounds rest on; arguments and errors are the same.

    Besides the result, memory holds per thread one block of ``graycert.graph.BLOCK_ENTRIES`` nodes of receptive fields,
    or one field if that is larger.
    """
    _check_types(adjacency, smoothing, threat)
    num_threads = check_integer("num_threads", num_threads, at_least=1)
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    if max_radius is not None:
        max_radius = check_integer("max_radius", max_radius, at_least=1)
    bound = check_bound(bound, num_layers=num_layers)
    smoothing.check_lengths(num_edges=adjacency.num_edges, num_nodes=adjacency.num_nodes, edges="edge of the Adjacency")
    setting = Setting(
        adjacency=adjacency,
        p_delete=smoothing.p_delete,
        p_ablate=smoothing.p_ablate,
        num_layers=longest_chain(num_layers, num_nodes=adjacency.num_nodes),
        budget=check_integer("budget", budget, at_least=1),
        **memory_limits(targets.size),
    )

    if max_radius is not None and max_radius <= _FEW and _looks_up(setting, bound):
        return _looked_up(setting, targets, smoothing, threat, num_layers, max_radius, bound, num_threads)

    def evaluate(some: IntArray) -> tuple[list[TargetDeltas], IntArray, IntArray]:
        block = _block(setting, threat, some)
        return _by_method(setting, block, bound=bound, max_radius=max_radius), block.num_eligible, block.fields.sizes

    found: list[TargetDeltas] = []
    num_eligible, sizes = [], []
    blocks = target_blocks(adjacency, targets, num_layers=setting.num_layers)
    for deltas, eligible, field_sizes in in_order(evaluate, blocks, num_threads=num_threads):
        found += deltas
        num_eligible.append(eligible)
        sizes.append(field_sizes)
    radius = max(each.delta_upper.size for each in found)
    if any(each.delta_upper.size < radius for each in found):  # now it is known how far a certificate can reach
        return evaluate_deltas(
            adjacency,
            targets,
            smoothing=smoothing,
            threat=threat,
            num_layers=num_layers,
            max_radius=radius,
            bound=bound,
            budget=budget,
            num_threads=num_threads,
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
        bound=bound,
        num_layers=num_layers,
        smoothing=smoothing,
        threat=threat,
        graph=adjacency_fingerprint(adjacency),
    )


def _looks_up(setting: Setting, bound: str) -> bool:
    """Return whether bounds follow from Theorem 2, and that from the numbers of paths of one and of two edges alone."""
    uniform = isinstance(setting.p_delete, float) and isinstance(setting.p_ablate, float)
    return bound in RULES and uniform and setting.num_layers <= 2


def _looked_up(
    setting: Setting,
    targets: IntArray,
    smoothing: InterceptionSmoothing,
    threat: NodeFeatureThreat,
    num_layers: int,
    max_radius: int,
    bound: str,
    num_threads: int,
) -> DeltaBounds:
    """Do the work of `evaluate_deltas` by `graycert.bounds.two_hops`, with the same result."""
    from graycert.bounds.two_hops import Chains, TwoHops  # Numba takes a while to load

    adjacency = setting.adjacency
    nobody = np.empty(0, dtype=np.int64)
    threat.eligible(nobody, nobody, num_nodes=adjacency.num_nodes)  # refuses what it would refuse
    search = TwoHops.of(
        adjacency,
        p_delete=float(setting.p_delete),
        p_ablate=float(setting.p_ablate),
        trusted=threat.trusted,
        nearest=threat.min_distance,
        num_layers=setting.num_layers,
    )
    delta_upper = np.empty((targets.size, max_radius))
    nodes = np.empty((targets.size, max_radius), dtype=np.int32)
    num_eligible, sizes = np.empty((2, targets.size), dtype=np.int64)
    blocks = target_blocks(adjacency, targets, num_layers=setting.num_layers, max_entries=_LOOKED_UP)
    start = 0
    for found in in_order(lambda some: search.worst(some, max_radius=max_radius), blocks, num_threads=num_threads):
        rows = slice(start, start + found.num_eligible.size)
        delta_upper[rows] = RULES[bound](found.single, max_radius=max_radius)
        nodes[rows], num_eligible[rows], sizes[rows] = found.nodes, found.num_eligible, found.field_size
        start = rows.stop
    sets = np.minimum(np.count_nonzero(delta_upper < 0.5, axis=1) + 1, min(max_radius, setting.most_sets))
    return DeltaBounds(
        targets=targets,
        delta_upper=delta_upper,
        proved=np.repeat(num_eligible == 0, max_radius).reshape(delta_upper.shape),
        methods=np.full(targets.size, bound),
        num_eligible=num_eligible,
        receptive_field_size=sizes,
        path_counts_exact=np.ones(targets.size, dtype=np.bool_),
        attackers=Chains(nodes, sets),
        bound=bound,
        num_layers=num_layers,
        smoothing=smoothing,
        threat=threat,
        graph=adjacency_fingerprint(adjacency),
    )


def check_bound(bound: str, *, num_layers: int) -> str:
    """Return ``bound`` if it exists and applies to so many layers.

    Raises:
        InvalidParameterError: If not.
    """
    bound = check_choice("bound", bound, BOUNDS)
    if bound == "exact" and num_layers > 2:
        raise InvalidParameterError(
            f"`bound` 'exact' needs at most two layers, got num_layers = {num_layers}. Use 'auto', which is exact "
            "on trees and takes a bound tighter than Theorem 3 elsewhere."
        )
    return bound


def _block(setting: Setting, threat: NodeFeatureThreat, targets: IntArray) -> Block:
    """Return the receptive fields of a few targets."""
    fields = receptive_fields(setting.adjacency, targets, num_layers=setting.num_layers)
    eligible = threat.eligible(fields.nodes, fields.distances, num_nodes=setting.adjacency.num_nodes)
    return Block(fields=fields, eligible=eligible)


def _by_method(setting: Setting, block: Block, *, bound: str, max_radius: int | None) -> list[TargetDeltas]:
    rows = np.arange(block.num_targets)
    if bound in RULES:
        paths = PathBounds(setting, block, bound=bound)
        return paths.of(rows, max_radius=paths.reach() if max_radius is None else max_radius)
    search = SearchBounds(setting, block, bound=bound)
    found = search.of_all(max_radius=max_radius)
    too_many_walks = np.array([row for row, each in enumerate(found) if each is None], dtype=np.int64)
    if too_many_walks.size:
        paths = PathBounds(setting, block, bound="multiplicative")
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
