"""Graphs in ``.npz`` files: three layouts, told apart by their keys; pickled objects are never read."""

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graycert.data.arrays import GraphArrays
from graycert.errors import InvalidFileError

Arrays = Mapping[str, NDArray[Any]]

_CSR_PARTS = ("data", "indices", "indptr", "shape")
LAYOUTS = (
    "adj_data, adj_indices, adj_indptr, adj_shape (and attr_..., labels), as torch_geometric.io.read_npz "
    "reads; A, X, y (index pairs); edge_index, x, y; edges, node_features, node_labels; or a matrix of "
    "scipy.sparse.save_npz"
)


def read_npz_graph(path: Path) -> GraphArrays:
    """Read a graph; an entry A[w, v] != 0 is an edge from w to v.

    Layouts, by their keys (more keys are ignored):

    - ``adj_data, adj_indices, adj_indptr, adj_shape``: the adjacency as a CSR matrix; ``attr_*``: the
      features likewise (optional); ``labels`` (optional). These are the keys of
      ``torch_geometric.io.read_npz``.
    - ``A, X, y``: ``A`` holds index pairs, shape (2, num_edges), row 0 = sources. ``y`` has one label for
      each node and says how many nodes there are. ``X`` is the dense matrix (num_nodes, num_features), or
      index pairs (2, num_ones) of the entries that are 1, with as many columns as the largest one needs. The
      number of rows decides; with two nodes, whole numbers in two rows could be both and are refused.
    - ``edges`` (num_edges, 2), ``node_features`` (num_nodes, num_features), ``node_labels``.
    - ``edge_index`` (2, num_edges), row 0 = sources, and at least one of ``x`` (num_nodes, num_features) and ``y``;
      optionally ``train_mask``, ``val_mask`` and ``test_mask``.
    - A matrix that ``scipy.sparse.save_npz`` wrote: the adjacency, without features.

    Weights of the adjacency are left out, which ``data.preparation`` says. ``node_names`` (or ``node_ids``) and
    ``class_names`` are kept as ``data.node_ids`` and ``data.class_names``.

    Raises:
        InvalidFileError: If the file is not such an archive, is truncated or corrupted, holds pickled
            objects, or its arrays do not fit together.
    """
    arrays = _read_arrays(path)
    try:
        data = _build(arrays)
    except InvalidFileError as error:
        raise InvalidFileError(f"'{path}' cannot be read as a graph: {error}") from error
    except MemoryError as error:
        raise InvalidFileError(
            f"'{path}' needs more memory for its dense features than there is ({error}). Keep fewer columns."
        ) from error
    for key, attribute in (("node_names", "node_ids"), ("node_ids", "node_ids"), ("class_names", "class_names")):
        if key in arrays:
            data[attribute] = [str(name).strip() for name in arrays[key].reshape(-1).tolist()]
    return data


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    # NumPy takes every file that is neither an archive nor an array for a pickle, hence the look at the first bytes.
    with path.open("rb") as stream:
        start = stream.read(6)
    if start == b"\x93NUMPY":
        raise InvalidFileError(f"'{path}' holds one array, not the arrays of a graph. Needed: {LAYOUTS}.")
    if start[:1] == b"\x80":
        raise InvalidFileError(_pickled(path))
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            members = {name: archive[name] for name in archive.files}
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        if start[:2] == b"PK" and "Object arrays" in str(error):
            raise InvalidFileError(_pickled(path)) from error
        detail = "it is no zip archive" if start[:2] != b"PK" else str(error)
        raise InvalidFileError(_corrupted(path, detail)) from error
    for name, member in members.items():
        if not isinstance(member, np.ndarray):  # NumPy returns the bytes of a member that is no array
            raise InvalidFileError(_corrupted(path, f"its member {name} is no array"))
    return members


def _pickled(path: Path) -> str:
    return (
        f"'{path}' must hold plain arrays, got pickled Python objects, which can run code when they are read. "
        "Save the arrays again with numpy.savez_compressed."
    )


def _corrupted(path: Path, detail: str) -> str:
    return (
        f"'{path}' must be a NumPy .npz archive, but it is truncated, corrupted or another format ({detail}). "
        "Get it again."
    )


def _build(arrays: Arrays) -> GraphArrays:
    if "adj_indptr" in arrays:
        return _from_csr(arrays)
    if "A" in arrays:
        return _from_index_pairs(arrays)
    if "edges" in arrays:
        return _from_edge_rows(arrays)
    if "edge_index" in arrays:
        return _from_edge_index(arrays)
    if "format" in arrays and "shape" in arrays:
        return _from_matrix(arrays)
    raise InvalidFileError(f"it has the keys {', '.join(sorted(arrays)) or '(none)'}. Needed: {LAYOUTS}.")


