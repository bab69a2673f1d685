"""`graycert certify`, stopped on its way: the same command goes on, and ends as if nothing had happened."""

import json

import pytest

from graycert.blocks import work
from support.commands import FAST, run_command, write_graph

RESULTS = ("certificates.parquet", "votes.npz", "summary.json", "model.safetensors")
BLOCKS = ("--block-size", "10")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_graph(tmp_path / "ring.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def certify(capsys, *arguments):
    return run_command(capsys, "certify", "--graph", "ring.npz", "--targets", "all", *FAST[:-1], *arguments)


def stop_after(patched, number):
    before, calls = work.certified, []

    def stopping(problem):
        if len(calls) == number:
            raise KeyboardInterrupt
        calls.append(problem)
        return before(problem)

    patched.setattr(work, "certified", stopping)


def files(folder):
    return {name: (folder / name).read_bytes() for name in RESULTS}


@pytest.mark.deep
def test_the_same_command_goes_on(capsys, folder, monkeypatch):
    assert certify(capsys, *BLOCKS, "--out", "calm").status == 0
    for number in (2, 1, 0):
        with monkeypatch.context() as patched:
            stop_after(patched, number)
            stopped = certify(capsys, *BLOCKS, "--out", "run")
        assert stopped.status == 130
        assert not (folder / "run").exists()
    assert "Kept in run.unfinished: 3 finished blocks and the trained model" in stopped.err
    assert "The same command with --out run goes on" in stopped.err
    last = certify(capsys, *BLOCKS, "--out", "run", "--json")
    assert last.status == 0
    assert "3 of them are done already" in last.err
    assert "training" not in last.err
    assert files(folder / "run") == files(folder / "calm")
    assert sorted(path.name for path in folder.iterdir()) == ["calm", "ring.npz", "run"]
    assert last.record["files"] == sorted(str(path) for path in (folder / "run").iterdir())


@pytest.mark.deep
def test_blocks_are_not_seen_in_the_run(capsys, folder):
    assert certify(capsys, "--out", "whole").status == 0
    assert certify(capsys, *BLOCKS, "--workers", "2", "--out", "blocks").status == 0
    assert files(folder / "whole") == files(folder / "blocks")
    assert run_command(capsys, "verify", "blocks").status == 0


def test_other_options_are_refused_by_name(capsys, folder, monkeypatch):
    with monkeypatch.context() as patched:
        stop_after(patched, 1)
        certify(capsys, *BLOCKS, "--out", "run")
    before = sorted(path.name for path in (folder / "run.unfinished").iterdir())
    refused = certify(capsys, *BLOCKS, "--out", "run", "--alpha", "0.05", "--learning-rate", "0.1")
    assert refused.status == 2
    assert "has other options: alpha (0.01 there, 0.05 here), learning_rate (0.001 there, 0.1 here)" in refused.err
    assert sorted(path.name for path in (folder / "run.unfinished").iterdir()) == before
    dropped = certify(capsys, "--out", "run", "--alpha", "0.05", "--overwrite", "--json")
    assert dropped.status == 0
    assert "training" in dropped.err
    assert not (folder / "run.unfinished").exists()


@pytest.mark.deep
def test_a_run_that_was_killed_while_clearing_up_is_written_again(capsys, folder, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("graycert.cli.unfinished._remove", lambda _: None)
        assert certify(capsys, *BLOCKS, "--out", "run").status == 0
    before = files(folder / "run")
    monkeypatch.setattr(work, "certified", lambda _: pytest.fail("computed twice"))
    assert certify(capsys, "--out", "run").status == 0
    assert files(folder / "run") == before
    assert sorted(path.name for path in folder.iterdir()) == ["ring.npz", "run"]
    assert certify(capsys, "--out", "run").status == 2


def test_damaged_options_are_told(capsys, folder):
    (folder / "run.unfinished").mkdir()
    (folder / "run.unfinished" / "options.json").write_text("[]")
    refused = certify(capsys, "--out", "run")
    assert refused.status == 2
    assert "options.json is damaged" in refused.err


def test_a_refused_set_up_leaves_nothing(capsys, folder):
    refused = certify(capsys, "--smoothing", "sparse", "--p-plus", "0.1", "--p-minus", "0.5", "--out", "run")
    assert refused.status == 3
    assert sorted(path.name for path in folder.iterdir()) == ["ring.npz"]


def test_what_is_there_is_plain_data(capsys, folder, monkeypatch):
    with monkeypatch.context() as patched:
        stop_after(patched, 1)
        certify(capsys, *BLOCKS, "--out", "run")
    names = {path.name for path in (folder / "run.unfinished").iterdir()}
    assert names == {
        *("asked.npz", "block-00000.npz", "config.toml", "lock", "model.json", "model.safetensors"),
        *("options.json", "settings.json"),
    }
    assert json.loads((folder / "run.unfinished" / "settings.json").read_text())["block_size"] == 10
