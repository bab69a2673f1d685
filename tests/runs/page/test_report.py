import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from graycert.runs.page import render_report
from graycert.runs.view import report_view
from support.certificates import small_certificates

HOSTILE = {
    "markup": "</script><script>alert(1)</script><!--",
    "element": '<img src=x onerror="alert(1)">',
    "long": "x" * 5_000,
    "right-to-left": "\u202eevil\u202c אבג",
    "emoji": "👩‍🔬🧪",
    "control": "a\x00b\x07c\x1bd\u2028e",
    "template": "{{ 7 * 7 }}{% raw %}",
    "quotes": "'\"`&amp;\\u003c",
    "surrogate": "half \ud800 a sign",
}


@pytest.fixture(scope="module")
def view():
    return report_view(small_certificates(num_targets=30))


@pytest.fixture(scope="module")
def page(view):
    return render_report(view)


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.attributes, self.parts = [], [], [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in {"meta", "br", "link", "img", "input"}:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, text):
        self.parts.setdefault(self.stack[-1] if self.stack else "", []).append(text)


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_page_is_well_formed_and_asks_for_nothing(page):
    parsed = Tags(page)
    assert parsed.stack == []
    assert not {"link", "iframe", "object", "img", "base"} & set(parsed.tags)
    links = [value for name, value in parsed.attributes if name in {"src", "href", "xlink:href", "data", "action"}]
    assert all(value.startswith("#") for value in links)
    assert not [name for name, _ in parsed.attributes if name == "style" or name.startswith("on")]
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest|innerHTML|outerHTML|eval\(|import\(", page)
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_the_policy_allows_the_script_and_the_style_of_the_page_and_nothing_else(page):
    parsed = Tags(page)
    policy = next(value for name, value in parsed.attributes if name == "content" and "default-src" in value)
    allowed = {part.split()[0]: part.split()[1:] for part in policy.split(";")}
    assert allowed["default-src"] == allowed["base-uri"] == allowed["form-action"] == ["'none'"]
    script = [text for text in parsed.parts["script"] if '"use strict"' in text]
    for kind, texts in (("script-src", script), ("style-src", parsed.parts["style"])):
        expected = base64.b64encode(hashlib.sha256("".join(texts).encode()).digest()).decode()
        assert allowed[kind] == [f"'sha256-{expected}'"]


def test_page_is_the_same_for_the_same_certificates(view, page):
    assert render_report(view) == page
    assert render_report(report_view(small_certificates(num_targets=30))) == page


def test_every_label_has_its_control_and_every_name_is_there_once(page):
    parsed = Tags(page)
    ids = [value for name, value in parsed.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for name, value in parsed.attributes:
        if name in {"for", "aria-labelledby", "aria-describedby"}:
            assert value in ids
    asked = set(re.findall(r'byId\("([a-z-]+)"\)', "".join(parsed.parts["script"])))
    assert asked <= set(ids)


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_are_nothing_but_text(page, kind):
    name = HOSTILE[kind]
    made = report_view(
        small_certificates(
            num_targets=30,
            node_ids=np.array([f"{name}{row}" for row in range(30)]),
            class_names=(name, "one", "two"),
            provenance={"graph": {"name": name, "path": f"/data/{name}"}},
        )
    )
    found = render_report(made)
    ours, theirs = Tags(found), Tags(page)
    rows = {"dt", "dd", "bdi"}
    assert [tag for tag in ours.tags if tag not in rows] == [tag for tag in theirs.tags if tag not in rows]
    assert data_of(found)["targets"]["name"] == made.data["targets"]["name"]
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", found.replace(data_of_text(found), ""))
    found.encode("utf-8")


def data_of_text(page):
    return re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]


def test_names_cannot_inject_markup(page):
    assert "<b>nöde" not in page
    assert "zero &amp; co" in page
    assert data_of(page)["targets"]["name"][0].startswith("<b>nöde")


def test_statement_tables_and_steps_are_on_the_page(view, page):
    for paragraph in view.statement:
        assert paragraph.split(":")[0].replace("'", "&#39;")[:60] in page
    for row in view.ratios.rows:
        first, *rest = row
        cells = "".join(f"<td><bdi>{cell}</bdi></td>" for cell in rest)
        assert f'<th scope="row"><bdi>{first}</bdi></th>{cells}' in page
    assert page.count("<li>") == len(view.next_steps) + len(view.assumptions) + len(view.redone)


def test_the_data_is_in_the_page_as_it_is(view, page):
    assert data_of(page) == json.loads(json.dumps(view.data))


def test_unsound_rule_is_called_so_on_the_page():
    page = render_report(report_view(small_certificates(rule="paper")))
    assert page.index("NOT A SOUND CERTIFICATE") < page.index("<h2>")
    assert "<h2>What is proved" not in page
    assert "NOT soundly certified" in page
    data = data_of(page)
    assert not data["sound"]
    assert all(claim[0].startswith("NOT PROVED") for claim in data["claims"][1:])


def test_of_very_many_targets_the_weakest_are_on_the_page(monkeypatch):
    monkeypatch.setattr("graycert.runs.page_data.MOST_TARGETS", 10)
    monkeypatch.setattr("graycert.runs.view.MOST_TARGETS", 10)
    certificates = small_certificates(num_targets=30)
    view = report_view(certificates)
    shown = set(view.data["targets"]["node"])
    left = certificates.radius[~np.isin(certificates.targets, list(shown))]
    assert (view.data["shown"], view.data["total"], len(shown)) == (10, 30, 10)
    assert max(view.data["targets"]["radius"]) <= left.min() or certificates.whole_field.any()
    assert "the other 20 are in certificates.parquet" in view.targets_note
    assert view.data["cohorts"][0]["groups"][0]["targets"] == 30
