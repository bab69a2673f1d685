import json
import shutil
import tomllib

import numpy as np
import pytest

import graycert
from graycert.certificates import Certificates
from graycert.cli.declared import Chosen, certify_config, made, made_draws
from graycert.runs.store import FILES, MODEL_FILES
from support.commands import FAST, left_behind, run_command, summary_of, write_graph, write_tables


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph") / "ring.npz")


@pytest.fixture(scope="module")
def trained(tmp_path_factory, graph):
    """A run that trained its model."""
    from graycert.cli.main import main

    folder = tmp_path_factory.mktemp("trained") / "run"
    assert main(["certify", "--graph", str(graph), *FAST, "--seed", "3", "--out", str(folder)]) == 0
    return folder


def test_the_defaults_are_the_papers_main_setting():
    config = certify_config()()
    chosen = Chosen.of(dict(config))
    smoothing = made(chosen.smoothing, config)
    assert (config.graph, config.model, config.split, config.per_class, config.test_fraction) == (
        "wordnet_nouns",
        "gat",
        "inductive",
        20,
        0.1,
    )
    assert (config.train_p_delete, config.train_p_ablate) == (0.01, 0.6)
    assert smoothing == graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
    assert made_draws(chosen, config, smoothing) == graycert.Draws(num_selection=1000, num_estimation=3000)
    assert (chosen.threat, config.alpha) == (graycert.NodeFeatureThreat, 0.01)
    assert (config.max_epochs, config.patience, config.learning_rate, config.weight_decay) == (1000, 50, 1e-3, 5e-4)


def test_a_run_holds_files_model_and_everything_needed_to_repeat_it(trained, graph):
    assert left_behind(trained) == sorted([*FILES, *MODEL_FILES])
    assert left_behind(trained.parent) == sorted(["run", *(f"run/{name}" for name in [*FILES, *MODEL_FILES])])
    config = tomllib.loads((trained / "config.toml").read_text())
    provenance = config["provenance"]
    assert config["threat"]["min_distance"] == 1  # the model has a skip connection
    assert provenance["graph"]["source"] == str(graph)
    assert provenance["split"] == {
        "kind": "inductive",
        "seed": 3,
        "per_class": 5,
        "test_fraction": "0.1",
        "targets": "test",
    }
    assert provenance["training"]["epochs"] == 2
    assert provenance["model"]["config"]["skip"] is True
    assert len(provenance["model"]["weights_sha256"]) == 64
    assert {"graycert", "python", "torch", "pyg", "numpy", "scipy"} <= set(provenance["versions"])


@pytest.mark.deep
def test_the_same_command_gives_the_same_votes_and_another_seed_others(trained, graph, tmp_path, capsys):
    again = run_command(capsys, "certify", "--graph", graph, *FAST, "--seed", 3, "--out", tmp_path / "again")
    other = run_command(capsys, "certify", "--graph", graph, *FAST, "--seed", 4, "--out", tmp_path / "other")
    assert (again.status, other.status) == (0, 0)
    votes = {
        name: Certificates.load(path)
        for name, path in {"first": trained, "again": tmp_path / "again", "other": tmp_path / "other"}.items()
    }
    assert np.array_equal(votes["first"].estimation_votes, votes["again"].estimation_votes)
    assert not np.array_equal(votes["first"].targets, votes["other"].targets)


def test_text_names_the_files_and_json_is_one_object(trained, graph, tmp_path, capsys):
    text = run_command(capsys, "certify", "--graph", graph, *FAST, "--out", tmp_path / "text")
    assert text.status == 0
    assert f"Written to {tmp_path / 'text'}:" in text.out
    assert summary_of(tmp_path / "text") in text.out
    assert text.err == ""  # quiet
    found = run_command(capsys, "certify", "--graph", graph, *FAST, "--out", tmp_path / "json", "--json")
    assert found.record["summary"] == json.loads(json.dumps(found.record["summary"]))
    assert found.record["summary"]["num_targets"] == 6
    assert len(found.out.strip().splitlines()) == 1


