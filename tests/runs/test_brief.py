import numpy as np
import pytest

from graycert.runs.brief import brief_summary
from graycert.runs.claim import claim
from graycert.runs.cost import warnings_of
from graycert.runs.words import NOT_SOUND, ratio_texts, shown_rows
from support.certificates import small_certificates
from support.commands import FAST, run_command, write_graph
from support.every_smoothing import any_case, made


@pytest.mark.few(1)
@any_case
def test_a_few_sentences_are_those_of_the_run(case):
    c = made(case)
    text = brief_summary(c)
    last = len(shown_rows(c)) - 1
    assert claim(c, min(1, last))[0] in text
    assert (claim(c, min(10, last))[0] in text) == (last >= 10 or last <= 1)
    assert (NOT_SOUND in text) == (not c.setup.the_rule.is_sound)
    assert len(text.splitlines()) <= 9
    assert all(line in c.summary() for line in text.splitlines() if line.startswith(("What it costs", "From its own")))


def test_warnings_are_called_so():
    c = small_certificates(num_targets=40)
    lost = c.replace(prediction=np.zeros(40, dtype=np.int64), labels=np.arange(40) % 3)
    warned = [line for line in brief_summary(lost).splitlines() if line.startswith("WARNING: ")]
    assert warned == [f"WARNING: {each}" for each in warnings_of(lost)]
    assert warned


def test_certify_says_little_if_asked(capsys, tmp_path):
    options = ("--graph", write_graph(tmp_path / "toy.npz"), "--model", "gcn", *FAST)
    brief = run_command(capsys, "certify", *options, "--out", tmp_path / "run", "--brief")
    assert brief.status == 0, brief.err
    assert "What it costs" in brief.out
    assert "report.html" in brief.out
    assert "radius ρ" not in brief.out
    repeated = run_command(capsys, "certify", "--config", tmp_path / "run" / "config.toml", "--out", tmp_path / "again")
    assert "radius ρ" in repeated.out


def test_tables_thin_out_where_radii_are_large(monkeypatch):
    c = small_certificates(num_targets=40)
    rows = [{"radius": radius, "certified": 1, "whole_field": 1, "certified_and_correct": 1} for radius in range(138)]
    monkeypatch.setattr("graycert.runs.words.shown_rows", lambda _: rows)
    shown = [int(row[0]) for row in ratio_texts(c)[1]]
    assert shown == [*range(21), 30, 40, 50, 60, 70, 80, 90, 100, 137]
