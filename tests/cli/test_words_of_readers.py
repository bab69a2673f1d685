"""`--call`: a run in the words of its readers, from certify to verify and back through its own config.toml."""

import tomllib

import pytest

from support.commands import FAST, run_command, write_graph

WORDS = ["--call", "account,accounts", "--call", "structure=who pays whom"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph") / "ring.npz")


@pytest.mark.deep
def test_a_run_is_told_in_words_verified_and_repeated(graph, tmp_path, capsys):
    run = tmp_path / "run"
    found = run_command(capsys, "certify", "--graph", graph, *FAST, *WORDS, "--out", run)
    assert "any one other account are; who pays whom is taken as given" in found.out
    assert "hostile nodes (other than the target)" in found.out  # the exact statement
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "who pays whom is taken as given" in page
    kept = tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))["provenance"]
    assert kept["called"] == {"node": "account,accounts", "structure": "who pays whom"}
    assert run_command(capsys, "verify", run).status == 0
    again = run_command(capsys, "certify", "--config", run / "config.toml", "--out", tmp_path / "again", "--brief")
    assert "any one other account are; who pays whom" in again.out


def test_words_are_checked_before_anything_is_done(graph, tmp_path, capsys):
    found = run_command(capsys, "certify", "--graph", graph, *FAST, "--call", "account", "--out", tmp_path / "run")
    assert found.status == 2
    assert "`--call`" in found.err
    assert "account,accounts" in found.err
    assert not (tmp_path / "run").exists()
