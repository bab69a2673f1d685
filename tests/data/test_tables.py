"""Tables as people have them: understood and said, or refused with the option that decides (CASES.md A4, A5, E)."""

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from torch_geometric.data import Data

import graycert
from graycert.data import load_graph
from graycert.errors import InvalidFileError, InvalidParameterError
from support.graphs import edge_set

EDGES = "source,target,weight\n007,b,1\nb,NA,2\n007,b,3\n"
NODES = "id,label,age,height\n007,spy,1,0.5\nb,,2,1e3\nNA,ant,-3,0\nlonely,spy,0,0\n"
RING = "source,target\na,b\nb,c\nc,d\nd,a\n"
FOUR = "id,label,f\na,ok,1\nb,fraud,2\nc,ok,5\nd,ok,4\n"


def write(folder: Path, edges: str = RING, nodes: str = FOUR) -> tuple[Path, Path]:
    (folder / "edges.csv").write_text(edges, encoding="utf-8")
    (folder / "nodes.csv").write_text(nodes, encoding="utf-8")
    return folder / "edges.csv", folder / "nodes.csv"


def load(folder: Path, edges: str = RING, nodes: str = FOUR, **options: Any) -> Data:
    paths = write(folder, edges, nodes)
    return load_graph(paths[0], nodes=paths[1], **options)


def refused(folder: Path, edges: str = RING, nodes: str = FOUR, **options: Any) -> str:
    with pytest.raises(InvalidFileError) as caught:
        load(folder, edges, nodes, **options)
    return str(caught.value)


def said(data: Data, *parts: str) -> None:
    text = "\n".join(data.preparation)
    for part in parts:
        assert part in text


# --- as before: ids are texts, and every format gives the same graph


def test_tables_keep_the_ids_as_texts(tmp_path: Path) -> None:
    data = load(tmp_path, EDGES, NODES)
    assert data.node_ids == ["007", "b", "NA", "lonely"]
    assert edge_set(data) == {(0, 1), (1, 2)}
    assert data.x.tolist() == [[1.0, 0.5], [2.0, 1000.0], [-3.0, 0.0], [0.0, 0.0]]
    assert data.class_names == ["ant", "spy"]
    assert data.y.tolist() == [1, -1, 0, 1]
    assert data.preparation == [
        "left out columns of the edge table: `weight`",
        "features: 2 (`age`, `height`)",
        "unknown labels: 1 of 4 (25%), written ''",
        "classes are numbered in alphabetical order: 0 = ant, 1 = spy",
        "nodes that no edge names: 1 of 4",
        "ids that read like no id, taken as nodes of these names: `NA`",
        "merged parallel edges: 1",
        "no edge has its reverse (2 edges); nodes that receive nothing: 2 of 4; if edges go both ways: undirected=True "
        "(--undirected)",
    ]
    paths = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    assert load_graph(paths[0], nodes=paths[1], coalesce=False).edge_index.size(1) == 3
    assert load_graph(paths[0], nodes=paths[1], largest_component=True).node_ids == ["007", "b", "NA"]


def test_every_format_and_frame_gives_the_same_graph(tmp_path: Path) -> None:
    expected = load(tmp_path, EDGES, NODES)
    ids = {"id": str, "label": str, "source": str, "target": str}
    frames = [pd.read_csv(tmp_path / f"{name}.csv", dtype=ids, keep_default_na=False) for name in ("edges", "nodes")]
    given: list[tuple[Any, Any]] = [(frames[0], frames[1]), tuple(pa.Table.from_pandas(frame) for frame in frames)]
    for frame, name in zip(frames, ("edges", "nodes"), strict=True):
        text = (tmp_path / f"{name}.csv").read_text()
        frame.to_parquet(tmp_path / f"{name}.parquet")
        frame.to_csv(tmp_path / f"{name}.tsv", sep="\t", index=False)
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
        for number, changed in enumerate(
            (text.replace(",", ";"), text.replace("\n", "\r\n"), f"# made by us\n\n{text}", text.replace(",", " | "))
        ):
            (tmp_path / f"{name}{number}.csv").write_bytes(changed.encode())
        (tmp_path / f"{name}4.csv").write_bytes(text.encode("utf-16"))
        (tmp_path / f"{name}5.csv").write_bytes(text.encode("utf-8-sig"))
    given += [
        (tmp_path / f"edges{end}", tmp_path / f"nodes{end}")
        for end in (".parquet", ".tsv", ".csv.gz", *(f"{number}.csv" for number in range(6)))
    ]
    for edges, nodes in given:
        data = load_graph(edges, nodes=nodes)
        for name in ("edge_index", "x", "y"):
            assert torch.equal(data[name], expected[name]), (edges, name)
        assert (data.node_ids, data.class_names) == (expected.node_ids, expected.class_names)


