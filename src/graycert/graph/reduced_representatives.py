"""Reduced representatives: what is left of a receptive field after deleting nodes, as seen from the target (App. J)."""

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from graycert._types import IntArray
from graycert._validation import check_integer
from graycert.errors import InvalidParameterError
from graycert.graph.adjacency import Adjacency
from graycert.graph.receptive_field import receptive_fields


@dataclass(frozen=True, eq=False)
class ReducedRepresentatives:
    r"""The classes of kept sets of one target, each with the nodes that are still connected to the target.

    A kept set K is the target and k further nodes of its field of d further nodes; $\binom{d}{k}$ kept sets are equally
    probable. All kept sets with the same connected part S(K) are one class, and $\beta_S$ counts them.

    Args:
        nodes: Nodes of the receptive field sorted by (distance, node), the target first, shape (d + 1,).
        field_distances: Hops from each of ``nodes`` to the target in the whole graph.
        num_kept: Number k of further nodes that stay.
        indptr: S of class i is ``members[indptr[i]:indptr[i + 1]]``, shape (num_classes + 1,).
        members: Positions in ``nodes``, the target first, by distance inside S.
        distances: Hops from the member to the target along edges inside S, same shape as ``members``.
        class_sizes: $\beta_S$ of each class, exact integers.
    """

    nodes: IntArray
    field_distances: IntArray
    num_kept: int
    indptr: IntArray
    members: IntArray
    distances: IntArray
    class_sizes: tuple[int, ...]

    @property
    def num_classes(self) -> int:
        """Number of classes that are listed."""
        return len(self.class_sizes)

    @property
    def num_kept_sets(self) -> int:
        """Number of kept sets, C(d, k)."""
        return comb(self.nodes.size - 1, self.num_kept)

    @cached_property
    def num_unlisted(self) -> int:
        """Number of kept sets whose class is not listed; 0 unless the enumeration was stopped early."""
        return self.num_kept_sets - sum(self.class_sizes)

    @property
    def is_complete(self) -> bool:
        """Whether every class is listed."""
        return self.num_unlisted == 0

    @cached_property
    def class_of_member(self) -> IntArray:
        """Class that each entry of ``members`` belongs to."""
        return np.repeat(np.arange(self.num_classes), np.diff(self.indptr))

    def membership(self, first: int = 0, last: int | None = None) -> NDArray[np.bool_]:
        """Return which positions of ``nodes`` classes first..last-1 contain, shape (last - first, d + 1)."""
        last = self.num_classes if last is None else last
        table = np.zeros((last - first, self.nodes.size), dtype=np.bool_)
        low, high = self.indptr[first], self.indptr[last]
        table[self.class_of_member[low:high] - first, self.members[low:high]] = True
        return table


def reduced_representatives(
    adjacency: Adjacency,
    target: int,
    *,
    num_layers: int,
    num_kept: int,
    hops: int | None = None,
    max_representatives: int = 100_000,
) -> ReducedRepresentatives:
    r"""List the reduced representatives of a target, and how many kept sets each stands for.

    $$\beta_S = \binom{|V_v| - |N_S| - |S|}{k + 1 - |S|}, \qquad
    N_S = \{w \in V_v \setminus S : (w, u) \in E \text{ for some } u \in S\}$$

    S grows by one in-neighbour at a time; the in-neighbours tried before it are excluded from the whole branch, so
    every S is met once. The paper's Algorithm 1 meets S once per order in which it can grow.

    Guarantee:
        Every class once, with its exact size: the sizes sum to C(d, k), unless there are more than
        ``max_representatives`` classes. Then the first ``max_representatives`` are listed, and ``num_unlisted`` is
        exact. The work is at most k + 1 steps per listed class.

    Args:
        adjacency: The graph.
        target: The node v.
        num_layers: Number h of message-passing steps: the field holds all nodes within h hops.
        num_kept: Number k of further nodes that stay, in [0, d].
        hops: None: S holds the kept nodes with a directed path of any length inside K to the target. Then the subgraph
            of S has the same in-degrees as that of K, as models need that normalise by them (GCN). A number >=
            ``num_layers``: only nodes with such a path of at most ``hops`` edges, with N_S the in-neighbours of members
            at distance < ``hops``; fewer classes, right for models whose messages do not depend on their sender's
            degree (GAT, SAGE).
        max_representatives: Largest number of classes to list, >= 1.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> from graycert.graph.toy_graphs import star_graph
        >>> reduced_representatives(star_graph(12), 0, num_layers=1, num_kept=5).num_kept_sets
        792

    References:
        Scholten et al. (2022), Appendix J; docs/proofs/derandomization.md.
    """
    target = check_integer("target", target, at_least=0, at_most=adjacency.num_nodes - 1)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    limit = check_integer("max_representatives", max_representatives, at_least=1)
    field = receptive_fields(adjacency, [target], num_layers=num_layers)
    nodes, most = field.nodes, field.nodes.size - 1
    num_kept = check_integer("num_kept", num_kept, at_least=0, at_most=most, hint=f"The field has {most} other nodes.")
    reach = _check_hops(hops, num_layers, nodes.size)
    from graycert.graph.representative_search import count_representatives, fill_representatives  # Numba loads slowly

    indptr, sources = induced_in_neighbors(adjacency, nodes)
    num_classes, num_members = count_representatives(indptr, sources, num_kept, reach, limit).tolist()
    class_indptr, outside = np.zeros(num_classes + 1, dtype=np.int64), np.empty(num_classes, dtype=np.int64)
    members, distances = np.empty(num_members, dtype=np.int64), np.empty(num_members, dtype=np.int64)
    fill_representatives(indptr, sources, num_kept, reach, class_indptr, members, distances, outside)
    return ReducedRepresentatives(
        nodes=nodes,
        field_distances=field.distances,
        num_kept=num_kept,
        indptr=class_indptr,
        members=members,
        distances=distances,
        class_sizes=_class_sizes(np.diff(class_indptr), outside, num_field=nodes.size, num_kept=num_kept),
    )


