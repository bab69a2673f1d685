import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric.data import Data

import graycert
from graycert.data import edges_in_pieces, load_graph, on_disk, prepare_graph
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.graph import fingerprint_of

NUM_NODES, NUM_EDGES, NUM_FEATURES, NUM_CLASSES = 60, 240, 7, 3


@pytest.fixture(params=[False, True], ids=["in memory", "on disk"])
def everything_on_disk(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(on_disk, "ON_DISK_FROM", 0)
        monkeypatch.setattr(on_disk, "_PIECE", 64)
        monkeypatch.setattr("graycert.data.numbered._ROWS", 17)
        monkeypatch.setattr("graycert.data.ogb_folder._ROWS", 17)
    return request.param


@pytest.fixture
def drawn():
    random = np.random.default_rng(3)
    edges = random.integers(NUM_NODES, size=(2, NUM_EDGES))
    edges[:, :5], edges[:, 5:9] = np.arange(5), edges[:, 9:13]  # loops and repeats
    return {
        "edges": edges,
        "x": random.normal(size=(NUM_NODES, NUM_FEATURES)).astype(np.float16),
        "y": random.integers(NUM_CLASSES, size=NUM_NODES),
    }


def in_memory(drawn, **steps):
    data = Data(
        x=torch.from_numpy(drawn["x"].astype(np.float32)),
        y=torch.from_numpy(drawn["y"]),
        edge_index=torch.from_numpy(drawn["edges"]),
    )
    return prepare_graph(data, **steps)


def numbered(drawn, folder: Path, *, kind: str = "parquet", dtype=np.float16) -> dict:
    table = pa.table({"source": drawn["edges"][0], "target": drawn["edges"][1], "when": np.arange(NUM_EDGES)})
    edges = folder / f"edges.{kind}"
    if kind == "parquet":
        pq.write_table(table, edges, row_group_size=31)
    else:
        with pa.output_stream(edges, compression="gzip" if kind.endswith("gz") else None) as stream:
            pa_csv.write_csv(table, stream)
    np.save(folder / "x.npy", drawn["x"].astype(dtype))
    np.save(folder / "y.npy", drawn["y"])
    return {"graph": edges, "nodes": folder / "x.npy", "label": str(folder / "y.npy")}


def loaded(files, **steps):
    return load_graph(files["graph"], nodes=files["nodes"], label=files["label"], **steps)


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz"])
@pytest.mark.parametrize(
    "steps",
    [
        {},
        {"undirected": True},
        {"drop_self_loops": False},
        {"undirected": True, "drop_self_loops": False, "largest_component": True},
        {"binarize": True},
        {"coalesce": False},
    ],
    ids=str,
)
def test_a_graph_read_in_pieces_is_the_one_that_is_prepared_in_memory(drawn, tmp_path, everything_on_disk, kind, steps):
    steps = {"drop_self_loops": True, **steps}
    data, expected = loaded(numbered(drawn, tmp_path, kind=kind), **steps), in_memory(drawn, **steps)
    assert torch.equal(data.edge_index, expected.edge_index)
    assert torch.equal(data.x, expected.x)
    assert torch.equal(data.y, expected.y)
    assert fingerprint_of(data) == fingerprint_of(expected)
    directions = [note for note in data.preparation if "reverse" in note or "nodes that receive" in note]
    assert [note for note in data.preparation[1:] if note not in directions] == expected.preparation
    assert data.steps_taken == expected.steps_taken


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_features_stay_in_their_file_until_they_are_used(drawn, tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(on_disk, "ON_DISK_FROM", 0)
    files = numbered(drawn, tmp_path, dtype=dtype)
    matrix = on_disk.features_of_file(files["nodes"])
    assert isinstance(matrix, np.memmap)
    assert np.array_equal(matrix, drawn["x"].astype(np.float32))
    data = loaded(files)
    data.x[0, 0] = 9.0
    assert np.load(files["nodes"])[0, 0] != 9.0  # the file is never written to


@pytest.mark.deep
def test_what_lies_on_disk_gives_the_same_certificates_byte_for_byte(drawn, tmp_path, monkeypatch):
    steps = {"undirected": True, "drop_self_loops": True}
    expected = in_memory(drawn, **steps)
    files = numbered(drawn, tmp_path)
    monkeypatch.setattr(on_disk, "ON_DISK_FROM", 0)
    data = loaded(files, **steps)
    model = graycert.build_model("gcn", expected, seed=0)
    found = [certify(model, each) for each in (expected, data)]
    for (name, (_, first)), (other, (_, second)) in zip(
        found[0].every_array().items(), found[1].every_array().items(), strict=True
    ):
        assert (name, first.tobytes(), first.dtype) == (other, second.tobytes(), second.dtype)


def test_a_run_knows_where_its_files_are_from_any_folder(drawn, tmp_path, monkeypatch):
    numbered(drawn, tmp_path)
    monkeypatch.chdir(tmp_path)
    data = load_graph("edges.parquet", nodes="x.npy", label="y.npy", undirected=True)
    monkeypatch.chdir("/")
    record = data.graph_record
    again = load_graph(record["source"], nodes=record["nodes"], **record["options"])
    assert fingerprint_of(again) == fingerprint_of(data)
    assert torch.equal(again.y, data.y)


def certify(model, data):
    return graycert.certify(
        model,
        data,
        targets=np.arange(12),
        smoothing=graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.8),
        threat=graycert.NodeFeatureThreat(min_distance=1),
        draws=graycert.Draws(num_selection=10, num_estimation=50),
        bound="union",
        max_radius=3,
        execution=graycert.Execution(engine="torch"),
    )


@pytest.mark.parametrize("split", ["time", "sales_ranking"])
def test_the_layout_of_ogb_with_mapped_features(drawn, tmp_path, everything_on_disk, split):
    folder = tmp_path / "ogbn_products"
    edges = "".join(f"{source},{target}\n" for source, target in drawn["edges"].T)
    numbers = np.arange(NUM_NODES)
    files = {
        "raw/edge": edges,
        "raw/node-label": "".join(f"{label}\n" for label in drawn["y"]),
        "raw/num-node-list": f"{NUM_NODES}\n",
        "raw/num-edge-list": f"{NUM_EDGES}\n",
        **{f"split/{split}/{name}": "".join(f"{i}\n" for i in numbers[start::3]) for start, name in enumerate(PARTS)},
    }
    for name, text in files.items():
        (folder / f"{name}.csv.gz").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    np.save(folder / "raw/node-feat.npy", drawn["x"])
    data = load_graph(folder, undirected=True, drop_self_loops=True)
    expected = in_memory(drawn, undirected=True)
    assert fingerprint_of(data) == fingerprint_of(expected)
    assert data.val_mask.nonzero().view(-1).tolist() == numbers[1::3].tolist()
    (folder / "raw/node-feat.npy").unlink()
    text = "\n".join(",".join(str(float(value)) for value in row) for row in drawn["x"])
    (folder / "raw/node-feat.csv.gz").write_bytes(gzip.compress(f"{text}\n".encode()))
    assert fingerprint_of(load_graph(folder, undirected=True, drop_self_loops=True)) == fingerprint_of(expected)


PARTS = ("train", "valid", "test")


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda files: files["nodes"].write_bytes(b"x"), "must be an array of NumPy"),
        (lambda files: np.save(files["nodes"], np.ones(3)), "must hold numbers of shape (num_nodes, num_features)"),
        (lambda files: np.save(files["nodes"], np.array(["a"])), "must hold numbers of shape"),
        (lambda files: np.save(files["nodes"], np.ones((9, 2))), "must name nodes by numbers in [0, 8]"),
        (lambda files: np.save(files["label"], np.ones((NUM_NODES, 2))), "must hold one whole number per node"),
        (lambda files: np.save(files["label"], np.arange(3)), "`data.y` must be int64 of shape (60,)"),
        (lambda files: files["graph"].write_bytes(b"PAR1"), "must be a table of edges, but it cannot be read"),
        (lambda files: write(files, {"source": ["a"], "target": ["b"]}), "`source` must hold node numbers from 0"),
        (lambda files: write(files, {"source": [1, None], "target": [0, 1]}), "with 1 gaps"),
        (lambda files: write(files, {"source": [1], "target": [-1]}), "got -1"),
        (lambda files: write(files, {"one": [1], "two": [2], "three": [3]}), "--source"),
    ],
)
def test_damaged_files(drawn, tmp_path, break_it, message):
    files = numbered(drawn, tmp_path)
    break_it(files)
    with pytest.raises(InvalidFileError) as caught:
        loaded(files)
    assert message in str(caught.value)


