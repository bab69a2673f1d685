"""`--smoothing votes`: from tables to report in one command, the model distilled, kept, repeated and verified."""

import numpy as np
import pytest
import torch

import graycert
from graycert.training import default_teacher
from support.commands import FAST, run_command, write_graph, write_tables

FEW = FAST[:2]


class MeanOfNeighbours(torch.nn.Module):
    """A class of a user that moves messages."""

    def __init__(self, num_features, num_classes):
        super().__init__()
        self.linear = torch.nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index):
        own = self.linear(x)
        return own.index_add(0, edge_index[1], own[edge_index[0]])


class OneLayer(torch.nn.Module):
    """A class of a user that sees single nodes."""

    def __init__(self, num_features, num_classes):
        super().__init__()
        self.linear = torch.nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index):
        del edge_index
        return torch.stack([self.linear(row) for row in x])


@pytest.mark.deep
def test_from_tables_to_report_in_one_command(capsys, tmp_path):
    edges, nodes = write_tables(tmp_path)
    options = ("--graph", edges, "--nodes", nodes, *FEW, "--smoothing", "votes", "--num-voters", "20")
    found = run_command(capsys, "certify", *options, "--out", tmp_path / "run")
    assert found.status == 0, found.err
    assert "distilled from appnp" in found.err
    run = graycert.Certificates.load(tmp_path / "run")
    assert isinstance(run.setup.smoothing, graycert.BoundedVotes)
    assert run.setup.smoothing.num_voters == 20
    assert run.setup.smoothing.target_votes  # by default the target may be hostile
    assert run.setup.provenance["training"]["distilled_from"] == "appnp"
    assert (tmp_path / "run" / "report.html").exists()
    model = graycert.load_model(tmp_path / "run" / "model.safetensors")
    assert isinstance(model, graycert.NodeModel)
    checked = run_command(capsys, "verify", tmp_path / "run", "--redraw")
    assert checked.status == 0, checked.out
    assert "ok    ballots" in checked.out
    again = run_command(
        capsys, "certify", "--config", tmp_path / "run" / "config.toml", "--spread-labels", "--min-distance", "1",
        *("--model", tmp_path / "run" / "model.safetensors", "--out", tmp_path / "again"),
    )  # fmt: skip
    assert again.status == 0, again.err
    second = graycert.Certificates.load(tmp_path / "again")
    assert np.array_equal(second.ballots, run.ballots)
    known = second.setup.smoothing.label_propagation
    assert (known >= 0).sum() == 10
    assert np.array_equal(np.unique(known), [-1, 0, 1])
    assert "From its own features alone (the floor)" in again.out
    assert "not computed" not in again.out


@pytest.mark.deep
def test_the_same_command_gives_the_same_votes(capsys, tmp_path):
    graph = write_graph(tmp_path / "toy.npz")
    runs = []
    for name in ("first", "second"):
        options = ("--graph", graph, *FEW, "--smoothing", "votes", "--out", tmp_path / name)
        source = ("--config", tmp_path / "first" / "config.toml", "--out", tmp_path / name) if runs else options
        assert run_command(capsys, "certify", *source).status == 0
        runs.append(graycert.Certificates.load(tmp_path / name))
    assert np.array_equal(runs[0].ballots, runs[1].ballots)


@pytest.mark.deep
@pytest.mark.parametrize("limits", [(), ("--max-epochs", "2")])
def test_limits_that_are_given_are_those_of_teacher_and_student_also_when_repeated(capsys, tmp_path, limits):
    graph, runs = write_graph(tmp_path / "toy.npz"), []
    for name in ("first", "second"):
        options = ("--graph", graph, *FEW, "--smoothing", "votes", *limits)
        source = ("--config", tmp_path / "first" / "config.toml") if runs else options
        assert run_command(capsys, "certify", *source, "--out", tmp_path / name, "--brief").status == 0
        runs.append(graycert.Certificates.load(tmp_path / name).ballots)
    assert np.array_equal(*runs)
    split = graycert.inductive_split(graycert.load_graph(graph), seed=0, per_class=5)
    said = {"max_epochs": 2} if limits else {}
    teacher = default_teacher(split, seed=0, **said)
    model = graycert.distill(split, teacher, seed=0, **said)
    expected = graycert.certify(
        model, split.test.data, targets=split.test.nodes, smoothing=graycert.BoundedVotes(),
        threat=graycert.NodeFeatureThreat(),
    )  # fmt: skip
    assert np.array_equal(runs[0], expected.ballots)