def test_what_cannot_be_certified_is_told_before_the_votes(graph, tmp_path, capsys):
    loud = [argument for argument in FAST if argument != "--quiet"]
    found = run_command(capsys, "certify", "--graph", graph, *loud, "--p-ablate", "0", "--out", tmp_path / "run")
    assert found.status == 0
    assert "Nothing can be certified" in found.err


def test_saved_weights_are_certified_without_training(trained, graph, tmp_path, capsys):
    found = run_command(
        capsys,
        "certify",
        "--graph",
        graph,
        *FAST,
        "--seed",
        3,
        "--model",
        trained / "model.safetensors",
        "--out",
        tmp_path / "run",
    )
    assert found.status == 0
    assert found.err == ""
    first, again = Certificates.load(trained), Certificates.load(tmp_path / "run")
    assert np.array_equal(first.estimation_votes, again.estimation_votes)
    assert again.setup.provenance["model"]["weights_sha256"] == first.setup.provenance["model"]["weights_sha256"]
    by_name = run_command(
        capsys,
        "certify",
        "--graph",
        graph,
        *FAST,
        "--seed",
        3,
        "--weights",
        trained / "model.safetensors",
        "--out",
        tmp_path / "named",
    )
    assert by_name.status == 0
    assert np.array_equal(first.estimation_votes, Certificates.load(tmp_path / "named").estimation_votes)


def test_weights_of_another_split_are_warned_about(trained, graph, tmp_path, capsys):
    found = run_command(
        capsys,
        "certify",
        "--graph",
        graph,
        *FAST,
        "--seed",
        9,
        "--model",
        trained / "model.safetensors",
        "--out",
        tmp_path / "run",
    )
    assert found.status == 0
    assert "warning: the weights were trained on another split" in found.err
    assert "--seed 3" in found.err


def test_without_skip_the_target_itself_may_be_hostile(graph, tmp_path, capsys):
    found = run_command(
        capsys, "certify", "--graph", graph, *FAST, "--no-skip", "--model", "gcn", "--out", tmp_path / "r"
    )
    assert found.status == 0
    assert Certificates.load(tmp_path / "r").setup.threat.min_distance == 0


def test_targets_and_trusted_nodes_from_files(tmp_path, capsys):
    edges, nodes = write_tables(tmp_path)
    (tmp_path / "targets.txt").write_text("n7\n\nn3\n")
    (tmp_path / "trusted.txt").write_text("n5\nn9\n")
    found = run_command(
        capsys,
        "certify",
        "--graph",
        edges,
        "--nodes",
        nodes,
        *FAST,
        "--targets",
        tmp_path / "targets.txt",
        "--trusted",
        tmp_path / "trusted.txt",
        "--out",
        tmp_path / "run",
    )
    assert found.status == 0, found.err
    run = Certificates.load(tmp_path / "run")
    assert run.node_ids.tolist() == ["n7", "n3"]
    assert run.setup.class_names == ("even", "odd")
    assert np.flatnonzero(run.setup.threat.trusted).tolist() == [5, 9]
    assert run.num_eligible.tolist() == [2, 3]  # of four neighbours in two hops


def test_a_file_of_settings_stands_between_defaults_and_flags(graph, tmp_path, capsys):
    (tmp_path / "run.toml").write_text(
        f'graph = "{graph}"\nper_class = 5\nmax_epochs = 2\nn0 = 20\nn1 = 30\nalpha = 0.05\nundirected = true\n'
    )
    found = run_command(
        capsys, "certify", "--config", tmp_path / "run.toml", "--n1", 25, "--out", tmp_path / "run", "--quiet"
    )
    assert found.status == 0, found.err
    run = Certificates.load(tmp_path / "run")
    draws = run.setup.draws
    assert (draws.num_selection, draws.num_estimation) == (20, 25)
    assert (run.setup.alpha, run.setup.smoothing.p_delete) == (0.05, 0.31)
    assert run.setup.provenance["graph"]["options"] == {"undirected": True}


