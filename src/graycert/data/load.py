"""One call for every graph: by name, from a file, or as a ``Data`` object."""

import difflib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from torch_geometric.data import Data

from graycert.data.catalogue import (
    CATALOGUE,
    EMBEDDED_NAME,
    PAPER_PREPARATION,
    embedded_path,
    find_named_file,
)
from graycert.data.checks import validate_data
from graycert.data.download import download_graph
from graycert.data.npz_file import read_npz_graph
from graycert.data.ogb_folder import read_ogb_graph
from graycert.data.preparation import prepare_graph
from graycert.data.pt_file import read_saved_graph
from graycert.data.roots import search_folders
from graycert.data.table_file import TABLE_SUFFIXES, is_table, read_tables
from graycert.errors import InvalidFileError, InvalidParameterError

_OBJECT_PREPARATION: Mapping[str, bool] = dict.fromkeys(PAPER_PREPARATION, False)
_FILE_PREPARATION: Mapping[str, bool] = {**_OBJECT_PREPARATION, "coalesce": True}
_SAVED_SUFFIXES = (".pt", ".pth")
_PICKLE_SUFFIXES = (".pkl", ".pickle", ".p")
_PATH_SUFFIXES = (".npz", *_SAVED_SUFFIXES, *_PICKLE_SUFFIXES, *TABLE_SUFFIXES)


def load_graph(
    source: str | os.PathLike[str] | Data,
    *,
    nodes: str | os.PathLike[str] | None = None,
    data_root: str | os.PathLike[str] | None = None,
    undirected: bool | None = None,
    drop_self_loops: bool | None = None,
    coalesce: bool | None = None,
    largest_component: bool | None = None,
    binarize: bool | None = None,
) -> Data:
    """Load, check and prepare a graph.

    The five options are those of :func:`graycert.data.prepare_graph`. Left at None, a named graph is prepared
    as in the paper (ogbn-arxiv: without binarising), an ``.npz`` file or a table has its parallel edges
    merged and is otherwise left as it is, and a ``Data`` object or a file saved from one is left as it is.
    What was done is listed in ``data.preparation``.

    Args:
        source: The name of a graph (see ``graycert datasets``), NAME for NAME.npz under the data root, the
            path of a file (``.npz``; ``.pt`` saved from a ``Data``; an edge table in ``.csv``, ``.tsv`` or
            ``.parquet``), or a ``Data`` object.
        nodes: Path of the node table that belongs to an edge table.
        data_root: Folder with graph files; None takes the environment variable GRAYCERT_DATA. The cache
            folder ~/.cache/graycert is searched after it, and used for downloads if there is no data root.
        undirected: Add the reverse of every edge; False keeps a directed graph directed.
        drop_self_loops: Remove edges from a node to itself.
        coalesce: Merge parallel edges.
        largest_component: Keep only the largest weakly connected component.
        binarize: Replace each feature by 1 where it is > 0, else by 0.

    Returns:
        A new ``Data`` with ``edge_index``, ``graph_name``, ``graph_source``, ``preparation`` and, where
        known, ``x`` (float32, unless a ``Data`` object has another float type), ``y`` (int64, -1 =
        unlabelled), ``node_ids`` and ``class_names``.

    Raises:
        InvalidFileError: If a file is missing, damaged or foreign, or a graph cannot be downloaded.
        InvalidParameterError: If the name is unknown or the graph is malformed.

    Example:
        >>> load_graph("wordnet_nouns").num_nodes
        9668
    """
    if isinstance(source, Data) or not isinstance(source, str | os.PathLike):
        validate_data(source, need_features=False)
        raw, defaults = source, _OBJECT_PREPARATION
        name, origin = (
            str(source.get("graph_name") or "user graph"),
            str(source.get("graph_source") or "Data object"),
        )
        if nodes is not None:
            raise InvalidParameterError(
                "`nodes` belongs to an edge table, but `source` is a Data object. Leave it out."
            )
    else:
        path, name, defaults = _resolve(source, data_root)
        _check_nodes_argument(path, nodes)
        raw, origin = _read_checked(path, None if nodes is None else Path(nodes).expanduser()), str(path)
    given = {
        "undirected": undirected,
        "drop_self_loops": drop_self_loops,
        "coalesce": coalesce,
        "largest_component": largest_component,
        "binarize": binarize,
    }
    options = {**defaults, **{option: bool(value) for option, value in given.items() if value is not None}}
    if options["undirected"] and coalesce is None:
        options["coalesce"] = True
    data = prepare_graph(raw, **options)
    data.graph_name, data.graph_source = name, origin
    return data


