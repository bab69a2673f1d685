"""Graphs in files of every format, and what is said about files that are none."""

import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import FakeDataset
from torch_geometric.io import read_npz

from graycert.data import load_graph
from graycert.errors import InvalidFileError, InvalidParameterError
from support.graphs import edge_set, path_graph

CSR = {
    "adj_data": np.ones(3, np.uint8),
    "adj_indices": np.array([1, 2, 0], np.int16),
    "adj_indptr": np.array([0, 2, 2, 3], np.int32),
    "adj_shape": np.array([3, 3]),
    "attr_data": np.array([0.5, 2.0], np.float32),
    "attr_indices": np.array([0, 1], np.int32),
    "attr_indptr": np.array([0, 1, 2, 2], np.int32),
    "attr_shape": np.array([3, 2]),
    "labels": np.array([0, 1, 0], np.int8),
}
PAIRS = {
    "A": np.array([[0, 0, 2, 2], [1, 2, 0, 0]]),
    "X": np.array([[0, 0, 2], [0, 4, 1]]),
    "y": np.array([0, 1, -1]),
}


def write_npz(folder: Path, arrays: dict[str, np.ndarray], **changes: object) -> Path:
    content = {name: array for name, array in {**arrays, **changes}.items() if array is not None}
    np.savez_compressed(folder / "graph.npz", **content)
    return folder / "graph.npz"


