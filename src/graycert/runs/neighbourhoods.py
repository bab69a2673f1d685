"""Receptive fields as a page draws them: who stands how far from a target, may be hostile, and how likely is heard."""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from graycert._types import FloatArray, IntArray, TextArray
from graycert.certificates import Certificates
from graycert.graph import receptive_fields, target_blocks
from graycert.graph.adjacency import Adjacency
from graycert.problem import Problem

MOST_NODES = 100
"""Nodes that are drawn of one field; of more, the target, the worst set, and those with the largest influence."""

MOST_ENTRIES = 100_000
"""Nodes that are drawn of all fields together; of more, the fields of the weakest targets."""

MOST_SEARCHED = 5_000_000
"""Nodes of all fields that are looked at for that."""

MOST_EDGES = 200_000
"""Edges among the nodes that are drawn anywhere."""

FARTHEST = 6
"""Hops that are told apart where nodes are heard from anywhere; who is farther away is one more."""

HOSTILE, TRUSTED, FIXED = 0, 1, 2
"""Roles: may be hostile; trusted; cannot be hostile to this target by the threat, e.g. for being too close."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbourhoods:
    """Receptive fields of some targets, the weakest first, cut to what can be drawn.

    Attributes:
        rows: Position of each target among those of the result, shape (num_drawn,).
        indptr: The field of ``rows[i]`` lies at ``indptr[i]:indptr[i + 1]``, shape (num_drawn + 1,).
        places: Nodes of all fields one after another, as positions in ``nodes``, by (hops, node).
        hops: Hops from the node to the target, same shape.
        roles: `HOSTILE`, `TRUSTED` or `FIXED`, same shape.
        influence: Upper bound Δ̄_w of the probability that the message of a node that may be hostile reaches the
            target, or how much its vote could cost (`Smoothing.heard`); 0 for all others, same shape; None where the
            smoothing has none.
        left_out: Nodes of the field that are not drawn, shape (num_drawn,).
        nodes: All nodes that are drawn anywhere, rising.
        names: Their names, or None.
        edges: Edges among them, as positions in ``nodes``, shape (2, num_edges).
    """

    rows: IntArray
    indptr: IntArray
    places: IntArray
    hops: IntArray
    roles: IntArray
    left_out: IntArray
    nodes: IntArray
    edges: IntArray
    influence: FloatArray | None = None
    names: TextArray | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is stored, by name."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def wrong(self, *, num_targets: int) -> str:
        """Return the name of the first array that cannot be one of these, or does not fit the others; "" if none."""
        entries, known = self.places.size, self.nodes.size
        whole = {each: np.iinfo(np.int64).max for each in ("indptr", "hops", "left_out", "nodes")}
        for name, limit in {**whole, "rows": num_targets, "places": known, "roles": FIXED + 1, "edges": known}.items():
            array = getattr(self, name)
            if array.dtype.kind not in "iu" or (array < 0).any() or (array >= limit).any():
                return name
        shapes = {
            "rows": (self.rows.size,),
            "indptr": (self.rows.size + 1,),
            "left_out": (self.rows.size,),
            "places": (entries,),
            "hops": (entries,),
            "roles": (entries,),
            "influence": (entries,),
            "nodes": (known,),
            "names": (known,),
            "edges": (2, self.edges.size // 2),
        }
        arrays = self.arrays()
        for name, shape in shapes.items():
            if name in arrays and arrays[name].shape != shape:
                return name
        if self.indptr[0] != 0 or (np.diff(self.indptr) < 0).any() or self.indptr[-1] != entries:
            return "indptr"
        if self.influence is not None and not ((self.influence >= 0) & (self.influence <= 1)).all():
            return "influence"
        return "" if self.names is None or self.names.dtype.kind == "U" else "names"

    def differs_from(self, other: "Neighbourhoods", *, tolerance: float) -> str:
        """Return the name of the first array that is another one, floats up to a tolerance; "" if none is."""
        ours, theirs = self.arrays(), other.arrays()
        for name in dict.fromkeys((*ours, *theirs)):
            a, b = ours.get(name), theirs.get(name)
            if a is None or b is None or a.shape != b.shape:
                return name
            if (np.abs(a - b) > tolerance).any() if a.dtype.kind == "f" else (a != b).any():
                return name
        return ""


def neighbourhoods_of(c: Certificates) -> Neighbourhoods | None:
    """Return what can be drawn of a result: what it was loaded with, else what its graph says; None without either."""
    if c.neighbourhoods is not None:
        return c.neighbourhoods if isinstance(c.neighbourhoods, Neighbourhoods) else None
    if c not in _SEARCHED:
        _SEARCHED[c] = _search(c)
    return _SEARCHED[c]


_SEARCHED: "WeakKeyDictionary[Certificates, Neighbourhoods | None]" = WeakKeyDictionary()
"""What was searched for already: the page, the votes file and the gains of trust ask for the same."""


def _search(c: Certificates) -> Neighbourhoods | None:
    heard = None if c.graph is None else c.setup.smoothing.heard(c, np.zeros(0, dtype=np.int64))
    if c.graph is None or (heard is None and not c.setup.num_layers):
        return None
    problem = Problem(setup=c.setup, targets=c.targets, graph=c.graph.graph)
    rows = _weakest(c)
    while rows.size:
        found = _drawn(c, problem, rows, _by_messages if heard is None else _by_votes)
        if found.edges.shape[1] <= MOST_EDGES:
            return found
        rows = rows[: rows.size // 2]
    return None


def weakest_first(c: Certificates) -> IntArray:
    """Return the positions of all targets: without a prediction, of small radius, ..., and the whole field last."""
    return np.lexsort((c.targets, c.radius, c.whole_field)).astype(np.int64)


def _weakest(c: Certificates) -> IntArray:
    order = weakest_first(c)
    sizes = c.receptive_field_size[order]
    searched, drawn = np.cumsum(sizes), np.cumsum(np.minimum(sizes, MOST_NODES))
    return order[(searched <= MOST_SEARCHED) & (drawn <= MOST_ENTRIES)]


Field = tuple[IntArray, IntArray, FloatArray | None]
"""Nodes of a field by (hops, node), their hops, and their influence."""


def _drawn(
    c: Certificates,
    problem: Problem,
    rows: IntArray,
    fields: Callable[[Certificates, Problem, IntArray], Iterator[Field]],
) -> Neighbourhoods:
    """Cut the fields of some targets to what is drawn, and put them together."""
    parts: list[tuple[IntArray, IntArray, IntArray, FloatArray]] = []
    sizes, weighed = [], True
    for row, (nodes, hops, influence) in zip(rows.tolist(), fields(c, problem, rows), strict=True):
        roles = _roles(c, nodes, hops)
        weighed = influence is not None
        weights = np.zeros(nodes.size) if influence is None else np.where(roles == HOSTILE, influence, 0.0)
        kept = _kept(nodes, hops, weights, None if c.attackers is None else c.attackers[row])
        parts.append((nodes[kept], hops[kept], roles[kept], weights[kept]))
        sizes.append(nodes.size)
    lengths = np.array([each[0].size for each in parts], dtype=np.int64)
    nodes, hops, roles, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    known = np.unique(nodes)
    return Neighbourhoods(
        rows=rows,
        indptr=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        places=np.searchsorted(known, nodes),
        hops=hops,
        roles=roles,
        influence=weights if weighed else None,
        left_out=np.array(sizes, dtype=np.int64) - lengths,
        nodes=known,
        names=c.graph.names(known),
        edges=_edges_among(problem.the_graph.adjacency, known),
    )


def _by_messages(c: Certificates, problem: Problem, rows: IntArray) -> Iterator[Field]:
    """Return who can send a message to each of some targets."""
    adjacency, depth = problem.the_graph.adjacency, _depth(problem)
    influence = _influence(dataclasses.replace(problem, targets=c.targets[rows]))
    of_target = np.zeros(adjacency.num_nodes)
    place = 0
    for some in target_blocks(adjacency, c.targets[rows], num_layers=depth):
        found = receptive_fields(adjacency, some, num_layers=depth)
        for start, stop in zip(found.indptr[:-1], found.indptr[1:], strict=True):
            nodes = found.nodes[start:stop]
            weights = None
            if influence is not None:
                entries = slice(*influence.indptr[place : place + 2])
                of_target[influence.indices[entries]] = influence.data[entries]
                weights = of_target[nodes]
                of_target[influence.indices[entries]] = 0.0
            yield nodes, found.distances[start:stop], weights
            place += 1


def _by_votes(c: Certificates, problem: Problem, rows: IntArray) -> Iterator[Field]:
    """Return who is heard on each of some targets, however far away."""
    heard = c.setup.smoothing.heard(c, rows)
    assert heard is not None
    adjacency = problem.the_graph.adjacency
    ones = np.ones(adjacency.num_edges)
    toward: Any = sp.csr_array((ones, adjacency.sources, adjacency.indptr), shape=(adjacency.num_nodes,) * 2)
    farthest = max(FARTHEST, int(getattr(c.setup.threat, "min_distance", 0)))
    for target, voters, weights in zip(c.targets[rows].tolist(), *heard, strict=True):
        away = dijkstra(toward, indices=target, unweighted=True, limit=farthest)
        known = voters >= 0
        nodes = np.concatenate([[target], voters[known]]).astype(np.int64)
        hops = np.minimum(away[nodes], farthest + 1).astype(np.int64)
        order = np.lexsort((nodes, hops))
        yield nodes[order], hops[order], np.concatenate([[0.0], weights[known]])[order]


def _depth(problem: Problem) -> int:
    """Return from how many hops away something can change at a target."""
    noticed = hasattr(problem.threat, "reach") and problem.setup.convolution == "degree-normalised"
    return problem.num_layers + int(noticed)


def _influence(problem: Problem) -> sp.csr_array | None:
    """Return the bounds of single nodes, where the smoothing has some against this threat."""
    claims = (claim for claim in problem.smoothing.claims if claim.threat == problem.threat.claimed_as)
    if not any("one adversary" in claim.follows for claim in claims):
        return None
    bounds = problem.smoothing.method.single_sources(problem)
    if bounds is None:
        return None
    rows = sp.csr_array(bounds)
    rows.sum_duplicates()
    return rows


def _roles(c: Certificates, nodes: IntArray, distances: IntArray) -> IntArray:
    threat: Any = c.setup.threat
    trusted = getattr(threat, "trusted", None)
    is_trusted = np.zeros(nodes.size, dtype=np.bool_) if trusted is None else trusted[nodes]
    nearest = getattr(threat, "min_distance", 0 if threat.includes_target else 1)
    hostile = (distances >= nearest) & ~is_trusted & (threat.unit != "edges")
    return np.where(hostile, HOSTILE, np.where(is_trusted, TRUSTED, FIXED)).astype(np.int64)


def _kept(nodes: IntArray, hops: IntArray, weights: FloatArray, attackers: IntArray | None) -> IntArray:
    """Return the positions of a field that are drawn."""
    if nodes.size <= MOST_NODES:
        return np.arange(nodes.size)
    worst = np.isin(nodes, attackers) if attackers is not None else np.zeros(nodes.size, dtype=np.bool_)
    order = np.lexsort((nodes, hops, -weights, ~worst, hops > 0))
    return np.sort(order[:MOST_NODES])


def _edges_among(adjacency: Adjacency, nodes: IntArray) -> IntArray:
    place = np.full(adjacency.num_nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(nodes.size)
    sources, targets = place[adjacency.sources], place[adjacency.targets]
    inside = (sources >= 0) & (targets >= 0)
    return np.stack([sources[inside], targets[inside]])
