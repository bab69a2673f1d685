"""Graphs of networkx, GraphML, scipy.sparse, and arrays named as in PyTorch Geometric."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from graycert.data import load_graph
from graycert.errors import InvalidFileError, InvalidParameterError
from support.graphs import edge_set


def club() -> nx.Graph:
    network = nx.Graph()
    network.add_node("a", club="Hi", age=3, x=[1.0, 2.0])
    network.add_node("b", club="Officer", age=4, x=[3.0, 4.0])
    network.add_node(7, club=None, age=5, x=[5.0, 6.0])
    network.add_edge("a", "b", weight=4)
    network.add_edge("b", 7)
    return network


def test_networkx_graphs_keep_names_labels_and_features(tmp_path: Path) -> None:
    data = load_graph(club(), label="club")
    assert data.node_ids == ["a", "b", "7"]
    assert edge_set(data) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert (data.class_names, data.y.tolist()) == (["Hi", "Officer"], [0, 1, -1])
    assert data.x.tolist() == [[3, 1, 2], [4, 3, 4], [5, 5, 6]]
    assert "made undirected: 2 became 4 directed edges" in data.preparation
    assert "left out columns of the edge table: `weight`" in data.preparation
    assert load_graph(club(), label="club", undirected=False).edge_index.size(1) == 2
    directed = nx.DiGraph([("a", "b"), ("b", "c")])
    assert edge_set(load_graph(directed)) == {(0, 1), (1, 2)}
    parallel = nx.MultiDiGraph([("a", "b"), ("a", "b")])
    assert "merged parallel edges: 1" in load_graph(parallel).preparation


def test_networkx_graphs_that_are_ambiguous() -> None:
    message = "Make one feature of each of its 2 values"
    with pytest.raises(InvalidFileError, match=message):
        load_graph(club())
    with pytest.raises(InvalidFileError, match="must list each node once, got the id '1' more than once"):
        load_graph(nx.Graph([(1, "1")]))
    with pytest.raises(InvalidParameterError, match="`source` must be left out for a networkx graph"):
        load_graph(club(), source="a")
    with pytest.raises(InvalidParameterError, match="`nodes` belongs to an edge table"):
        load_graph(club(), nodes="nodes.csv")


def test_graphml_is_the_same_graph(tmp_path: Path) -> None:
    network = club()
    for node in network:
        del network.nodes[node]["x"]
    network.nodes[7]["club"] = ""
    nx.write_graphml(network, tmp_path / "club.graphml")
    data, expected = load_graph(tmp_path / "club.graphml", label="club"), load_graph(network, label="club")
    for name in ("edge_index", "x", "y"):
        assert torch.equal(data[name], expected[name])
    assert data.node_ids == expected.node_ids
    nx.write_graphml(network.to_directed(), tmp_path / "directed.graphml")
    assert not any("undirected" in each for each in load_graph(tmp_path / "directed.graphml", label="club").preparation)
    (tmp_path / "cut.graphml").write_text((tmp_path / "club.graphml").read_text()[:200])
    with pytest.raises(InvalidFileError, match="must be a GraphML file, but it cannot be read"):
        load_graph(tmp_path / "cut.graphml")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_matrices_and_their_files(tmp_path: Path, kind: str) -> None:
    matrix = sp.coo_array(([1.0, 2.5, 0.0, 1.0], ([0, 0, 1, 2], [1, 2, 0, 2])), shape=(3, 3)).asformat(kind)
    sp.save_npz(tmp_path / "matrix.npz", matrix)
    for data in (load_graph(matrix), load_graph(tmp_path / "matrix.npz")):
        assert edge_set(data) == {(0, 1), (0, 2), (2, 2)}
        assert data.num_nodes == 3
        assert data.preparation[0] == "left out weights of edges: 1 entries of the adjacency are neither 0 nor 1"
    with pytest.raises(InvalidParameterError, match="must be a square matrix"):
        load_graph(sp.csr_array((2, 3)))
    sp.save_npz(tmp_path / "matrix.npz", sp.coo_array((2, 3)).asformat(kind))
    with pytest.raises(InvalidFileError, match="must be square"):
        load_graph(tmp_path / "matrix.npz")
    with pytest.raises(InvalidParameterError, match="`label` says something of tables, but `graph` is a"):
        load_graph(matrix, label="y")


def test_other_sparse_formats_are_refused_with_the_line_that_helps(tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "matrix.npz", sp.eye_array(3, format="dia"))
    with pytest.raises(InvalidFileError, match=r"in the format 'dia'\. Save it as csr"):
        load_graph(tmp_path / "matrix.npz")


def test_arrays_named_as_in_pyg(tmp_path: Path) -> None:
    arrays = {"x": np.eye(3), "edge_index": np.array([[0, 1], [1, 2]]), "y": np.array([[0], [1], [-1]])}
    np.savez(
        tmp_path / "graph.npz", **arrays, train_mask=np.array([True, False, False]), node_ids=np.array(list("abc"))
    )
    data = load_graph(tmp_path / "graph.npz")
    assert edge_set(data) == {(0, 1), (1, 2)}
    assert torch.equal(data.x, torch.eye(3))
    assert data.y.tolist() == [0, 1, -1]
    assert data.train_mask.tolist() == [True, False, False]
    assert data.node_ids == ["a", "b", "c"]
    for changed, message in (
        ({"edge_index": np.array([[0, 1, 2]])}, "`edge_index` must hold integer index pairs"),
        ({"edge_index": np.array([[0], [3]])}, "holds no valid graph"),
        ({"y": np.array([0, 1])}, "`y` must be integers of shape"),
        ({"y": np.array([0.0, 1.0, 0.5])}, "`y` must be integers of shape"),
        ({"val_mask": np.array([0, 1, 1])}, "`val_mask` must be boolean of shape"),
    ):
        np.savez(tmp_path / "graph.npz", **{**arrays, **changed})
        with pytest.raises(InvalidFileError, match=message):
            load_graph(tmp_path / "graph.npz")
    np.savez(tmp_path / "graph.npz", edge_index=arrays["edge_index"])
    with pytest.raises(InvalidFileError, match="the key x or y is missing"):
        load_graph(tmp_path / "graph.npz")


def test_masks_of_several_splits_are_left_out_with_a_remark() -> None:
    data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, train_mask=torch.ones(2, 10, dtype=torch.bool))
    prepared = load_graph(data)
    assert prepared.get("train_mask") is None
    assert prepared.preparation[0] == "left out train_mask: not one truth value for each node"
