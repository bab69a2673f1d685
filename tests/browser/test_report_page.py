"""The page in a browser: what it shows is what Python says."""

import re

import pandas as pd
import pytest

import graycert
from graycert.bounds import delta_bounds
from graycert.runs.claim import claim
from graycert.runs.explain import proved_lead
from graycert.runs.neighbourhoods import neighbourhoods_of
from graycert.runs.page_data import page_data
from graycert.runs.shares import percent
from support.every_smoothing import CASES, any_case, made, small_graph
from support.page_in_browser import every_row, put, rows_of, text, texts

pytestmark = pytest.mark.browser


@any_case
def test_every_kind_of_page_follows_rho_with_the_numbers_of_python(open_page, runs, case):
    certificates, browser = made(case), open_page(runs[case])
    data = page_data(certificates)
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    for rho in {0, 1, data["last"] // 2, data["last"]}:
        put(browser, "rho", rho)
        assert texts(browser, "#claim p") == [re.sub(r"\s+", " ", each) for each in claim(certificates, rho)]
        holds = int((certificates.radius >= pd.Series(certificates.num_eligible).clip(upper=rho)).sum())
        assert text(browser, "#at-rho strong") == percent(holds, len(certificates))
        assert f"{holds} of {len(certificates)}" in text(browser, "#at-rho span")
        rows = rows_of(browser, "section[aria-labelledby=targets-title]")
        place = {name: row for row, name in enumerate(certificates.node_ids.tolist())}
        for row in rows:
            index = place[row[0]]
            expected = certificates.radius[index] >= min(rho, certificates.num_eligible[index])
            assert row[4] == ("yes" if expected else "no")


@any_case
def test_tables_of_groups_are_those_of_python(open_page, runs, case):
    data, browser = page_data(made(case)), open_page(runs[case])
    put(browser, "rho", min(2, data["last"]))
    rho = min(2, data["last"])
    for place, kind in enumerate(data["cohorts"]):
        put(browser, "kind", str(place))
        for key in ("holds", "certified", "holds_correct", "certified_correct"):
            put(browser, "measure", key)
            used = key if any(key in group for group in kind["groups"]) else "holds"
            expected = [
                [
                    group["name"],
                    str(group[used][rho]),
                    percent(group[used][rho], group["known" if used.endswith("correct") else "targets"]),
                ]
                for group in kind["groups"]
            ]
            assert [[row[0], *row[-2:]] for row in rows_of(browser, "#groups")] == expected
            assert browser.execute_script("return document.querySelectorAll('#curves polyline').length") == min(
                8, len(kind["groups"])
            )


@any_case
def test_a_target_is_drawn_explained_and_followed(open_page, runs, case):
    certificates, browser = made(case), open_page(runs[case])
    data, drawn = page_data(certificates), neighbourhoods_of(certificates)
    targets = data["targets"]
    row = len(targets["node"]) // 2
    browser.execute_script(f"document.querySelectorAll('#rows a')[{row}].click()")
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert text(browser, "#one-name") == f"Target {targets['name'][row]}"
    assert browser.execute_script("return document.activeElement.id") == "one-name"
    assert texts(browser, "#one-said p") == [targets["said"]["texts"][each] for each in targets["said"]["rows"][row]]
    field = data["fields"] and data["fields"]["rows"][row]
    nodes = browser.execute_script("return document.querySelectorAll('#one-field .node').length")
    assert nodes == (len(field["nodes"]) if field else 0)
    if drawn is not None:
        place = drawn.rows.tolist().index(certificates.targets.tolist().index(targets["node"][row]))
        assert nodes == drawn.indptr[place + 1] - drawn.indptr[place]
        assert browser.execute_script("return document.querySelectorAll('#one-field .node.worst').length") == len(
            targets["worst"][row]
        )
    votes = sum(number for _, number in targets["votes"][row])
    expected = [percent(number, votes) for _, number in targets["votes"][row]]
    if "exact" in targets:
        expected = [withstood for _, _, withstood in targets["exact"][row]]
    assert [cells[2] for cells in rows_of(browser, "#one-votes")] == expected
    browser.execute_script("document.getElementById('next').click()")
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert text(browser, "#one-name") == f"Target {targets['name'][row + 1]}"
    browser.execute_script("document.getElementById('previous').click()")
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert text(browser, "#one-name") == f"Target {targets['name'][row]}"


def test_a_link_opens_a_target_at_its_rho(open_page, runs):
    node = int(made("interception").targets[3])
    browser = open_page(runs["interception"], f"#rho=2&node={node}")
    assert text(browser, "#one-name") == f"Target node {node}"
    assert text(browser, "#rho-value") == "2"
    assert text(browser, "#one-at-rho").startswith("At ρ = 2 ") or "no prediction" in text(browser, "#one-at-rho")
    browser = open_page(runs["interception"], "#rho=99&node=nobody")
    assert browser.execute_script("return document.getElementById('one').hidden")


def test_delta_stands_against_the_lead(open_page, runs):
    certificates = made("interception")
    row = int(certificates.radius.argmax())
    browser = open_page(runs["interception"], f"#node={certificates.targets[row]}")
    for cells in rows_of(browser, "#one-delta"):
        rho = int(cells[0])
        assert 0 <= float(cells[1]) - certificates.delta_upper[row, rho - 1] < 2e-4
        assert cells[3] == ("yes" if rho <= certificates.radius[row] else "no")
    drawn = """const one = document.getElementById('one-delta'), high = (each) => each.getBoundingClientRect();
        const lines = [...one.querySelectorAll('.grid')], axis = lines[0];
        const frame = high(axis).top - high(lines.at(-1)).top;
        return [[...one.querySelectorAll('.bar')].map((bar) => high(bar).height / frame),
            (high(axis).top - high(one.querySelector('.floor')).top) / frame]"""
    bars, line = browser.execute_script(drawn)
    assert bars == pytest.approx(certificates.delta_upper[row, : len(bars)].tolist(), abs=2e-3)
    assert line == pytest.approx(proved_lead(certificates, row) / 2, abs=5e-3)


@pytest.mark.parametrize("case", ["interception", "votes-hostile"])
def test_figures_are_drawn_from_the_counts_of_python(open_page, runs, case):
    case = case if case in CASES else "interception"
    data, browser = page_data(made(case)), open_page(runs[case])
    said = browser.execute_script("return document.querySelector('#histogram svg').getAttribute('aria-label')")
    counts = ", ".join(f"{'none' if radius < 0 else radius}: {a + b}" for radius, a, b in data["histogram"])
    assert said == f"Targets by radius: {counts}"
    dots = "return [...document.querySelectorAll('#by-degree title')].map((each) => each.textContent)"
    assert browser.execute_script(dots) == [
        f"in-degree from {low}, radius {radius}: {number} targets" for low, radius, number in data["by_degree"]
    ]
    for rho in (0, data["last"]):
        put(browser, "rho", rho)
        reached = sum(a + b > 0 for radius, a, b in data["histogram"] if radius >= rho)
        bars = browser.execute_script("return document.querySelectorAll('#histogram .reached:not(.entire)').length")
        assert bars == reached
    put(browser, "measure", "holds_correct")
    everyone = data["cohorts"][0]["groups"][0]
    floors = [everyone["as_trained"], everyone["alone"]]
    lines = browser.execute_script(
        "return [...document.querySelectorAll('#curves .floor')].map((each) => +each.getAttribute('y1'))"
    )
    expected = [290 - 276 * count / everyone["known"] for count in floors if count is not None]
    assert lines == pytest.approx(expected)


def test_the_drawing_has_a_legend_of_who_may_be_hostile(open_page, runs):
    certificates = made("interception")
    browser = open_page(runs["interception"], f"#node={certificates.targets[3]}")
    shown = texts(browser, "#one-field .legend li")
    drawn = neighbourhoods_of(certificates)
    place = drawn.rows.tolist().index(3)
    roles = drawn.roles[drawn.indptr[place] : drawn.indptr[place + 1]]
    names = ["may be hostile", "trusted", "cannot be hostile here"]
    assert shown[: len(set(roles.tolist()))] == [names[role] for role in sorted(set(roles.tolist()))]
    worst = browser.execute_script("return document.querySelectorAll('#one-field .node.worst').length")
    assert ("in the set that nothing is proved against" in shown) == (worst > 0)


def frame(case):
    data = page_data(made(case))
    targets = data["targets"]
    return pd.DataFrame(
        {
            name: targets[name]
            for name in ("name", "prediction", "label", "radius", "eligible", "margin", "status", "degree")
        }
    )


@pytest.mark.parametrize(
    ("control", "value", "kept"),
    [
        ("search", "E 1", lambda f: f.name.str.lower().str.contains("e 1", regex=False)),
        ("class", "1", lambda f: f.prediction == 1),
        ("status", "certified", lambda f: f.status == "certified"),
        ("at", "no", lambda f: f.radius < f.eligible.clip(upper=1)),
        ("radius", "1", lambda f: f.radius <= 1),
        ("lead", "0.3", lambda f: f.margin <= 300_000),
        ("wrong", True, lambda f: (f.label >= 0) & (f.prediction != f.label)),
    ],
)
def test_filters_keep_what_they_say(open_page, runs, control, value, kept):
    browser, targets = open_page(runs["interception"]), frame("interception")
    put(browser, control, value)
    assert [row[0] for row in every_row(browser)] == targets[kept(targets)]["name"].tolist()
    assert text(browser, "#found").startswith(f"{int(kept(targets).sum())} of 12 targets")
    browser.execute_script("document.querySelector('button[type=reset]').click()")
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert [row[0] for row in every_row(browser)] == targets["name"].tolist()


@pytest.mark.parametrize(
    ("key", "column"), [("name", "name"), ("degree", "degree"), ("margin", "margin"), ("status", "status")]
)
def test_columns_sort_both_ways(open_page, runs, key, column):
    browser, targets = open_page(runs["interception"]), frame("interception")
    for ascending, said in ((True, "ascending"), (False, "descending")):
        browser.execute_script(f"document.querySelector('[data-key={key}]').click()")
        expected = targets.sort_values(column, ascending=ascending, kind="stable")["name"].tolist()
        assert [row[0] for row in every_row(browser)] == expected
        state = "return document.querySelector(`[data-key=${arguments[0]}]`).closest('th').getAttribute('aria-sort')"
        assert browser.execute_script(state, key) == said


def test_what_is_shown_is_exported(open_page, runs, tmp_path):
    browser, targets = open_page(runs["interception"]), frame("interception")
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    put(browser, "status", "certified")
    browser.execute_script("document.getElementById('csv').click()")
    for _ in range(100):
        if (tmp_path / "targets.csv").exists():
            break
        browser.execute_async_script("setTimeout(arguments[0], 50)")
    found = pd.read_csv(tmp_path / "targets.csv", encoding="utf-8-sig")
    expected = targets[targets.status == "certified"]
    assert found["target"].tolist() == expected["name"].tolist()
    assert found["radius"].tolist() == expected["radius"].tolist()
    assert (found["lead"] <= expected["margin"].to_numpy() / 1e6).all()
    assert "holds at 1" in found.columns


def test_what_trusting_gains_is_what_python_counts(open_page, runs):
    found, browser = page_data(made("interception"))["trusting"], open_page(runs["interception"])
    for rho, number in ((1, 0), (1, 3), (2, len(found["names"]))):
        put(browser, "rho", rho)
        put(browser, "trust", number)
        said = text(browser, "#trust-said")
        assert f"{found['holds'][number][rho]} of 12" in said
        assert all(name in said for name in found["names"][:number])
    assert open_page(runs["sparse"]).execute_script("return document.getElementById('trusting').hidden")


@pytest.mark.parametrize(("p_delete", "p_ablate"), [(None, None), (0.0, 0.9), (0.4, 0.25), (0.99, 0.0)])
def test_other_probabilities_show_the_bound_of_python(open_page, runs, p_delete, p_ablate):
    certificates = made("interception")
    setup = certificates.setup
    row = int(certificates.num_eligible.argmax())
    browser = open_page(runs["interception"], f"#node={certificates.targets[row]}")
    if p_delete is not None:
        put(browser, "p-delete", p_delete)
        put(browser, "p-ablate", p_ablate)
    smoothing = (
        setup.smoothing if p_delete is None else graycert.InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)
    )
    assert float(text(browser, "#p-delete-value")) == smoothing.p_delete
    bounds = delta_bounds(
        small_graph(),
        certificates.targets[[row]],
        smoothing=smoothing,
        threat=setup.threat,
        num_layers=2,
        max_radius=20,
        bound="multiplicative",
    ).delta_upper[0]
    shown = [float(cells[1]) for cells in rows_of(browser, "#what-if-table")]
    assert shown
    assert all(-1e-9 <= ours - theirs < 1.1e-4 for ours, theirs in zip(shown, bounds, strict=False))
    reached = int((2 * bounds[: int(certificates.num_eligible[row])] < 1).sum())
    said = text(browser, "#what-if-said")
    assert f"radius of {reached} " in said or (reached == certificates.num_eligible[row] and "All" in said)
