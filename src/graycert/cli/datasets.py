"""`graycert datasets`: which graphs have a name, and which of them are at hand."""

from typing import Annotated

from cyclopts import Parameter

from graycert.cli.console import Console, table

_AT_HAND = {
    "embedded": "yes, embedded",
    "generated": "yes, generated",
    "file": "yes",
    "download": "when downloaded",
    "absent": "no",
}


def datasets(*, data_root: str | None = None, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """List the graphs that have a name: size, licence, where they come from, and whether they are at hand.

    Args:
        data_root: Folder with graph files; else GRAYCERT_DATA.
        json: Print one JSON object instead of text.
    """
    from dataclasses import asdict

    from graycert.data.catalogue import describe_datasets

    rows = describe_datasets(data_root)
    columns = ("name", "at hand", "nodes", "edges", "features", "classes")
    cells = [
        (
            row.name,
            _AT_HAND[row.available],
            f"{row.num_nodes:,}",
            f"{row.num_edges:,}",
            f"{row.num_features:,}",
            f"{row.num_classes}",
        )
        for row in rows
    ]
    lines = [table(columns, cells, left=2), "", "Edges are undirected ones, sizes those after preparation."]
    for row in rows:
        place = row.path or row.downloader or "put the file under the data root"
        lines += ["", f"{row.name}: {row.description}", f"  from     {row.source}", f"  licence  {row.licence}"]
        lines += (
            [f"  {'file' if row.path else 'get it':<7}  {place}"]
            if row.available not in ("embedded", "generated")
            else []
        )
    lines += [
        "",
        "Your own: `--graph PATH` (.npz, .pt, .csv, .tsv, .parquet), or NAME for NAME.npz under the data root.",
    ]
    records = [{**asdict(row), "path": None if row.path is None else str(row.path)} for row in rows]
    Console(as_json=json).result("\n".join(lines), {"command": "datasets", "datasets": records})
    return 0
