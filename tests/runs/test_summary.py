import re

import numpy as np
import pytest

from graycert.runs.words import percent, percent_upward, summary_record
from support.certificates import small_certificates


def test_the_statement_names_everything_it_rests_on():
    text = small_certificates().summary()
    for part in (
        "The classifier keeps its prediction for a target with radius ρ",
        "nothing is said about the model without smoothing",
        "structure is fixed",
        "other than the target, 3 trusted nodes excepted",
        "p_d = 0.31",
        "p_a = 0.30000000000000004",
        "α = 0.01",
        "per target, not for all targets at once",
        "n0 = 100",
        "n1 = 3,000",
        "bounded from above (bound 'multiplicative')",
        "For 1 of 6 targets the votes do not single out a class",
        "2-step",
        "Radii above 8 were not examined",
    ):
        assert part in text, part
    assert "NOT" not in text


def test_the_unsound_rule_is_called_so_first_and_last():
    text = small_certificates(rule="paper").summary()
    assert text.startswith("NOT A SOUND CERTIFICATE")
    assert text.split("\n\n")[-1].startswith("NOT A SOUND CERTIFICATE")
    assert "is NOT guaranteed" in text
    assert "wrong with probability at most" not in text
    assert "lower bounds" not in text
    record = summary_record(small_certificates(rule="paper"))
    assert record["sound"] is False
    assert record["warning"].startswith("NOT A SOUND")


def test_table_counts_all_targets():
    c = small_certificates(num_targets=40)
    record = summary_record(c)
    for row in record["per_radius"]:
        rho = row["radius"]
        assert row["certified"] == sum((c.radius >= rho) & (c.num_eligible >= rho))
        assert row["whole_field"] == sum(c.radius >= np.minimum(rho, c.num_eligible))
        both = (c.radius >= rho) & (c.num_eligible >= rho) & (c.prediction == c.labels)
        assert row["certified_and_correct"] == sum(both)
    assert [row["radius"] for row in record["per_radius"]] == list(range(9))
    assert record["num_abstained"] == 1
    line = next(line for line in c.summary().splitlines() if re.match(r"\s+2  ", line))
    shown = [percent(record["per_radius"][2][key], 40) for key in ("certified", "certified_and_correct", "whole_field")]
    assert re.split(r"\s{2,}", line.strip())[1:] == shown


def test_without_labels_no_accuracy():
    c = small_certificates(named=False)
    assert "correct" not in c.summary()
    assert "smoothed_accuracy" not in summary_record(c)
    assert "certified_and_correct" not in summary_record(c)["per_radius"][0]


@pytest.mark.parametrize(
    ("count", "total", "text"), [(1, 1, "100.0 %"), (9_999, 10_000, "99.9 %"), (29, 100, "29.0 %")]
)
def test_shares_are_never_rounded_up(count, total, text):
    assert percent(count, total) == text


@pytest.mark.parametrize(("count", "total", "text"), [(1, 10_000, "0.1 %"), (0, 5, "0.0 %"), (29, 100, "29.0 %")])
def test_abstentions_are_never_rounded_down(count, total, text):
    assert percent_upward(count, total) == text
