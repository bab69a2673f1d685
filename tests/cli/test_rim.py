"""At the rim: two writers of one place, a full disk, a device that is not there, and SIGTERM (CASES.md F8, F10)."""

import errno
import os
import signal
from pathlib import Path

import pytest
import torch
from filelock import FileLock

from graycert.certificates import Certificates
from graycert.cli import graphs
from graycert.cli.places import claimed, default_run
from graycert.errors import InvalidFileError
from support.commands import FAST, left_behind, run_command, write_graph

OF_SWEEP = ("--budget", "1", "--quiet", "--per-class", "5", "--max-epochs", "2", "--workers", "1")


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return write_graph(tmp_path / "in" / "ring.npz")


# --- F8: two commands, one --out


@pytest.mark.parametrize("command", ["certify", "train", "bounds"])
def test_the_second_writer_is_refused_before_it_works(capsys, tmp_path, graph, monkeypatch, command):
    out = tmp_path / "out" / {"certify": "run", "train": "model.safetensors", "bounds": "bounds.csv"}[command]
    options = () if command == "bounds" else FAST if command == "certify" else FAST[:4]
    arguments = (command, "--graph", graph, "--out", out, *options)
    with claimed(out):
        monkeypatch.setattr(graphs, "load", lambda *_: pytest.fail("it began to work"))
        found = run_command(capsys, *arguments)
    assert found.status == 2
    assert "`--out` must be free" in found.err
    assert str(out) in found.err
    monkeypatch.undo()
    assert not (tmp_path / "out").exists()
    assert run_command(capsys, *arguments).status == 0
    assert not [name for name in left_behind(tmp_path) if ".lock" in name]


def test_what_was_certified_is_kept_where_another_run_came_first(capsys, tmp_path, graph, monkeypatch):
    out = tmp_path / "run"
    save = Certificates.save

    def after_another(certificates, directory, *, overwrite=False):
        if directory == out and not out.exists():
            save(certificates, out)  # a script that knows nothing of locks
        return save(certificates, directory, overwrite=overwrite)

    monkeypatch.setattr(Certificates, "save", after_another)
    found = run_command(capsys, "certify", "--graph", graph, "--out", out, *FAST)
    assert found.status == 2
    assert f"What was certified is kept in {tmp_path / 'run-2'}" in found.err
    assert len(Certificates.load(tmp_path / "run-2")) == len(Certificates.load(out)) == 6


def test_a_killed_writer_leaves_nothing_to_clear_away(tmp_path):
    (tmp_path / ".run.lock").touch()
    with claimed(tmp_path / "run"):
        pass
    assert left_behind(tmp_path) == []


def test_default_places_avoid_those_that_are_claimed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.strftime", lambda _: "now")
    first = default_run("certify", "x")
    with claimed(first):
        assert default_run("certify", "x").name == "certify-x-now-2"
    with claimed(first), pytest.raises(InvalidFileError, match="must be free"), claimed(first):
        pass


# --- F10: a full disk


def full(*_args, **_named):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_said_and_exits_1(capsys, tmp_path, graph, monkeypatch):
    out = tmp_path / "run"
    arguments = ("certify", "--graph", graph, "--out", out, "--overwrite", *FAST)
    assert run_command(capsys, *arguments).status == 0
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    monkeypatch.setattr("graycert.runs.store.write_votes", full)
    found = run_command(capsys, *arguments)
    assert found.status == 1
    assert "No space left on device" in found.err
    assert "an earlier run is as it was" in found.err
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "run", "run.unfinished"]


def test_weights_and_tables_that_find_no_room(capsys, tmp_path, graph, monkeypatch):
    monkeypatch.setattr("graycert.models.weights.serialize_tensors", full)
    found = run_command(capsys, "train", "--graph", graph, "--out", tmp_path / "m.safetensors", *FAST[:4])
    assert (found.status, "cannot be written (No space left on device)" in found.err) == (1, True)
    monkeypatch.setattr("graycert.cli.bounds._write", full)
    found = run_command(capsys, "bounds", "--graph", graph, "--out", tmp_path / "b.csv")
    assert (found.status, "cannot be written (No space left on device)" in found.err) == (1, True)
    assert left_behind(tmp_path) == ["in", "in/ring.npz"]


def test_a_sweep_without_room_says_that_trials_are_kept(capsys, tmp_path, graph, monkeypatch):
    monkeypatch.setattr("graycert.reproduction.sweep.run.keep_settings", full)
    found = run_command(capsys, "sweep", "--graph", graph, "--out", tmp_path / "sweep", *OF_SWEEP)
    assert found.status == 1
    assert "Finished trials are kept in" in found.err
    assert "the same command goes on" in found.err


def test_a_job_without_room_stops_the_others(tmp_path, monkeypatch):
    from graycert.reproduction.lab import Lab
    from graycert.reproduction.pool import _attempt

    lab = Lab(tmp_path)
    monkeypatch.setattr(Lab, "do", full)
    with pytest.raises(OSError, match="No space left"):
        _attempt(lab, None)  # type: ignore[arg-type]


# --- F10: --device, SIGTERM


def test_the_device_is_checked_before_the_graph(capsys, tmp_path, monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("there is such a device")
    monkeypatch.setattr(graphs, "load", lambda *_: pytest.fail("it began to work"))
    found = run_command(capsys, "certify", "--device", "cuda", "--out", tmp_path / "run")
    assert (found.status, "`device` must name a device of this machine, got 'cuda'" in found.err) == (2, True)
    assert left_behind(tmp_path) == []


def test_sigterm_is_handled_as_ctrl_c(capsys, tmp_path, graph, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)

    def hit(*_args, **_named):
        os.kill(os.getpid(), signal.SIGTERM)
        signal.sigtimedwait((), 1)  # give the handler its moment

    monkeypatch.setattr("graycert.runs.store.write_votes", hit)
    found = run_command(capsys, "certify", "--graph", graph, "--out", tmp_path / "run", *FAST)
    assert found.status == 143
    assert "interrupted. Kept in" in found.err
    assert "goes on" in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "run.unfinished"]
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_lock_is_one_of_the_system(tmp_path):
    with claimed(tmp_path / "run"), pytest.raises(Exception, match="could not be acquired"):
        FileLock(tmp_path / ".run.lock", timeout=0).acquire()
