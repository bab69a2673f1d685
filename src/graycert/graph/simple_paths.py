"""How many simple paths of each length lead from each node of a receptive field to its target.

Theorem 2 needs only these numbers. Up to four edges they follow from sparse matrix products: count walks, subtract
those that revisit a node. Longer paths are enumerated.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from graycert._rounding import FloatArray, integers_up
from graycert._validation import check_integer, check_targets
from graycert.errors import InvalidParameterError
from graycert.graph.adjacency import Adjacency, IntArray
from graycert.graph.receptive_field import ReceptiveFields, receptive_fields, target_blocks

LONGEST_CLOSED_FORM = 4
DEFAULT_MAX_PATHS = 1_000_000  # about a hundredth of a second per target


@dataclass(frozen=True, eq=False)
class SimplePathCounts:
    """Numbers of simple paths, one row for each node of each receptive field.

    Args:
        targets: Node indices, shape (num_targets,).
        indptr: Rows of ``targets[i]`` are ``indptr[i]:indptr[i + 1]``, shape (num_targets + 1,).
        sources: Nodes of the receptive fields, each field sorted by (distance, node); the target itself comes first,
            at distance 0 and without paths.
        distances: Hops from source to target, same shape as ``sources``.
        counts: ``counts[j, l - 1]`` is the number of simple paths of l edges from ``sources[j]`` to its target,
            shape (num_sources, num_layers); exact up to 2^53, rounded up above.
        exact: Whether the counts of a target are numbers of simple paths; if not, those of five edges and more are
            numbers of walks, which are at least as large. Shape (num_targets,).
    """

    targets: IntArray
    indptr: IntArray
    sources: IntArray
    distances: IntArray
    counts: FloatArray
    exact: NDArray[np.bool_]

    @property
    def rows(self) -> IntArray:
        """Position in ``targets`` that each entry of ``sources`` belongs to."""
        return np.repeat(np.arange(self.targets.size), np.diff(self.indptr))


def count_simple_paths(
    adjacency: Adjacency, targets: ArrayLike, *, num_layers: int, max_paths: int = DEFAULT_MAX_PATHS
) -> SimplePathCounts:
    """Count the simple paths of 1..num_layers edges that end at each target.

    Guarantee:
        Counts are never too small. They are exact for paths of up to four edges, and for longer ones unless a target
        has more than ``max_paths`` simple paths; then walks that do not return to the target are counted, and
        ``exact`` is False for it. Bounds that rise with the counts (Theorems 2 and 3) stay valid.

    Args:
        adjacency: The graph.
        targets: Distinct node indices, shape (num_targets,).
        num_layers: Number of message-passing steps k, >= 1.
        max_paths: How many simple paths to enumerate per target before counting walks instead, >= 1; used only if
            ``num_layers`` > 4.

    Raises:
        InvalidParameterError: If an argument is out of range, or counts could overflow 64-bit integers.

    Example:
        >>> from graycert.graph.toy_graphs import shared_edge_graph
        >>> paths = count_simple_paths(shared_edge_graph(), [0], num_layers=3)
        >>> dict(zip(paths.sources.tolist(), paths.counts.tolist(), strict=True))[4]
        [0.0, 0.0, 2.0]

    References:
        Scholten et al. (2022), Theorem 2 (what is counted); docs/proofs/simple_paths.md (the formulae).
    """
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    max_paths = check_integer("max_paths", max_paths, at_least=1)
    _check_no_overflow(adjacency, num_layers)
    edges = adjacency.to_csr()
    fields, counts, exact = [], [], []
    for block in target_blocks(adjacency, targets, num_layers=num_layers):
        field = receptive_fields(adjacency, block, num_layers=num_layers)
        fields.append(field)
        counts.append(_count_block(edges, field, num_layers))
        exact.append(np.ones(block.size, dtype=np.bool_))
        if num_layers > LONGEST_CLOSED_FORM:
            from graycert.graph.path_enumeration import count_long_paths  # Numba takes a second to load

            exact[-1] = count_long_paths(adjacency, field, counts[-1], max_paths=max_paths)
    sizes = np.concatenate([field.sizes for field in fields])
    return SimplePathCounts(
        targets=targets,
        indptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        sources=np.concatenate([field.nodes for field in fields]),
        distances=np.concatenate([field.distances for field in fields]),
        counts=np.concatenate(counts),
        exact=np.concatenate(exact),
    )


def _count_block(edges: sp.csr_array, field: ReceptiveFields, num_layers: int) -> FloatArray:
    """Return the counts of up to four edges for the entries of ``field``; longer ones are left at zero."""
    num_nodes = edges.shape[0]
    keys = field.rows * num_nodes + field.nodes
    order = np.argsort(keys)
    counts = np.zeros((keys.size, num_layers))
    for column, matrix in enumerate(_short_path_counts(edges, field.targets, num_layers)):
        entries = sp.coo_array(matrix)
        off_target = (entries.row != field.targets[entries.col]) & (entries.data != 0)
        found = entries.col[off_target].astype(np.int64) * num_nodes + entries.row[off_target]
        slots = order[np.searchsorted(keys[order], found)]
        counts[slots, column] = integers_up(entries.data[off_target])
    return counts


def _short_path_counts(edges: sp.csr_array, targets: IntArray, num_layers: int) -> list[sp.csc_array]:
    """Return the columns ``targets`` of N_1..N_4 (at most ``num_layers`` of them); diagonal entries mean nothing.

    N_l[w, v] for w != v is the number of simple paths of l edges from w to v: all walks, minus those in which two
    places coincide, by inclusion-exclusion over which places do. Only columns are multiplied, never A·A as a whole.
    """
    into = sp.csc_array(edges[:, targets])
    counts = [into]
    if num_layers == 1:
        return counts
    walks2 = sp.csc_array(edges @ into)
    counts.append(walks2)
    if num_layers == 2:
        return counts
    mutual = sp.csr_array(edges.multiply(edges.T))  # edges whose reverse exists
    mutual_into = sp.csc_array(mutual[:, targets])
    returns2 = np.asarray(mutual.sum(axis=1), dtype=np.int64).ravel()  # closed walks w -> x -> w
    walks3 = sp.csc_array(edges @ walks2)
    counts.append(walks3 - _scale_rows(into, returns2) - _scale_columns(into, returns2[targets]) + mutual_into)
    if num_layers == 3:
        return counts
    returns3 = _closed_triples(edges, np.union1d(targets, into.indices))
    back2 = sp.csc_array((edges[targets, :] @ edges).T)  # walks target -> x -> w, stored at [w, target]
    counts.append(
        sp.csc_array(edges @ walks3)
        - _scale_rows(walks2, returns2)
        - _scale_columns(walks2, returns2[targets])
        - sp.csc_array(edges @ _scale_rows(into, returns2))
        - _scale_rows(into, returns3)
        - _scale_columns(into, returns3[targets])
        + sp.csc_array(mutual @ into)
        + sp.csc_array(edges @ mutual_into)
        + 2 * mutual_into.multiply(walks2)
        + into.multiply(back2)
    )
    return counts


def _closed_triples(edges: sp.csr_array, nodes: IntArray) -> IntArray:
    """Return the number of closed walks of three edges through each of ``nodes``, zero elsewhere, shape (n,)."""
    returns = np.zeros(edges.shape[0], dtype=np.int64)
    for start in range(0, nodes.size, 1024):  # a few columns of A·A at a time
        block = nodes[start : start + 1024]
        walks2 = sp.csc_array(edges @ sp.csc_array(edges[:, block]))
        out_of = sp.csc_array(edges[block, :].T)
        returns[block] = np.asarray(out_of.multiply(walks2).sum(axis=0), dtype=np.int64).ravel()
    return returns


def _scale_rows(matrix: sp.csc_array, factors: IntArray) -> sp.csc_array:
    return sp.csc_array((matrix.data * factors[matrix.indices], matrix.indices, matrix.indptr), shape=matrix.shape)


def _scale_columns(matrix: sp.csc_array, factors: IntArray) -> sp.csc_array:
    repeated = np.repeat(factors, np.diff(matrix.indptr))
    return sp.csc_array((matrix.data * repeated, matrix.indices, matrix.indptr), shape=matrix.shape)


def _check_no_overflow(adjacency: Adjacency, num_layers: int) -> None:
    """Refuse graphs whose intermediate sums could leave int64.

    With d the largest in-degree, walks of l edges between two nodes number at most d^(l - 1), closed ones at most
    d^(l - 1) too; the formula for l = 4 adds twelve terms of at most d^3.
    """
    largest = int(np.diff(adjacency.indptr).max(initial=0))
    length = min(num_layers, LONGEST_CLOSED_FORM)
    if 12 * largest ** (length - 1) >= 2**63:
        raise InvalidParameterError(
            f"`num_layers` must be smaller for this graph, got {num_layers}: a node with {largest} in-neighbours has "
            "more paths than 64-bit integers can count. Use fewer layers or sparsify the graph."
        )