def test_numbers_as_ids_and_labels(tmp_path: Path) -> None:
    pd.DataFrame({"from": [10, 20], "to": [20, 30]}).to_parquet(tmp_path / "edges.parquet")
    table = pd.DataFrame({"node": [30, 20, 10], "label": [2.0, np.nan, 0.0], "f": [True, False, True]})
    table.to_parquet(tmp_path / "nodes.parquet")
    data = load_graph(tmp_path / "edges.parquet", nodes=tmp_path / "nodes.parquet")
    assert data.node_ids == ["30", "20", "10"]
    assert edge_set(data) == {(2, 1), (1, 0)}
    assert data.y.tolist() == [2, -1, 0]
    assert data.get("class_names") is None
    assert data.x.tolist() == [[1.0], [0.0], [1.0]]
    said(data, "edges run from `from` to `to`", "node ids are in `node`", "read true and false as 1 and 0: `f`")
    said(data, "no node has class 1", 'class_names="0,2" (--class-names 0,2)')


def test_an_edge_table_alone_gives_the_structure(tmp_path: Path) -> None:
    edges, _ = write(tmp_path, EDGES)
    data = load_graph(edges)
    assert data.node_ids == ["007", "b", "NA"]
    assert edge_set(data) == {(0, 1), (1, 2)}
    assert data.get("x") is None
    with pytest.raises(InvalidFileError, match="`label` belongs to a node table"):
        load_graph(edges, label="y")


def test_a_header_without_rows_is_a_graph_without_edges(tmp_path: Path) -> None:
    assert load(tmp_path, "source,target\n").edge_index.shape == (2, 0)
    with pytest.raises(InvalidFileError, match="must name at least one node"):
        load_graph(tmp_path / "edges.csv")


# --- A4: an undirected graph stored once per edge


def test_edges_without_their_reverse_are_told_in_numbers(tmp_path: Path) -> None:
    edges = "source,target\na,b\na,c\na,d\n"
    data = load(tmp_path, edges)
    said(
        data, "no edge has its reverse (3 edges); nodes that receive nothing: 1 of 4", "undirected=True (--undirected)"
    )
    both = load(tmp_path, edges, undirected=True)
    assert both.edge_index.size(1) == 6
    assert not any("reverse" in remark for remark in both.preparation)
    asked = load(tmp_path, edges, undirected=False)
    said(asked, "no edge has its reverse")
    assert "--undirected" not in "".join(asked.preparation)
    some = load(tmp_path, f"{edges}b,a\n")
    said(some, "edges without their reverse: 2 of 4; if edges go both ways")
    all_of_them = load(tmp_path, f"{edges}b,a\nc,a\nd,a\n")
    assert not any("reverse" in remark for remark in all_of_them.preparation)


# --- A5: the numbering of classes


def test_classes_are_numbered_as_said(tmp_path: Path) -> None:
    alphabetical = load(tmp_path)
    assert (alphabetical.class_names, alphabetical.y.tolist()) == (["fraud", "ok"], [1, 0, 1, 1])
    said(alphabetical, "classes are numbered in alphabetical order: 0 = fraud, 1 = ok")
    for names in ("ok,fraud", ["ok", "fraud"], ("ok", "fraud")):
        data = load(tmp_path, class_names=names)
        assert (data.class_names, data.y.tolist()) == (["ok", "fraud"], [0, 1, 0, 0])
        said(data, "classes are numbered as class_names says: 0 = ok, 1 = fraud")
    more = load(tmp_path, class_names="ok,fraud,unsure")
    said(more, "no node is `unsure`")
    assert "got ok, suspect without `fraud`" in refused(tmp_path, class_names="ok,suspect")
    with pytest.raises(InvalidParameterError, match="`class_names` must not repeat a name, got 'ok'"):
        load(tmp_path, class_names="ok,fraud,ok")


