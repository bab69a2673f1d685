"""The page by keyboard, for screen readers, in the dark, on a phone, on paper, without script, with hostile names."""

import base64
import re
from pathlib import Path

import numpy as np
import pytest

import graycert
from graycert._called import Called
from graycert.runs.claim import claim
from graycert.runs.comparison_page import comparison_page
from graycert.runs.decision import decision
from graycert.runs.page import render_document, render_report
from graycert.runs.view import report_view
from support.certificates import small_certificates
from support.every_smoothing import made
from support.page_in_browser import put, rows_of, text, texts

pytestmark = pytest.mark.browser

NAMES = [
    "</script><script>document.title = 'taken'</script>",
    '<img src=x onerror="document.title = 1">',
    "x" * 4_000,
    "\u202eevil\u202c אבג",
    "👩‍🔬🧪 emoji",
    "a\x00b\x1bc\nd",
    '=HYPERLINK("http://example.invalid")',
    "{{ 7 * 7 }}",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    names = np.array([*NAMES, *(f"node {row}" for row in range(22))])
    made = small_certificates(
        num_targets=30,
        node_ids=names,
        class_names=tuple(NAMES[:3]),
        provenance={"graph": {"name": NAMES[1], "path": NAMES[3]}},
    )
    return made.save(tmp_path_factory.mktemp("hostile") / "run"), made


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return small_certificates(num_targets=20_000).save(tmp_path_factory.mktemp("many") / "run")


def test_hostile_names_are_text(open_page, hostile):
    folder, certificates = hostile
    browser = open_page(folder)
    title = browser.title
    before = browser.execute_script("return document.querySelectorAll('script, img').length")
    for row in range(len(NAMES)):
        node = int(certificates.targets[row])
        browser.execute_script(f"location.hash = '#node={node}'")
        browser.execute_async_script("setTimeout(arguments[0], 30)")
        shown = browser.execute_script("return document.getElementById('one-name').textContent")
        plain = NAMES[row].replace("\u202e", "\\u202e").replace("\u202c", "\\u202c").replace("\x00", "\\u0000")
        assert shown == "Target " + plain.replace("\x1b", "\\u001b").replace("\n", "\\u000a")
    assert browser.title == title
    assert browser.execute_script("return document.querySelectorAll('script, img').length") == before == 2
    width = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]


def test_formulas_are_no_formulas_in_the_export(open_page, hostile, tmp_path):
    browser = open_page(hostile[0])
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    browser.execute_script("document.getElementById('csv').click()")
    for _ in range(100):
        if (tmp_path / "targets.csv").exists():
            break
        browser.execute_async_script("setTimeout(arguments[0], 50)")
    lines = (tmp_path / "targets.csv").read_text(encoding="utf-8-sig")
    assert '"\'=HYPERLINK(""http://example.invalid"")"' in lines


def press(browser, *keys):
    from selenium.webdriver.common.action_chains import ActionChains

    actions = ActionChains(browser)
    for key in keys:
        actions.send_keys(key)
    actions.perform()


def focused(browser):
    return browser.execute_script("const each = document.activeElement; return each.id || each.textContent")


def test_all_of_it_by_keyboard(open_page, runs):
    from selenium.webdriver.common.keys import Keys

    browser = open_page(runs["interception"])
    seen = []
    for _ in range(140):
        press(browser, Keys.TAB)
        seen.append(focused(browser))
        if seen[-1] == "rho":
            press(browser, Keys.ARROW_RIGHT)
            assert text(browser, "#rho-value") == "2"
        if seen[-1] == "search":
            press(browser, "node 1")
        if seen[-1] == "csv":
            break
    assert [each for each in seen if each in ("rho", "measure", "kind", "search", "class", "status", "csv")] == [
        "rho",
        "measure",
        "kind",
        "search",
        "class",
        "status",
        "csv",
    ]
    names = [row[0] for row in rows_of(browser, "section[aria-labelledby=targets-title]")]
    assert names
    assert all("node 1" in name for name in names)
    for _ in range(60):
        press(browser, Keys.TAB)
        if focused(browser) == names[0]:
            break
    press(browser, Keys.ENTER)
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert focused(browser) == "one-name"
    assert text(browser, "#one-name") == f"Target {names[0]}"
    press(browser, Keys.TAB, Keys.TAB, Keys.ENTER)
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert focused(browser) == "next"
    assert text(browser, "#one-name") == f"Target {names[1]}"


