"""One call for every graph: by name, from a file, tables, or an object of another library."""

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graycert.data.arrays import GraphArrays
from graycert.data.as_data import as_data
from graycert.data.catalogue import (
    CATALOGUE,
    EMBEDDED_NAME,
    GENERATED_NAME,
    PAPER_PREPARATION,
    embedded_path,
    find_named_file,
)
from graycert.data.checks import validate_data
from graycert.data.description import is_description, read_description
from graycert.data.directions import remark_on_directions
from graycert.data.download import download_graph
from graycert.data.edges_in_pieces import EdgeFile
from graycert.data.generated import noisy_arrays
from graycert.data.npz_file import read_npz_graph
from graycert.data.ogb_folder import is_ogb_folder, read_ogb_graph
from graycert.data.on_disk import is_array_file
from graycert.data.origin import remember
from graycert.data.preparation import STEPS, prepare_graph, prepare_with_edges
from graycert.data.roots import search_folders
from graycert.data.tables.endings import TABLE_SUFFIXES, is_frame, is_table
from graycert.data.tables.options import TABLE_OPTIONS, TableOptions
from graycert.errors import InvalidFileError, InvalidParameterError

if TYPE_CHECKING:
    from torch_geometric.data import Data

_OBJECT_PREPARATION: Mapping[str, bool] = dict.fromkeys(PAPER_PREPARATION, False)
_FILE_PREPARATION: Mapping[str, bool] = {**_OBJECT_PREPARATION, "coalesce": True}
_SAVED_SUFFIXES = (".pt", ".pth")
_PICKLE_SUFFIXES = (".pkl", ".pickle", ".p")
_PATH_SUFFIXES = (".npz", *_SAVED_SUFFIXES)


def load_graph(
    graph: Any,
    /,
    *,
    nodes: Any = None,
    data_root: str | os.PathLike[str] | None = None,
    label: str | None = None,
    source: str | None = None,
    target: str | None = None,
    id: str | None = None,
    class_names: str | Sequence[str] | None = None,
    split_column: str | None = None,
    one_hot: str | Sequence[str] | None = None,
    fill: str | None = None,
    drop: str | Sequence[str] | None = None,
    separator: str | None = None,
    undirected: bool | None = None,
    drop_self_loops: bool | None = None,
    coalesce: bool | None = None,
    largest_component: bool | None = None,
    binarize: bool | None = None,
) -> "Data":
    """Load, check and prepare a graph.

    The last five options are those of :func:`graycert.data.prepare_graph`. Left at None, a named graph is prepared
    as in the paper (ogbn-arxiv: without binarising); an ``.npz`` file, tables, a matrix or a network have their
    parallel edges merged (an undirected network also gets both directions of every edge) and are otherwise left as they
    are; and a ``Data`` object or a file saved from one is left as it is. What was assumed and done is listed in
    ``data.preparation``.

    The options before, from ``label`` to ``separator``, say what the columns of tables are. Common names are recognised
    without them; what is ambiguous is refused with the option that decides it.

    Args:
        graph: The name of a graph (see ``graycert datasets``), NAME for NAME.npz under the data root, the
            path of a file (``.npz``; ``.pt`` saved from a ``Data``; ``.graphml``; an edge table in ``.csv``, ``.tsv``
            or ``.parquet``; a ``.toml`` with any of these parameters as keys), a ``Data`` object, a networkx graph, a
            square matrix of ``scipy.sparse`` (an entry in row w and column v is an edge from w to v), or an edge table
            as a frame of pandas or Arrow.
        nodes: Path or frame of the node table that belongs to an edge table. For graphs larger than memory the path of
            a ``.npy`` file with the features (num_nodes, num_features): nodes are their rows, the edge table names them
            by number and is read in pieces, and features stay on disk; ``label`` is then a ``.npy`` file, too.
        data_root: Folder with graph files; None takes the environment variable GRAYCERT_DATA. The cache
            folder ~/.cache/graycert is searched after it, and used for downloads if there is no data root.
        label: Column with the classes; "" if no column has them.
        source: Column of the edge table with the node that an edge comes from.
        target: Column of the edge table with the node that an edge goes to.
        id: Column with the names of the nodes.
        class_names: Labels in the order of the model's outputs, or names of class numbers: a list, or a text with
            commas.
        split_column: Column that says train, validation or test; "" if no column does.
        one_hot: Columns that become one feature for each of their values; a list, or a text with commas.
        fill: What takes the place of missing numbers: "median" of the column, or "zero".
        drop: Columns of the node table that are no features; a list, or a text with commas.
        separator: Character between the values of a text table, or comma, semicolon, tab, blank or bar.
        undirected: Add the reverse of every edge; False keeps a directed graph directed.
        drop_self_loops: Remove edges from a node to itself.
        coalesce: Merge parallel edges.
        largest_component: Keep only the largest weakly connected component.
        binarize: Replace each feature by 1 where it is > 0, else by 0.

    Returns:
        A new ``Data`` with ``edge_index``, ``graph_name``, ``graph_source``, ``preparation`` and, where
        known, ``x`` (float32, unless a ``Data`` object has another float type), ``y`` (int64, -1 =
        unlabelled), ``node_ids``, ``class_names`` and PyG's three masks.

    Raises:
        InvalidFileError: If a file is missing, damaged, foreign or ambiguous, or a graph cannot be downloaded.
        InvalidParameterError: If the name is unknown, an option does not fit, or the graph is malformed.

    Example:
        >>> load_graph("wordnet_nouns").num_nodes
        9668
    """
    said = {name: value for name, value in locals().items() if name != "graph"}
    return as_data(load_arrays(graph, **said))