def test_class_names_tell_the_column_that_may_hold_the_labels(tmp_path: Path) -> None:
    nodes = "id,city,verdict,f\na,Rome,ok,1\nb,Oslo,fraud,2\nc,Rome,?,5\nd,Oslo,ok,4\n"
    message = refused(tmp_path, nodes=nodes, class_names="ok,fraud", drop="city")
    assert 'got no column that is called so. Say which column has them: label="verdict" (--label verdict)' in message
    assert load(tmp_path, nodes=nodes, class_names="ok,fraud", drop="city", label="verdict").y.tolist() == [0, 1, -1, 0]
    assert 'label="..." (--label ...)' in refused(tmp_path, nodes=nodes, class_names="good,bad")


def test_class_names_name_numbers_too(tmp_path: Path) -> None:
    nodes = "id,label,f\na,0,1\nb,1,2\nc,0,5\nd,0,4\n"
    data = load(tmp_path, nodes=nodes, class_names="ok,fraud")
    assert (data.class_names, data.y.tolist()) == (["ok", "fraud"], [0, 1, 0, 0])
    turned = load(tmp_path, nodes=nodes, class_names="1,0")
    assert (turned.class_names, turned.y.tolist()) == (["1", "0"], [1, 0, 1, 1])
    assert "without `1`" in refused(tmp_path, nodes=nodes, class_names="ok")
    assert "without `1`" in refused(tmp_path, nodes=nodes, class_names="0,2")


# --- E1: unknown labels


@pytest.mark.parametrize("word", ["nan", "None", "NULL", "unknown", "?", "-1", "NA"])
def test_ids_that_read_like_no_id_are_nodes_and_said(tmp_path: Path, word: str) -> None:
    (tmp_path / "e.csv").write_text(f"source,target\na,{word}\nb,{word}\n", encoding="utf-8")
    (tmp_path / "n.csv").write_text(f"id,f\na,1\nb,2\n{word},3\n", encoding="utf-8")
    for data in (load_graph(tmp_path / "e.csv"), load_graph(tmp_path / "e.csv", nodes=tmp_path / "n.csv")):
        assert set(data.node_ids) == {"a", "b", word}
        assert f"ids that read like no id, taken as nodes of these names: `{word}`" in data.preparation


@pytest.mark.parametrize(
    "word", ["unknown", "Unknown", "unlabeled", "missing", "NaN", "nan", "None", "null", "?", "-1", "", "NA", "-"]
)
@pytest.mark.parametrize("others", [("spam", "ham"), ("1", "0")])
def test_unknown_labels_are_no_class(tmp_path: Path, word: str, others: tuple[str, str]) -> None:
    nodes = f"id,label,f\na,{others[0]},1\nb,{word},2\nc,{others[1]},5\nd,{word},4\n"
    data = load(tmp_path, nodes=nodes)
    assert data.y.tolist() == [1, -1, 0, -1]
    assert data.get("class_names") == (["ham", "spam"] if others[0] == "spam" else None)
    said(data, f"unknown labels: 2 of 4 (50%), written {word!r}")


def test_an_unknown_word_that_is_named_is_a_class(tmp_path: Path) -> None:
    nodes = "id,label,f\na,unknown,1\nb,x,2\nc,x,5\nd,,4\n"
    data = load(tmp_path, nodes=nodes, class_names="unknown,x")
    assert data.y.tolist() == [0, 1, 1, -1]


def test_unknown_as_in_elliptic(tmp_path: Path) -> None:
    data = load(tmp_path, nodes="txId,class,f\na,unknown,1\nb,1,2\nc,2,5\nd,unknown,4\n")
    assert data.y.tolist() == [-1, 1, 2, -1]
    said(data, "classes are numbered as written: 1, 2; no node has class 0", "--class-names 1,2")


# --- E2: label columns of other names


@pytest.mark.parametrize("name", ["y", "class", "target", "is_fraud", "Label", "isFraud"])
def test_label_columns_are_recognised_and_never_features(tmp_path: Path, name: str) -> None:
    nodes = f"txId,{name},f1,f2\na,0,1,2\nb,1,2,0\nc,0,5,0\nd,0,4,0\n"
    data = load(tmp_path, nodes=nodes)
    assert data.y.tolist() == [0, 1, 0, 0]
    assert data.x.tolist() == [[1, 2], [2, 0], [5, 0], [4, 0]]
    said(data, f"labels are in `{name}`", "node ids are in `txId`", "features: 2 (`f1`, `f2`)")