class RunsCode:
    """Unpickling this writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


# --- .npz
# -----------------------------------------------------------------------------------------------------


def test_the_keys_of_read_npz(tmp_path: Path) -> None:
    path = write_npz(tmp_path, CSR, node_names=np.array(["a", "b\n", "c"]), class_names=np.array(["p", "q"]))
    data = load_graph(path)
    assert edge_set(data) == {(0, 1), (0, 2), (2, 0)}  # directed: A[w, v] is the edge w -> v
    assert data.x.tolist() == [[0.5, 0.0], [0.0, 2.0], [0.0, 0.0]]
    assert data.y.tolist() == [0, 1, 0]
    assert data.node_ids == ["a", "b", "c"]
    assert data.class_names == ["p", "q"]
    assert data.graph_name == "graph"
    assert data.graph_source == str(path)


def test_features_and_labels_are_optional_in_npz(tmp_path: Path) -> None:
    data = load_graph(write_npz(tmp_path, {name: CSR[name] for name in CSR if name.startswith("adj")}))
    assert (data.num_nodes, data.get("x"), data.get("y")) == (3, None, None)


def test_an_explicit_zero_is_no_edge_and_duplicates_are_one(tmp_path: Path) -> None:
    changed = {"adj_data": np.array([0, 1, 1]), "adj_indices": np.array([1, 2, 0])}
    assert edge_set(load_graph(write_npz(tmp_path, CSR, **changed))) == {(0, 2), (2, 0)}
    data = load_graph(write_npz(tmp_path, CSR, adj_indices=np.array([1, 1, 0])))
    assert data.edge_index.tolist() == [[0, 2], [1, 0]]


def test_index_pairs_with_features_as_pairs_or_dense(tmp_path: Path) -> None:
    data = load_graph(write_npz(tmp_path, PAIRS))
    assert data.edge_index.tolist() == [[0, 0, 2], [1, 2, 0]]
    assert data.preparation[0] == "merged parallel edges: 1"
    assert data.x.tolist() == [[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0]]
    assert data.y.tolist() == [0, 1, -1]
    parallel = load_graph(tmp_path / "graph.npz", coalesce=False)
    assert parallel.edge_index.tolist() == PAIRS["A"].tolist()
    dense = np.array([[1, 0], [0, 3], [2, 2]])
    assert load_graph(write_npz(tmp_path, PAIRS, X=dense)).x.tolist() == dense.tolist()
    two_nodes = {"A": np.array([[0], [1]]), "X": np.array([[0.0, 1.0], [1.0, 0.0]]), "y": np.array([0, 1])}
    assert load_graph(write_npz(tmp_path, two_nodes)).x.tolist() == two_nodes["X"].tolist()
    with pytest.raises(InvalidFileError, match="could be the features of the two nodes or index pairs"):
        load_graph(write_npz(tmp_path, two_nodes, X=np.array([[0, 1], [1, 0]])))


def test_rows_of_edges(tmp_path: Path) -> None:
    arrays = {"edges": np.array([[0, 1], [2, 1]]), "node_features": np.eye(3), "node_labels": np.array([0, 0, 1])}
    data = load_graph(write_npz(tmp_path, arrays))
    assert edge_set(data) == {(0, 1), (2, 1)}
    assert data.x.dtype == torch.float32
    assert data.y.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("arrays", "changes", "message"),
    [
        (CSR, {"adj_indices": np.array([1, 3, 0])}, "`adj_indices` must lie in [0, 2], got 3"),
        (CSR, {"adj_indices": np.array([1, -1, 0])}, "`adj_indices` must lie in [0, 2], got -1"),
        (CSR, {"adj_indices": np.array([1.0, 2.0, 0.0])}, "`adj_indices` must hold integers, got dtype float64"),
        (CSR, {"adj_indptr": np.array([0, 2, 3])}, "are no CSR matrix"),
        (CSR, {"adj_indptr": np.array([0, 3, 2, 3])}, "are no CSR matrix"),
        (CSR, {"adj_shape": np.array([3, 4])}, "`adj_shape` must be square, got (3, 4)"),
        (CSR, {"adj_shape": np.array([3])}, "`adj_shape` must be two integers"),
        (CSR, {"adj_data": np.array([1, np.nan, 1])}, "`adj_data` must be finite numbers, got nan at position 1"),
        (CSR, {"attr_data": np.array([np.inf, 1])}, "`attr_data` must be finite numbers, got inf at position 0"),
        (CSR, {"attr_data": np.array(["a", "b"])}, "`attr_data` must be finite numbers, got dtype <U1"),
        (CSR, {"attr_data": np.array([1e300, 1.0])}, "`data.x` must be finite, got inf at node 0, column 0"),
        (CSR, {"attr_shape": None}, "the key attr_shape is missing"),
        (CSR, {"attr_indices": None, "attr_indptr": None}, "the key attr_indices is missing"),
        (PAIRS, {"X": np.array([[0, 1], [0, 10**15]])}, "needs more memory for its dense features than there is"),
        (
            CSR,
            {"attr_indptr": np.array([0, 2]), "attr_shape": np.array([1, 2])},
            "the features must be numbers of shape",
        ),
        (CSR, {"labels": np.array([0, 1])}, "`labels` must be integers of shape (3,), got dtype int64 and shape (2,)"),
        (CSR, {"labels": np.array([0.5, 1, 0])}, "`labels` must be integers of shape (3,), got dtype float64"),
        (CSR, {"labels": np.array([0, -5, 0])}, "`data.y` must be >= -1, got -5"),
        (CSR, {"node_names": np.array(["a", "a", "b"])}, "`data.node_ids` must be distinct, got 'a' more than once"),
        (PAIRS, {"A": np.array([[0, 1], [1, 3]])}, "`data.edge_index` must lie in [0, 2] for 3 nodes, got 3"),
        (PAIRS, {"A": np.array([[0, 1], [1, 2], [2, 0]])}, "`A` must hold integer index pairs of shape (2, number)"),
        (
            PAIRS,
            {"A": np.array([[0.0], [1.0]])},
            "`A` must hold integer index pairs of shape (2, number), got dtype float64",
        ),
        (PAIRS, {"X": np.array([[0, 3], [0, 0]])}, "`X` must hold pairs (node in [0, 2], column >= 0), got 3"),
        (PAIRS, {"X": np.array([[0, 1], [0, -1]])}, "`X` must hold pairs (node in [0, 2], column >= 0), got -1"),
        (PAIRS, {"X": np.ones((4, 2))}, "the features must be numbers of shape (3, num_features), got dtype float64"),
        (PAIRS, {"y": None}, "the key y is missing"),
        (PAIRS, {"y": np.array([], np.int64), "A": np.empty((2, 0), np.int64), "X": None}, "got an empty graph"),
        ({"edges": np.array([[0, 1]])}, {}, "the key node_features is missing"),
        ({"weight": np.ones(3)}, {}, "it has the keys weight. Needed: adj_data"),
    ],
)
def test_arrays_that_are_no_graph(
    tmp_path: Path, arrays: dict[str, np.ndarray], changes: dict[str, np.ndarray | None], message: str
) -> None:
    path = write_npz(tmp_path, arrays, **changes)
    with np.errstate(over="ignore"), pytest.raises(InvalidFileError, match=re.escape(message)) as caught:
        load_graph(path)
    assert str(path) in str(caught.value)


def test_damaged_npz_files(tmp_path: Path) -> None:
    path = write_npz(tmp_path, CSR)
    content = path.read_bytes()
    middle = content.index(b"adj_indices") + 60
    flipped = content[:middle] + bytes(255 - b for b in content[middle : middle + 20]) + content[middle + 20 :]
    for damaged in (content[: len(content) // 2], flipped, b"", b"not an archive", content[4:]):
        path.write_bytes(damaged)
        with pytest.raises(InvalidFileError, match="truncated, corrupted or another format"):
            load_graph(path)
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "one.npy").rename(path)
    with pytest.raises(InvalidFileError, match="holds one array, not the arrays of a graph"):
        load_graph(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("adj_indptr", "text")
    with pytest.raises(InvalidFileError, match="its member adj_indptr is no array"):
        load_graph(path)


def test_pickled_objects_are_refused_and_not_executed(tmp_path: Path) -> None:
    trap = tmp_path / "executed"
    np.savez(tmp_path / "graph.npz", A=np.array([RunsCode(trap)], dtype=object))
    (tmp_path / "renamed.npz").write_bytes(pickle.dumps(RunsCode(trap)))
    (tmp_path / "graph.pkl").write_bytes(pickle.dumps(RunsCode(trap)))
    torch.save(RunsCode(trap), tmp_path / "graph.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(RunsCode(trap)))
    with pytest.raises(
        InvalidFileError, match="must hold plain arrays, got pickled Python objects, which can run code"
    ):
        load_graph(tmp_path / "graph.npz")
    with pytest.raises(InvalidFileError, match="pickle"):
        load_graph(tmp_path / "renamed.npz")
    with pytest.raises(InvalidFileError, match="is a pickle, which can run code when it is read, so it is refused"):
        load_graph(tmp_path / "graph.pkl")
    for name in ("graph.pt", "plain.pt"):
        with pytest.raises(InvalidFileError, match="got other Python objects, which can run code"):
            load_graph(tmp_path / name)
    assert not trap.exists()


# --- saved Data
# -----------------------------------------------------------------------------------------------


def test_a_saved_data_object(tmp_path: Path) -> None:
    graph = path_graph(edge_index=torch.tensor([[0, 0, 1], [1, 1, 1]]), node_ids=["a", "b", "c"])
    torch.save(graph, tmp_path / "mine.pt")
    data = load_graph(str(tmp_path / "mine.pt"))
    assert torch.equal(data.edge_index, graph.edge_index)  # parallel edges and self-loops are left alone
    assert torch.equal(data.x, graph.x)
    assert torch.equal(data.y, graph.y)
    assert data.node_ids == ["a", "b", "c"]
    assert data.graph_name == "mine"
    torch.save(data, tmp_path / "again.pt")
    assert load_graph(tmp_path / "again.pt").node_ids == ["a", "b", "c"]


def test_the_processed_file_of_a_data_set(tmp_path: Path) -> None:
    graph = FakeDataset(num_graphs=1, avg_num_nodes=20, task="node")[0]
    FakeDataset.save([graph], str(tmp_path / "data.pt"))
    assert torch.equal(load_graph(tmp_path / "data.pt").x, graph.x)
    FakeDataset.save([graph, graph], str(tmp_path / "data.pt"))
    with pytest.raises(InvalidFileError, match="must hold one graph, got a data set of several"):
        load_graph(tmp_path / "data.pt")


def test_saved_files_that_hold_no_graph(tmp_path: Path) -> None:
    path = tmp_path / "graph.pt"
    torch.save(torch.nn.Linear(2, 2).state_dict(), path)
    with pytest.raises(InvalidFileError, match="got a dict with the keys weight, bias"):
        load_graph(path)
    torch.save(torch.ones(3), path)
    with pytest.raises(InvalidFileError, match=r"must hold a torch_geometric\.data\.Data, got a Tensor"):
        load_graph(path)
    torch.save(path_graph(edge_index=torch.tensor([[0], [9]])), path)
    with pytest.raises(InvalidFileError, match=r"holds no valid graph: `data\.edge_index` must lie in \[0, 2\]"):
        load_graph(path)
    torch.save(path_graph(), path)
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"text"):
        path.write_bytes(damaged)
        with pytest.raises(InvalidFileError, match="truncated, corrupted or another format"):
            load_graph(path)


# --- Data objects
# ---------------------------------------------------------------------------------------------


def test_a_data_object_is_checked_prepared_and_not_changed() -> None:
    graph = path_graph(edge_attr=torch.ones(2, 1))
    data = load_graph(graph, undirected=True)
    assert edge_set(data) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert edge_set(graph) == {(0, 1), (1, 2)}
    assert data.preparation[0].startswith("left out edge_attr")
    with pytest.raises(InvalidParameterError, match=r"`data\.edge_index` must lie in"):
        load_graph(path_graph(edge_index=torch.tensor([[0], [3]])))
    with pytest.raises(InvalidParameterError, match=r"must be a torch_geometric\.data\.Data, got list"):
        load_graph([1, 2])  # type: ignore[arg-type]
    with pytest.raises(InvalidParameterError, match="`nodes` belongs to an edge table"):
        load_graph(graph, nodes="nodes.csv")


# --- any file
# -------------------------------------------------------------------------------------------------


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(InvalidFileError, match="must be an existing file, but there is no such file"):
        load_graph(tmp_path / "none.npz")
    (tmp_path / "graph.gml").write_text("graph []")
    with pytest.raises(InvalidFileError, match=re.escape("must end in .npz, .pt, .pth, .graphml or .csv")):
        load_graph(tmp_path / "graph.gml")
    with pytest.raises(InvalidFileError, match="must be an existing file"):
        load_graph(tmp_path)


def test_read_npz_of_pyg_reads_the_same_graph(data_root: Path) -> None:
    for name in ("cora_ml", "citeseer"):
        theirs = read_npz(str(data_root / f"{name}.npz"))
        options = {"undirected": True, "drop_self_loops": True, "binarize": True}
        ours = load_graph(data_root / f"{name}.npz", **options)
        assert torch.equal(ours.edge_index, theirs.edge_index)
        assert torch.equal(ours.x, theirs.x)
        assert torch.equal(ours.y, theirs.y)


def test_every_option_reaches_the_preparation(tmp_path: Path) -> None:
    graph = Data(x=torch.tensor([[2.0], [0.0], [1.0]]), edge_index=torch.tensor([[0, 0, 1], [1, 1, 1]]))
    options = ("undirected", "drop_self_loops", "coalesce", "largest_component", "binarize")
    plain = load_graph(graph)
    for option in options:
        changed = load_graph(graph, **{option: True})
        assert changed.preparation != plain.preparation, option
