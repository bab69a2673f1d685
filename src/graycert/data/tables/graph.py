"""A graph of two tables: one of edges, one of nodes with features and labels."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graycert.data.arrays import GraphArrays
from graycert.data.tables.columns import check_named, find_ends, find_id, find_label, find_split, refuse_edge_as_header
from graycert.data.tables.features import features_of
from graycert.data.tables.findings import Findings, in_rows, listed, option
from graycert.data.tables.labels import UNKNOWN, holds_only, labels_of
from graycert.data.tables.options import TableOptions
from graycert.data.tables.reading import read_table
from graycert.data.tables.split_column import MASKS, masks_of_column, masks_of_columns
from graycert.data.tables.table import Table, is_nameless, leave_out_nameless


def graph_of_tables(edges: Any, nodes: Any = None, options: TableOptions | None = None) -> GraphArrays:
    """Read an edge table and, for anything that needs features, a node table.

    Node ids are texts, also ``NA`` and ``007``, and are kept as ``data.node_ids``; the nodes have the order of the node
    table, or without one that of their first mention. What is assumed or changed is listed in ``data.preparation``.

    Args:
        edges: Path of a table, or a frame.
        nodes: The same, or None.
        options: What is said of the columns.

    Raises:
        InvalidFileError: If a table cannot be read, or is ambiguous: all problems in one message, each with the option
            that decides it.
    """
    options = TableOptions() if options is None else options
    findings = Findings()
    edge_table = read_table(edges, called="the edge table", separator=options.separator, findings=findings)
    node_table = None
    if nodes is not None:
        node_table = read_table(nodes, called="the node table", separator=options.separator, findings=findings)
    ends = _ends(edge_table, options, findings)
    if node_table is None:
        _refuse_foreign_options(options, findings)
        findings.require()
        data = GraphArrays()
        if ends is not None:
            data.node_ids, pairs = _first_mentions(*ends)
            data.num_nodes = len(data.node_ids)
            data.edge_index = pairs
            if not data.num_nodes:
                findings.problems.append(f"{edge_table.name} must name at least one node, got no edges.")
    else:
        data = _nodes(node_table, ends, options, findings)
        if ends is not None and data.get("node_ids") is not None:
            _connect(data, edge_table, node_table, ends, findings)
    findings.require()
    _remark_no_names(data.node_ids, findings)
    data.preparation = findings.remarks
    return data


Ends = tuple[pa.ChunkedArray, pa.ChunkedArray]


def _ends(table: Table, options: TableOptions, findings: Findings) -> Ends | None:
    """Return the names of sources and targets of the edges."""
    unnamed = [name for name in table.columns if is_nameless(name) and name not in (options.source, options.target)]
    found = find_ends(table.without(set(unnamed)), options.source, options.target, findings)
    if found is None:
        return None
    left_out = [name for name in table.columns if name not in found]
    if left_out:
        findings.remarks.append(f"left out columns of the edge table: {listed(left_out)}")
    columns = [table.texts(name) for name in found]
    for name, column in zip(found, columns, strict=True):
        _refuse_missing(table, name, column, findings)
    return columns[0], columns[1]


def _refuse_missing(table: Table, name: str, texts: pa.ChunkedArray, findings: Findings) -> None:
    rows = np.flatnonzero(pc.equal(texts, "").to_numpy())
    if rows.size:
        findings.problems.append(
            f"{table.name}: `{name}` must be a node id in every row, got none in row {rows[0] + 1:,}"
            + (f" and {rows.size - 1:,} more" if rows.size > 1 else "")
            + ". Fill these, or remove the rows."
        )
    kind = table.columns[name].type
    if pa.types.is_floating(kind) and len(texts) and pc.any(pc.match_substring(texts, ".")).as_py():
        findings.problems.append(f"{table.name}: `{name}` must hold node ids, got numbers that are not whole.")


def _remark_no_names(node_ids: list[str], findings: Findings) -> None:
    """Say which ids read like no id, as missing ones do once they are written as texts, and are nodes all the same."""
    odd = [name for name in node_ids if name.casefold() in UNKNOWN]
    if odd:
        findings.remarks.append(f"ids that read like no id, taken as nodes of these names: {listed(odd)}")


def _first_mentions(sources: pa.ChunkedArray, targets: pa.ChunkedArray) -> tuple[list[str], Any]:
    """Return the nodes in the order in which edges name them, and the edges as pairs of their numbers."""
    number = len(sources)
    interleaved = np.arange(2 * number).reshape(2, number).T.reshape(-1)
    both = pa.concat_arrays([sources.combine_chunks(), targets.combine_chunks()]).take(pa.array(interleaved))
    encoded = pc.dictionary_encode(both)
    pairs = np.asarray(encoded.indices.to_numpy(), dtype=np.int64).reshape(number, 2).T
    return encoded.dictionary.to_pylist(), np.ascontiguousarray(pairs)


def _nodes(table: Table, ends: Ends | None, options: TableOptions, findings: Findings) -> GraphArrays:
    """Return everything but the edges; without ``node_ids`` if it is a problem where these are."""
    check_named(table, "drop", options.drop, findings)
    check_named(table, "one_hot", options.one_hot, findings)
    dropped = [name for name in options.drop if name in table.columns]
    kept = table.without(set(dropped))
    if dropped:
        findings.remarks.append(f"left out columns of the node table: {listed(dropped)}")
    if options.id is None or not is_nameless(options.id):
        kept = _nameless(kept, options, findings)
    taken = [name for name in (options.label, options.split_column, *options.one_hot, *MASKS) if name]
    id_column = find_id(kept, options.id, ends=ends or (), taken=taken, findings=findings)
    if id_column is None:
        return GraphArrays()
    node_ids = _ids(kept, id_column, findings)
    data = GraphArrays(num_nodes=len(node_ids))
    data.node_ids = node_ids
    label = find_label(kept, options.label, taken=[id_column, *taken], findings=findings)
    split = find_split(kept, options.split_column, taken=[id_column, *filter(None, [label])], findings=findings)
    chosen = [name for name in (id_column, label, split) if name]
    if len(set(chosen)) < len(chosen):
        findings.problems.append(
            f"ids, labels and split must be different columns of {table.name}, got {listed(chosen)}."
        )
    named = (options.label, options.split_column, *options.one_hot, *options.drop)
    if any(name and name not in table.columns for name in named):
        return data  # what else is wrong with columns may follow from a name that is none
    masks = masks_of_columns(kept, findings) if split is None else masks_of_column(kept, split, node_ids, findings)
    for name, mask in masks.items():
        data[name] = mask
    features = [name for name in kept.columns if name not in {*chosen, *MASKS}]
    used_twice = [name for name in options.one_hot if name in chosen]
    if used_twice:
        findings.problems.append(f"`one_hot` must name features, got {listed(used_twice)}, which hold something else.")
    x = features_of(kept, features, options, node_ids, findings)
    if x is not None:
        data.x = x
    _set_labels(data, kept, label, options, findings)
    return data


def _nameless(table: Table, options: TableOptions, findings: Findings) -> Table:
    """Leave out a nameless column; where it may hold the ids, because no other does, that must be said."""
    from graycert.data.tables.columns import plain

    nameless = [name for name in table.columns if is_nameless(name)]
    ids = [name for name in table.columns if plain(name).endswith("id") or plain(name) in ("node", "account", "user")]
    if nameless and options.id is None and not ids:
        findings.problems.append(
            f"{table.name} must say which column holds the names of the nodes: its first one has no name. Say it with "
            f"{option('id', nameless[0])}, or name another column."
        )
        return table.without(set(nameless))
    return leave_out_nameless(table, findings)


def _ids(table: Table, column: str, findings: Findings) -> list[str]:
    texts = table.texts(column)
    node_ids: list[str] = texts.to_pylist()
    if not node_ids:
        findings.problems.append(f"{table.name} must have at least one node, got an empty table.")
    _refuse_missing(table, column, texts, findings)
    counts = pc.value_counts(texts)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1)).to_pylist()
    repeated = [name for name in repeated if name]
    if repeated:
        first = repeated[0]
        rows = [row + 1 for row, name in enumerate(node_ids) if name == first][:2]
        findings.problems.append(
            f"{table.name} must list each node once, got the id {first!r} more than once (rows {rows[0]:,} and "
            f"{rows[1]:,}; {len(repeated):,} such ids in `{column}`). Remove repeated rows, or choose another column "
            f"with {option('id')}."
        )
    return node_ids


def _set_labels(data: GraphArrays, table: Table, label: str | None, options: TableOptions, findings: Findings) -> None:
    if label is None:
        if options.class_names:
            like = [name for name in table.columns if holds_only(table.texts(name), options.class_names)]
            findings.problems.append(
                "`class_names` needs labels, got no column that is called so. Say which column has them: "
                f"{option('label', like[0] if like else '...')}."
            )
        elif options.label is None:
            findings.remarks.append(f"no column has labels; if one does: {option('label', 'COLUMN')}")
        return
    labels = labels_of(table, label, options.class_names, findings)
    if labels is not None:
        data.y = labels.y
        if labels.class_names is not None:
            data.class_names = labels.class_names


def _connect(data: GraphArrays, edges: Table, nodes: Table, ends: Ends, findings: Findings) -> None:
    """Set the edges by the names of their ends, which must be nodes of the node table."""
    refuse_edge_as_header(edges, data.node_ids, findings)
    known = pa.array(data.node_ids, pa.string())
    places = [pc.index_in(column, value_set=known) for column in ends]
    missing = [np.flatnonzero(pc.is_null(place).to_numpy()) for place in places]
    rows = np.union1d(*missing)
    if rows.size:
        first = [int(row) for row in rows[:3]]
        values = [ends[0 if row in missing[0] else 1][row].as_py() for row in first]
        lacking = {*ends[0].take(pa.array(missing[0])).to_pylist(), *ends[1].take(pa.array(missing[1])).to_pylist()}
        findings.problems.append(
            f"{edges.name} must name only nodes of {nodes.name}, got {in_rows(values, first, None, rows.size)} "
            f"({len(lacking):,} such nodes). Add them, or check for leading zeros and other spellings; ids are in "
            f"{option('id')}."
        )
        return
    pairs = np.stack([np.asarray(place.to_numpy(), dtype=np.int64) for place in places])
    data.edge_index = pairs.reshape(2, len(ends[0]))
    named = np.zeros(data.num_nodes, dtype=np.bool_)
    named[pairs] = True
    alone = data.num_nodes - int(named.sum())
    if alone:
        findings.remarks.append(f"nodes that no edge names: {alone:,} of {data.num_nodes:,}")


def _refuse_foreign_options(options: TableOptions, findings: Findings) -> None:
    own = {"source", "target", "separator"}
    foreign = [name for name in options.stored() if name not in own]
    if foreign:
        findings.problems.append(
            f"`{foreign[0]}` belongs to a node table, got it without one. Pass the node table: {option('nodes')}."
        )