def test_which_column_has_the_labels(tmp_path: Path) -> None:
    nodes = "id,y,label,f\na,1,0,1\nb,2,1,0\nc,0,1,5\nd,0,1,4\n"
    message = refused(tmp_path, nodes=nodes)
    assert "must have one column of labels, got `y`, `label`" in message
    assert "--label y" in message
    assert "--drop label" in message
    data = load(tmp_path, nodes=nodes, label="label")
    assert data.x.tolist() == [[1, 1], [2, 0], [0, 5], [0, 4]]
    said(data, "features: 2 (`y`, `f`)")
    none = load(tmp_path, nodes=nodes, label="")
    assert none.get("y") is None
    assert none.x.size(1) == 3
    other = "id,verdict,f\na,ok,1\nb,bad,0\nc,ok,5\nd,ok,4\n"
    assert "the feature `verdict` of" in refused(tmp_path, nodes=other)
    assert load(tmp_path, nodes=other, label="verdict").class_names == ["bad", "ok"]
    assert "Did you mean 'verdict'?" in refused(tmp_path, nodes=other, label="verdicts")


def test_what_cannot_be_a_label(tmp_path: Path) -> None:
    many = "id,label,f\n" + "".join(f"n{i},name{i},1\n" for i in range(30))
    assert "30 different texts in 30 rows" in refused(tmp_path, "source,target\nn1,n2\n", many)
    rates = "id,label,f\na,0.5,1\nb,1.5,2\nc,0,5\nd,1,4\n"
    assert "numbers that are not whole, such as '0.5'" in refused(tmp_path, nodes=rates)
    commas = 'id,label,f\na,"1,0",1\nb,"2,0",2\nc,"1,0",5\nd,"2,0",4\n'
    assert "numbers that are not whole, such as '1,0'" in refused(tmp_path, nodes=commas)
    assert "which differ in capitals only" in refused(tmp_path, nodes=FOUR.replace("c,ok", "c,OK"))
    codes = "id,label,f\na,4711,1\nb,0,2\nc,1,5\nd,1,4\n"
    assert "must hold class numbers in [0, 999], got 4711" in refused(tmp_path, nodes=codes)
    assert load(tmp_path, nodes=codes, class_names="0,1,4711").y.tolist() == [2, 0, 1, 1]


# --- E3: the index of a data frame


def test_a_nameless_index_is_left_out(tmp_path: Path) -> None:
    nodes = ",id,label,f\n0,a,ok,1\n1,b,fraud,2\n2,c,ok,5\n3,d,ok,4\n"
    data = load(tmp_path, nodes=nodes)
    assert data.x.tolist() == [[1], [2], [5], [4]]
    said(data, "left out the nameless column of the node table, which counts the rows")
    also = load(tmp_path, ",source,target\n0,a,b\n1,b,c\n", nodes.replace(",id", "Unnamed: 0,id"))
    assert edge_set(also) == {(0, 1), (1, 2)}
    assert also.x.size(1) == 1


def test_a_nameless_column_that_is_no_index_is_asked_for(tmp_path: Path) -> None:
    nodes = ",id,label,f\n7,a,ok,1\n1,b,fraud,2\n2,c,ok,5\n3,d,ok,4\n"
    assert "must name its columns, got one without a name (`Unnamed: 0`)" in refused(tmp_path, nodes=nodes)
    assert load(tmp_path, nodes=nodes, drop="Unnamed: 0").x.size(1) == 1
    ids = ",label,f\na,ok,1\nb,fraud,2\nc,ok,5\nd,ok,4\n"
    assert "--id 'Unnamed: 0'" in refused(tmp_path, nodes=ids)
    assert load(tmp_path, nodes=ids, id="Unnamed: 0").node_ids == ["a", "b", "c", "d"]


def test_a_named_counter_is_a_feature_with_a_remark(tmp_path: Path) -> None:
    nodes = "id,row,label,f\na,1,ok,1\nb,2,fraud,2\nc,3,ok,5\nd,4,ok,4\n"
    said(load(tmp_path, nodes=nodes), "`row` only counts the rows and is a feature all the same", "--drop row")
    assert load(tmp_path, nodes=nodes, drop="row").x.size(1) == 1


