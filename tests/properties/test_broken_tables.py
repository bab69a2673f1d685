"""Tables permuted, renamed, indexed, cut and re-encoded: never another graph without a remark or a refusal."""

import csv
import io
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from graycert.data import load_graph
from graycert.errors import GraycertError

IDS = ("a", "007", "7", "ü", "x-1", "NA", "b c")
USUAL = ("features:", "classes are numbered")
"""Remarks on every table, which therefore warn of nothing."""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Rows of texts with a header, and how they are written."""

    edges: list[list[str]]
    nodes: list[list[str]]
    separator: str = ","
    encoding: str = "utf-8"
    newline: str = "\n"
    quoting: int = csv.QUOTE_MINIMAL
    after: Callable[[str], str] = str
    says_else: bool = False
    """Whether the tables say something else now, as they well may: another number, another class."""

    def write(self, folder: Path) -> tuple[Path, Path]:
        paths = folder / "edges.csv", folder / "nodes.csv"
        for path, rows in zip(paths, (self.edges, self.nodes), strict=True):
            stream = io.StringIO()
            kind: Any = {"delimiter": self.separator, "lineterminator": self.newline, "quoting": self.quoting}
            csv.writer(stream, **kind).writerows(rows)
            path.write_bytes(self.after(stream.getvalue()).encode(self.encoding))
        return paths


@st.composite
def clean_tables(draw: st.DrawFn) -> Tables:
    ids = draw(st.permutations(IDS))[: draw(st.integers(3, len(IDS)))]
    words = draw(st.sampled_from((("ok", "fraud"), ("0", "1"))))
    labels = [*words, *draw(st.lists(st.sampled_from(words), min_size=len(ids) - 2, max_size=len(ids) - 2))]
    number = st.integers(-50, 50).map(lambda value: str(value / 4))
    nodes = [
        ["id", "label", "f", "g"],
        *([each, label, draw(number), draw(number)] for each, label in zip(ids, labels, strict=True)),
    ]
    pairs = draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), min_size=1, max_size=8))
    return Tables(edges=[["source", "target"], *([s, t] for s, t in pairs)], nodes=nodes)


def in_nodes(change: Callable[[list[list[str]]], None]) -> Callable[[Tables], Tables]:
    def changed(tables: Tables) -> Tables:
        nodes = [list(row) for row in tables.nodes]
        change(nodes)
        return replace(tables, nodes=nodes)

    return changed


def in_edges(change: Callable[[list[list[str]]], None]) -> Callable[[Tables], Tables]:
    def changed(tables: Tables) -> Tables:
        edges = [list(row) for row in tables.edges]
        change(edges)
        return replace(tables, edges=edges)

    return changed


@st.composite
def breakages(draw: st.DrawFn) -> Callable[[Tables], Tables]:
    column, row = draw(st.integers(0, 9)), draw(st.integers(0, 99))
    side = draw(st.sampled_from((in_nodes, in_edges)))

    def saying_else(change: Callable[[Tables], Tables]) -> Callable[[Tables], Tables]:
        return lambda tables: replace(change(tables), says_else=True)

    def put(value: str) -> Callable[[Tables], Tables]:
        def change(rows: list[list[str]]) -> None:
            cells = rows[1 + row % (len(rows) - 1)] if len(rows) > 1 else rows[0]
            cells[column % len(cells)] = value

        return side(change)

    def every(value: Callable[[str, int], str]) -> Callable[[Tables], Tables]:
        def change(rows: list[list[str]]) -> None:
            place = column % len(rows[0])
            for number, cells in enumerate(rows[1:]):
                if place < len(cells):
                    cells[place] = value(cells[place], number)

        return side(change)

    def rename(name: str) -> Callable[[Tables], Tables]:
        return side(lambda rows: rows[0].__setitem__(column % len(rows[0]), name))

    def insert(name: str, value: Callable[[int], str], at: int) -> Callable[[Tables], Tables]:
        def change(rows: list[list[str]]) -> None:
            for number, cells in enumerate(rows):
                cells.insert(at, name if number == 0 else value(number - 1))

        return side(change)

    def permute(rows: list[list[str]]) -> None:
        order = sorted(range(len(rows[0])), key=lambda place: (place * (row + 1) + column) % 7)
        for number, cells in enumerate(rows):
            rows[number] = [cells[place] for place in order if place < len(cells)]

    def repeat(rows: list[list[str]]) -> None:
        rows.append(list(rows[1 + row % (len(rows) - 1)]) if len(rows) > 1 else list(rows[0]))

    def lengthen(rows: list[list[str]]) -> None:
        rows[row % len(rows)].append("1")

    def shorten(rows: list[list[str]]) -> None:
        rows[row % len(rows)].pop()

    names = ("y", "class", "target", "from", "to", "src", "dst", "node_id", "txId", "split", "verdict", "f", "", "3")
    return draw(
        st.sampled_from(
            (
                side(permute), side(repeat), side(lengthen), side(shorten),
                *(rename(name) for name in names),
                *(put(value) for value in ("", "nan", "?", "unknown", "None")),
                *(
                    saying_else(put(value))
                    for value in ("1e99", "inf", "1,5", "1.234,5", "True", "2020-01-31", "x\ny", "#1", " a ", "-1", "7",
                                  "16777217", "Rome", '"')
                ),
                saying_else(every(lambda value, number: str(number))),
                every(lambda value, number: value.replace(".", ",")),
                saying_else(every(lambda value, number: f"2020-01-{number + 10}")),
                saying_else(every(lambda value, number: str(number % 2 == 0))),
                every(lambda value, number: f"{value} "),
                saying_else(every(lambda value, number: value.upper())),
                saying_else(every(lambda value, number: f"{value}.0")),
                every(lambda value, number: ""),
                insert("", str, 0), insert("Unnamed: 0", str, 0), insert("edge_id", str, 0), insert("index", str, 0),
                insert("", lambda number: "", 9), saying_else(insert("weight", lambda number: str(number / 3), 1)),
                insert("", lambda number: f"n{number}", 0),
                *(lambda tables, s=s: replace(tables, separator=s) for s in (";", "\t", "|", " ")),
                *(lambda tables, e=e: replace(tables, encoding=e) for e in ("utf-8-sig", "utf-16", "latin-1")),
                lambda tables: replace(tables, newline="\r\n"),
                lambda tables: replace(tables, quoting=csv.QUOTE_ALL),
                lambda tables: replace(tables, after=lambda text: f"# by hand\n\n{text}\n\n"),
                lambda tables: replace(tables, after=lambda text: text.split("\n", 1)[-1]),
                lambda tables: replace(tables, after=lambda text: text[:-3], says_else=True),
                lambda tables: replace(tables, after=lambda text: text.replace("\n", "\n# so\n")),
            )
        )
    )  # fmt: skip


def meaning(data: Data) -> tuple[Any, ...]:
    """Return a graph by names: nodes, edges, labels, and what its features say, whatever they are called."""
    ids, names = data.node_ids, data.get("class_names")
    edges = frozenset((ids[s], ids[t]) for s, t in data.edge_index.t().tolist())
    y = data.get("y")
    labels = (
        {}
        if y is None
        else {ids[i]: (str(c) if names is None or c < 0 else names[c]) for i, c in enumerate(y.tolist())}
    )
    x = data.get("x")
    columns = [] if x is None else sorted(tuple(sorted(zip(ids, each, strict=True))) for each in x.t().tolist())
    return frozenset(ids), edges, labels, columns


@settings(max_examples=300, deadline=None)
@given(clean=clean_tables(), broken=st.lists(breakages(), min_size=1, max_size=3))
def test_never_another_graph_without_a_remark_or_a_refusal(
    clean: Tables, broken: list[Callable[[Tables], Tables]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        edges, nodes = clean.write(Path(folder))
        expected = load_graph(edges, nodes=nodes)
        tables = clean
        for change in broken:
            tables = change(tables)
        try:
            edges, nodes = tables.write(Path(folder))
        except (UnicodeEncodeError, csv.Error):
            return
        try:
            found = load_graph(edges, nodes=nodes)
        except GraycertError:
            return
        warned = [each for each in found.preparation if each not in expected.preparation and not each.startswith(USUAL)]
        assert warned or tables.says_else or meaning(found) == meaning(expected), (found.preparation, tables)
