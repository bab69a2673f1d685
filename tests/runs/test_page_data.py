"""Every number that the page's script is given, beside the table of the run."""

from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

from graycert.metrics.cost import COST_RADII
from graycert.runs.cost import cost
from graycert.runs.explain import margins
from graycert.runs.page_data import BEYOND, MOST_NAMED, _could_be_enough, page_data
from graycert.runs.words import ratio_table
from support.certificates import small_certificates
from support.every_smoothing import any_case, made


def shown_in_table(page, table):
    """Rows of the table in the order of the page."""
    place = {node: row for row, node in enumerate(table["target"])}
    return [place[node] for node in page["targets"]["node"]]


@pytest.mark.few(6)
@any_case
def test_every_number_of_a_target_is_that_of_the_table(case, tmp_path):
    certificates = made(case)
    table = pq.read_table(certificates.save(tmp_path / "run") / "certificates.parquet").to_pandas()
    page = page_data(certificates)
    rows, targets = shown_in_table(page, table), page["targets"]
    assert sorted(rows) == list(range(len(table)))
    table = table.iloc[rows].reset_index(drop=True)
    for ours, theirs in (
        ("radius", "radius"),
        ("eligible", "num_eligible"),
        ("field", "receptive_field_size"),
        ("status", "status"),
        ("label", "label"),
        ("trained", "prediction_as_trained"),
        ("alone", "prediction_without_messages"),
        ("degree", "in_degree"),
        ("name", "node_id"),
    ):
        assert (ours in targets) == (theirs in table), ours
        if ours in targets:
            assert targets[ours] == table[theirs].tolist(), ours
    said = [
        prediction if radius >= 0 else -1
        for prediction, radius in zip(table["prediction"], table["radius"], strict=True)
    ]
    assert targets["prediction"] == said
    for row, whole in enumerate(table["whole_field"]):
        radius = targets["radius"][row]
        assert (radius >= 0 and radius >= targets["eligible"][row]) == whole
    for ours, theirs, side in (("lower", "p_lower", 1), ("upper", "p_upper", -1)):
        assert (ours in targets) == (theirs in table)
        for shown, value in zip(targets.get(ours, []), table.get(theirs, []), strict=True):
            assert -1e-12 <= side * (value - shown / 1e6) < 1e-6
    for row, deltas in enumerate(targets.get("delta", [])):
        assert len(deltas) >= min(max(1, targets["radius"][row] + 1), certificates.delta_upper.shape[1])
        assert len(deltas) <= max(1, targets["radius"][row] + BEYOND)
        for rho, shown in enumerate(deltas, start=1):
            assert -1e-12 <= shown / 1e6 - table[f"delta_{rho}"][row] < 1e-6
    if "protect_first" in table:
        names = page["nodes"]["name"]
        assert [[names[place] for place in row] for row in targets["worst"]] == [
            list(row) for row in table["protect_first"]
        ]


@any_case
def test_every_count_of_the_page_is_that_of_the_summary(case):
    certificates = made(case)
    page = page_data(certificates)
    everyone = page["cohorts"][0]["groups"][0]
    rows = ratio_table(certificates)
    for rho in range(page["last"] + 1):
        assert everyone["certified"][rho] == rows[rho]["certified"]
        assert everyone["holds"][rho] == rows[rho]["whole_field"]
        assert everyone["certified_correct"][rho] == rows[rho]["certified_and_correct"]
    found = cost(certificates)
    kinds = {kind["title"]: kind["groups"] for kind in page["cohorts"]}
    for title, groups in (("All targets", [found.total]), ("By class", found.classes), ("By degree", found.degrees)):
        assert len(kinds.get(title, [])) == len(groups) or len(groups) < 2
        for ours, theirs in zip(kinds.get(title, []), groups, strict=True):
            assert (ours["known"], ours["as_trained"], ours["alone"]) == (
                theirs.targets,
                theirs.as_trained,
                theirs.without_messages,
            )
            for place, rho in enumerate(COST_RADII):
                if rho <= page["last"]:
                    assert ours["certified_correct"][rho] == theirs.certified[place]
                    assert ours["holds_correct"][rho] == theirs.whole_field[place]
    for ours, counts in zip(kinds.get("By distance of hostile nodes", []), found.distances, strict=False):
        for place, rho in enumerate(COST_RADII):
            if rho <= page["last"]:
                assert ours["holds_correct"][rho] == counts[place]