def test_frames_with_an_index(tmp_path: Path) -> None:
    edges = pd.DataFrame({"source": ["a"], "target": ["b"]})
    named = pd.DataFrame({"f": [1.0, 2.0]}, index=pd.Index(["a", "b"], name="id"))
    assert load_graph(edges, nodes=named).node_ids == ["a", "b"]
    shuffled = pd.DataFrame({"id": ["a", "b"], "f": [1.0, 2.0]}, index=[5, 3])
    said(load_graph(edges, nodes=shuffled), "left out the nameless index of a data frame")


# --- E4: edge tables of other shapes


@pytest.mark.parametrize(
    "edges",
    [
        "edge_id,from,to\n0,a,b\n1,b,c\n2,c,d\n3,d,a\n",
        "weight,source_id,target_id\n5,a,b\n5,b,c\n6,c,d\n5,d,a\n",
        "# payments of 2024\n#\nsrc,dst\na,b\nb,c\nc,d\nd,a\n",
        "payer\tpayee\na\tb\nb\tc\nc\td\nd\ta\n",
        "source target\na b\nb  c\nc d\nd   a\n",
        "sender;receiver;amount\na;b;1,5\nb;c;2,5\nc;d;1,5\nd;a;0,5\n",
        "source,target\na ,b\nb, c\nc,d\t\nd,a\n",
        "txId1,txId2\na,b\nb,c\nc,d\nd,a\n",
        "source,target\na,b\n# half of them\nb,c\n\nc,d\n,\nd,a\n",
        'sep=;\n"source";"target"\n"a";"b"\n"b";"c"\n"c";"d"\n"d";"a"\n',
        "account,counterparty\na,b\nb,c\nc,d\nd,a\n",
        "Source,Target,Weight\na,b,1\nb,c,1\nc,d,1\nd,a,1\n",
        "target,source\nb,a\nc,b\nd,c\na,d\n",
    ],
)
def test_edge_tables_that_are_understood(tmp_path: Path, edges: str) -> None:
    data = load(tmp_path, edges)
    assert edge_set(data) == {(0, 1), (1, 2), (2, 3), (3, 0)}
    assert data.num_nodes == 4


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("edge_id,from\n0,a\n1,b\n2,a\n3,d\n", "must say which columns hold the two ends of an edge"),
        ("edge_id,x1,x2\n0,a,b\n1,b,c\n", "--source"),
        ("child,parent\nb,a\nc,a\nd,a\n", "must say which columns hold the two ends"),
        ("alice,bob\nbob,carol\ncarol,alice\n", "must say which columns hold the two ends"),
        ("from,to,src,dst\na,b,a,b\n", "got `from`, `to`, `src`, `dst`"),
        ("a\nb\n", "must say which columns hold the two ends of an edge, got `a`"),
        ("0,1\n1,2\n", "must have a header row, got 0, 1"),
        ("# source target\n0 1\n1 2\n", "must have a header row, got 0, 1"),
        ("", "it is empty"),
        ("# nothing\n", "no line but comments and blanks"),
        ("source,target\na,b,c,d\n", "must have 2 values in every line, as in its header, got 4 in 'a,b,c,d'"),
        ("source,target\na\n", "must have 2 values in every line, as in its header, got 1 in 'a'"),
        ("source;x,target;y\na;1,b;2\n", "could be separated by a comma or a semicolon"),
        ("source,target,source\na,b,c\n", "must name each column once, got `source`"),
        ("source,target\nb,nobody\n", "must name only nodes of"),
        ("source,target\nb,nobody\n", "got 'nobody' in row 1"),
        ("source,target\nb,\nb,a\n", "`target` must be a node id in every row, got none in row 1"),
    ],
)
def test_edge_tables_that_are_refused(tmp_path: Path, edges: str, message: str) -> None:
    found = refused(tmp_path, edges)
    assert message in found
    assert str(tmp_path) in found


def test_options_decide_what_is_refused(tmp_path: Path) -> None:
    data = load(tmp_path, "edge_id,x1,x2\n0,a,b\n1,b,c\n", source="x1", target="x2")
    assert edge_set(data) == {(0, 1), (1, 2)}
    assert edge_set(load(tmp_path, "child,parent\nb,a\nc,a\nd,a\n", source="parent", target="child")) == {
        (0, 1), (0, 2), (0, 3),
    }  # fmt: skip
    two = load(tmp_path, "from,to,src,dst\na,b,c,d\n", source="src", target="dst")
    assert edge_set(two) == {(2, 3)}
    named = load_graph(write(tmp_path, "source;x,target;y\na;1,b;2\n")[0], separator="comma", source="source;x")
    assert named.node_ids == ["a;1", "b;2"]
    assert "must be two columns" in refused(tmp_path, source="source", target="source")
    assert "`source` must name a column" in refused(tmp_path, source="payer")
    with pytest.raises(InvalidParameterError, match="`separator` must be one of comma"):
        load(tmp_path, separator="ab")