def test_terms_are_explained_where_they_stand(open_page, runs, browser):
    from selenium.webdriver.common.keys import Keys

    open_page(runs["interception"])
    shown = "return [...document.querySelectorAll('.meaning:popover-open')].map((each) => each.innerText)"
    for _ in range(10):
        press(browser, Keys.TAB)
        if focused(browser) == "smoothed prediction":
            break
    press(browser, Keys.ENTER)
    assert [each.split(":")[0] for each in browser.execute_script(shown)] == ["smoothed classifier"]
    press(browser, Keys.ESCAPE)
    assert browser.execute_script(shown) == []
    said = [re.sub(r"\s+", " ", each) for each in claim(made("interception"), 1)]
    assert texts(browser, "#claim p") == said
    put(browser, "rho", 2)
    assert "confidence" in texts(browser, "#claim .term")
    inside = "return document.querySelectorAll('bdi:not(thead bdi) .term, code .term, label .term').length"
    assert browser.execute_script(inside) == 0


def test_the_words_of_readers_are_on_every_control(browser, tmp_path):
    called = Called.of(["account,accounts", "prediction=decision,decisions", "features=entries"])
    certificates = made("interception")
    page = tmp_path / "page.html"
    page.write_text(render_report(report_view(certificates, called=called)), encoding="utf-8")
    browser.get(f"{page.as_uri()}#node={certificates.targets[3]}")
    shown = browser.execute_script(
        "document.querySelectorAll('bdi, dl, code').forEach((each) => each.closest('thead') || each.remove());"
        "return document.querySelector('main').innerText"
    )
    before = shown.split("What is proved")[0]
    assert "accounts" in before
    assert "All accounts" in before
    assert "Next account" in before
    assert not re.search(r"\b(nodes|targets?|predictions?|features)\b", re.sub(r"node \d+", "", before))


def test_hostile_words_of_readers_are_text(browser, tmp_path):
    one, many = NAMES[0].replace(",", ""), "<img src=x onerror=alert(1)> $& \\1"
    called = Called.of({"node": (one, many), "structure": "${7 * 7} {{ 7 * 7 }}"})
    certificates = made("interception")
    for text_of_page, scripts in (
        (render_report(report_view(certificates, called=called)), 2),
        (render_document(decision(certificates, called=called)), 0),
    ):
        page = tmp_path / "page.html"
        page.write_text(text_of_page, encoding="utf-8")
        browser.get(f"{page.as_uri()}?{scripts}#node={certificates.targets[3]}")
        assert "taken" not in browser.title.replace(one, "")
        assert browser.execute_script("return document.querySelectorAll('script').length") == scripts
        assert browser.execute_script("return document.querySelectorAll('img').length") == 0
        shown = text(browser, "main")
        assert f"{many} each keep" in shown
        assert "${7 * 7} {{ 7 * 7 }} is taken as given" in shown


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("case", ["interception", "paper", "subgraphs", "edge-deletion"])
def test_axe_finds_nothing_serious(open_page, runs, browser, case, scheme):
    axe = pytest.importorskip("axe_core_python", reason="needs axe-core-python, an extra for development")
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    open_page(runs[case], f"#node={made(case).targets[2]}")
    browser.execute_script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert serious(browser, axe) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["decision", "comparison"])
def test_axe_finds_nothing_serious_on_pages_of_sentences(browser, tmp_path, kind, scheme):
    axe = pytest.importorskip("axe_core_python", reason="needs axe-core-python, an extra for development")
    view = (
        decision(made("paper"))
        if kind == "decision"
        else comparison_page(made("interception"), made("node-insertion"), names=("one", "other"))
    )
    (tmp_path / "page.html").write_text(render_document(view), encoding="utf-8")
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get((tmp_path / "page.html").as_uri())
    assert serious(browser, axe) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 1280


