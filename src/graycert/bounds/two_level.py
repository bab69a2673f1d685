"""Δ(ρ) exactly for two layers on any graph, and a bound tighter than Theorems 2 and 3 for more layers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import announced, kernel
from graycert._rounding import one_minus_exp_up
from graycert._types import FloatArray, IntArray
from graycert.bounds.equal_routes import Searched, entry_of, key_of, nothing_searched, remember
from graycert.bounds.interception_state import memory_needed, relative_error, start_state
from graycert.bounds.routes import Routes, Walker, find_routes, make_walker
from graycert.bounds.worst_set import CLOSE, branch_and_bound, dominations, greedy
from graycert.graph.adjacency import Adjacency
from graycert.graph.toy_graphs import path_graph

DEFAULT_BUDGET = 2**26  # products per target, about a tenth of a second
_MEMORY, _MOST_MEMORY = 2**21, 2**25  # 16 MiB of scenarios; 256 MiB, for hubs
_ENTRIES_AT_ONCE = 2**20  # of the sets of some targets
_SUBSETS_UP_TO = 10  # first hops of a component up to which the greedy search sums over their subsets
_HALF = float(np.log(2.0))  # L of Δ = 1/2


@dataclass(frozen=True, kw_only=True, eq=False)
class WorstSets:
    """What the adversary can do to one target at best.

    Args:
        delta_upper: Bound on Δ(ρ) for ρ = 1..max_radius, shape (max_radius,).
        proved: Whether the bound is proved to be the largest value that it can have (two layers: Δ(ρ) itself; more:
            the largest value of the surrogate), shape (max_radius,).
        attackers: The worst set found per ρ, node indices, padded with -1, shape (max_radius, max_radius). It attains
            the bound where ``proved`` and k <= 2.
    """

    delta_upper: FloatArray
    proved: NDArray[np.bool_]
    attackers: NDArray[np.int32]


class TwoLevelSearch:
    r"""Search for the worst set of hostile nodes of each target of one graph.

    $$\Delta(\rho) = \max_{|B|\le\rho} 1-g(B),\qquad
    g(B) = \sum_{F\subseteq U}\Pr[F]\prod_{w\in B}\Bigl(a_w+(1-a_w)\prod_{u\in F} f_w(u)\Bigr)$$

    where F are the in-neighbours of the target whose edges survive, and f_w(u) is the probability that the message of
    w does not reach u in the remaining layers.

    Guarantee:
        ``delta_upper`` is at least Δ(ρ) for any model that satisfies Lemma 1, with independent coins, or one coin for
        both directions of an undirected edge. Where ``proved``, it equals Δ(ρ) for k <= 2 (up to 1e-12 for sets of a
        few dozen routes; the rounding error is added and grows with ρ and the number of routes); for k > 2 it equals
        the maximum of a surrogate that is never above Theorems 2 and 3. Where not, it is the smallest bound that any
        prefix of the greedy set gives, never above Theorem 3 (up to that rounding error). Rounded upward.

    Args:
        adjacency: The graph.
        p_delete: Per edge, shape (num_edges,), in the order of ``adjacency``.
        p_ablate: Per node, shape (num_nodes,).
        num_layers: k >= 1.
        budget: Work per target, in products, beyond which the search is given up.

    References:
        Beyond Scholten et al. (2022); docs/proofs/two_level.md.
    """

    def __init__(
        self,
        adjacency: Adjacency,
        *,
        p_delete: FloatArray,
        p_ablate: FloatArray,
        num_layers: int,
        budget: int = DEFAULT_BUDGET,
    ) -> None:
        self._adjacency = adjacency
        self.p_delete = p_delete
        self.p_ablate = p_ablate
        self._num_layers = num_layers
        self._budget = budget
        self._walker: Walker = make_walker(adjacency.num_nodes, num_layers)
        self._memory = np.empty(_MEMORY)
        self.num_searches = 0
        """How many searches were made so far: targets with equal routes that are looked at in one go share one."""

    def routes(self, nodes: IntArray, eligible: NDArray[np.bool_]) -> Routes:
        """Return the routes of one receptive field: ``nodes``, the target first, and which of them are eligible."""
        return find_routes(
            self._adjacency.indptr,
            self._adjacency.sources,
            self.p_delete,
            self.p_ablate,
            nodes,
            eligible,
            self._num_layers,
            self._budget,
            self._walker,
        )

    def worst_sets(
        self, nodes: IntArray, eligible: NDArray[np.bool_], *, max_radius: int, most_sets: int | None = None
    ) -> WorstSets | None:
        """Return the worst sets of one target, or None if its walks alone exceed the budget, or its first hops memory.

        Args:
            nodes: Its receptive field, the target first, shape (field_size,).
            eligible: Which of these nodes may be hostile, shape (field_size,).
            max_radius: Largest ρ, >= 1.
            most_sets: How many of the sets are returned; None for all.
        """
        indptr = np.array([0, nodes.size])
        (found,) = self.worst_sets_of(indptr, nodes, eligible, max_radius=max_radius, most_sets=most_sets)
        return found

    def worst_sets_of(
        self,
        indptr: IntArray,
        nodes: IntArray,
        eligible: NDArray[np.bool_],
        *,
        max_radius: int,
        most_sets: int | None = None,
    ) -> list[WorstSets | None]:
        """Return the worst sets of targets one after another, as `worst_sets` does of each.

        Args:
            indptr: The field of target i lies at ``indptr[i]:indptr[i + 1]``, shape (num_targets + 1,).
            nodes: All fields, each with its target first.
            eligible: Which of these nodes may be hostile, same shape.
            max_radius: Largest ρ, >= 1.
            most_sets: How many of the sets are returned; None for all.
        """
        num_sets = max_radius if most_sets is None else min(most_sets, max_radius)
        found: list[WorstSets | None] = []
        at_once = max(1, _ENTRIES_AT_ONCE // (num_sets * num_sets))
        for first in range(0, indptr.size - 1, at_once):
            found += self._some(indptr[first : first + at_once + 1], nodes, eligible, max_radius, num_sets)
        return found

    def _some(
        self, indptr: IntArray, nodes: IntArray, eligible: NDArray[np.bool_], max_radius: int, num_sets: int
    ) -> list[WorstSets | None]:
        """Return the worst sets of as many targets as are looked at in one go."""
        size = indptr.size - 1
        upper, proved = np.empty((size, max_radius)), np.empty((size, max_radius), dtype=np.bool_)
        attackers = np.empty((size, num_sets, num_sets), dtype=np.int32)
        needed = np.empty(size, dtype=np.int64)
        graph = (self._adjacency.indptr, self._adjacency.sources, self.p_delete, self.p_ablate)
        options = (self._num_layers, self._budget, self._walker)

        def search(rows: IntArray, memory: FloatArray) -> None:
            known = nothing_searched(rows.size, num_sets)
            _search_each(
                *graph, indptr, nodes, eligible, rows, *options, memory, known, upper, proved, attackers, needed
            )
            self.num_searches += int(known.made[0])

        search(np.arange(size), self._memory)
        for row in np.flatnonzero((needed > self._memory.size) & (needed <= _MOST_MEMORY)):
            search(np.array([row]), np.empty(needed[row]))
        delta = one_minus_exp_up(upper)
        delta = np.minimum.accumulate(delta[:, ::-1], axis=1)[:, ::-1]
        return [
            WorstSets(delta_upper=delta[row], proved=proved[row], attackers=attackers[row])
            if 0 < needed[row] <= _MOST_MEMORY
            else None
            for row in range(size)
        ]


def load_kernels(say: Callable[[str], None] | None) -> None:
    """Load the kernels of the search from disk, or compile them: once per machine."""
    with announced(say, "the search for the worst hostile nodes", find_routes, _search_each):
        nodes, eligible = np.arange(3), np.array([False, True, True])
        graph = path_graph(3)
        search = TwoLevelSearch(graph, p_delete=np.full(4, 0.5), p_ablate=np.full(3, 0.5), num_layers=2)
        search.worst_sets(nodes, eligible, max_radius=1)


@kernel
def _search_each(
    indptr: IntArray,
    sources: IntArray,
    p_delete: FloatArray,
    p_ablate: FloatArray,
    fields: IntArray,
    nodes: IntArray,
    eligible: NDArray[np.bool_],
    rows: IntArray,
    num_layers: int,
    budget: int,
    walker: Walker,
    memory: FloatArray,
    known: Searched,
    upper: FloatArray,
    proved: NDArray[np.bool_],
    attackers: NDArray[np.int32],
    needed: IntArray,
) -> None:
    """Search for the worst sets of some targets, one after another; once where routes are equal, bit by bit.

    Args:
        indptr: In-neighbours of i are ``sources[indptr[i]:indptr[i + 1]]``.
        sources: Source of each edge.
        p_delete: Per edge, shape (num_edges,).
        p_ablate: Per node, shape (num_nodes,).
        fields: The field of target i lies at ``fields[i]:fields[i + 1]``.
        nodes: All fields, each with its target first.
        eligible: Which of these nodes may be hostile.
        rows: Which targets.
        num_layers: k >= 1.
        budget: Work per target, in products.
        walker: Scratch space.
        memory: Scratch space.
        known: Searches that were made, none at first.
        upper: Result, bounds of L, shape (num_targets, max_radius).
        proved: Result, whether they are attained, same shape.
        attackers: Result, the sets, padded with -1, shape (num_targets, num_sets, num_sets).
        needed: Result, the entries of ``memory`` that a target takes: with fewer it is left out; 0 if its walks exceed
            the budget. Shape (num_targets,).
    """
    max_radius = upper.shape[1]
    for row in rows:
        field = nodes[fields[row] : fields[row + 1]]
        routes = find_routes(
            indptr,
            sources,
            p_delete,
            p_ablate,
            field,
            eligible[fields[row] : fields[row + 1]],
            num_layers,
            budget,
            walker,
        )
        upper[row], proved[row], needed[row] = np.inf, False, 0
        if routes.p_first.size == 0:
            continue
        radius = min(max_radius, max(1, routes.copies.sum()))
        needed[row] = memory_needed(routes, radius)
        if needed[row] > memory.size:
            continue
        key = key_of(routes)
        entry = entry_of(known, key)
        if entry < 0:
            of_sets, attained, kinds = _search(routes, radius, budget, memory)
            upper[row, :radius], proved[row, :radius] = of_sets, attained
            upper[row, radius:], proved[row, radius:] = of_sets[-1], attained[-1]  # there are no more nodes
            entry = remember(known, key, row, kinds)
        else:
            upper[row], proved[row] = upper[known.rows[entry]], proved[known.rows[entry]]
        _write_members(field, routes.type_of, routes.copies.size, known.kinds[entry], attackers[row])


@kernel
def _write_members(
    nodes: IntArray, type_of: IntArray, num_types: int, kinds: NDArray[np.int32], found: NDArray[np.int32]
) -> None:
    """Write sets of nodes, sorted and padded with -1: of equal nodes, the first ones are named.

    Args:
        nodes: The receptive field.
        type_of: Type of each of its nodes.
        num_types: Number of types.
        kinds: The types of each set, padded with -1, a row per set.
        found: Result, shape (num_sets, num_sets).
    """
    order = np.argsort(type_of, kind="mergesort")
    starts = np.searchsorted(type_of[order], np.arange(num_types))
    found[:] = -1
    taken = np.zeros(num_types, dtype=np.int64)
    for row in range(found.shape[0]):
        size = 0
        for kind in kinds[row]:
            if kind >= 0:
                found[row, size] = nodes[order[starts[kind] + taken[kind]]]
                taken[kind] += 1
                size += 1
        found[row, :size].sort()
        taken[:] = 0


@kernel
def _search(
    routes: Routes, max_radius: int, budget: int, memory: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_], IntArray]:
    """Bound L of the worst sets of 1..max_radius nodes, say whether it is attained, and by which types."""
    upper, proved = np.zeros(max_radius), np.ones(max_radius, dtype=np.bool_)
    kinds = np.full((max_radius, max_radius), -1, dtype=np.int64)
    if routes.copies.size == 0:
        return upper, proved, kinds
    state = start_state(routes, _SUBSETS_UP_TO, max_radius, budget, memory)
    reached, limit, prefix, chosen = greedy(routes, state, max_radius, _HALF)
    dominates = np.zeros((0, 0), dtype=np.bool_)
    gave_up = False
    for radius in range(1, max_radius + 1):
        row = kinds[radius - 1]
        known = min(radius, chosen.size)
        row[:known] = chosen[:known]
        best = reached[radius]
        finished, value, nodes = best == np.inf or limit[radius] - best <= CLOSE, limit[radius], prefix[radius] + 1
        if not finished and known == radius and not gave_up and (radius == 1 or reached[radius - 1] < _HALF):
            if dominates.size == 0:
                state.work[0] += routes.copies.size**2
                gave_up = state.work[0] > budget
                dominates = dominations(routes) if not gave_up else dominates
            if not gave_up:
                best, finished = branch_and_bound(routes, state, dominates, radius, best, row[:radius])
                gave_up = not finished
                if finished:
                    value, nodes = best + CLOSE, radius
        proved[radius - 1] = finished
        nodes = max(radius, nodes)
        slack = (2 * nodes + 1) * (2.0 * relative_error(routes, state, nodes) + 2.0**-50 * (1.0 + value))
        upper[radius - 1] = value + slack
    return upper, proved, kinds