@pytest.mark.parametrize("said", [{}, {"source": "a", "target": "d"}])
def test_a_first_edge_is_no_header(tmp_path: Path, said: dict[str, str]) -> None:
    """Nodes that occur in the first line alone look like names of columns."""
    assert "must have a header row, got the names of nodes" in refused(tmp_path, "a,d\nb,c\nc,b\n", **said)
    assert "`a`, `d`" in refused(tmp_path, "a,d,5\nb,c,6\nc,b,7\n", **{"source": "a", "target": "d"})


def test_columns_may_be_called_as_nodes_are(tmp_path: Path) -> None:
    words = write(tmp_path, "source,target\nsource,river\nriver,target\n", "id,f\nsource,1\nriver,2\ntarget,4\n")
    assert edge_set(load_graph(words[0], nodes=words[1])) == {(0, 1), (1, 2)}
    numbered = pd.DataFrame([[2, 0], [0, 1], [1, 2]])  # columns 0 and 1
    found = load_graph(numbered, nodes=pd.DataFrame({"id": [0, 1, 2], "f": [0.5, 1.5, 1.0]}), source="0", target="1")
    assert edge_set(found) == {(2, 0), (0, 1), (1, 2)}


def test_trailing_blanks_in_ids_are_said(tmp_path: Path) -> None:
    said(load(tmp_path, "source,target\na ,b\nb,c\n"), "removed blanks around values of the edge table: `source`")
    assert "must list each node once, got the id 'a' more than once" in refused(tmp_path, nodes=f"{FOUR}a ,ok,3\n")


# --- E5: classes written 1 and 2


def test_classes_from_one(tmp_path: Path) -> None:
    nodes = "id,label,f\na,1,1\nb,2,2\nc,1,5\nd,1,4\n"
    data = load(tmp_path, nodes=nodes)
    assert data.y.tolist() == [1, 2, 1, 1]
    said(
        data, "classes are numbered as written: 1, 2; no node has class 0. If the model has 2 outputs, name the classes"
    )
    assert load(tmp_path, nodes=nodes, class_names="1,2").y.tolist() == [0, 1, 0, 0]
    assert load(tmp_path, nodes=nodes.replace(",1,", ",1.0,").replace(",2,", ",2.0,")).y.tolist()[0] == 1


# --- E6: columns that hold no numbers, all of them in one message


def test_all_problems_are_in_one_message(tmp_path: Path) -> None:
    nodes = (
        "id,label,city,income,since,height,vip,huge\n"
        'a,ok,Rome,,2020-01-31,"1,5",True,1\n'
        'b,fraud,Oslo,3,2021-02-28,"2,5",False,1e99\n'
        'c,ok,Rome,5,2020-01-31,"1,5",False,2\n'
        'd,ok,Bonn,7,2020-01-31,"1,5",False,3\n'
    )
    message = refused(tmp_path, f"{RING}a,zed\n", nodes)
    assert message.startswith("6 problems:")
    for part in (
        "- the feature `city` of",
        "got 'Rome' in row 1 (node 'a'), 'Oslo' in row 2 (node 'b'), 'Rome' in row 3 (node 'c') and 1 more",
        'Make one feature of each of its 3 values with one_hot="city" (--one-hot city)',
        "`income` of",
        "(--fill median)",
        "`since` of",
        "Write dates as numbers",
        "`height` of",
        "Write a point, not a comma, before decimals",
        "`huge` of",
        "Features are at most 3.4e38",
        "must name only nodes of",
    ):
        assert part in message
    data = load(tmp_path, RING, nodes, one_hot="city", fill="median", drop=["since", "height", "huge"])
    assert data.x.tolist() == [[0, 0, 1, 5, 1], [0, 1, 0, 3, 0], [0, 0, 1, 5, 0], [1, 0, 0, 7, 0]]
    said(data, "made `city` into 3 features", "filled gaps (median): 1 in `income` by 5", "as 1 and 0: `vip`")
    said(data, "left out columns of the node table: `since`, `height`, `huge`")
    assert load(tmp_path, RING, nodes, one_hot="city", fill="zero", drop="since,height,huge").x[0, 3] == 0