def test_a_class_of_the_user_is_certified_with_its_weights(graph, tmp_path, capsys, monkeypatch):
    from safetensors.torch import save_file
    from torch_geometric.nn import GCN

    (tmp_path / "my_models.py").write_text(
        "from torch_geometric.nn import GCN\n"
        "def make(in_channels, out_channels):\n    return GCN(in_channels, 8, 2, out_channels)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    save_file(GCN(4, 8, 2, 2).state_dict(), tmp_path / "w.safetensors")
    found = run_command(
        capsys,
        "certify",
        "--graph",
        graph,
        *FAST,
        "--model",
        "my_models:make",
        "--weights",
        "w.safetensors",
        "--out",
        "r",
    )
    assert found.status == 0, found.err
    run = Certificates.load(tmp_path / "r")
    assert (run.setup.num_layers, run.setup.threat.min_distance) == (2, 0)
    assert left_behind(tmp_path / "r") == sorted(FILES)  # the class is not graycert's to save


@pytest.mark.parametrize("skip", ["nn.Linear(in_channels, out_channels)", "nn.Parameter(torch.zeros(out_channels))"])
def test_an_attribute_called_skip_that_is_no_flag_changes_nothing(skip, graph, tmp_path, capsys, monkeypatch):
    name = "linear" if "Linear" in skip else "parameter"
    (tmp_path / f"my_{name}.py").write_text(
        "import torch\nfrom torch import nn\nfrom torch_geometric.nn import GCNConv\n"
        "class Model(nn.Module):\n"
        "    def __init__(self, in_channels, out_channels):\n"
        "        super().__init__()\n"
        f"        self.skip = {skip}\n"
        "        self.conv = GCNConv(in_channels, out_channels)\n"
        "        nn.init.normal_(self.conv.bias)\n"
        "    def forward(self, x, edge_index):\n"
        "        return self.conv(x, edge_index)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = run_command(capsys, "certify", "--graph", graph, *FAST, "--model", f"my_{name}:Model", "--out", "r")
    assert found.status == 0, found.err
    assert Certificates.load(tmp_path / "r").setup.threat.min_distance == 0


def test_an_earlier_run_is_replaced_only_when_asked_to(trained, graph, tmp_path, capsys):
    copy = tmp_path / "run"
    shutil.copytree(trained, copy)
    refused = run_command(capsys, "certify", "--graph", graph, *FAST, "--out", copy)
    assert refused.status == 2
    assert "--overwrite" in refused.err
    assert Certificates.load(copy).setup.seed == 3
    replaced = run_command(capsys, "certify", "--graph", graph, *FAST, "--out", copy, "--overwrite")
    assert replaced.status == 0
    assert Certificates.load(copy).setup.seed == 0
    assert left_behind(tmp_path)[0] == "run"  # nothing hidden beside it


def test_the_default_run_directory_is_named_after_graph_and_time(graph, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run_command(capsys, "certify", "--graph", graph, *FAST, "--json")
    (made,) = (tmp_path / "runs").iterdir()
    assert found.record["out"] == str(made)
    assert made.name.startswith("certify-ring-")


def test_an_unwritable_place_is_refused_before_training(capsys):
    """/proc takes no folders, not even from root, although it looks writable to root."""
    found = run_command(capsys, "certify", "--max-epochs", "1", "--out", "/proc/graycert-run")
    assert found.status == 2
    assert "must be writable" in found.err
    assert "training" not in found.err


def test_an_edge_table_alone_asks_for_its_node_table(tmp_path, capsys):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    found = run_command(capsys, "certify", "--graph", tmp_path / "edges.csv", "--out", tmp_path / "run")
    assert found.status == 2
    assert "`--nodes`" in found.err
    assert not (tmp_path / "run").exists()
