import builtins
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from graycert.runs.page import Curve, certified_ratio_svg, render_report
from graycert.runs.view import report_view
from support.certificates import small_certificates


@pytest.fixture(scope="module")
def view():
    return report_view(small_certificates(num_targets=30))


@pytest.fixture(scope="module")
def page(view):
    return render_report(view)


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in {"meta", "br", "link", "img"}:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def test_page_is_well_formed_and_asks_for_nothing(page):
    parsed = Tags(page)
    assert parsed.stack == []
    assert not {"script", "link", "iframe", "object", "img"} & set(parsed.tags)
    links = [value for name, value in parsed.attributes if name in {"src", "href", "xlink:href", "data", "action"}]
    assert all(value.startswith("#") for value in links)
    assert not re.search(r"url\((?!#)|@import|\son\w+=", page)
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_page_is_the_same_for_the_same_certificates(view, page):
    assert render_report(view) == page
    assert render_report(report_view(small_certificates(num_targets=30))) == page


def test_names_cannot_inject_markup(page):
    assert "<b>nöde" not in page
    assert "&lt;b&gt;nöde&lt;/b&gt;" in page
    assert "zero &amp; co" in page
    evil = render_report(report_view(small_certificates(provenance={"graph": {"name": "<script>alert(1)</script>"}})))
    assert "<script" not in evil


def test_statement_table_and_targets_are_on_the_page(view, page):
    for paragraph in view.statement:
        assert paragraph.split(":")[0].replace("'", "&#39;")[:60] in page
    for row in view.ratios.rows:
        assert "".join(f"<td>{cell}</td>" for cell in row) in page
    assert page.count("nöde") == 30
    assert "<svg" in page


def test_only_the_first_targets_by_radius_are_shown():
    certificates = small_certificates(num_targets=260, named=False)
    view = report_view(certificates)
    assert len(view.targets.rows) == 200
    assert "60 more targets are in certificates.parquet" in view.targets.note
    order = sorted(range(260), key=lambda i: (-certificates.radius[i], certificates.targets[i]))
    assert [row[0] for row in view.targets.rows] == [str(certificates.targets[i]) for i in order[:200]]
    assert "more targets" not in report_view(small_certificates()).targets.note


def test_bounds_are_shown_rounded_outward():
    certificates = small_certificates(named=False)
    rows = {row[0]: row for row in report_view(certificates).targets.rows}
    for i, target in enumerate(certificates.targets):
        low, high = rows[str(target)][4:6]
        assert 0 <= certificates.p_lower[i] - float(low) < 1e-4
        assert 0 <= float(high) - certificates.p_upper[i] < 1e-4


def test_abstained_targets_show_no_prediction():
    rows = report_view(small_certificates(named=False)).targets.rows
    assert [row[1] for row in rows if row[-1] == "abstained"] == ["none"]


def test_unsound_rule_is_called_so_on_the_page():
    page = render_report(report_view(small_certificates(rule="paper")))
    assert page.index("NOT A SOUND CERTIFICATE") < page.index("<h2>")
    assert "<h2>What is proved" not in page
    assert "NOT soundly certified" in page


def test_figure_shows_the_curves(view):
    svg = certified_ratio_svg(view.curves)
    assert svg == certified_ratio_svg(view.curves)
    ET.fromstring(svg)
    for curve in view.curves:
        assert curve.label in svg
    falling = [Curve(label="a", values=(1.0, 0.5, 0.0))]
    assert certified_ratio_svg(falling) != certified_ratio_svg([replace(falling[0], values=(1.0, 0.4, 0.0))])


def test_curves_are_the_table(view):
    certificates = small_certificates(num_targets=30)
    certified = view.curves[0].values
    for rho, value in enumerate(certified):
        assert value * 30 == pytest.approx(
            ((certificates.radius >= rho) & (certificates.num_eligible >= rho)).sum(), abs=1e-9
        )


def test_without_matplotlib_the_page_says_how_to_get_the_figure(view, monkeypatch):
    load = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(name)
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert certified_ratio_svg(view.curves) is None
    page = render_report(view)
    assert "<svg" not in page
    assert "graycert[figures]" in page
