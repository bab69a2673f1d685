"""`--fail-under`, `--junit` and `graycert compare`: exit status, JSON, files."""

import json
from xml.etree import ElementTree

import pandas as pd
import pytest

import graycert
from support.certificates import small_certificates
from support.commands import FAST, left_behind, run_command, write_graph, write_tables


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph") / "ring.npz")


def test_certify_exits_1_unless_all_conditions_are_met(graph, tmp_path, capsys):
    out, junit = tmp_path / "run", tmp_path / "verdicts" / "junit.xml"
    asked = ("--fail-under", "abstained=1", "--fail-under", "correct@2[1]=0.99", "--junit", junit)
    found = run_command(capsys, "certify", "--graph", graph, *FAST, "--out", out, *asked, "--json")
    assert found.status == 1
    assert found.err == "error: 1 of 2 conditions not met: correct@2[1]=0.99.\n"
    run = graycert.Certificates.load(out)  # kept
    verdicts = run.judge("abstained=1", "correct@2[1]=0.99")
    assert found.record["conditions"] == [each.record() for each in verdicts]
    assert [each["passed"] for each in found.record["conditions"]] == [True, False]
    assert found.record["conditions"][1]["value"] == verdicts[1].count / verdicts[1].total
    assert found.record["junit"] == str(junit)
    root = ElementTree.parse(junit).getroot()
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    text = run_command(capsys, "verify", out, *asked[:2])
    assert (text.status, text.err) == (0, "")
    assert "Conditions:\n  passed  abstained=1: " in text.out
    again = run_command(capsys, "verify", out, *asked, "--json")  # the file is replaced
    assert (again.status, again.record["conditions"]) == (1, found.record["conditions"])
    assert "fail_under" not in (out / "config.toml").read_text()


def test_a_run_that_differs_is_not_judged(graph, tmp_path, capsys):
    out, junit = tmp_path / "run", tmp_path / "junit.xml"
    assert run_command(capsys, "certify", "--graph", graph, *FAST, "--out", out).status == 0
    summary = json.loads((out / "summary.json").read_text())
    (out / "summary.json").write_text(json.dumps(summary | {"abstain_ratio": 0.5}))
    found = run_command(capsys, "verify", out, "--fail-under", "abstained=1", "--junit", junit)
    assert found.status == 1
    assert "Conditions" not in found.out
    assert not junit.exists()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--fail-under", "correct@2>=0.5"), "The condition 'correct@2>=0.5' must be such as"),
        (("--fail-under", "accuracy=0.5", "--fail-under", "accuracy=0.5"), "must say each condition once"),
        (("--fail-under", "correct@5=0.5"), "must have a radius of at most 4, the largest looked at (--max-radius)"),
        (("--fail-under", "correct@1[fraud]=0.5"), "must give the class as a number"),
        (("--fail-under", "correct@1[2]=0.5"), "must name a class from 0 to 1"),
        (("--fail-under", "certified@1=0.5", "--rule", "paper"), "needs a sound rule"),
        (("--junit", "x.xml"), "`--junit` needs `--fail-under`"),
        (("--fail-under", "accuracy=0.5", "--junit", "run/x.xml"), "`--junit` must lie outside the run"),
        (("--fail-under", "accuracy=0.5", "--junit", "x.txt"), "`--junit` must end in .xml"),
        (("--fail-under", "accuracy=0.5", "--junit", "/proc/x.xml"), "`--junit` must be writable"),
    ],
)
def test_what_cannot_be_judged_is_told_before_training(asked, message, graph, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("graycert.cli.certify.train_model", None)
    monkeypatch.chdir(tmp_path)
    found = run_command(capsys, "certify", "--graph", graph, *FAST, "--out", "run", *asked)
    assert (found.status, found.out) == (2, "")
    assert message in found.err
    assert left_behind(tmp_path) == []


def test_conditions_stand_in_a_file_of_options_and_name_classes(tmp_path, capsys):
    edges, nodes = write_tables(tmp_path)
    (tmp_path / "options.toml").write_text('fail_under = ["holds@1[even]=0", "abstained=1"]\n')
    common = ("certify", "--graph", edges, "--nodes", nodes, "--config", tmp_path / "options.toml", *FAST, "--json")
    found = run_command(capsys, *common, "--out", tmp_path / "run")
    assert found.status == 0, found.err
    assert [each["class"] for each in found.record["conditions"]] == ["even", None]
    other = run_command(capsys, *common, "--out", tmp_path / "other", "--fail-under", "holds@1[seven]=0")
    assert (other.status, "must name a class of even, odd" in other.err) == (2, True)


def test_compare_shows_what_became_of_targets_and_settings(tmp_path, capsys):
    runs = [small_certificates(seed=seed).save(tmp_path / str(seed)) for seed in (1, 2)]
    found = run_command(capsys, "compare", *runs)
    expected = graycert.Certificates.load(runs[0]).compare(graycert.Certificates.load(runs[1]))
    assert (found.status, found.out) == (0, f"{expected}\n")
    assert "certificate.seed: 1 -> 2" in found.out
    table = tmp_path / "changes.csv"
    record = run_command(capsys, "compare", *runs, "--json", "--out", table).record
    assert record["counts"]["same"] == record["num_targets"] == 6
    assert record["settings"] == [{"name": "certificate.seed", "before": 1, "after": 2}]
    assert pd.read_csv(table)["change"].tolist() == ["same"] * 6
    assert [row["target"] for row in record["targets"]] == [f"<b>nöde</b> {i}" for i in range(6)]
    taken = run_command(capsys, "compare", *runs, "--out", table)
    assert (taken.status, "which exists" in taken.err) == (2, True)
    absent = run_command(capsys, "compare", runs[0], tmp_path / "nowhere")
    assert absent.status == 2
