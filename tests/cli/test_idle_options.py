"""Options that would have no effect are refused, naming what they belong to; so are words that no command takes."""

import pytest

import graycert
from graycert.cli.certify import _refuse_idle
from graycert.cli.declared import certify_config
from support.commands import run_command, write_graph

FAR = ("--min-distance", "1")


@pytest.mark.parametrize(
    ("options", "belongs"),
    [
        (("--gate", "0.8"), "--min-distance 1"),
        (("--gamma", "2"), "--min-distance 1"),
        ((*FAR, "--label-weight", "0.3"), "--spread-labels"),
        (("--alpha", "0.05"), "what is drawn"),
        (("--simultaneous",), "what is drawn"),
        (("--skip",), "--model gat"),
        (("--voters", "pagerank", "--walk-length", "3"), "--voters walks"),
        (("--tolerance", "0.01"), "--voters pagerank"),
        (("--vote", "one-hot", "--sharpen", "1"), "--vote soft"),
        (("--threat", "node-takeover", "--num-voters", "20"), "--voters walks or pagerank"),
    ],
)
def test_votes_refuse_what_would_do_nothing(options, belongs, tmp_path, capsys):
    graph = write_graph(tmp_path / "ring.npz")
    found = run_command(
        capsys, "certify", "--graph", graph, "--smoothing", "votes", *options, "--out", tmp_path / "run"
    )
    assert found.status == 2
    flag = next(each for each in reversed(options) if each.startswith("--"))
    assert f"`{flag}` belongs to" in found.err
    assert belongs in found.err
    assert "Leave it out" in found.err
    assert not (tmp_path / "run").exists()


def test_what_has_an_effect_is_taken():
    threat = graycert.NodeFeatureThreat(min_distance=1)
    config = certify_config()(smoothing="votes", gate=0.8, gamma=2.0, spread_labels=True, label_weight=0.3)
    _refuse_idle(config, graycert.BoundedVotes(gate=0.8, gamma=2.0, label_weight=0.3), threat, None)
    teacher = certify_config()(smoothing="votes", model="gat", skip=True)
    _refuse_idle(teacher, graycert.BoundedVotes(), threat, None)
    trusted = certify_config()(smoothing="votes", gate=0.8, trusted="friends.txt")
    _refuse_idle(trusted, graycert.BoundedVotes(gate=0.8), graycert.NodeFeatureThreat(), None)
    drawn = certify_config()(alpha=0.05, simultaneous=True, skip=True)
    smoothing = graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.8)
    _refuse_idle(drawn, smoothing, threat, graycert.Draws())


def test_tuning_votes_draws_nothing(tmp_path, capsys):
    graph = write_graph(tmp_path / "ring.npz")
    found = run_command(capsys, "tune", "--graph", graph, "--smoothing", "votes", "--alpha", "0.05")
    assert found.status == 2
    assert "`--alpha` belongs to --smoothing interception" in found.err


def test_words_that_no_command_takes_are_named(capsys):
    found = run_command(capsys, "verify", "runs/one", "runs/two")
    assert found.status == 2
    assert "`graycert verify` does not take runs/two" in found.err
    assert "Unused" not in found.err