def load_arrays(
    graph: Any, /, *, nodes: Any = None, data_root: str | os.PathLike[str] | None = None, **said: Any
) -> "GraphArrays | Data":
    """Load, check and prepare a graph without loading torch, for what calls no model.

    Args:
        graph: See `load_graph`, as all others.
        nodes: See there.
        data_root: See there.
        said: See there; what is None is not said.

    Returns:
        What `load_graph` returns, as arrays; a ``Data`` where one was handed in, or lies in a file.

    Raises:
        InvalidFileError: As `load_graph`.
        InvalidParameterError: As `load_graph`.
    """
    unknown = set(said) - {*TABLE_OPTIONS, *STEPS}
    if unknown:
        raise TypeError(f"load_arrays() got unexpected arguments: {', '.join(sorted(unknown))}")
    if is_description(graph):
        given = {"nodes": nodes, "data_root": data_root, **said}
        described = read_description(Path(graph).expanduser())
        merged = {**described, **{name: value for name, value in given.items() if value is not None}}
        return load_arrays(merged.pop("graph"), **merged)
    tables = TableOptions.of(**{name: said.get(name) for name in TABLE_OPTIONS})
    steps = {name: bool(said[name]) for name in STEPS if said.get(name) is not None}
    found = _found(graph, nodes, data_root, tables)
    options = {**found.preparation, **steps}
    if options["undirected"] and "coalesce" not in steps:
        options["coalesce"] = True
    edges = found.edges
    if edges is None:
        data = prepare_graph(found.data, **options)
    else:
        data = _checked(found.origin, partial(prepare_with_edges, found.data, edges, **options))
    if not options["undirected"]:
        remark_on_directions(data, asked="undirected" in steps)
    data.graph_name, data.graph_source = found.name, found.origin
    if found.remembered:
        of_tables = tables.stored()
        if is_array_file(tables.label):
            of_tables["label"] = str(Path(str(tables.label)).expanduser().resolve())
        remember(data, source=found.place, nodes=nodes, options={**of_tables, **steps})
    return data


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A graph before its preparation.

    Attributes:
        data: The graph.
        name: What it is called.
        origin: Where it is from, for readers.
        preparation: What is done to it unless something else is said.
        place: By what it can be loaded again, or None.
        edges: Its edges, if they are still to be read.
        remembered: Whether the graph is to say by what it can be loaded again; a ``Data`` says what it did before.
    """

    data: Any
    name: str
    origin: str
    preparation: Mapping[str, bool]
    place: str | None = None
    edges: EdgeFile | None = None
    remembered: bool = True


def _found(graph: Any, nodes: Any, data_root: str | os.PathLike[str] | None, tables: TableOptions) -> _Found:
    if isinstance(graph, str | os.PathLike):
        return _from_place(graph, nodes, data_root, tables)
    if is_frame(graph):
        from graycert.data.tables.graph import graph_of_tables

        frame = graph_of_tables(graph, _table_argument(nodes), tables)
        return _Found(data=frame, name="user graph", origin="data frame", preparation=_FILE_PREPARATION)
    if nodes is not None:
        raise InvalidParameterError(
            f"`nodes` belongs to an edge table, but `graph` is a {type(graph).__name__} object. Leave it out."
        )
    from graycert.data.networks import graph_of_matrix, graph_of_network, is_matrix, is_network

    if is_network(graph):
        preparation = {**_FILE_PREPARATION, "undirected": not graph.is_directed()}
        data = graph_of_network(graph, tables)
        return _Found(data=data, name="user graph", origin="networkx graph", preparation=preparation)
    _refuse_table_options(tables, f"a {type(graph).__name__} object")
    if is_matrix(graph):
        matrix = graph_of_matrix(graph)
        return _Found(data=matrix, name="user graph", origin="sparse matrix", preparation=_FILE_PREPARATION)
    validate_data(graph, need_features=False)
    return _Found(
        data=graph,
        name=str(graph.get("graph_name") or "user graph"),
        origin=str(graph.get("graph_source") or "Data object"),
        preparation=_OBJECT_PREPARATION,
        remembered=False,
    )


def _from_place(
    graph: str | os.PathLike[str], nodes: Any, data_root: str | os.PathLike[str] | None, tables: TableOptions
) -> _Found:
    if graph == GENERATED_NAME:
        return _generated(nodes, tables)
    path, name, defaults = _resolve(graph, data_root)
    _check_nodes_argument(path, nodes)
    if is_ogb_folder(path) or is_array_file(nodes):
        return _in_pieces(path, name, nodes, tables, defaults, place=_named(graph, path))
    raw = _read_checked(path, _table_argument(nodes), tables)
    if path.suffix.lower() == ".graphml":
        defaults = {**defaults, "undirected": raw.is_undirected_network}
        del raw.is_undirected_network
    reloadable = nodes is None or isinstance(nodes, str | os.PathLike)
    place = _named(graph, path) if reloadable else None
    return _Found(data=raw, name=name, origin=str(path), preparation=defaults, place=place)


def _in_pieces(
    path: Path, name: str, nodes: Any, tables: TableOptions, defaults: Mapping[str, bool], *, place: str
) -> _Found:
    """Return a graph of which the edges are still to be read."""
    if is_ogb_folder(path):
        _refuse_table_options(tables, f"'{path}'")
        data, edges = read_ogb_graph(path)
    else:
        from graycert.data.numbered import read_numbered

        data, edges = read_numbered(path, _table_argument(nodes), tables)
    return _Found(data=data, name=name, origin=str(path), preparation=defaults, place=place, edges=edges)


def _named(graph: str | os.PathLike[str], path: Path) -> str:
    return graph if isinstance(graph, str) and path.name != Path(graph).name else str(path.resolve())


def _generated(nodes: Any, tables: TableOptions) -> _Found:
    entry = CATALOGUE[GENERATED_NAME]
    if nodes is not None:
        raise InvalidParameterError(f"`nodes` belongs to an edge table, but {entry.name} is generated. Leave it out.")
    _refuse_table_options(tables, f"{entry.name}, which is generated")
    return _Found(
        data=noisy_arrays(),
        name=entry.name,
        origin=entry.source,
        preparation=entry.preparation,
        place=entry.name,
    )


def _table_argument(nodes: Any) -> Any:
    return Path(nodes).expanduser() if isinstance(nodes, str | os.PathLike) else nodes


def _resolve(
    graph: str | os.PathLike[str], data_root: str | os.PathLike[str] | None
) -> tuple[Path, str, Mapping[str, bool]]:
    """Return the file, the name of the graph, and its default preparation."""
    if graph == EMBEDDED_NAME:
        return embedded_path(), EMBEDDED_NAME, CATALOGUE[EMBEDDED_NAME].preparation
    if isinstance(graph, str) and graph in CATALOGUE:
        entry, folders = CATALOGUE[graph], search_folders(data_root)
        path = find_named_file(entry, folders)
        if path is None:
            path = download_graph(entry, folders[0], looked_in=folders)
        if entry.name.startswith("ogbn-"):
            path = path if path.is_dir() else path.parents[1]
        return path, entry.name, entry.preparation
    if isinstance(graph, str) and re.fullmatch(r"[\w-]+", graph) and not Path(graph).is_file():
        for folder in search_folders(data_root):
            if (folder / f"{graph}.npz").is_file():
                return folder / f"{graph}.npz", graph, _FILE_PREPARATION
        raise InvalidParameterError(_unknown_name(graph, data_root))
    path = Path(graph).expanduser()
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
        f"`graph` must be the name of a graph or a path, got {name!r}. {hint}`graycert datasets` lists the "
        f"names; files end in {', '.join(_PATH_SUFFIXES[:2])} or {', '.join(TABLE_SUFFIXES)}."
    )


def _check_nodes_argument(path: Path, nodes: Any) -> None:
    if nodes is None:
        return
    if not is_table(path):
        raise InvalidParameterError(
            f"`nodes` belongs to an edge table ({', '.join(TABLE_SUFFIXES)}), but `graph` is '{path}'. Leave it out."
        )
    if not isinstance(nodes, str | os.PathLike):
        if not is_frame(nodes):
            raise InvalidParameterError(f"`nodes` must be a path or a data frame, got {type(nodes).__name__}.")
        return
    if not is_table(Path(nodes)) and not is_array_file(nodes):
        raise InvalidFileError(
            f"'{nodes}' must be a table ({', '.join(TABLE_SUFFIXES)}), or the features of numbered nodes (.npy)."
        )
    if not Path(nodes).expanduser().is_file():
        raise InvalidFileError(f"'{nodes}' must be an existing node table, but there is no such file.")


def _refuse_table_options(tables: TableOptions, what: str) -> None:
    for name in tables.stored():
        raise InvalidParameterError(
            f"`{name}` says something of tables, but `graph` is {what}. Leave it out, or pass an edge table "
            f"({', '.join(TABLE_SUFFIXES)}) and, as `nodes`, a node table."
        )


def _read_checked(path: Path, nodes: Any, tables: TableOptions) -> Any:
    data = _reader(path, nodes, tables)(path)

    def checked() -> Any:
        validate_data(data, need_features=False)
        return data

    return _checked(str(path), checked)


def _checked(path: str, make: Callable[[], Any]) -> Any:
    """Blame a file for a graph that is none."""
    try:
        return make()
    except InvalidParameterError as error:
        raise InvalidFileError(f"'{path}' holds no valid graph: {error}") from error


def _reader(path: Path, nodes: Any, tables: TableOptions) -> Callable[[Path], Any]:
    """Choose by the ending of the name, after checking that there is such a file."""
    ending = path.suffix.lower()
    if ending in _PICKLE_SUFFIXES:
        raise InvalidFileError(
            f"'{path}' is a pickle, which can run code when it is read, so it is refused. Save the graph "
            "with torch.save(data, 'graph.pt') or numpy.savez_compressed."
        )
    if not path.is_file():
        raise InvalidFileError(f"'{path}' must be an existing file, but there is no such file. Check the path.")
    if is_table(path):
        from graycert.data.tables.graph import graph_of_tables

        return lambda edges: graph_of_tables(edges, nodes, tables)
    if ending == ".graphml":
        from graycert.data.networks import read_graphml

        return lambda file: read_graphml(file, tables)
    _refuse_table_options(tables, f"'{path}'")
    if ending == ".npz":
        return read_npz_graph
    if ending in _SAVED_SUFFIXES:
        from graycert.data.pt_file import read_saved_graph

        return read_saved_graph
    raise InvalidFileError(
        f"'{path}' must end in .npz, {', '.join(_SAVED_SUFFIXES)}, .graphml or {', '.join(TABLE_SUFFIXES)}. "
        "Convert it, or pass a torch_geometric.data.Data object."
    )