def _from_csr(arrays: Arrays) -> GraphArrays:
    adjacency = _csr(arrays, "adj")
    num_nodes = adjacency.shape[0]
    if adjacency.shape[1] != num_nodes:
        raise InvalidFileError(f"`adj_shape` must be square, got {adjacency.shape}.")
    entries = adjacency.tocoo()
    data = _graph(np.stack([entries.row, entries.col]), num_nodes)
    data.preparation = weights_left_out(entries.data)
    if any(f"attr_{part}" in arrays for part in _CSR_PARTS):
        _set_features(data, _csr(arrays, "attr").toarray(), num_nodes)
    if "labels" in arrays:
        _set_labels(data, "labels", arrays["labels"], num_nodes)
    return data


def _csr(arrays: Arrays, prefix: str) -> sp.csr_array:
    names = [f"{prefix}_{part}" for part in _CSR_PARTS]
    missing = [name for name in names if name not in arrays]
    if missing:
        raise InvalidFileError(f"the key {missing[0]} is missing.")
    values, indices, indptr, shape = (arrays[name] for name in names)
    if shape.dtype.kind not in "iu" or shape.shape != (2,):
        raise InvalidFileError(f"`{prefix}_shape` must be two integers, got {shape!r}.")
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise InvalidFileError(f"`{prefix}_data` must be finite numbers, got {_first_bad(values)}.")
    for name, array in ((names[1], indices), (names[2], indptr)):
        if array.dtype.kind not in "iu":
            raise InvalidFileError(f"`{name}` must hold integers, got dtype {array.dtype}.")
    columns = int(shape[1])
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < columns:
        wrong = int(indices.min()) if int(indices.min()) < 0 else int(indices.max())
        raise InvalidFileError(f"`{names[1]}` must lie in [0, {columns - 1}], got {wrong}.")
    number = np.float32 if values.dtype.kind in "biu" else values.dtype
    triple = (values.astype(number), indices.astype(np.int64), indptr.astype(np.int64))
    try:
        matrix = sp.csr_array(triple, shape=(int(shape[0]), columns))
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise InvalidFileError(f"`{prefix}_data`, `_indices`, `_indptr` are no CSR matrix: {error}.") from error
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _from_index_pairs(arrays: Arrays) -> GraphArrays:
    if "y" not in arrays:
        raise InvalidFileError("the key y is missing: it says how many nodes there are (-1 = label unknown).")
    num_nodes = arrays["y"].size
    data = _graph(_pairs("A", arrays["A"]), num_nodes)
    if "X" in arrays:
        _set_features(data, _features_of_pairs(arrays["X"], num_nodes), num_nodes)
    _set_labels(data, "y", arrays["y"].reshape(-1), num_nodes)
    return data


def _features_of_pairs(features: NDArray[Any], num_nodes: int) -> NDArray[Any]:
    """Return ``X`` dense, whichever of its two forms it has."""
    whole = features.dtype.kind in "iu"
    could_be_pairs = whole and features.ndim == 2 and features.shape[0] == 2
    if could_be_pairs and num_nodes == 2:
        raise InvalidFileError(
            f"`X` of shape {features.shape} could be the features of the two nodes or index pairs. Store it "
            "as floats if it holds the features."
        )
    if not could_be_pairs:
        return features
    if features.shape[1] == 0:
        raise InvalidFileError("`X` must have at least one entry, got none. Leave X out for a graph without features.")
    rows, columns = _pairs("X", features)
    if rows.max() >= num_nodes or rows.min() < 0 or columns.min() < 0:
        wrong = rows.max() if rows.max() >= num_nodes else min(rows.min(), columns.min())
        raise InvalidFileError(f"`X` must hold pairs (node in [0, {num_nodes - 1}], column >= 0), got {wrong}.")
    dense = np.zeros((num_nodes, int(columns.max()) + 1), dtype=np.float32)
    dense[rows, columns] = 1.0
    return dense


def _from_edge_rows(arrays: Arrays) -> GraphArrays:
    missing = [name for name in ("node_features", "node_labels") if name not in arrays]
    if missing:
        raise InvalidFileError(f"the key {missing[0]} is missing.")
    edges, num_nodes = arrays["edges"], arrays["node_labels"].size
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise InvalidFileError(f"`edges` must have shape (num_edges, 2), got {edges.shape}.")
    data = _graph(_pairs("edges", edges.T), num_nodes)
    _set_features(data, arrays["node_features"], num_nodes)
    _set_labels(data, "node_labels", arrays["node_labels"], num_nodes)
    return data