def test_a_name_that_is_none_is_the_only_problem(tmp_path: Path) -> None:
    nodes = "id,verdict,city\na,ok,Bonn\nb,ok,Rome\nc,no,Bonn\nd,no,Rome\n"
    for options in ({"label": "verdikt"}, {"split_column": "part"}, {"drop": "citi"}, {"one_hot": "citi"}):
        message = refused(tmp_path, nodes=nodes, **options)
        assert "must name a column of" in message
        assert "finite number" not in message


def test_features_of_very_different_size_are_told(tmp_path: Path) -> None:
    plain = load(tmp_path, nodes="id,label,share,days\na,x,0.1,100\nb,y,0.2,200\nc,x,0.3,300\nd,y,0.4,400\n")
    assert not any("differ in scale" in remark for remark in plain.preparation)
    data = load(tmp_path, nodes="id,label,share,amount\na,x,0.1,1000\nb,y,0.2,2000\nc,x,0.3,3000\nd,y,0.4,4000\n")
    said(data, "features differ in scale: `amount` varies by 1.12e+03, `share` by 0.112")


def test_without_labels_the_option_that_names_them_is_said(tmp_path: Path) -> None:
    data = load(tmp_path, nodes="id,f\na,1\nb,2\nc,3\nd,4\n")
    said(data, 'no column has labels; if one does: label="COLUMN" (--label COLUMN)')
    with pytest.raises(InvalidParameterError, match="--label COLUMN"):
        graycert.build_model("gcn", data)


def test_gaps_of_all_kinds(tmp_path: Path) -> None:
    for gap in ("", "nan", "NA", "null", "None", "?"):
        nodes = FOUR.replace("a,ok,1", f"a,ok,{gap}")
        assert f"got {gap!r} in row 1 (node 'a'). Fill gaps with" in refused(tmp_path, nodes=nodes)
        assert load(tmp_path, nodes=nodes, fill="median").x.tolist() == [[4], [2], [5], [4]]
    with pytest.raises(InvalidParameterError, match="`fill` must be one of 'median', 'zero'"):
        load(tmp_path, fill="mean")


def test_options_are_never_applied_to_what_is_not_named(tmp_path: Path) -> None:
    nodes = "id,label,city,job\na,ok,Rome,x\nb,ok,Oslo,y\nc,ok,Rome,x\nd,fraud,Rome,x\n"
    message = refused(tmp_path, nodes=nodes, one_hot="city", fill="zero")
    assert "`job`" in message
    assert "`city`" not in message
    assert "must name a column" in refused(tmp_path, one_hot="town")
    assert "must name a column" in refused(tmp_path, drop="town")


def test_numbers_that_do_not_fit_are_said(tmp_path: Path) -> None:
    nodes = "id,label,phone,tiny\na,ok,16777217,1e-60\nb,ok,16777216,1\nc,ok,3,1\nd,fraud,4,1\n"
    said(load(tmp_path, nodes=nodes), "rounded numbers that 32 bits cannot tell apart: `phone`, `tiny`")


def test_lists_of_numbers_are_features() -> None:
    edges = pd.DataFrame({"source": ["a"], "target": ["b"]})
    nodes = pd.DataFrame({"id": ["a", "b"], "embedding": [[1.0, 2.0], [3.0, 4.0]]})
    assert load_graph(edges, nodes=nodes).x.tolist() == [[1, 2], [3, 4]]
    nodes["embedding"] = [[1.0], [2.0, 3.0]]
    with pytest.raises(InvalidFileError, match="must hold lists of equally many finite numbers"):
        load_graph(edges, nodes=nodes)


# --- E7: own splits


def test_a_split_column_becomes_masks(tmp_path: Path) -> None:
    nodes = "id,label,split,f\na,ok,train,1\nb,fraud,val,2\nc,ok,Test,5\nd,ok,,4\n"
    data = load(tmp_path, nodes=nodes)
    assert data.train_mask.tolist() == [True, False, False, False]
    assert data.val_mask.tolist() == [False, True, False, False]
    assert data.test_mask.tolist() == [False, False, True, False]
    said(data, "the split is that of `split`: 1 training, 1 validation, 1 test")
    renamed = nodes.replace("split", "part")
    assert "the feature `part` of" in refused(tmp_path, nodes=renamed)
    assert load(tmp_path, nodes=renamed, split_column="part").test_mask.sum() == 1
    odd = renamed.replace("Test", "holdout")
    assert "must say train, validation or test, got 'holdout' in row 3 (node 'c')" in refused(
        tmp_path, nodes=odd, split_column="part"
    )
    assert load(tmp_path, nodes=nodes, split_column="", one_hot="split").get("train_mask") is None


