"""`graycert sweep`: what it refuses, what it shows, and that a killed sweep goes on."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from support.commands import left_behind, run_command, write_graph

PATIENCE = 240.0  # seconds after which a sweep that should have got somewhere is taken to hang


@pytest.fixture
def graph(tmp_path):
    return write_graph(tmp_path / "ring.npz", extra_edges=20)


def arguments(graph, out, *more):
    fast = ("--model", "gcn", "--per-class", "3", "--max-epochs", "3", "--n0", "20", "--n1", "60", "--seed", "4")
    return ["sweep", "--graph", str(graph), *fast, "--out", str(out), *map(str, more)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "own:Net", "--skip"), "`skip` must be left out for a class of your own, which is built as it is"),
        (
            ("--model", "no_such:Net", "--per-class", "5"),
            "`model` must name something that can be imported, got 'no_such:Net'",
        ),
        (("--budget", "0"), "`budget` must be a whole number of trials or a time, got '0'"),
        (("--budget", "soon"), "`budget` must be a whole number of trials or a time, got 'soon'"),
        (("--model", "mlp"), "`model` must be gcn, gat, gatv2, sma or package.module:Class, got 'mlp'"),
        (("--smooth", "everything"), "`smooth` must be one of 'both', 'deletion', 'ablation', got 'everything'"),
        (("--sampler", "grid"), "`sampler` must be one of 'random', 'nsga2', 'tpe', got 'grid'"),
        (("--max-epochs", "0"), "`max_epochs` must be greater than or equal to 1, got '0'"),
        (("--learning-rate", "0"), "`learning_rate` must be greater than 0, got '0'"),
        (("--workers", "0"), "`workers` must be greater than or equal to 1, got '0'"),
        (("--alpha", "1"), "`alpha` must be in (0, 1), got 1.0"),
        (("--out", "/proc/sweep"), "`--out` must be writable"),
        (("--graph", "nowhere.npz"), "nowhere.npz"),
        (("--per-class", "500"), "500"),
    ],
)
def test_wrong_options_are_told_before_anything_is_done(options, message, graph, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run_command(capsys, "sweep", "--quiet", *(() if "--graph" in options else ("--graph", graph)), *options)
    assert found.status == 2
    assert message in found.err
    assert found.err.startswith("error: ")
    assert found.err.count("\n") == 1
    assert not [name for name in left_behind(tmp_path) if name.endswith(("sweep.toml", "asked.json"))]


def test_a_skip_connection_cannot_be_certified_against_the_target_itself(graph, tmp_path, capsys):
    found = run_command(capsys, *arguments(graph, tmp_path / "out", "--min-distance", 0, "--quiet"))
    assert found.status == 3
    assert "--no-skip" in found.err


def test_a_folder_of_something_else_is_left_alone(graph, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    found = run_command(capsys, *arguments(graph, tmp_path, "--quiet"))
    assert found.status == 2
    assert "`--out` must be a new folder or that of a sweep" in found.err
    assert left_behind(tmp_path) == ["notes.txt", "ring.npz"]


def test_a_first_try_with_wrong_options_does_not_spoil_the_folder(graph, tmp_path, capsys):
    for _ in range(2):
        found = run_command(capsys, "sweep", "--graph", graph, "--per-class", 500, "--out", tmp_path / "out", "--quiet")
        assert found.status == 2
        assert "500" in found.err


def comparable(out):
    return pd.read_parquet(out / "trials.parquet").drop(columns="seconds")


@pytest.mark.processes
@pytest.mark.end_to_end
def test_a_killed_sweep_goes_on_and_ends_as_an_undisturbed_one(graph, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    killed, calm = tmp_path / "killed", tmp_path / "calm"
    command = arguments(graph, killed, "--workers", 2, "--budget", 4)
    program = [sys.executable, "-c", "import sys; from graycert.cli.main import main; sys.exit(main())", *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(program, env=environment, start_new_session=True, stderr=subprocess.PIPE) as process:
        ends = time.monotonic() + PATIENCE
        while not list(killed.glob("lab/results/certify/*.npz")):
            assert process.poll() is None
            assert time.monotonic() < ends, "no trial is done"
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert not (killed / "pareto.png").exists()

    on = run_command(capsys, *command, "--quiet", "--json")
    assert (on.status, on.err) == (0, "")
    undisturbed = run_command(capsys, *arguments(graph, calm, "--workers", 1, "--budget", 4, "--quiet"))
    assert undisturbed.status == 0
    pd.testing.assert_frame_equal(comparable(killed), comparable(calm), check_exact=True)
    assert comparable(calm)["index"].tolist() == [0, 1, 2, 3]

    record = on.record
    assert (record["command"], record["finished"], record["failed"]) == ("sweep", 4, [])
    assert record["best_accuracy"] == comparable(calm)["clean_accuracy"].max()
    assert {Path(file).name for file in record["files"]} == {"trials.parquet", "pareto.png", "pareto.pdf"}
    assert all(Path(file).stat().st_size > 500 for file in record["files"])
    assert "GCN with skip on ring, deletion and ablation smoothed: 4 trials." in undisturbed.out
    for trial in record["dominating"]:
        assert f"{trial['p_delete']:.3f}  {trial['p_ablate']:.3f}" in undisturbed.out

    go_on = undisturbed.out.strip().splitlines()[-1].strip()
    assert go_on.endswith("--out calm --budget 8")
    words = shlex.split(go_on)[1:]
    again = run_command(capsys, *words[:-1], 4, "--quiet", "--json")  # the same budget: nothing is left to do
    assert again.record["finished"] == 4

    other = run_command(capsys, *arguments(graph, calm, "--quiet", "--learning-rate", 0.5))
    assert other.status == 2
    assert "differs in settings.training.learning_rate (0.001 there, 0.5 here)" in other.err