def _resolve(
    source: str | os.PathLike[str], data_root: str | os.PathLike[str] | None
) -> tuple[Path, str, Mapping[str, bool]]:
    """Return the file, the name of the graph, and its default preparation."""
    if source == EMBEDDED_NAME:
        return embedded_path(), EMBEDDED_NAME, CATALOGUE[EMBEDDED_NAME].preparation
    if isinstance(source, str) and source in CATALOGUE:
        entry, folders = CATALOGUE[source], search_folders(data_root)
        path = find_named_file(entry, folders)
        if path is None:
            path = download_graph(entry, folders[0], looked_in=folders)
        if entry.name == "ogbn-arxiv":
            path = path if path.is_dir() else path.parents[1]
        return path, entry.name, entry.preparation
    if isinstance(source, str) and re.fullmatch(r"[\w-]+", source) and not Path(source).is_file():
        for folder in search_folders(data_root):
            if (folder / f"{source}.npz").is_file():
                return folder / f"{source}.npz", source, _FILE_PREPARATION
        raise InvalidParameterError(_unknown_name(source, data_root))
    path = Path(source).expanduser()
    saved = path.suffix.lower() in _SAVED_SUFFIXES
    return path, path.name.split(".")[0], _OBJECT_PREPARATION if saved else _FILE_PREPARATION


def _unknown_name(name: str, data_root: str | os.PathLike[str] | None) -> str:
    known = [
        *CATALOGUE,
        *(path.stem for folder in search_folders(data_root) for path in sorted(folder.glob("*.npz"))),
    ]
    close = difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1, cutoff=0.6)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return (
        f"`source` must be the name of a graph or a path, got {name!r}. {hint}`graycert datasets` lists the "
        f"names; files end in {', '.join(_PATH_SUFFIXES[:2])} or {', '.join(TABLE_SUFFIXES)}."
    )


def _check_nodes_argument(path: Path, nodes: str | os.PathLike[str] | None) -> None:
    if nodes is None:
        return
    if not is_table(path):
        raise InvalidParameterError(
            f"`nodes` belongs to an edge table ({', '.join(TABLE_SUFFIXES)}), but `source` is '{path}'. Leave it out."
        )
    if not is_table(Path(nodes)):
        raise InvalidFileError(f"'{nodes}' must be a table ({', '.join(TABLE_SUFFIXES)}).")
    if not Path(nodes).expanduser().is_file():
        raise InvalidFileError(f"'{nodes}' must be an existing node table, but there is no such file.")


def _read_checked(path: Path, nodes: Path | None) -> Data:
    data = _reader(path, nodes)(path)
    try:
        validate_data(data, need_features=False)
    except InvalidParameterError as error:
        raise InvalidFileError(f"'{path}' holds no valid graph: {error}") from error
    return data


def _reader(path: Path, nodes: Path | None) -> Callable[[Path], Data]:
    """Choose by the ending of the name, after checking that there is such a file."""
    ending = path.suffix.lower()
    if ending in _PICKLE_SUFFIXES:
        raise InvalidFileError(
            f"'{path}' is a pickle, which can run code when it is read, so it is refused. Save the graph "
            "with torch.save(data, 'graph.pt') or numpy.savez_compressed."
        )
    if (path / "raw" / "edge.csv.gz").is_file():
        return read_ogb_graph
    if not path.is_file():
        raise InvalidFileError(f"'{path}' must be an existing file, but there is no such file. Check the path.")
    if ending == ".npz":
        return read_npz_graph
    if ending in _SAVED_SUFFIXES:
        return read_saved_graph
    if is_table(path):
        return lambda edges: read_tables(edges, nodes)
    raise InvalidFileError(
        f"'{path}' must end in .npz, {', '.join(_SAVED_SUFFIXES)} or {', '.join(TABLE_SUFFIXES)}. "
        "Convert it, or pass a torch_geometric.data.Data object."
    )