def test_columns_called_as_pyg_calls_masks(tmp_path: Path) -> None:
    nodes = "id,label,train_mask,test_mask,f\na,ok,True,False,1\nb,fraud,1,0,2\nc,ok,False,True,5\nd,ok,0,0,4\n"
    data = load(tmp_path, nodes=nodes)
    assert data.train_mask.tolist() == [True, True, False, False]
    assert data.x.size(1) == 1
    assert "must be true or false in every row" in refused(tmp_path, nodes=nodes.replace("b,fraud,1", "b,fraud,2"))


# --- ids


def test_the_id_column_is_found_by_the_edges_or_asked_for(tmp_path: Path) -> None:
    nodes = "score,name,label\n3,a,ok\n5,b,ok\n1,c,fraud\n2,d,ok\n"
    data = load(tmp_path, nodes=nodes)
    assert data.node_ids == ["a", "b", "c", "d"]
    said(data, "node ids are in `name`, the only column that names every node of the edges")
    twice = "name,other,label\na,a,ok\nb,b,ok\nc,c,fraud\nd,d,ok\n"
    assert "must say which column holds the names of the nodes" in refused(tmp_path, nodes=twice)
    assert "got `node`, `account`" in refused(tmp_path, nodes="node,account,label\na,b,ok\nb,a,ok\nc,d,ok\nd,c,no\n")
    data = load(tmp_path, nodes="node,account,label\na,7,ok\nb,8,ok\nc,9,ok\nd,1,no\n", id="node")
    assert data.x.tolist() == [[7], [8], [9], [1]]
    said(data, "features: 1 (`account`)")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("id,f\na,1\nb,2\na,3\n", "must list each node once, got the id 'a' more than once (rows 1 and 3"),
        ("id,f\na,1\n,2\n", "`id` must be a node id in every row, got none in row 2"),
        ("id,f\n", "must have at least one node, got an empty table"),
        ("1,2\n3,4\n", "must have a header row, got 1, 2"),
        ("", "it is empty"),
    ],
)
def test_node_tables_that_are_refused(tmp_path: Path, nodes: str, message: str) -> None:
    assert message in refused(tmp_path, nodes=nodes)


# --- damaged and foreign


def test_damaged_tables(tmp_path: Path) -> None:
    _, nodes = write(tmp_path)
    for name, content in (
        ("edges.parquet", b"PAR1 and then nothing"),
        ("edges.csv", b"source,target\n\xff\xfe\x00,b\n"),
        ("edges.csv", "source,target\nMüller,b\n".encode("latin-1")),
        ("edges.csv.gz", gzip.compress(EDGES.encode())[:30]),
        ("edges.csv.gz", b"no gzip"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidFileError, match="but it cannot be read"):
            load_graph(tmp_path / name, nodes=nodes)


def test_a_quotation_mark_that_is_never_closed_is_said(tmp_path: Path) -> None:
    edges, _ = write(tmp_path, 'source,target,note\na,b,"x\nb,c,y"\nc,d,z\n')
    assert any("line breaks within 1 quoted values" in remark for remark in load_graph(edges).preparation)


def test_nodes_and_options_belong_to_tables(tmp_path: Path) -> None:
    edges, nodes = write(tmp_path)
    with pytest.raises(InvalidFileError, match="must be an existing node table"):
        load_graph(edges, nodes=tmp_path / "none.csv")
    with pytest.raises(InvalidFileError, match="must be a table"):
        load_graph(edges, nodes=tmp_path / "nodes.txt")
    with pytest.raises(InvalidParameterError, match="`nodes` must be a path or a data frame, got int"):
        load_graph(edges, nodes=3)
    np.savez(tmp_path / "graph.npz", A=np.array([[0], [1]]), y=np.array([0, 1]))
    with pytest.raises(InvalidParameterError, match="`nodes` belongs to an edge table"):
        load_graph(tmp_path / "graph.npz", nodes=nodes)
    with pytest.raises(InvalidParameterError, match=re.escape("`label` says something of tables, but `graph` is '")):
        load_graph(tmp_path / "graph.npz", label="y")
