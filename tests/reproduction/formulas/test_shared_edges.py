"""Figure 9 against every subset of edges."""

from fractions import Fraction

import pytest

from graycert.reproduction.formulas import shared_edges
from graycert.reproduction.style import paper_style
from support.enumeration import arrival_law, arrival_probability

GRAPHS = {
    "shared edge": ([(1, 0), (2, 1), (3, 1)], (2, 3)),
    "no shared edge": ([(1, 0), (2, 0), (3, 1), (4, 2)], (3, 4)),
}


@pytest.fixture(scope="module")
def tables():
    return shared_edges.tables(p_ablate=0.25, steps=4)


def test_the_chances_are_those_of_all_outcomes(tables):
    for row in tables["arrival"].itertuples():
        edges, sources = GRAPHS[row.paths]
        law = arrival_law(edges, 0, 2, Fraction(row.p_delete))
        exact = arrival_probability(law, sources, Fraction(1, 4))
        assert exact <= Fraction(row.some_arrives) <= exact + Fraction(1, 10**14)
        assert row.none_arrives == 1.0 - row.some_arrives
        assert exact <= Fraction(row.theorem_3)


def test_theorem_3_is_exact_without_a_shared_edge_only(tables):
    measures = shared_edges.measures(tables)
    assert measures["error_of_theorem_3_no_shared_edge"] <= 1e-14
    assert measures["error_of_theorem_3_shared_edge"] > 0.05
    # At p_d = 3/4 with p_a = 1/4: independent 1 - (1 - 3/64)^2, shared 1/4 (1 - (13/16)^2).
    assert measures["smallest_gain"] == pytest.approx(1 - (61 / 64) ** 2 - (1 - (13 / 16) ** 2) / 4)
    assert measures["largest_gain"] >= measures["smallest_gain"] > 0.0


def test_the_figure_shows_both_graphs_and_both_curves(tables):
    with paper_style():
        figure = shared_edges.draw(tables)
    shared, separate, curves = figure.axes
    assert (shared.get_title(), separate.get_title()) == ("shared edge", "no shared edge")
    drawn = [text.get_text() for text in separate.texts]
    assert [text for text in drawn if text] == ["$v$", "$w_1$", "$w_2$"]
    assert [text.get_text() for text in curves.get_legend().get_texts()] == ["shared edge", "no shared edge"]
    assert curves.get_xlabel() == "edge deletion $p_d$"
    assert curves.get_ylabel() == "chance that a message arrives"
