import csv
import json
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import graycert
from graycert.bounds import delta_bounds, largest_certifiable_radius
from graycert.cli.main import main
from graycert.runs.store import MODEL_FILES
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat
from support.certificates import small_certificates
from support.commands import FAST, left_behind, run_command, write_graph, write_tables


def test_help_and_version_load_neither_torch_nor_pandas_nor_scipy():
    code = (
        "import sys; from graycert.cli.main import main; status = main(['certify', '--help']) + main(['--version']);"
        "sys.exit(status or any(name in sys.modules for name in ('torch', 'pandas', 'scipy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith(graycert.__version__)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["datasets"], 0),
        (["report", "RUN"], 0),
        (["compare", "RUN", "RUN"], 0),
        (["certify", "--model", "gta"], 2),
        (["certify", "--out", "/proc/run"], 2),
        (["train", "--learning-rate", "-1"], 2),
        (["bounds", "--p-delete", "2"], 2),
        (["verify", "/no/such/run"], 2),
        (["reproduce", "--list"], 0),
        (["reproduce", "fig-99"], 2),
        (["sweep", "--budget", "0"], 2),
    ],
)
def test_what_needs_no_model_loads_no_torch(arguments, status, tmp_path):
    run = str(small_certificates().save(tmp_path / "run")) if "RUN" in arguments else ""
    words = [run if word == "RUN" else word for word in arguments]
    code = (
        f"import sys; from graycert.cli.main import main; status = main({words!r});"
        "loaded = [name for name in ('torch', 'torch_geometric', 'numba') if name in sys.modules];"
        f"sys.exit(f'status {{status}}, loaded {{loaded}}' if status != {status} or loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


ALL_OF_RING = ("--graph", "ring.npz", "--targets", "all", "--num-selection", "20", "--num-estimation", "20", "--quiet")
OF_VOTES = ("--per-class", "5", "--max-epochs", "2", "--quiet")
SELDOM = ("torch._dynamo", "torch.distributions", "torch_geometric.datasets")
SELDOM += ("sympy", "sklearn", "matplotlib", "optuna", "distributed")


@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        (["--help"], ("torch", "numba", "scipy", "pandas", "pyarrow")),
        (["datasets"], ("torch", "numba", "scipy", "pandas", "pyarrow")),
        (["report", "RUN"], ("torch", "torch_geometric", "numba", "pandas", "joblib")),
        (["compare", "RUN", "RUN"], ("torch", "torch_geometric", "numba", "joblib")),
        (["inspect", "run"], ("torch", "torch_geometric", "pandas", "joblib")),
        (["inspect", "votes"], ("torch", "torch_geometric", "pandas", "joblib")),
        (["report", "run", "--graph", "stored"], ("torch", "torch_geometric", "pandas", "joblib")),
        (["bounds", "--graph", "ring.npz"], ("torch", "torch_geometric", "pandas", "pyarrow", "joblib")),
        (["certify", "--model", "run/model.safetensors", "--out", "again", *ALL_OF_RING], ("pandas",)),
        (["verify", "run"], ("pandas",)),  # whose model is asked
        (["verify", "run-without-model"], ("torch", "torch_geometric", "pandas", "joblib")),
        (["verify", "votes-without-model"], ("torch", "torch_geometric", "pandas", "joblib")),
    ],
    ids=lambda each: each[0] if each else "",
)
def test_a_command_loads_what_it_needs(arguments, without, tmp_path):
    write_graph(tmp_path / "ring.npz")
    run = str(small_certificates().save(tmp_path / "small"))
    words = [run if word == "RUN" else word for word in arguments]
    for kind, options in (("run", ()), ("votes", ("--smoothing", "votes", "--min-distance", "1", *OF_VOTES))):
        named = [word for word in words if word.partition("/")[0].removesuffix("-without-model") == kind]
        if named:
            given = ["certify", "--graph", str(tmp_path / "ring.npz"), "--out", str(tmp_path / kind)]
            assert main([*given, *(options or FAST)]) == 0
            shutil.copytree(tmp_path / kind, tmp_path / f"{kind}-without-model", ignore=lambda *_: MODEL_FILES)
    code = (
        "import sys; from graycert._lazy import is_loaded; from graycert.cli.main import main;"
        f"status = main({words!r}); loaded = [name for name in {(*SELDOM, *without)!r} if is_loaded(name)];"
        "sys.exit(f'status {status}, loaded {loaded}' if status or loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_bare_command_says_what_to_do_first(capsys):
    found = run_command(capsys)
    assert found.status == 0
    assert "First steps" in found.out


COMMANDS = ["certify", "train", "bounds", "verify", "compare", "report", "reproduce", "sweep", "datasets"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, capsys):
    found = run_command(capsys, command, "--help")
    assert found.status == 0
    assert f"Usage: graycert {command}" in found.out


def test_ctrl_c_ends_with_130(capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("graycert.data.catalogue.describe_datasets", interrupt)
    found = run_command(capsys, "datasets")
    assert found.status == 130
    assert found.err.startswith("error: interrupted")


def test_unforeseen_failures_are_one_line_and_a_traceback_only_on_demand(capsys, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr("graycert.data.catalogue.describe_datasets", fail)
    found = run_command(capsys, "datasets")
    assert (found.status, found.err) == (1, "error: RuntimeError: broken (run again with --debug to see where).\n")
    assert "Traceback" in run_command(capsys, "datasets", "--debug").err


def test_datasets_says_what_is_at_hand(tmp_path, capsys):
    (tmp_path / "citeseer.npz").touch()
    found = run_command(capsys, "datasets", "--data-root", tmp_path, "--json")
    rows = {row["name"]: row for row in found.record["datasets"]}
    assert rows["wordnet_nouns"]["available"] == "embedded"
    assert rows["citeseer"]["path"] == str(tmp_path / "citeseer.npz")
    assert rows["ms_academic_cs"]["available"] == "absent"
    text = run_command(capsys, "datasets", "--data-root", tmp_path).out
    assert all(row["licence"] in text and row["source"] in text for row in rows.values())


def test_bounds_are_those_of_the_library(tmp_path, capsys):
    graph = write_graph(tmp_path / "ring.npz", extra_edges=7)
    flags = ["--p-delete", "0.2", "--p-ablate", "0.8", "--max-radius", "5", "--min-distance", "0"]
    for name in ("b.csv", "b.parquet"):
        found = run_command(capsys, "bounds", "--graph", graph, *flags, "--out", tmp_path / name, "--json")
        assert found.status == 0, found.err
    table, parquet = pd.read_csv(tmp_path / "b.csv"), pd.read_parquet(tmp_path / "b.parquet")
    expected = delta_bounds(
        graycert.load_graph(graph),
        np.arange(60),
        smoothing=InterceptionSmoothing(p_delete=0.2, p_ablate=0.8),
        threat=NodeFeatureThreat(),
        num_layers=2,
        max_radius=5,
    ).delta_upper
    columns = [f"delta_{radius}" for radius in range(1, 6)]
    assert np.array_equal(table[columns].to_numpy(), expected)  # a CSV keeps every digit
    assert np.array_equal(parquet[columns].to_numpy(), expected)
    largest = largest_certifiable_radius(expected)
    assert table["largest_radius"].tolist() == np.minimum(largest, table["num_eligible"]).tolist()
    assert [row["certifiable"] for row in found.record["per_radius"]] == [
        int((largest >= r).sum()) for r in range(1, 6)
    ]
    assert left_behind(tmp_path) == ["b.csv", "b.parquet", "ring.npz"]


def test_bounds_need_no_features_and_name_nodes(tmp_path, capsys):
    edges, _ = write_tables(tmp_path)
    (tmp_path / "t.txt").write_text("n4\n")
    found = run_command(
        capsys, "bounds", "--graph", edges, "--targets", tmp_path / "t.txt", "--out", tmp_path / "b.csv"
    )
    assert found.status == 0, found.err
    with (tmp_path / "b.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["node_id"], row["num_eligible"]) == ("n4", "4")
    assert "1 nodes, p_d = 0.31, p_a = 0.794" in found.out


def test_training_writes_weights_that_certify_takes(tmp_path, capsys):
    graph = write_graph(tmp_path / "ring.npz")
    common = ["--graph", graph, "--per-class", 5, "--quiet"]
    found = run_command(
        capsys, "train", *common, "--max-epochs", 2, "--model", "sma", "--no-skip", "--out", tmp_path / "m.safetensors"
    )
    assert found.status == 0, found.err
    assert left_behind(tmp_path) == ["m.json", "m.safetensors", "ring.npz"]
    model = graycert.load_model(tmp_path / "m.safetensors")
    assert (model.config.architecture, model.skip) == ("sma", False)
    found = run_command(
        capsys,
        "certify",
        *common,
        "--model",
        tmp_path / "m.safetensors",
        "--n0",
        20,
        "--n1",
        20,
        "--out",
        tmp_path / "r",
    )
    assert found.status == 0, found.err
    run = graycert.Certificates.load(tmp_path / "r")
    assert run.setup.provenance["training"]["epochs"] == 2
    again = run_command(capsys, "train", *common, "--out", tmp_path / "m.safetensors")
    assert again.status == 2
    assert "--overwrite" in again.err


def test_classes_count_in_training_as_the_options_say(tmp_path, capsys):
    graph = write_graph(tmp_path / "ring.npz")
    found = {}
    for name, options in {"plain": [], "balanced": ["balanced"], "weighted": ["9,1"]}.items():
        options = options and ["--class-weight", *options, "--stop-on", "balanced accuracy"]
        out = tmp_path / f"{name}.safetensors"
        words = ["--graph", graph, "--per-class", 5, "--max-epochs", 3, "--model", "gcn", "--quiet", "--out", out]
        assert run_command(capsys, "train", *words, *options).status == 0
        found[name] = json.loads(out.with_suffix(".json").read_text())["notes"]["training"]
    assert [found[name].get("class_weight") for name in found] == [None, "balanced", [9.0, 1.0]]
    assert [each["stop_on"] for each in found.values()] == ["loss", "balanced accuracy", "balanced accuracy"]
    split = graycert.inductive_split(graycert.load_graph(graph), seed=0, per_class=5)
    model = graycert.build_model("gcn", split, skip=True)
    smoothing = graycert.InterceptionSmoothing(p_delete=0.01, p_ablate=0.6)
    record = graycert.train(
        model, split, smoothing=smoothing, class_weight=[9, 1], stop_on="balanced accuracy", max_epochs=3
    )
    assert record.best_validation_loss == found["weighted"]["best_validation_loss"]
    assert record.best_validation_loss != found["balanced"]["best_validation_loss"]