def _from_edge_index(arrays: Arrays) -> GraphArrays:
    sizes = [arrays[name].shape[0] for name in ("x", "y") if name in arrays and arrays[name].ndim]
    if not sizes:
        raise InvalidFileError("the key x or y is missing: one of them says how many nodes there are.")
    data = _graph(_pairs("edge_index", arrays["edge_index"]), sizes[0])
    if "x" in arrays:
        _set_features(data, arrays["x"], sizes[0])
    if "y" in arrays:
        labels = arrays["y"]
        _set_labels(data, "y", labels.reshape(-1) if labels.shape == (sizes[0], 1) else labels, sizes[0])
    for name in ("train_mask", "val_mask", "test_mask"):
        if name in arrays:
            if arrays[name].dtype != np.bool_ or arrays[name].shape != (sizes[0],):
                raise InvalidFileError(
                    f"`{name}` must be boolean of shape ({sizes[0]},), got dtype {arrays[name].dtype} and shape "
                    f"{arrays[name].shape}."
                )
            data[name] = arrays[name]
    return data


def _from_matrix(arrays: Arrays) -> GraphArrays:
    kind = arrays["format"].item() if arrays["format"].ndim == 0 else b""
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if kind == "csr":
        return _from_csr({f"adj_{name}": array for name, array in arrays.items()})
    if kind == "csc":  # the transposed matrix in CSR form
        shape = arrays["shape"][::-1]
        data = _from_csr({**{f"adj_{name}": array for name, array in arrays.items()}, "adj_shape": shape})
        data.edge_index = np.ascontiguousarray(data.edge_index[::-1])
        return data
    if kind == "coo" and arrays.get("row") is not None and arrays.get("col") is not None:
        pairs, shape = _pairs("row, col", np.stack([arrays["row"], arrays["col"]])), arrays["shape"]
        if shape.shape != (2,) or shape[0] != shape[1]:
            raise InvalidFileError(f"`shape` must be square, got {shape.tolist()}.")
        values = arrays["data"]
        if values.dtype.kind not in "biuf" or values.shape != pairs.shape[1:] or not np.isfinite(values).all():
            raise InvalidFileError(f"`data` must be a finite number for each entry, got {_first_bad(values)}.")
        data = _graph(pairs[:, values != 0], int(shape[0]))
        data.preparation = weights_left_out(values[values != 0])
        return data
    raise InvalidFileError(f"it holds a sparse matrix in the format {kind!r}. Save it as csr: matrix.tocsr().")


def _pairs(name: str, pairs: NDArray[Any]) -> NDArray[np.int64]:
    if pairs.dtype.kind not in "iu" or pairs.ndim != 2 or pairs.shape[0] != 2:
        raise InvalidFileError(
            f"`{name}` must hold integer index pairs of shape (2, number), got dtype {pairs.dtype} and "
            f"shape {pairs.shape}."
        )
    return pairs.astype(np.int64)


def _graph(pairs: NDArray[Any], num_nodes: int) -> GraphArrays:
    return GraphArrays(edge_index=np.ascontiguousarray(pairs, dtype=np.int64), num_nodes=num_nodes)


def weights_left_out(values: NDArray[Any]) -> list[str]:
    """Return the remark that is due if an adjacency has entries other than 0 and 1."""
    other = int((values != 1).sum())
    return [f"left out weights of edges: {other:,} entries of the adjacency are neither 0 nor 1"] if other else []


def _set_features(data: GraphArrays, features: NDArray[Any], num_nodes: int) -> None:
    if features.dtype.kind not in "biuf" or features.ndim != 2 or features.shape[0] != num_nodes:
        raise InvalidFileError(
            f"the features must be numbers of shape ({num_nodes}, num_features), got dtype {features.dtype} "
            f"and shape {features.shape}."
        )
    data.x = np.ascontiguousarray(features, dtype=np.float32)


def _set_labels(data: GraphArrays, name: str, labels: NDArray[Any], num_nodes: int) -> None:
    if labels.dtype.kind not in "iu" or labels.shape != (num_nodes,):
        raise InvalidFileError(
            f"`{name}` must be integers of shape ({num_nodes},), got dtype {labels.dtype} and shape {labels.shape}."
        )
    data.y = labels.astype(np.int64)


def _first_bad(values: NDArray[Any]) -> str:
    if values.dtype.kind not in "biuf":
        return f"dtype {values.dtype}"
    position = int(np.flatnonzero(~np.isfinite(values))[0])
    return f"{values.reshape(-1)[position]} at position {position}"
