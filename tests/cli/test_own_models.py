"""A class of the user on the user's tables, through every command that takes one."""

import sys

import numpy as np
import pytest

import graycert
from graycert.reproduction.lab import Lab
from graycert.reproduction.settings import Conclusion, TrainingSettings
from graycert.reproduction.smoothing_sweep import SmoothingSweep
from support.commands import run_command, write_tables

MODULE = """\
import torch
from torch_geometric.nn import GCNConv, GraphSAGE


def sage(num_features, num_classes):
    return GraphSAGE(num_features, 4, num_layers=3, out_channels=num_classes)


class Convolved(torch.nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.first = GCNConv(in_channels, out_channels)

    def forward(self, x, edge_index):
        return self.first(x, edge_index)


class Leaky(Convolved):
    def forward(self, x, edge_index):
        return super().forward(x - x.mean(dim=0), edge_index)
"""


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Two tables and a module beside them, in the working folder and nowhere on Python's path."""
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path)
    name = f"own_{tmp_path.name}"  # modules are imported once per process
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    return name


GRAPH = ("--graph", "edges.csv", "--nodes", "nodes.csv")
SMALL = ("--per-class", "5", "--max-epochs", "2", "--n0", "20", "--n1", "60")


def sweep(capsys, name, *more, out="sweep", workers=1, budget=2):
    arguments = ("--model", name, "--out", out, "--budget", budget, "--workers", workers, "--json", "--quiet", *more)
    return run_command(capsys, "sweep", *GRAPH, *SMALL, *arguments)


@pytest.mark.deep
def test_steps_of_a_model_are_those_of_the_bounds(tables, capsys):
    def radii(*more):
        found = run_command(capsys, "bounds", *GRAPH, "--json", "--quiet", *more)
        assert found.status == 0, found.err
        return found.record["options"]["num_layers"], found.record["per_radius"]

    assert radii("--model", f"{tables}:sage") == radii("--num-layers", "3", "--min-distance", "0")
    assert radii("--model", f"{tables}:Convolved", "--min-distance", "1") == radii("--num-layers", "1")
    deleted = ("--threat", "node-deletion", "--bound", "multiplicative")
    by_model = radii("--model", f"{tables}:Convolved", *deleted)
    assert by_model == radii("--num-layers", "1", "--convolution", "degree-normalised", *deleted)
    assert by_model != radii("--num-layers", "1", "--convolution", "local", *deleted)
    assert radii("--model", "gat") == radii()
    refused = run_command(capsys, "bounds", *GRAPH, "--model", f"{tables}:Leaky", "--quiet")
    assert refused.status == 3
    wrong = run_command(capsys, "bounds", *GRAPH, "--model", f"{tables}:sage", "--num-layers", "2", "--quiet")
    assert wrong.status == 3
    without = run_command(capsys, "bounds", "--graph", "edges.csv", "--model", f"{tables}:sage", "--quiet")
    assert (without.status, "`data.x` must hold the node features" in without.err) == (2, True)


@pytest.mark.processes
@pytest.mark.end_to_end
def test_a_sweep_trains_a_class_of_the_user_in_every_worker(tables, tmp_path, capsys):
    found = sweep(capsys, f"{tables}:sage", workers=2)
    assert found.status == 0, found.err
    assert (found.record["finished"], found.record["failed"]) == (2, [])
    assert f"--model {tables}:sage" in found.record["go_on"]
    trials = SmoothingSweep(
        training=TrainingSettings(graph="edges.toml", architecture=f"{tables}:sage", per_class=5, max_epochs=2),
        conclusions=(Conclusion(min_distance=2, bound="auto"),),
        num_selection=20,
        num_estimation=60,
        num_trials=2,
        seed=0,
    )
    lab = Lab(tmp_path / "sweep" / "lab")
    data = lab.graph("edges.toml")
    assert data.graph_record["source"].endswith("edges.csv")
    for job in trials.jobs():  # the same jobs from Python, and the same numbers from `certify`
        assert job in lab.results
        model = lab.model(job.model)
        expected = graycert.certify(
            model,
            data,
            targets=lab.split(job.model).test.nodes.numpy(),
            smoothing=job.smoothing.made(),
            threat=graycert.NodeFeatureThreat(min_distance=2),
            draws=graycert.Draws(num_selection=20, num_estimation=60),
            max_radius=40,
        )
        assert expected.setup.num_layers == 3
        assert np.array_equal(lab.results[job][f"{job.conclusions[0].name}/radius"], expected.radius)
    source = tmp_path / f"{tables}.py"
    source.write_text(source.read_text().replace("sage(num_features", "sage( num_features"))
    changed = sweep(capsys, f"{tables}:sage", budget=3)
    assert changed.status == 2
    assert f"{tables}:sage is another than the results in" in changed.err


def test_a_sweep_refuses_what_no_trial_could_certify(tables, capsys):
    assert sweep(capsys, f"{tables}:Leaky").status == 3
    wrong = sweep(capsys, f"{tables}:sage", "--num-layers", 2)
    assert (wrong.status, "num_layers" in wrong.err) == (3, True)


@pytest.mark.deep
@pytest.mark.parametrize("num_workers", [1, pytest.param(2, marks=pytest.mark.processes)])
def test_an_experiment_takes_tables_and_a_class_of_the_user(tables, tmp_path, capsys, num_workers):
    (tmp_path / "accounts.toml").write_text('graph = "edges.csv"\nnodes = "nodes.csv"\n')
    (tmp_path / "mine.toml").write_text(
        'id = "mine"\ntitle = "Ours"\nsource = "our own"\ndescription = "GraphSAGE on accounts."\nkind = "curves"\n'
        f'[settings]\nquantity = "certified ratio"\ngraph = "accounts.toml"\narchitecture = "{tables}:sage"\n'
        "seeds = [13, 17]\nper_class = 5\nmax_epochs = 2\nnum_selection = 20\nnum_estimation = 60\nlast_radius = 3\n"
        '[[settings.curves]]\nlabel = "distance >= 1"\np_delete = 0.3\np_ablate = 0.9\n'
    )
    found = run_command(
        capsys, "reproduce", "mine.toml", "--out", "figures", "--workers", num_workers, "--json", "--quiet"
    )
    assert found.status == 0, found.err + found.out
    (record,) = found.record["experiments"]
    assert not record["problem"]
    assert len(list((tmp_path / "figures" / "lab" / "models").glob("*.safetensors"))) == 2