def serious(browser, axe):
    """What axe-core finds that keeps people out."""
    browser.execute_script((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = browser.execute_async_script("axe.run().then(arguments[0])")
    assert found["passes"]
    return [
        (each["id"], [node["html"][:120] for node in each["nodes"][:3]])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def test_a_phone_needs_no_scrolling_sideways(open_page, runs, browser):
    screen = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    open_page(runs["interception"], f"#node={made('interception').targets[2]}")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [1024, 1280])
def test_no_column_of_the_targets_is_cut(browser, tmp_path, width):
    words = np.array([f"organisation {row:,}" for row in range(30)])
    certificates = small_certificates(
        num_targets=30,
        node_ids=words,
        class_names=("Reinforcement_Learning", "Probabilistic_Methods", "Case_Based"),
        num_eligible=np.full(30, 1_234_567),
        receptive_field_size=np.full(30, 1_234_567),
        num_nodes=2_000_000,
        threat=graycert.NodeFeatureThreat(min_distance=1),
        in_degree=np.full(30, 98_765),
        labels=np.arange(30) % 3,
    )
    called = Called.of(["organisation,organisations", "prediction=classification,classifications"])
    page = tmp_path / "page.html"
    page.write_text(render_report(report_view(certificates, called=called)), encoding="utf-8")
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(page.as_uri())
    there, shown = browser.execute_script(
        "const each = document.querySelector('[aria-labelledby=targets-title].scroll');"
        "return [each.scrollWidth, each.clientWidth]"
    )
    assert len(texts(browser, "#head th")) == 11
    assert there <= shown


def test_nothing_drawn_is_cut(open_page, runs, browser):
    screen = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    open_page(runs["interception"], f"#node={made('interception').targets[2]}")
    cut = browser.execute_script(
        "return [...document.querySelectorAll('#curves text, #histogram text, #by-degree text, #by-degree circle,"
        " #one-field text')]"
        ".filter((each) => { const box = each.getBBox(); const view = each.ownerSVGElement.viewBox.baseVal;"
        " return box.x < 0 || box.y < 0 || box.x + box.width > view.width || box.y + box.height > view.height; })"
        ".map((each) => each.textContent)"
    )
    assert cut == []


def test_paper_shows_the_summary_first_and_no_controls(open_page, runs, browser):
    open_page(runs["interception"])
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    visible = "return document.querySelector(arguments[0]).getClientRects().length > 0"
    for selector, shown in {
        "#claim": True,
        "ol": True,
        ".static table": True,
        "#filters": False,
        "#rho": False,
    }.items():
        assert browser.execute_script(visible, selector) == shown
    breaks = browser.execute_script(
        "return [...document.querySelectorAll('.rest')].map((each) => getComputedStyle(each).breakBefore)"
    )
    assert breaks == ["page", "page", "page"]
    before = browser.execute_script(
        "const first = document.querySelector('.rest').getBoundingClientRect().top;"
        "return [...document.querySelectorAll('h2')].filter((each) => each.getBoundingClientRect().top < first)"
        ".map((each) => each.innerText)"
    )
    assert before == ["What to do next", "What it costs", "Certified targets per radius"]


def test_the_page_for_a_decision_is_one_sheet(browser, tmp_path):
    called = Called.of(["account,accounts", "prediction=decision,decisions", "structure=who pays whom"])
    page = tmp_path / "page.html"
    page.write_text(render_document(decision(made("interception"), called=called)), encoding="utf-8")
    browser.get(page.as_uri())
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})["data"]
    assert len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed))) == 1


def test_curves_of_two_runs_have_room_for_their_axes(browser, tmp_path):
    view = comparison_page(made("interception"), made("node-insertion"), names=("one", "other"))
    (tmp_path / "page.html").write_text(render_document(view), encoding="utf-8")
    screen = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get((tmp_path / "page.html").as_uri())
    left = "return Math.min(...[...document.querySelectorAll('figure text')].map((each) => each.getBBox().x))"
    assert browser.execute_script(left) >= 0


def test_without_its_script_the_page_still_says_what_is_proved(browser, runs):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get((runs["interception"] / "report.html").as_uri())
    source = browser.page_source
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "each keep their smoothed prediction" in source
    assert "Certified targets per radius" in source


def test_of_20_000_targets_a_page_renders_fifty_rows(open_page, many):
    browser = open_page(many)
    count = "return document.querySelectorAll('#rows tr').length"
    assert browser.execute_script(count) == 50
    assert text(browser, "#found").startswith("20,000 of 20,000 targets, page 1 of 400")
    elements = browser.execute_script("return document.querySelectorAll('*').length")
    put(browser, "search", "nöde</b> 1999")
    assert [row[0] for row in rows_of(browser, "section[aria-labelledby=targets-title]")].count("<b>nöde</b> 1999") == 1
    put(browser, "search", "")
    for control in ("radius", "lead"):
        browser.execute_script(
            f"document.querySelector('[data-key={'radius' if control == 'radius' else 'margin'}]').click()"
        )
        assert browser.execute_script(count) == 50
    put(browser, "rho", 3)
    assert "ρ = 3" in texts(browser, "#at-rho span")[0]
    assert browser.execute_script("return document.querySelectorAll('*').length") < elements + 200
