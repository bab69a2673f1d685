"""Graphs of other libraries: networkx (and GraphML, which it reads) and matrices of scipy.sparse."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from graycert.data.arrays import GraphArrays
from graycert.data.npz_file import weights_left_out
from graycert.data.tables.graph import graph_of_tables
from graycert.data.tables.options import TableOptions
from graycert.errors import InvalidFileError, InvalidParameterError


def is_network(value: object) -> bool:
    """Say whether it is a graph of networkx."""
    return all(hasattr(value, name) for name in ("is_directed", "is_multigraph", "adj", "nodes", "edges"))


def is_matrix(value: object) -> bool:
    """Say whether it is a matrix of scipy.sparse."""
    return bool(sp.issparse(value))


def graph_of_network(network: Any, options: TableOptions) -> GraphArrays:
    """Return a networkx graph: attributes of nodes are read as columns of a node table, whose ids are the nodes.

    Raises:
        InvalidFileError: As for tables.
        InvalidParameterError: If two nodes have the same text, or an option does not fit.
    """
    for name in ("source", "target", "id", "separator"):
        if getattr(options, name) is not None:
            raise InvalidParameterError(f"`{name}` must be left out for a networkx graph, which says it itself.")
    ids = [str(node) for node in network.nodes]
    columns = _columns(network.nodes.values())
    key = next(name for name in ("id", "node", "networkx node") if name not in columns)
    nodes = pa.table({key: pa.array(ids, pa.string()), **columns})
    ends = list(network.edges())
    edges = {
        "source": pa.array([str(first) for first, _ in ends], pa.string()),
        "target": pa.array([str(second) for _, second in ends], pa.string()),
        **_columns((values for *_, values in network.edges(data=True)), without=("source", "target")),
    }
    return graph_of_tables(pa.table(edges), nodes, dataclasses.replace(options, id=key))


def read_graphml(path: Path, options: TableOptions) -> GraphArrays:
    """Read a GraphML file; ``is_undirected`` says whether its edges go both ways.

    Raises:
        InvalidFileError: If it is damaged, or as for tables.
    """
    import networkx

    try:
        network = networkx.read_graphml(path)
    except Exception as error:  # whatever a damaged file leads to in the parser
        raise InvalidFileError(
            f"'{path}' must be a GraphML file, but it cannot be read ({type(error).__name__}: {error})."
        ) from error
    data = graph_of_network(network, options)
    data.is_undirected_network = not network.is_directed()
    return data


def graph_of_matrix(matrix: Any) -> GraphArrays:
    """Return the graph of a square matrix: an entry other than 0 in row w and column v is an edge from w to v.

    Raises:
        InvalidParameterError: If it is not square, or has entries that are no finite numbers.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise InvalidParameterError(f"`graph` must be a square matrix, got shape {matrix.shape}.")
    entries = sp.coo_array(matrix)
    if entries.dtype.kind not in "biuf" or not np.isfinite(entries.data).all():
        raise InvalidParameterError(f"`graph` must have finite numbers as entries, got dtype {entries.dtype}.")
    entries.sum_duplicates()
    kept = entries.data != 0
    pairs = np.stack([entries.row[kept], entries.col[kept]]).astype(np.int64)
    data = GraphArrays(edge_index=pairs, num_nodes=int(matrix.shape[0]))
    data.preparation = weights_left_out(entries.data[kept])
    return data


def _columns(attributes: Iterable[Mapping[Any, Any]], without: tuple[str, ...] = ()) -> dict[str, pa.Array]:
    """Return attributes as columns, empty where something lacks one."""
    rows = [{str(name): value for name, value in each.items()} for each in attributes]
    names = dict.fromkeys(name for row in rows for name in row if name not in without)
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[Any]) -> pa.Array:
    plain = [value.tolist() if hasattr(value, "tolist") else value for value in values]
    try:
        return pa.array(plain)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):  # of several types
        return pa.array(["" if value is None else str(value) for value in plain], pa.string())
