"""Two runs on a page, counted by hand."""

from collections import Counter

import numpy as np
import pytest

import graycert
from graycert._called import Called
from graycert.errors import InvalidParameterError
from graycert.runs.comparison_page import comparison_page
from graycert.runs.page import render_document
from support.certificates import small_certificates
from support.every_smoothing import certify_case, made

NAMES = ("first", "<second>")


@pytest.fixture(scope="module")
def pair():
    return made("interception"), certify_case(
        "interception", smoothing=graycert.InterceptionSmoothing(p_delete=0.8, p_ablate=0.8)
    )


@pytest.fixture(scope="module")
def sections(pair):
    return {each.title: each for each in comparison_page(*pair, names=NAMES).sections}


def word(c, row):
    if c.whole_field[row]:
        return "whole field"
    return "none" if c.radius[row] < 0 else str(c.radius[row])


def test_the_grid_counts_every_target_where_it_was_and_is(pair, sections):
    before, after = pair
    grid = sections["From radius to radius"].grid
    headings = grid.columns[1:]
    shown = Counter()
    for name, counts in grid.rows:
        for heading, count in zip(headings, counts, strict=True):
            shown[name, heading] += count
    assert +shown == Counter((word(before, row), word(after, row)) for row in range(len(before)))
    assert grid.shade(0) == 0
    assert grid.shade(max(count for _, counts in grid.rows for count in counts)) == 4


def test_many_radii_are_told_apart_by_their_size():
    from graycert.runs import comparison_page as page
    from graycert.runs.compare import Side

    rng = np.random.default_rng(0)
    radius = rng.integers(-1, 500, size=300)
    whole = rng.random(300) < 0.1
    side = Side(predicted=np.array(["a"] * 300), radius=np.where(whole, 600, radius), whole_field=whole, counts={})

    class Found:
        before = after = side
        called = Called()

    grid = page._moves(Found, NAMES)
    words = ["none", "0", "1 to 2", "3 to 9", "10 to 29", "30 to 99", "100 to 299", "300 to 499", "whole field"]
    largest = int(side.radius[~whole].max())
    assert list(grid.columns[1:]) == [*words[:-2], f"300 to {largest}", words[-1]]
    bounds = [-1, 0, 1, 3, 10, 30, 100, 300, 10_000]
    for place, (_, counts) in enumerate(grid.rows[:-1]):
        low, high = bounds[place : place + 2]
        assert counts[place] == np.count_nonzero(~whole & (radius >= low) & (radius < high)) == sum(counts)
    assert grid.rows[-1][1][-1] == np.count_nonzero(whole)


def test_changes_and_shares_are_those_that_compare_finds(pair, sections):
    before, after = pair
    found = before.compare(after)
    assert all(
        f"{number} {change}" in sections["What changed"].paragraphs[0] for change, number in found.counts.items()
    )
    tables = dict(sections["Which targets changed"].tables)
    for change in ("better", "worse", "another prediction"):
        expected = set(found.targets[found.change == change].tolist())
        assert (
            {row[0] for row in tables[change.capitalize()].rows} == expected
            if expected
            else change.capitalize() not in tables
        )
    for row in sections["What changed"].tables[0][1].rows:
        assert row[0] in found.before.counts
    names = {row[0] for row in sections["What the two were made from"].tables[0][1].rows}
    assert names == {name for name, _, _ in found.settings}


def test_curves_are_the_shares_of_each_run(pair, sections):
    curves = sections["How many of all its targets each run certifies"].curves
    for c, shares in zip(pair, curves.shares, strict=True):
        for rho, share in enumerate(shares):
            assert share * len(c) == pytest.approx((c.radius >= np.minimum(rho, c.num_eligible)).sum())
    first = curves.points[0].split(" ")
    assert len(first) == len(curves.shares[0])


def test_of_many_changes_the_largest_are_listed(monkeypatch):
    monkeypatch.setattr("graycert.runs.comparison_page.MOST_TARGETS", 3)
    before = small_certificates(num_targets=30)
    after = before.replace(
        radius=np.minimum(before.radius, 0), status=np.where(before.radius < 0, "abstained", "predicted")
    )
    table = dict(
        next(
            each
            for each in comparison_page(before, after, names=NAMES).sections
            if each.title == "Which targets changed"
        ).tables
    )["Worse"]
    assert len(table.rows) == 3
    assert table.note.startswith(f"{int((before.radius > 0).sum()) - 3} more")


def test_the_page_shows_names_as_text_and_warns_of_what_proves_nothing(pair):
    page = render_document(comparison_page(pair[0], made("paper"), names=NAMES))
    assert "&lt;second&gt;" in page
    assert "<second>" not in page
    assert page.index("NOT SOUND") < page.index("<h2>")
    assert "<script" not in page


def test_results_that_cannot_be_compared_have_no_page():
    with pytest.raises(InvalidParameterError, match="radii that count"):
        comparison_page(made("interception"), made("edge-deletion"), names=NAMES)
