"""Somebody's tables through the commands, and the same from Python: A4, A5, E7, E8, F7 of CASES.md."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import graycert
from graycert.errors import InvalidFileError, InvalidParameterError
from support.commands import FAST, run_command

DRAWS = graycert.Draws(num_selection=20, num_estimation=20)
SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
THREAT = graycert.NodeFeatureThreat(min_distance=1)
SAID = ("--label", "verdict", "--class-names", "ok,fraud", "--drop", "note", "--undirected")
LOADED = {"label": "verdict", "class_names": ["ok", "fraud"], "drop": "note", "undirected": True}


def write(folder: Path, num_nodes: int = 60) -> tuple[Path, Path]:
    """Payments once per pair, and accounts with a verdict, a split and a note."""
    verdicts, parts = ("ok", "fraud"), ("train", "train", "val", "val", "test", "test")
    edges = [f"n{i},n{(i + 2) % num_nodes},{i}" for i in range(num_nodes)]
    nodes = [f"n{i},{verdicts[i % 2]},{i % 2},{(i * 7) % 5},{parts[i % 6]},free text" for i in range(num_nodes)]
    (folder / "payments.csv").write_text("payer,payee,amount\n" + "\n".join(edges) + "\n")
    (folder / "accounts.csv").write_text("account_id,verdict,a,b,split,note\n" + "\n".join(nodes) + "\n")
    return folder / "payments.csv", folder / "accounts.csv"


def certified(data, **changes) -> graycert.Certificates:
    model = graycert.build_model("gcn", data, skip=True).eval()
    arguments = {
        "smoothing": SMOOTHING,
        "threat": graycert.NodeFeatureThreat(min_distance=1),
        "draws": DRAWS,
        **changes,
    }
    return graycert.certify(model, data, max_radius=4, **arguments)


@pytest.mark.deep
def test_what_is_assumed_is_printed_stored_and_repeated(capsys, tmp_path):
    edges, nodes = write(tmp_path)
    options = [each for each in FAST if each != "--quiet"]
    options = options[2:]  # the split is that of the table
    found = run_command(
        capsys, "certify", "--graph", edges, "--nodes", nodes, *SAID, "--out", tmp_path / "run", *options, "--json"
    )
    assert found.status == 0, found.err
    data = graycert.load_graph(edges, nodes=nodes, **LOADED)
    run = graycert.Certificates.load(tmp_path / "run")
    stored = run.setup.provenance["graph"]["preparation"]
    assert stored == data.preparation
    for remark in (
        "edges run from `payer` to `payee`",
        "node ids are in `account_id`",
        "classes are numbered as class_names says: 0 = ok, 1 = fraud",
        "the split is that of `split`: 20 training, 20 validation, 20 test",
        "left out columns of the node table: `note`",
        "made undirected: 60 became 120 directed edges",
    ):
        assert remark in stored
        assert remark in found.err
    again = run_command(capsys, "verify", tmp_path / "run")
    assert again.status == 0, again.out
    for remark in stored:
        assert remark in again.out
    assert "are the test nodes of the inductive split of its masks" in again.out
    assert run.targets.tolist() == data.test_mask.nonzero().view(-1).tolist()
    assert run.setup.class_names == ("ok", "fraud")


@pytest.mark.deep
def test_python_and_the_command_line_agree_on_the_graph_and_verify_either(capsys, tmp_path):
    edges, nodes = write(tmp_path)
    options = (*FAST[2:], "--targets", "all")
    command = run_command(
        capsys, "certify", "--graph", edges, "--nodes", nodes, *SAID, "--out", tmp_path / "a", *options
    )
    assert command.status == 0, command.err
    data = graycert.load_graph(edges, nodes=nodes, **LOADED)
    certified(data).save(tmp_path / "b")
    runs = [graycert.Certificates.load(tmp_path / name).setup for name in "ab"]
    assert runs[0].graph_fingerprint == runs[1].graph_fingerprint
    records = [dict(run.provenance["graph"]) for run in runs]
    assert records[0]["preparation"] == records[1]["preparation"]
    for name in "ab":
        assert run_command(capsys, "verify", tmp_path / name).status == 0
        assert graycert.verify(tmp_path / name).passed
    again = run_command(
        capsys, "certify", "--config", tmp_path / "a" / "config.toml", "--out", tmp_path / "c", "--quiet"
    )
    assert again.status == 0, again.err
    assert (
        graycert.Certificates.load(tmp_path / "c").radius.tolist()
        == graycert.Certificates.load(tmp_path / "a").radius.tolist()
    )


def test_a_run_on_a_prepared_graph_is_verified_from_the_tables(capsys, tmp_path):
    """F7: the preparation in Python is stored, and repeated by the command."""
    edges, nodes = write(tmp_path)
    loaded = graycert.load_graph(edges, nodes=nodes, label="verdict", drop="note")
    certified(graycert.prepare_graph(loaded, undirected=True)).save(tmp_path / "run")
    found = run_command(capsys, "verify", tmp_path / "run")
    assert found.status == 0, found.out
    assert "made undirected: 60 became 120 directed edges" in found.out
    frames = [pd.read_csv(path) for path in (edges, nodes)]  # from objects nobody can load again
    loaded = graycert.load_graph(frames[0], nodes=frames[1], label="verdict", drop="note")
    certified(graycert.prepare_graph(loaded, undirected=True, largest_component=True)).save(tmp_path / "frames")
    found = run_command(capsys, "verify", tmp_path / "frames", "--graph", edges, "--nodes", nodes)
    assert found.status == 0, found.out
    other = run_command(capsys, "verify", tmp_path / "frames")
    assert other.status == 2
    assert "does not say where its graph comes from" in other.err


def test_gains_are_said_where_the_tables_have_moved(capsys, tmp_path):
    edges, nodes = write(tmp_path)
    certified(graycert.load_graph(edges, nodes=nodes, **LOADED)).save(tmp_path / "run")
    there = run_command(capsys, "inspect", tmp_path / "run", "--json").record
    assert there["gains"]
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    edges, nodes = edges.rename(moved / "p.csv"), nodes.rename(moved / "a.csv")
    assert (
        run_command(capsys, "inspect", tmp_path / "run", "--graph", edges, "--nodes", nodes, "--json").record == there
    )
    lost = run_command(capsys, "inspect", tmp_path / "run", "--json")
    assert lost.record["gains"] == []
    assert "is not said, because the graph is not at hand" in lost.err
    wrong = run_command(capsys, "inspect", tmp_path / "run", "--nodes", nodes)
    assert wrong.status == 2
    assert "pass `--graph`, and `--nodes`" in wrong.err


def test_a_changed_graph_does_not_verify(capsys, tmp_path):
    edges, nodes = write(tmp_path)
    data = graycert.load_graph(edges, nodes=nodes, **LOADED)
    data.x = data.x * 2
    certified(data).save(tmp_path / "run")
    assert run_command(capsys, "verify", tmp_path / "run").status == 1


def test_undirected_edges_stored_once_are_told(capsys, tmp_path):
    """A4: the remark has numbers and the option."""
    edges, nodes = write(tmp_path)
    found = run_command(capsys, "bounds", "--graph", edges)
    assert "no edge has its reverse (60 edges); if edges go both ways: undirected=True (--undirected)" in found.err
    both = run_command(capsys, "bounds", "--graph", edges, "--undirected")
    assert "no edge has its reverse" not in both.err
    quiet = run_command(capsys, "bounds", "--graph", edges, "--nodes", nodes, *SAID, "--quiet", "--json")
    assert quiet.err == ""
    assert quiet.record["graph"]["options"]["label"] == "verdict"


def test_class_names_are_kept_beside_weights_and_compared(capsys, tmp_path):
    """A5: a model that was trained with ok = 0 is not certified on a graph with fraud = 0."""
    edges, nodes = write(tmp_path)
    weights = tmp_path / "model.safetensors"
    trained = run_command(
        capsys, "train", "--graph", edges, "--nodes", nodes, *SAID, "--out", weights, "--max-epochs", "2", "--quiet"
    )
    assert trained.status == 0, trained.err
    for word in ("--class-names ok,fraud", "--nodes", "--undirected"):
        assert word in trained.out  # the advised command is about the same graph
    assert graycert.load_model(weights).class_names == ("ok", "fraud")
    turned = ("--graph", edges, "--nodes", nodes, "--label", "verdict", "--drop", "note", "--model", weights)
    found = run_command(capsys, "certify", *turned, "--out", tmp_path / "run", *FAST[4:])
    assert found.status == 2
    assert "must be those of the model's outputs, ok,fraud, got fraud,ok" in found.err
    assert "--class-names ok,fraud" in found.err
    right = run_command(capsys, "certify", *turned, "--class-names", "ok,fraud", "--out", tmp_path / "run", *FAST[4:])
    assert right.status == 0, right.err
    data = graycert.load_graph(edges, nodes=nodes, label="verdict", drop="note")
    with pytest.raises(InvalidParameterError, match="Number the classes as the model does"):
        graycert.certify(
            graycert.load_model(weights), data, smoothing=SMOOTHING, threat=graycert.NodeFeatureThreat(min_distance=1)
        )


def test_own_masks_are_used_unless_numbers_of_nodes_are_asked_for(capsys, tmp_path):
    """E7."""
    edges, nodes = write(tmp_path)
    data = graycert.load_graph(edges, nodes=nodes, **LOADED)
    for split in (graycert.inductive_split(data), graycert.transductive_split(data)):
        for part, mask in (
            (split.train, data.train_mask),
            (split.validation, data.val_mask),
            (split.test, data.test_mask),
        ):
            assert part.original[part.nodes].tolist() == mask.nonzero().view(-1).tolist()
        assert (split.seed, split.per_class, split.test_fraction) == (None, None, None)
    drawn = run_command(capsys, "certify", "--graph", edges, "--nodes", nodes, *SAID, "--out", tmp_path / "run", *FAST)
    assert drawn.status == 0, drawn.err
    run = graycert.Certificates.load(tmp_path / "run")
    assert run.setup.provenance["split"]["per_class"] == 5
    assert run.targets.tolist() == graycert.inductive_split(data, seed=0, per_class=5).test.nodes.tolist()
    wrong = run_command(
        capsys, "train", "--graph", edges, "--nodes", nodes, "--label", "verdict", "--drop", "note",
        "--split-column", "a", "--out", tmp_path / "m.safetensors",
    )  # fmt: skip
    assert wrong.status == 2
    assert "`a` of" in wrong.err
    assert "must say train, validation or test, got '0' in row 1" in wrong.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"val_mask": None}, "`data.val_mask` must mark nodes if there is no `seed`"),
        ({"test_mask": [0, 1]}, "the masks must not overlap, got node 0 in several"),
        ({"train_mask": []}, "`data.train_mask` must mark at least one node"),
        ({"train_mask": [2]}, "`data.train_mask` must mark nodes with labels, got 1 without"),
    ],
)
def test_masks_that_are_no_split(change, message):
    data = graycert.load_graph("wordnet_nouns")
    data.y[2] = -1
    for name, chosen in ({"train_mask": [0], "val_mask": [1], "test_mask": [3]} | change).items():
        if chosen is not None:
            data[name] = torch.zeros(data.num_nodes, dtype=torch.bool)
            data[name][chosen] = True
    with pytest.raises(InvalidParameterError, match=message):
        graycert.inductive_split(data)


@pytest.mark.deep
def test_ids_are_accepted_where_rows_are(tmp_path):
    """E8: targets and trusted nodes by name, whatever holds the names; repeated and unknown names are refused."""
    edges, nodes = write(tmp_path)
    data = graycert.load_graph(edges, nodes=nodes, **LOADED)
    for names in (["n3", "n1"], np.array(["n3", "n1"]), np.array(["n3", "n1"], dtype=object), pd.Series(["n3", "n1"])):
        assert certified(data, targets=names).targets.tolist() == [3, 1]
    trusted = graycert.NodeFeatureThreat(min_distance=1, trusted=["n1", "n3", "n5"])
    run = certified(data, targets=["n3"], threat=trusted)
    assert run.setup.threat.trusted.nonzero()[0].tolist() == [1, 3, 5]
    assert "3 trusted nodes excepted" in run.setup.threat.describe()
    mask = np.isin(np.arange(60), [1, 3, 5])
    same = certified(data, targets=[3], threat=graycert.NodeFeatureThreat(min_distance=1, trusted=mask))
    assert same.setup == run.setup
    deltas = {"smoothing": SMOOTHING, "num_layers": 2, "max_radius": 4}
    named = graycert.delta_bounds(data, ["n3"], threat=trusted, **deltas)
    indexed = graycert.delta_bounds(
        data, [3], threat=graycert.NodeFeatureThreat(min_distance=1, trusted=mask), **deltas
    )
    assert np.array_equal(named.delta_upper, indexed.delta_upper)
    assert run.again(data, threat=graycert.NodeFeatureThreat(min_distance=1, trusted=["n1", "n3", "n5", "n7"]))
    for targets, message in (
        (["n3", "n3"], "must be distinct, got node 3 more than once"),
        (["nobody"], "must be names in `data.node_ids`, got 'nobody'"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            certified(data, targets=targets)
    with pytest.raises(InvalidParameterError, match=r"`trusted` must be names in `data.node_ids`, got 'nobody'"):
        certified(data, threat=graycert.NodeFeatureThreat(min_distance=1, trusted=["nobody"]))
    with pytest.raises(InvalidParameterError, match="`trusted` must name distinct nodes, got 'n1'"):
        graycert.NodeFeatureThreat(trusted=["n1", "n1"])
    data.class_names = ["ok", "ok"]
    with pytest.raises(InvalidParameterError, match=r"`data.class_names` must be distinct, got 'ok' more than once"):
        certified(data)


def test_all_problems_of_the_tables_reach_the_terminal_one_a_line(capsys, tmp_path):
    edges, nodes = write(tmp_path)
    nodes.write_text(nodes.read_text().replace("n3,fraud,1,1,val", "n3,fraud,,x,val"))
    found = run_command(capsys, "certify", "--graph", edges, "--nodes", nodes, "--label", "verdict", "--drop", "note")
    assert found.status == 2
    first, *problems = found.err.splitlines()
    assert first == "error: `--graph`: 2 problems:"
    assert [line.startswith("- the feature") for line in problems] == [True, True]


@pytest.mark.deep
def test_a_sweep_takes_tables_as_certify_does(capsys, tmp_path, monkeypatch):
    """A sweep keeps what was said of its graph, so it goes on from any folder, and by the command that it shows."""
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    write(tmp_path / "in")
    small = ("--model", "gcn", "--max-epochs", "2", "--n0", "20", "--n1", "60", "--workers", "1")
    tables = ("--graph", "payments.csv", "--nodes", "accounts.csv", *SAID)
    found = run_command(capsys, "sweep", *tables, *small, "--budget", "2", "--out", tmp_path / "sweep", "--json")
    assert found.status == 0, found.err
    assert "classes are numbered as class_names says: 0 = ok, 1 = fraud" in found.err
    assert found.record["finished"] == 2
    for words in ("--nodes accounts.csv", "--class-names ok,fraud", "--undirected"):
        assert words in found.record["go_on"]
    kept = graycert.load_graph(tmp_path / "sweep" / "lab" / "payments.toml")
    assert torch.equal(kept.edge_index, graycert.load_graph("payments.csv", nodes="accounts.csv", **LOADED).edge_index)
    monkeypatch.chdir(tmp_path)
    again = ("--graph", "in/payments.csv", "--nodes", "in/accounts.csv", *SAID)
    more = run_command(
        capsys, "sweep", *again, *small, "--budget", "3", "--out", tmp_path / "sweep", "--json", "--quiet"
    )
    assert more.status == 0, more.err
    assert more.record["finished"] == 3
    turned = [each.replace("ok,fraud", "fraud,ok") for each in again]
    other = run_command(capsys, "sweep", *turned, *small, "--budget", "4", "--out", tmp_path / "sweep")
    assert other.status == 2
    assert "is another graph than the one that the results" in other.err


def test_a_description_says_what_a_graph_is(capsys, tmp_path, monkeypatch):
    edges, nodes = write(tmp_path)
    description = tmp_path / "accounts.toml"
    description.write_text(
        'graph = "payments.csv"\nnodes = "accounts.csv"\nlabel = "verdict"\nclass_names = ["ok", "fraud"]\n'
        'drop = "note"\nundirected = true\n'
    )
    data, expected = graycert.load_graph(description), graycert.load_graph(edges, nodes=nodes, **LOADED)
    assert torch.equal(data.edge_index, expected.edge_index)
    assert (data.preparation, data.graph_record) == (expected.preparation, expected.graph_record)
    assert graycert.load_graph(description, undirected=False).edge_index.size(1) == 60
    assert run_command(capsys, "bounds", "--graph", description, "--quiet").status == 0
    for text, message in (
        ("nodes = 3", "must have the key graph"),
        ('graph = "x.csv"\nlabels = "y"', "got labels"),
        ('graph = "y.toml"', "got another description"),
        ("graph =", "must be a TOML file"),
    ):
        description.write_text(text)
        with pytest.raises(InvalidFileError, match=message):
            graycert.load_graph(description)


def test_a_model_of_ones_own_is_trained_on_tables(capsys, tmp_path, monkeypatch):
    edges, nodes = write(tmp_path)
    (tmp_path / "own_sage.py").write_text(
        "from torch_geometric.nn import GraphSAGE\n\n\n"
        "def make(num_features, num_classes):\n"
        "    return GraphSAGE(num_features, 4, num_layers=2, out_channels=num_classes)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    tables, weights = ("--graph", edges, "--nodes", nodes, *SAID), tmp_path / "sage.safetensors"
    model = ("--model", "own_sage:make")
    trained = run_command(capsys, "train", *tables, *model, "--out", weights, "--max-epochs", "2", "--quiet")
    assert trained.status == 0, trained.err
    assert f"--model own_sage:make --weights {weights}" in trained.out
    turned = [str(each).replace("ok,fraud", "fraud,ok") for each in tables]
    other = run_command(capsys, "certify", *turned, *model, "--weights", weights, "--out", tmp_path / "run", *FAST[4:])
    assert (other.status, "must be those of the model's outputs, ok,fraud" in other.err) == (2, True)
    found = run_command(capsys, "certify", *tables, *model, "--weights", weights, "--out", tmp_path / "run", *FAST[4:])
    assert found.status == 0, found.err