@any_case
def test_figures_count_every_target_once(case):
    certificates = made(case)
    page = page_data(certificates)
    assert {radius: some + others for radius, some, others in page["histogram"]} == Counter(
        certificates.radius.tolist()
    )
    assert sum(some for _, some, _ in page["histogram"]) == int(certificates.whole_field.sum())
    bins = Counter()
    for degree, radius in zip(certificates.in_degree.tolist(), certificates.radius.tolist(), strict=True):
        low = degree if degree < 2 else 1 << (degree.bit_length() - 1)
        bins[low, radius] += 1
    assert {(low, radius): number for low, radius, number in page["by_degree"]} == bins


@any_case
def test_the_weakest_come_first(case):
    targets = page_data(made(case))["targets"]
    strength = [
        (radius >= 0 and radius >= eligible, radius)
        for radius, eligible in zip(targets["radius"], targets["eligible"], strict=True)
    ]
    assert strength == sorted(strength)


@any_case
def test_leads_and_votes_are_those_that_are_explained(case):
    certificates = made(case)
    page, lead = page_data(certificates), margins(certificates)
    place = {node: row for row, node in enumerate(certificates.targets.tolist())}
    for row, node in enumerate(page["targets"]["node"]):
        text = certificates.explain(node if certificates.node_ids is None else str(certificates.node_ids[place[node]]))
        for number, votes in page["targets"]["votes"][row][:4]:
            if number >= 0:
                assert f"{votes:,} for '{page['classes'][number]}'" in text
        if lead is not None and not np.isnan(lead[place[node]]):
            shown = np.floor(page["targets"]["margin"][row] / 100) / 1e4
            assert f"at least {shown:.4f}" in text
        texts = [page["targets"]["said"]["texts"][each] for each in page["targets"]["said"]["rows"][row]]
        assert texts[0] in text


@any_case
def test_exact_votes_are_those_of_the_run(case):
    certificates = made(case)
    targets = page_data(certificates)["targets"]
    assert ("exact" in targets) == (certificates.setup.smoothing.name == "votes")
    place = {node: row for row, node in enumerate(certificates.targets.tolist())}
    for node, classes in zip(targets["node"], targets.get("exact", []), strict=False):
        row = place[node]
        assert classes[0][0] == certificates.prediction[row]
        assert {number for number, _, _ in classes} == set(range(3))
        for number, score, withstood in classes:
            assert score == f"{certificates.scores[row, number] / 2**20:,.3f}"
            radius, eligible = int(certificates.class_radius[row, number]), int(certificates.num_eligible[row])
            if number != certificates.prediction[row]:
                assert withstood == ("all that there are" if radius >= eligible else str(radius))
                assert min(radius, eligible) >= certificates.radius[row]


def test_sentences_name_who_could_be_enough_and_what_it_withstands():
    certificates = made("interception")
    targets = page_data(certificates)["targets"]
    for row, radius in enumerate(targets["radius"]):
        text = " ".join(targets["said"]["texts"][each] for each in targets["said"]["rows"][row])
        if radius < 0:
            assert "nothing is certified of it" in text
        elif radius >= targets["eligible"][row]:
            assert f"whatever all {radius} eligible nodes do together" in text
        else:
            assert ("any one other node" in text) == (radius == 1)
            assert f"Not proved against these {radius + 1} together" in text or radius == 0
            assert ("Not proved against even one of the" in text) == (radius == 0)
            assert text.count("no attack is known") == 1 + (radius == 0)


def test_without_names_labels_or_votes_the_page_has_fewer_columns():
    plain = page_data(small_certificates(named=False, labels=None))
    assert not {"name", "label", "trained", "alone", "degree"} & set(plain["targets"])
    assert "known" not in plain["cohorts"][0]["groups"][0]
    assert plain["fields"] is None


def test_a_sentence_names_some_of_many_and_counts_the_rest():
    names = [f"n{place}" for place in range(MOST_NAMED + 7)]
    few, many = _could_be_enough(names[:MOST_NAMED]), _could_be_enough(names)
    assert few.endswith(f", {names[MOST_NAMED - 1]}. Protect them first.")
    assert many.startswith(f"Not proved against these {len(names)} together")
    assert many.endswith(f", {names[MOST_NAMED - 1]} and 7 more. Protect them first.")