@pytest.mark.parametrize("said", [{}, {"source": "58", "target": "59"}])
@pytest.mark.parametrize("lines", ["58,59\n0,1\n1,2\n2,0\n", "58,59,7\n0,1,7\n1,2,8\n2,0,9\n"])
def test_a_first_edge_is_no_header(drawn, tmp_path, lines, said):
    files = numbered(drawn, tmp_path, kind="csv")
    files["graph"].write_text(lines)
    with pytest.raises(InvalidFileError, match=r"must (have a header row|say which columns)"):
        loaded(files, **said)


def test_what_is_assumed_of_columns_is_said(drawn, tmp_path):
    files = numbered(drawn, tmp_path, kind="csv")
    files["graph"].write_text("one,two\n0,1\n1,2\n2,0\n")
    assert "edges run from `one` to `two`" in loaded(files).preparation


def write(files, columns) -> None:
    pq.write_table(pa.table(columns), files["graph"])


def test_options_that_do_not_belong_to_numbered_nodes(drawn, tmp_path):
    files = numbered(drawn, tmp_path)
    with pytest.raises(InvalidParameterError, match="`id` says something of a node table"):
        load_graph(files["graph"], nodes=files["nodes"], id="name")
    with pytest.raises(InvalidParameterError, match="`label` must be a"):
        load_graph(files["graph"], nodes=files["nodes"], label="y")
    assert load_graph(files["graph"], nodes=files["nodes"], source="target", target="source").num_nodes == NUM_NODES


def test_pieces_hold_no_list_of_pairs(drawn):
    read = []

    def pairs():
        for start in range(0, NUM_EDGES, 50):
            read.append(start)
            yield drawn["edges"][0, start : start + 50], drawn["edges"][1, start : start + 50]

    edges = edges_in_pieces.EdgeFile(name="edges", num_nodes=NUM_NODES, read=pairs)
    edges.prepared(undirected=True, drop_self_loops=True, notes=[])
    assert read == 2 * list(range(0, NUM_EDGES, 50))  # counted once, placed once