def test_train_distils_the_user_s_own_teacher(capsys, tmp_path):
    graph, weights = write_graph(tmp_path / "toy.npz"), tmp_path / "m.safetensors"
    teacher = ("--model", "cli.test_distilling:MeanOfNeighbours", "--max-epochs", "5", "--learning-rate", "0.01")
    found = run_command(capsys, "train", "--graph", graph, *FEW, "--smoothing", "votes", *teacher, "--out", weights)
    assert found.status == 0, found.err
    assert "Distilled from cli.test_distilling:MeanOfNeighbours" in found.out
    assert f"--smoothing votes --model {weights}" in found.out
    assert isinstance(graycert.load_model(weights), graycert.NodeModel)
    used = run_command(
        capsys, "certify", "--graph", graph, *FEW, "--smoothing", "votes", "--model", weights, "--out", tmp_path / "run"
    )
    assert used.status == 0, used.err
    assert "distill" not in used.err


def test_a_model_of_single_nodes_is_certified_as_it_is_and_another_is_the_teacher(tmp_path):
    from graycert.cli.distilling import _sees_single_nodes

    data = graycert.load_graph(write_graph(tmp_path / "toy.npz"))
    assert _sees_single_nodes(OneLayer(4, 2), data)
    assert not _sees_single_nodes(MeanOfNeighbours(4, 2), data)
    assert not _sees_single_nodes(graycert.build_model("gcn", data), data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "appnp"), "`model` must be"),
        (("--spread-labels",), "belongs to --smoothing votes"),
        (("--smoothing", "votes", "--model", "mlp"), "`model` must be"),
        (("--smoothing", "votes", "--p-delete", "0.3"), "`--p-delete` belongs to"),
        (("--smoothing", "votes", "--class-weight", "balanced"), "`--class-weight` belongs to a model that is trained"),
        (("--weights", "w.safetensors", "--stop-on", "accuracy"), "`--stop-on` belongs to a model that is trained"),
        (("--class-weight", "equal"), "`--class-weight` must be balanced, or a number per class"),
    ],
)
def test_what_does_not_go_together_is_refused_before_a_graph_is_loaded(capsys, options, message):
    found = run_command(capsys, "certify", *options)
    assert found.status == 2
    assert message in found.err


@pytest.mark.deep
def test_tune_chooses_votes_on_validation_nodes_and_stores_the_choice(capsys, tmp_path):
    graph, out = write_graph(tmp_path / "toy.npz"), tmp_path / "tuned"
    found = run_command(
        capsys, "tune", "--graph", graph, *FEW, "--smoothing", "votes", "--min-distance", "1", "--out", out
    )
    assert found.status == 0, found.err
    assert "Recommended: num_voters = " in found.out
    line = found.out.strip().splitlines()[-1].split()
    assert line[:2] == ["graycert", "certify"]
    used = run_command(capsys, *line[1:], "--out", tmp_path / "run")
    assert used.status == 0, used.err
    run = graycert.Certificates.load(tmp_path / "run")
    options = run.setup.provenance["options"]
    assert f"--num-voters {options['num_voters']}" in " ".join(line)
    assert options["spread_labels"] == ("--spread-labels" in line)
    assert options["min_distance"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--want", "accuracy=0.9"), "`--want` belongs to --smoothing interception"),
        (("--threat", "edge-deletion"), "`--threat` must be node-features"),
        (("--n1", "100"), "num-estimation"),
    ],
)
def test_what_does_not_go_with_votes_is_refused(capsys, options, message):
    found = run_command(capsys, "tune", "--smoothing", "votes", *options)
    assert found.status == 2
    assert message in found.err