def count_reduced_representatives(
    adjacency: Adjacency,
    target: int,
    *,
    num_layers: int,
    num_kept: int,
    hops: int | None = None,
    max_representatives: int = 100_000,
) -> int:
    """Return the number of classes without listing them; ``max_representatives`` + 1 if there are more than that.

    Args and errors are those of `reduced_representatives`.

    Example:
        >>> from graycert.graph.toy_graphs import path_graph
        >>> count_reduced_representatives(path_graph(4), 0, num_layers=3, num_kept=1)
        2
    """
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    limit = check_integer("max_representatives", max_representatives, at_least=1)
    nodes = receptive_fields(adjacency, [target], num_layers=num_layers).nodes
    num_kept = check_integer("num_kept", num_kept, at_least=0, at_most=nodes.size - 1)
    from graycert.graph.representative_search import count_representatives

    indptr, sources = induced_in_neighbors(adjacency, nodes)
    reach = _check_hops(hops, num_layers, nodes.size)
    return int(count_representatives(indptr, sources, num_kept, reach, limit + 1)[0])


def induced_in_neighbors(adjacency: Adjacency, nodes: IntArray) -> tuple[IntArray, IntArray]:
    """Return (indptr, sources) of the subgraph that ``nodes`` induce, in positions of ``nodes``."""
    position = np.full(adjacency.num_nodes, -1, dtype=np.int64)
    position[nodes] = np.arange(nodes.size)
    starts, lengths = adjacency.indptr[nodes], np.diff(adjacency.indptr)[nodes]
    before = np.cumsum(lengths) - lengths
    edges = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
    sources = position[adjacency.sources[edges]]
    inside = sources >= 0
    per_node = np.bincount(np.repeat(np.arange(nodes.size), lengths)[inside], minlength=nodes.size)
    return np.concatenate([[0], np.cumsum(per_node)]).astype(np.int64), sources[inside]


def _check_hops(hops: int | None, num_layers: int, num_field: int) -> int:
    if hops is None:
        return num_field  # no path inside the field is longer
    hops = check_integer("hops", hops, at_least=1)
    if hops < num_layers:
        raise InvalidParameterError(
            f"`hops` must be at least `num_layers` = {num_layers}, got {hops}. Nodes that are farther away than `hops` "
            "would be taken for disconnected although their messages arrive."
        )
    return hops


def _class_sizes(sizes: IntArray, outside: IntArray, *, num_field: int, num_kept: int) -> tuple[int, ...]:
    """Return the binomial coefficients, each computed once."""
    pairs = list(zip(sizes.tolist(), outside.tolist(), strict=True))
    known = {(size, out): comb(num_field - out - size, num_kept + 1 - size) for size, out in set(pairs)}
    return tuple(known[pair] for pair in pairs)
