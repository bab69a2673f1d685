"""The flags of rules, bounds and joint statements: what is written, what is said, what is refused."""

import json

import numpy as np
import pytest

from graycert.certificates import Certificates
from graycert.certification import DEFAULT_BUDGETS
from support.commands import FAST, run_command, summary_of, write_graph

LEARNT = (
    *("--per-class", "5", "--max-epochs", "40", "--learning-rate", "0.05", "--p-delete", "0.6", "--p-ablate", "0.8"),
    *("--n0", "20", "--n1", "300", "--max-radius", "4", "--quiet"),
)
JOINT = ("--rule", "event-aware", "--collective", "--simultaneous", "--alpha", "0.3")


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph") / "ring.npz", extra_edges=20)


@pytest.fixture(scope="module")
def joint(tmp_path_factory, graph):
    """A run with every optional part, as text, and its weights."""
    from graycert.cli.main import main

    folder = tmp_path_factory.mktemp("joint") / "run"
    assert main(["certify", "--graph", str(graph), *LEARNT, *JOINT, "--out", str(folder)]) == 0
    return folder


@pytest.mark.deep
def test_a_run_with_every_optional_part_says_so(joint, graph, tmp_path, capsys):
    again = run_command(capsys, "certify", "--graph", graph, *LEARNT, *JOINT, "--out", tmp_path / "run")
    assert (again.status, again.err) == (0, "")
    run = Certificates.load(tmp_path / "run")
    assert (run.setup.rule, run.setup.bound, run.setup.simultaneous) == ("event-aware", "auto", True)
    assert run.collective.budgets.tolist() == list(DEFAULT_BUDGETS)
    assert run.estimation_predictions.shape == (6, 300)
    assert set(run.delta_methods) == {"exact"}
    assert run.radius.max() >= 1  # else nothing is at stake
    assert summary_of(tmp_path / "run") in again.out
    assert "The chance that the statement of any of the 6 targets is wrong is at most α = 0.3" in again.out
    assert "One adversary against all" in again.out
    assert ", ".join(f"{n} if ρ = {b}" for n, b in zip(run.collective.num_robust, DEFAULT_BUDGETS, strict=True)) in (
        again.out
    )
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["rule"], summary["sound"], summary["simultaneous"]) == ("event-aware", True, True)
    assert [row["budget"] for row in summary["collective"]] == list(DEFAULT_BUDGETS)
    assert [row["num_robust"] for row in summary["collective"]] == run.collective.num_robust.tolist()
    assert all(sentence in again.out for sentence in summary["statement"])
    np.testing.assert_array_equal(run.radius, Certificates.load(joint).radius)


def test_it_verifies_and_draws_again_to_the_same_votes(joint, capsys):
    found = run_command(capsys, "verify", joint, "--redraw", "--json")
    assert found.status == 0, found.err
    names = [check["name"] for check in found.record["checks"]]
    assert names[-3:] == ["selection_votes", "estimation_votes", "estimation_predictions"]
    assert names[-6:-3] == ["model audit", "prediction_as_trained", "prediction_without_messages"]
    assert {"collective", "delta_methods", "radius"} <= set(names)


def test_the_report_says_it_too(joint):
    page = (joint / "report.html").read_text()
    assert "One adversary against all" in page
    assert "any of the 6 targets is wrong" in page


def test_without_the_flags_nothing_of_it_is_said(graph, tmp_path, capsys):
    found = run_command(capsys, "certify", "--graph", graph, *FAST, "--out", tmp_path / "run", "--json")
    assert found.status == 0
    assert found.record["summary"]["collective"] == []
    assert found.record["summary"]["simultaneous"] is False
    assert not any("One adversary" in sentence for sentence in found.record["summary"]["statement"])
    run = Certificates.load(tmp_path / "run")
    assert run.collective is None
    assert "estimation_predictions" not in run.adds


def test_options_may_stand_in_a_file(graph, tmp_path, capsys):
    (tmp_path / "run.toml").write_text('rule = "difference"\ncollective = true\nbound = "multiplicative"\n')
    found = run_command(
        capsys, "certify", "--graph", graph, *FAST, "--config", tmp_path / "run.toml", "--out", tmp_path / "run"
    )
    assert found.status == 0, found.err
    run = Certificates.load(tmp_path / "run")
    assert (run.setup.rule, run.setup.bound, run.setup.simultaneous) == ("difference", "multiplicative", False)
    assert set(run.delta_methods) == {"multiplicative"}
    assert run.collective is not None


def test_a_collective_certificate_of_the_paper_rule_is_refused_at_once(tmp_path, capsys):
    flags = ("--graph", tmp_path / "none.npz", "--rule", "paper", "--collective", "--out", tmp_path / "run")
    found = run_command(capsys, "certify", *flags)
    assert found.status == 3  # a set-up that proves nothing
    assert "[unsound-rule: `graycert explain unsound-rule`]" in found.err
    assert "none.npz" not in found.err  # nothing was loaded
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("flags", [("--rule", "best"), ("--bound", "guess")])
def test_unknown_rules_and_bounds_are_refused_at_once(flags, tmp_path, capsys):
    found = run_command(capsys, "certify", "--graph", tmp_path / "none.npz", *flags, "--out", tmp_path / "run")
    assert found.status == 2
    assert f"`{flags[0].removeprefix('--')}` must be one of" in found.err


@pytest.mark.parametrize(
    ("num_layers", "bound", "taken"),
    [(2, "auto", " (exact: 60)"), (3, "auto", " (tree: 60)"), (3, "surrogate", ""), (2, "union", "")],
)
def test_bounds_name_what_was_taken(num_layers, bound, taken, tmp_path, capsys):
    graph = write_graph(tmp_path / "ring.npz")  # two rings: a tree around every node
    found = run_command(capsys, "bounds", "--graph", graph, "--num-layers", num_layers, "--bound", bound)
    assert found.status == 0, found.err
    assert f"bound '{bound}'{taken}." in found.out


def test_bounds_name_all_that_was_taken(graph, tmp_path, capsys):
    found = run_command(capsys, "bounds", "--graph", graph, "--num-layers", 3, "--out", tmp_path / "b.csv")
    assert found.status == 0, found.err
    methods = [line.split(",") for line in (tmp_path / "b.csv").read_text().splitlines()]
    column = methods[0].index("delta_method")
    counts = {name: sum(row[column] == name for row in methods[1:]) for name in ("surrogate", "tree")}
    assert min(counts.values()) > 0
    assert f"(surrogate: {counts['surrogate']}, tree: {counts['tree']})" in found.out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--num-layers", 3, "--bound", "exact"), "needs at most two layers"),
        (("--num-layers", 3, "--bound", "tree"), "exactly one simple path"),
    ],
)
def test_bounds_refuse_what_does_not_apply(graph, flags, words, capsys):
    found = run_command(capsys, "bounds", "--graph", graph, *flags)
    assert found.status == 2
    assert words in found.err
