"""Figures, tables, records and the page, for an experiment that takes no time."""

import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.reproduction import catalogue
from graycert.reproduction.catalogue import chosen, parse
from graycert.reproduction.record import read_record
from graycert.reproduction.reproduce import reproduce
from support.commands import left_behind, run_command
from support.toy_kind import DEFINITION


@pytest.fixture(autouse=True)
def squares(monkeypatch):
    monkeypatch.setitem(catalogue.KINDS, "squares", "support.toy_kind:Squares")


@pytest.fixture
def experiment():
    return parse(DEFINITION, "squares.toml")


def test_everything_is_written_and_compared(experiment, tmp_path):
    (outcome,) = reproduce([experiment], tmp_path)
    assert outcome.problem == ""
    assert left_behind(tmp_path / "small") == [
        "reproduction.md",
        "squares",
        "squares/figure.pdf",
        "squares/figure.png",
        "squares/record.json",
        "squares/squares.csv",
    ]
    pd.testing.assert_frame_equal(
        pd.read_csv(outcome.folder / "squares.csv"), pd.DataFrame({"number": [1, 2], "square": [1, 4]})
    )
    record = read_record(outcome.folder)
    assert record == outcome.record
    assert record.measures == {"largest": 4.0}
    assert record.reduction == "two numbers instead of three."
    found = {claim.text: (claim.value, claim.limits, claim.verdict) for claim in record.comparisons}
    assert found == {
        "squares grow": (4.0, "at least 2", "agrees"),
        "squares are small | always": (4.0, "at most 1", "differs"),
        "cubes are larger": (None, "at least 1", "not checked"),
        "nine is reached": (4.0, "at least 9", "not checked"),
    }


@pytest.mark.deep
def test_the_paper_scale_reduces_nothing_and_shares_results(experiment, tmp_path):
    reproduce([experiment], tmp_path)
    stored = left_behind(tmp_path / "lab")
    (outcome,) = reproduce([experiment], tmp_path, scale="paper")
    assert outcome.record.reduction == ""
    assert [claim.verdict for claim in outcome.record.comparisons] == ["agrees", "differs", "not checked", "agrees"]
    assert len(left_behind(tmp_path / "lab")) == len(stored) + 1


def test_the_same_results_give_the_same_files(experiment, tmp_path):
    files = ("figure.pdf", "figure.png", "record.json", "squares.csv")
    (once,) = reproduce([experiment], tmp_path)
    before = [(once.folder / name).read_bytes() for name in files]
    (twice,) = reproduce([experiment], tmp_path)
    assert [(twice.folder / name).read_bytes() for name in files] == before


def test_the_page_has_a_row_per_claim_of_all_that_was_done(experiment, tmp_path):
    other = parse(DEFINITION.replace('"squares"\ntitle', '"other"\ntitle'), "other.toml")
    reproduce([experiment], tmp_path)
    reproduce([other], tmp_path)
    page = (tmp_path / "small" / "reproduction.md").read_text()
    assert "2 experiments, 8 claims: 2 agree, 2 differ, 4 could not be checked" in page
    assert "| [squares](#squares) | squares are small \\| always | 4 | at most 1 | **differs** They are not. |" in page
    assert "![Squares](squares/figure.png)" in page
    assert "They are not." in page
    assert "`graycert reproduce other`" in page


def test_what_fails_is_told_and_the_others_are_done(experiment, tmp_path):
    unlucky = parse(DEFINITION.replace("[1, 2]", "[13, 2]").replace('"squares"\ntitle', '"unlucky"\ntitle'), "u.toml")
    broken = parse(
        DEFINITION.replace("[1, 2]\n", "[1, 2]\nbroken = true\n").replace('"squares"\ntitle', '"bad"\ntitle'), "b"
    )
    missing = parse(
        DEFINITION.replace("[1, 2]\n", '[1]\ngraph = "nowhere.npz"\n').replace('"squares"\ntitle', '"no"\ntitle'), "m"
    )
    told = []
    outcomes = reproduce([unlucky, broken, missing, experiment], tmp_path, say=told.append)
    problems = [outcome.problem for outcome in outcomes]
    assert "1 computations failed, e.g. ValueError: thirteen" in problems[0]
    assert problems[1] == "RuntimeError: no ink"
    assert "nowhere.npz" in problems[2]
    assert problems[3] == ""
    assert any("no is left out" in line for line in told)
    assert any("squares done, 1 of 2 checked claims agree" in line for line in told)


def test_wrong_files_name_file_and_key(tmp_path):
    cases = {
        "titel = 1": "titel",
        "id = ": "TOML",
        DEFINITION.replace("numbers = [1, 2]\n", "nombers = [1]\n"): "nombers",
        DEFINITION.replace('kind = "squares"', 'kind = "cubes"'): "cubes",
        DEFINITION.replace("at_most = 1", ""): "at_least or at_most",
    }
    for text, expected in cases.items():
        with pytest.raises(InvalidFileError, match=expected) as raised:
            parse(text, "mine.toml")
        assert "mine.toml" in str(raised.value)
    with pytest.raises(InvalidFileError, match=r"away\.toml"):
        chosen((str(tmp_path / "away.toml"),))
    with pytest.raises(InvalidParameterError, match="--list"):
        chosen(("nonsense",))


def test_the_command_runs_a_file_and_says_what_differs(tmp_path, capsys):
    file = tmp_path / "squares.toml"
    file.write_text(DEFINITION)
    arguments = ("reproduce", file, "--out", tmp_path / "out")
    done = run_command(capsys, *arguments, "--workers", 1)
    assert done.status == 0
    assert re.search(r"squares are small \| always +4 +at most 1 +differs", done.out)
    assert "squares: less than in the paper. two numbers" in done.out
    assert "squares: They are not." in done.out
    assert str(tmp_path / "out/small/squares") in done.out
    checked = run_command(capsys, *arguments, "--workers", 1, "--check", "--json", "--quiet")
    assert (checked.status, checked.err) == (1, "")
    (found,) = checked.record["experiments"]
    assert found["record"]["measures"] == {"largest": 4.0}
    wrong = run_command(capsys, *arguments, "--workers", 0)
    assert wrong.status == 2
    assert "`workers`" in wrong.err


def test_a_missing_library_is_told_before_anything_is_computed(tmp_path, monkeypatch):
    swept = parse(DEFINITION.replace("[1, 2]\n", "[1, 2]\nswept = true\n"), "swept.toml")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InvalidParameterError, match=r"graycert\[figures\]"):
        reproduce([swept], tmp_path)
    assert left_behind(tmp_path) == []


def test_the_example_in_the_documentation_is_an_experiment():
    page = (Path(__file__).resolve().parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    experiment = parse(text, "docs/experiments.md")
    (claim,) = experiment.claims
    assert claim.measure == f"{experiment.settings['curves'][0]['label']}: certified ratio at 3"
