import copy
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops, subgraph, to_undirected

from graycert.data import load_graph, prepare_graph, validate_data
from graycert.data.arrays import GraphArrays
from graycert.data.as_data import as_data
from graycert.data.edges import among, merged, with_reverse, without_loops
from graycert.data.load import load_arrays
from graycert.errors import InvalidParameterError

EDGES = [
    np.array([[0, 0, 1, 2, 2, 3], [1, 1, 1, 0, 2, 0]]),
    np.empty((2, 0), dtype=np.int64),
    np.random.default_rng(0).integers(0, 9, size=(2, 60)),
]


@pytest.mark.parametrize("edges", EDGES, ids=lambda edges: f"{edges.shape[1]} edges")
def test_lists_of_edges_are_changed_as_pytorch_geometric_does(edges):
    given = torch.from_numpy(edges)
    nodes = np.array([0, 2, 3, 5])
    chosen, _, stays = subgraph(torch.from_numpy(nodes), given, relabel_nodes=True, num_nodes=9, return_edge_mask=True)
    np.testing.assert_array_equal(without_loops(edges), remove_self_loops(given)[0])
    np.testing.assert_array_equal(merged(edges, 9), coalesce(given, num_nodes=9))
    np.testing.assert_array_equal(with_reverse(edges, 9), to_undirected(given, num_nodes=9))
    np.testing.assert_array_equal(among(edges, nodes, 9)[0], chosen)
    np.testing.assert_array_equal(among(edges, nodes, 9)[1], stays)


def ring(kind):
    ends = np.arange(4)
    arrays = GraphArrays(edge_index=np.stack([ends, (ends + 1) % 4]), x=np.eye(4, dtype=np.float32), y=ends % 2)
    return arrays if kind is GraphArrays else as_data(arrays)


def test_what_is_held_is_found_by_name_and_nothing_else():
    graph = ring(GraphArrays)
    graph["node_ids"] = ["a", "b", "c", "d"]
    assert graph.num_nodes == 4
    assert graph.get("num_nodes") is None
    assert "node_ids" in graph
    del graph.node_ids
    assert graph.get("node_ids", "none") == "none"
    assert graph.keys() == ["edge_index", "x", "y"]
    assert copy.copy(graph).keys() == graph.keys()
    with pytest.raises(AttributeError, match="no 'pos'"):
        _ = graph.pos
    with pytest.raises(AttributeError, match="no 'num_nodes'"):
        _ = GraphArrays(edge_index=graph.edge_index).num_nodes


@pytest.mark.parametrize("options", [{"undirected": True}, {"largest_component": True, "binarize": True}, {}], ids=str)
def test_arrays_and_tensors_are_prepared_alike(options):
    made, expected = (prepare_graph(ring(kind), **options) for kind in (GraphArrays, Data))
    assert isinstance(made, GraphArrays)
    assert isinstance(expected, Data)
    assert sorted(made.keys()) == sorted(expected.keys())
    for name in made.keys():  # noqa: SIM118 (a graph is no dict)
        np.testing.assert_array_equal(made[name], expected[name])


def test_masks_beside_edges_in_a_file_are_kept(tmp_path):
    graph = ring(GraphArrays)
    in_file = np.memmap(tmp_path / "edges", dtype=np.int64, mode="w+", shape=graph.edge_index.shape)
    in_file[:] = graph.edge_index
    graph.edge_index, graph.test_mask = in_file, np.arange(4) > 2
    assert prepare_graph(graph).test_mask.tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("edge_index", np.array([[0], [4]]), r"must lie in \[0, 3\]"),
        ("edge_index", np.array([[0.0], [1.0]]), "must be int64"),
        ("edge_index", [[0], [1]], "got list"),
        ("x", np.full((4, 1), np.nan, dtype=np.float32), "must be finite, got nan at node 0, column 0"),
        ("x", np.ones((4, 1), dtype=np.int64), "must hold floats"),
        ("x", np.ones((3, 1), dtype=np.float32), "must have shape"),
        ("y", np.array([0, 1, -2, 0]), "must be >= -1"),
        ("y", np.array([0, 1, 1]), "must be int64 of shape"),
        ("node_ids", ["a"], "must name each"),
    ],
    ids=lambda each: None if isinstance(each, list | np.ndarray) else each,
)
def test_arrays_that_are_no_graph_are_refused(name, value, words):
    graph = ring(GraphArrays)
    graph[name] = value
    graph.num_nodes = 4
    with pytest.raises(InvalidParameterError, match=words):
        validate_data(graph)


def test_sums_that_overflow_are_no_missing_values():
    graph = ring(GraphArrays)
    graph.x = np.full((4, 2), 3e38, dtype=np.float32)
    validate_data(graph)


@pytest.fixture
def files(tmp_path):
    pairs = np.array([[0, 1, 2, 2], [1, 2, 0, 2]])
    np.savez(tmp_path / "graph.npz", edge_index=pairs, x=np.eye(3), y=np.arange(3), test_mask=np.arange(3) > 1)
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\nb,c\n")
    (tmp_path / "nodes.csv").write_text("id,age,label\na,1,x\nb,2,y\nc,3,x\n")
    return {"npz": (tmp_path / "graph.npz", None), "csv": (tmp_path / "edges.csv", tmp_path / "nodes.csv")}


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_a_file_gives_the_same_as_arrays_and_as_tensors(files, kind):
    path, nodes = files[kind]
    arrays, data = (load(path, nodes=nodes, undirected=True) for load in (load_arrays, load_graph))
    assert isinstance(data, Data)
    assert set(arrays.keys()) == set(data.keys())
    for name in arrays.keys():  # noqa: SIM118 (a graph is no dict)
        np.testing.assert_array_equal(arrays[name], data[name])
        if isinstance(arrays[name], np.ndarray):
            assert torch.from_numpy(arrays[name]).dtype == data[name].dtype


def test_options_that_do_not_exist_are_refused(files):
    with pytest.raises(TypeError, match="undirekted"):
        load_arrays(files["npz"][0], undirekted=True)


@pytest.mark.parametrize(("kind", "without"), [("npz", ("pandas", "pyarrow")), ("csv", ())], ids=["npz", "csv"])
def test_arrays_are_loaded_without_torch(files, kind, without):
    path, nodes = files[kind]
    code = (
        f"import sys; from graycert.data.load import load_arrays; load_arrays({str(path)!r}, nodes="
        f"{None if nodes is None else str(nodes)!r}, undirected=True, largest_component=True);"
        f"print([name for name in {('torch', 'torch_geometric', 'numba', *without)!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
