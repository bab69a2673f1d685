"""Graphs by name: where they are looked for, how they are downloaded, and what is said when neither works."""

import gzip
import re
import subprocess
import sys
import types
import urllib.error
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch_geometric.datasets

from graycert.data import describe_datasets, load_graph
from graycert.errors import InvalidFileError, InvalidParameterError
from support.graphs import edge_set, path_graph

SIZES_AFTER_THE_PAPERS_PREPARATION = {
    "cora_ml": (2_810, 7_981, 142_286),
    "citeseer": (2_110, 3_668, 67_659),
}


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without cache folder, and no GRAYCERT_DATA."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("GRAYCERT_DATA", raising=False)
    return home


def write_graph(path: Path, *, weight: float = 0.25) -> None:
    """A triangle-free directed graph 0 -> 1 -> 2, 2 -> 2, and the lonely node 3."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        adj_data=np.ones(3),
        adj_indices=np.array([1, 2, 2]),
        adj_indptr=np.array([0, 1, 2, 3, 3]),
        adj_shape=np.array([4, 4]),
        attr_data=np.full(2, weight),
        attr_indices=np.array([0, 1]),
        attr_indptr=np.array([0, 1, 2, 2, 2]),
        attr_shape=np.array([4, 2]),
        labels=np.array([0, 1, 0, 1]),
    )


# --- real graphs
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SIZES_AFTER_THE_PAPERS_PREPARATION))
def test_the_papers_graphs_have_the_papers_sizes(data_root: Path, name: str) -> None:
    data = load_graph(name, data_root=data_root)
    num_nodes, num_edges, num_ones = SIZES_AFTER_THE_PAPERS_PREPARATION[name]
    assert data.num_nodes == num_nodes
    assert data.edge_index.size(1) == 2 * num_edges
    assert int(data.x.sum()) == num_ones
    assert set(data.x.unique().tolist()) == {0.0, 1.0}
    assert data.x.dtype == torch.float32
    assert len(data.node_ids) == num_nodes
    assert len(data.class_names) == int(data.y.max()) + 1
    assert data.graph_name == name


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["pubmed_structure", "pubmed_partial", "dblp", "amazon_electronics_photo"])
def test_the_catalogue_states_the_true_sizes(data_root: Path, name: str) -> None:
    (row,) = (row for row in describe_datasets(data_root) if row.name == name)
    data = load_graph(name, data_root=data_root)
    num_features = 0 if data.get("x") is None else data.x.size(1)
    found = (data.num_nodes, data.edge_index.size(1), num_features, int(data.y.max()) + 1)
    assert found == (row.num_nodes, 2 * row.num_edges, row.num_features, row.num_classes)
    assert (row.available, row.path) == ("file", data_root / f"{name}.npz")


@pytest.mark.parametrize(("name", "size"), [("texas", (183, 279, 1_703)), ("chameleon_filtered", (890, 8_854, 2_325))])
def test_other_files_under_the_data_root_have_names_too(data_root: Path, name: str, size: tuple[int, int, int]) -> None:
    data = load_graph(name, data_root=data_root)
    assert (data.num_nodes, data.edge_index.size(1), data.x.size(1)) == size
    assert data.graph_name == name


def test_cora_ml_can_stay_as_it_was_published(data_root: Path) -> None:
    options = dict.fromkeys(("undirected", "largest_component", "binarize"), False)
    data = load_graph("cora_ml", data_root=data_root, **options)
    assert (data.num_nodes, data.edge_index.size(1)) == (2_995, 8_416)
    assert data.preparation == [
        "edges without their reverse: 7,900 of 8,416; nodes that receive nothing: 1,249 of 2,995"
    ]
    assert 0 < float(data.x[data.x > 0].min()) < 0.02


# --- where named graphs are looked for
# ------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["cora_ml.npz", "cora_ml/raw/cora_ml.npz"])
def test_files_are_found_flat_or_as_pyg_lays_them(tmp_path: Path, place: str) -> None:
    write_graph(tmp_path / "root" / place)
    data = load_graph("cora_ml", data_root=tmp_path / "root")
    assert edge_set(data) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert data.node_ids == ["0", "1", "2"]
    assert set(data.x.flatten().tolist()) == {0.0, 1.0}
    assert data.graph_source == str(tmp_path / "root" / place)


def test_the_argument_comes_before_the_environment_and_that_before_the_cache(
    tmp_path: Path, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, environment, argument = empty_home / ".cache" / "graycert", tmp_path / "environment", tmp_path / "argument"
    environment.mkdir()
    write_graph(cache / "dblp.npz")
    assert load_graph("dblp").graph_source == str(cache / "dblp.npz")
    monkeypatch.setenv("GRAYCERT_DATA", str(environment))
    assert load_graph("dblp").graph_source == str(cache / "dblp.npz")
    write_graph(environment / "dblp.npz")
    assert load_graph("dblp").graph_source == str(environment / "dblp.npz")
    write_graph(argument / "dblp.npz")
    assert load_graph("dblp", data_root=argument).graph_source == str(argument / "dblp.npz")


def test_own_graphs_under_the_data_root_are_loaded_by_name_without_preparation(tmp_path: Path) -> None:
    write_graph(tmp_path / "my-graph.npz")
    data = load_graph("my-graph", data_root=tmp_path)
    assert edge_set(data) == {(0, 1), (1, 2), (2, 2)}
    assert data.num_nodes == 4
    (remark,) = data.preparation  # the loop at 2 aside, messages reach 1 and 2
    assert remark.startswith("no edge has its reverse (2 edges); nodes that receive nothing: 2 of 4; if edges go both")
    assert float(data.x.max()) == 0.25


def test_pubmed_is_read_from_pygs_processed_files(tmp_path: Path) -> None:
    graph = path_graph()
    for place in ("pubmed/processed/data_undirected.pt", "PubMed/processed/data.pt"):
        path = tmp_path / place.split("/")[0] / place
        path.parent.mkdir(parents=True)
        torch.save((graph.to_dict(), None, type(graph)), path)
        data = load_graph("pubmed", data_root=tmp_path / place.split("/")[0])
        assert edge_set(data) == {(0, 1), (1, 0), (1, 2), (2, 1)}
        assert data.x.tolist() == [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]


def test_a_damaged_named_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "citeseer.npz").write_bytes(b"PK\x03\x04 half a download")
    with pytest.raises(InvalidFileError, match=r"citeseer\.npz' must be a NumPy \.npz archive, but it is truncated"):
        load_graph("citeseer", data_root=tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CiteSeer", "got 'CiteSeer'. Did you mean 'citeseer'? `graycert datasets` lists the names"),
        ("ogbn_arxiv", "Did you mean 'ogbn-arxiv'?"),
        ("wordnet", "Did you mean 'wordnet_nouns'?"),
        ("mine-gone", "Did you mean 'mine_here'?"),
        ("zzz", "got 'zzz'. `graycert datasets` lists the names"),
    ],
)
def test_unknown_names_get_a_suggestion(tmp_path: Path, name: str, message: str) -> None:
    write_graph(tmp_path / "mine_here.npz")
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        load_graph(name, data_root=tmp_path)


def test_the_data_root_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidFileError, match="`data_root` must be an existing folder, got"):
        load_graph("cora_ml", data_root=tmp_path / "none")
    monkeypatch.setenv("GRAYCERT_DATA", str(tmp_path / "none"))
    with pytest.raises(InvalidFileError, match="`GRAYCERT_DATA` must be an existing folder, got"):
        describe_datasets()
    assert load_graph("wordnet_nouns").num_nodes == 9_668  # needs no folder


# --- downloads
# ------------------------------------------------------------------------------------------------


def citation_full(fetch: Callable[[Path, str], None]) -> Callable[..., None]:
    """A stand-in for CitationFull: like it, makes the raw folder before it fetches anything."""

    def construct(root: str, name: str) -> None:
        raw = Path(root) / name.lower() / "raw"
        raw.mkdir(parents=True)
        fetch(raw, name)

    return construct


def no_network(raw: Path, name: str) -> None:
    (raw / f"{name.lower()}.npz").write_bytes(b"the first half")
    raise urllib.error.URLError(OSError(-3, "Temporary failure in name resolution"))


class ClientConnectorDNSError(Exception):
    """As aiohttp raises; unlike URLError not an OSError in every version."""


def no_network_for_aiohttp(raw: Path, name: str) -> None:
    raise ClientConnectorDNSError("Cannot connect to host")


def answer(raw: Path, name: str) -> None:
    write_graph(raw / f"{name.lower()}.npz")


@pytest.mark.parametrize("name", ["cora_ml", "pubmed", "dblp"])
def test_a_download_goes_to_the_data_root_or_else_to_the_cache(
    tmp_path: Path, empty_home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(torch_geometric.datasets, "CitationFull", citation_full(answer))
    root = tmp_path / "root"
    root.mkdir()
    place = f"{name}/raw/{name}.npz"
    assert load_graph(name, data_root=root).graph_source == str(root / place)
    assert load_graph(name).graph_source == str(empty_home / ".cache" / "graycert" / place)
    monkeypatch.setattr(torch_geometric.datasets, "CitationFull", citation_full(no_network))
    assert load_graph(name, data_root=root).num_nodes == 3  # found, not downloaded again
    assert sorted(path.name for path in root.iterdir()) == [name]


@pytest.mark.parametrize("failure", [no_network, no_network_for_aiohttp])
def test_without_a_network_the_message_says_where_to_put_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Callable[[Path, str], None]
) -> None:
    monkeypatch.setattr(torch_geometric.datasets, "CitationFull", citation_full(failure))
    with pytest.raises(InvalidFileError) as caught:
        load_graph("cora_ml", data_root=tmp_path)
    message = str(caught.value)
    for part in (
        f"The graph 'cora_ml' is not in '{tmp_path}' or '",
        "(looked for cora_ml.npz, cora_ml/raw/cora_ml.npz)",
        "torch_geometric.datasets.CitationFull(root, 'Cora_ML') could not download it",
        "Error: ",
        f"and put it at '{tmp_path / 'cora_ml.npz'}'",
        "https://github.com/abojchevski/graph2gauss/raw/master/data/cora_ml.npz",
        "GRAYCERT_DATA or --data-root",
    ):
        assert part in message
    assert [path.name for path in tmp_path.iterdir()] == ["home"]  # nothing of the failed download is left


def test_a_graph_without_a_library_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load_graph("citeseer", data_root=tmp_path)
    message = str(caught.value)
    assert "no library downloads it. Get citeseer.npz from https://github.com/shchur/gnn-benchmark/" in message
    assert f"put it at '{tmp_path / 'citeseer.npz'}'" in str(caught.value)


# --- ogbn-arxiv
# -----------------------------------------------------------------------------------------------


def write_ogb(folder: Path) -> None:
    """Five papers: 0 -> 1 -> 2, 1 -> 0, 3 -> 3, 4 -> 2, in the layout that OGB downloads."""
    files = {
        "raw/edge": "0,1\n1,2\n1,0\n3,3\n4,2\n",
        "raw/node-feat": "".join(f"{i / 8},{-i / 4}\n" for i in range(5)),
        "raw/node-label": "4\n0\n39\n1\n2\n",
        "raw/node_year": "2007\n" * 5,
        "raw/num-node-list": "5\n",
        "raw/num-edge-list": "5\n",
        "split/time/train": "0\n3\n",
        "split/time/valid": "1\n",
        "split/time/test": "2\n4\n",
    }
    for name, text in files.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))


def test_ogbn_arxiv_is_read_from_ogbs_raw_files(tmp_path: Path) -> None:
    write_ogb(tmp_path / "ogbn_arxiv")
    data = load_graph("ogbn-arxiv", data_root=tmp_path)
    assert edge_set(data) == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 4), (4, 2)}
    assert data.num_nodes == 5
    assert data.x.tolist() == [[i / 8, -i / 4] for i in range(5)]  # not binarised
    assert data.y.tolist() == [4, 0, 39, 1, 2]
    assert data.train_mask.tolist() == [True, False, False, True, False]
    assert data.val_mask.tolist() == [False, True, False, False, False]
    assert data.test_mask.tolist() == [False, False, True, False, True]
    assert data.graph_name == "ogbn-arxiv"
    directed = load_graph("ogbn-arxiv", data_root=tmp_path, undirected=False, drop_self_loops=False)
    assert edge_set(directed) == {(0, 1), (1, 2), (1, 0), (3, 3), (4, 2)}
    assert load_graph(tmp_path / "ogbn_arxiv").edge_index.size(1) == 5  # as a path: left as it is


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("raw/edge", "0,1,2\n", "must have 2 columns, got 3"),
        ("raw/edge", "0,a\n", "must be a table of numbers as OGB publishes it"),
        ("raw/edge", "0,7\n", "must name nodes by numbers in [0, 4], as many as there are rows of features, got 7"),
        ("raw/node-label", "1\n2\n", "must have 5 rows, got 2"),
        ("raw/node-feat", "nan,1\n" * 5, "`data.x` must be finite, got nan at node 0, column 0"),
        ("raw/num-node-list", "", "must be a table of numbers as OGB publishes it"),
        ("split/time/test", "5\n", "must hold node numbers in [0, 4]"),
    ],
)
def test_damaged_ogb_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    write_ogb(tmp_path / "ogbn_arxiv")
    (tmp_path / "ogbn_arxiv" / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(InvalidFileError, match=re.escape(message)):
        load_graph("ogbn-arxiv", data_root=tmp_path)


def test_truncated_and_missing_ogb_files(tmp_path: Path) -> None:
    write_ogb(tmp_path / "ogbn_arxiv")
    path = tmp_path / "ogbn_arxiv" / "raw" / "node-feat.csv.gz"
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(InvalidFileError, match="is missing, truncated or another format"):
        load_graph("ogbn-arxiv", data_root=tmp_path)
    path.unlink()
    with pytest.raises(InvalidFileError, match="is missing, truncated or another format"):
        load_graph("ogbn-arxiv", data_root=tmp_path)


def fake_ogb(monkeypatch: pytest.MonkeyPatch, construct: Callable[..., None]) -> None:
    module = types.ModuleType("ogb.nodeproppred")
    module.NodePropPredDataset = construct  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ogb", types.ModuleType("ogb"))
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", module)


def test_ogb_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def construct(name: str, root: str) -> None:
        assert name == "ogbn-arxiv"
        sys.stdout.write("Downloading http://snap.stanford.edu/...\n")
        write_ogb(Path(root) / "ogbn_arxiv")

    fake_ogb(monkeypatch, construct)
    (tmp_path / "ogbn_arxiv").mkdir()  # left by an earlier attempt
    assert load_graph("ogbn-arxiv", data_root=tmp_path).num_nodes == 5
    assert (tmp_path / "ogbn_arxiv" / "split" / "time" / "train.csv.gz").is_file()
    assert capsys.readouterr().out == ""  # stdout is for results


def test_ogb_without_a_network_or_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def construct(name: str, root: str) -> None:
        raise urllib.error.URLError("Name or service not known")

    fake_ogb(monkeypatch, construct)
    with pytest.raises(InvalidFileError) as caught:
        load_graph("ogbn-arxiv", data_root=tmp_path)
    assert "ogb.nodeproppred.NodePropPredDataset('ogbn-arxiv', root) could not download it" in str(caught.value)
    assert f"so that its content is in '{tmp_path / 'ogbn_arxiv'}'" in str(caught.value)
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", None)
    with pytest.raises(InvalidFileError, match=re.escape("needs the package ogb: pip install 'graycert[ogb]'")):
        load_graph("ogbn-arxiv", data_root=tmp_path)


# --- the catalogue
# --------------------------------------------------------------------------------------------


def test_datasets_says_what_is_at_hand(tmp_path: Path) -> None:
    write_graph(tmp_path / "citeseer.npz")
    rows = {row.name: row for row in describe_datasets(tmp_path)}
    assert rows["citeseer"].available == "file"
    assert rows["citeseer"].path == tmp_path / "citeseer.npz"
    assert (rows["cora_ml"].available, rows["cora_ml"].path) == ("download", None)
    assert rows["dblp"].available == "download"
    assert rows["ms_academic_cs"].available == "absent"
    assert (rows["noisy_features"].available, rows["noisy_features"].path) == ("generated", None)
    assert rows["wordnet_nouns"].available == "embedded"
    assert rows["wordnet_nouns"].path is not None
    assert rows["wordnet_nouns"].path.is_file()
    assert all(row.source and row.licence and row.description for row in rows.values())


def test_the_catalogue_does_not_load_torch() -> None:
    code = "import sys, graycert.data as d; d.describe_datasets(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
