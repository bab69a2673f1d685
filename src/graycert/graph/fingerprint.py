"""A short name for a graph, so that a stored certificate can say which graph it is about."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._types import IntArray
from graycert._validation import check_integer, check_integer_array
from graycert.errors import InvalidParameterError
from graycert.graph.adjacency import Adjacency
from graycert.graph.conversion import as_array
from graycert.graph.edge_order import order_by_target
from graycert.graph.typed_nodes import TypedNodes
from graycert.graph.values_per_edge import EdgeInputNames, distinct_rows, values_per_edge

_EDGES = 2**20  # hashed at a time


def graph_fingerprint(
    edge_index: ArrayLike,
    num_nodes: int,
    features: Any | None,
    edge_inputs: Mapping[str, NDArray[Any]] | None = None,
    types: TypedNodes | None = None,
) -> str:
    """Hash nodes, edges (self-loops and repeats included) and features; the order of the edges does not matter.

    Args:
        edge_index: Integers, shape (2, num_edges), row 0 = source, row 1 = target.
        num_nodes: Number of nodes, >= 1.
        features: Array of numbers, shape (num_nodes, num_features), or None. Its number type counts: float32 and
            float64 copies of one matrix differ.
        edge_inputs: Values per edge by name, each of shape (num_edges, ...); none give the hash without them.
        types: Node types and relations; None gives the hash of a graph without them.

    Returns:
        ``"sha256:"`` and 64 hexadecimal digits, the same on every machine.

    Raises:
        InvalidParameterError: If a shape, a type or a node index is wrong.

    Example:
        >>> graph_fingerprint([[0, 1], [1, 2]], 3, None) == graph_fingerprint([[1, 0], [2, 1]], 3, None)
        True
    """
    num_nodes = check_integer("num_nodes", num_nodes, at_least=1)
    edges = check_integer_array("edge_index", edge_index, ndim=2, at_least=0, less_than=num_nodes)
    if edges.shape[0] != 2:
        raise InvalidParameterError(f"`edge_index` must have shape (2, num_edges), got {edges.shape}.")
    if edge_inputs:
        order: Any = np.lexsort((distinct_rows(edge_inputs)[1], edges[0], edges[1]))
    else:
        order = order_by_target(edges, num_nodes=num_nodes)
    digest = _begun(
        num_nodes, edges.shape[1], "" if types is None else f"types {len(types.in_words)} {types.in_words};"
    )
    _add_rows(digest, edges, order)
    if features is None:
        digest.update(b"no features")
        _add_edge_inputs(digest, edge_inputs, order)
        return f"sha256:{digest.hexdigest()}"
    matrix = np.asarray(features)
    if matrix.ndim != 2 or matrix.shape[0] != num_nodes or matrix.dtype.kind not in "biuf":
        raise InvalidParameterError(
            f"`features` must be numbers of shape ({num_nodes}, num_features), got dtype {matrix.dtype} and "
            f"shape {matrix.shape}."
        )
    little_endian = matrix.dtype.newbyteorder("<")
    digest.update(f"features {little_endian.str} {matrix.shape[1]};".encode())
    for start in range(0, num_nodes, 4096):  # blocks, so that a large matrix is not copied as a whole
        digest.update(np.ascontiguousarray(matrix[start : start + 4096], dtype=little_endian).data)
    _add_edge_inputs(digest, edge_inputs, order)
    return f"sha256:{digest.hexdigest()}"


def adjacency_fingerprint(adjacency: Adjacency) -> str:
    """Hash the edges of a graph that is checked and sorted, as `graph_fingerprint` does without features."""
    digest = _begun(adjacency.num_nodes, adjacency.num_edges, "")
    _add_rows(digest, (adjacency.sources, adjacency.targets), None)
    digest.update(b"no features")
    return f"sha256:{digest.hexdigest()}"


def _begun(num_nodes: int, num_edges: int, types: str) -> Any:
    """Hash sizes and types in front of the bytes, so that no two different graphs feed the same byte string."""
    return hashlib.sha256(f"graycert graph 1; nodes {num_nodes}; edges {num_edges};{types}".encode())


def _add_rows(digest: Any, rows: Iterable[IntArray], order: Any) -> None:
    for row in rows:
        for start in range(0, row.size, _EDGES):  # parts, so that no sorted copy is made
            part = slice(start, start + _EDGES)
            digest.update(np.ascontiguousarray(row[part] if order is None else row[order[part]], dtype="<i8").tobytes())


def _add_edge_inputs(digest: Any, edge_inputs: Mapping[str, NDArray[Any]] | None, order: IntArray) -> None:
    for name, values in sorted((edge_inputs or {}).items()):
        little_endian = values.dtype.newbyteorder("<")
        digest.update(f"edge input {len(name)} {name} {little_endian.str} {values.shape[1:]};".encode())
        digest.update(np.ascontiguousarray(values[order], dtype=little_endian).tobytes())


def fingerprint_of(data: Any, edge_inputs: EdgeInputNames | None = None) -> str:
    """Hash all of a graph that a model is given: edges, features, and values per edge.

    Args:
        data: Graph with ``x`` (num_nodes, num_features) and ``edge_index`` (2, num_edges): arrays, or tensors on any
            device.
        edge_inputs: Names of its values per edge that the model is given.

    Raises:
        InvalidParameterError: If the graph lacks them.
    """
    given = values_per_edge(data, edge_inputs) if edge_inputs else None
    features = data.x.float() if str(data.x.dtype) == "torch.bfloat16" else data.x  # NumPy has no bfloat16
    types = getattr(data, "types", None)
    return graph_fingerprint(
        as_array(data.edge_index),
        int(data.num_nodes),
        as_array(features),
        given,
        types if isinstance(types, TypedNodes) else None,
    )
