"""Figure 10 (b) against every subset of edges and every set of attackers."""

from fractions import Fraction

import pytest

from graycert.reproduction.formulas import bottleneck
from graycert.reproduction.style import paper_style
from support.enumeration import arrival_law, exact_delta


@pytest.mark.parametrize("p_ablate", [0.0, 0.25, 1.0])
def test_exact_is_the_worst_of_all_sets_also_above_one_half(p_ablate):
    tables = bottleneck.tables(p_deletes=(0.0, 0.125, 0.75, 1.0), p_ablate=p_ablate, num_attackers=4)
    edges = [(1, 0), *((node, 1) for node in range(2, 6))]
    for row in tables["bounds"].itertuples():
        law = arrival_law(edges, 0, 2, Fraction(row.p_delete))
        exact = exact_delta(law, range(2, 6), row.radius, Fraction(p_ablate))
        assert exact <= Fraction(row.exact) <= exact + Fraction(1, 10**14)
        assert row.closed_form == pytest.approx(float(exact), abs=1e-14)
        assert exact <= Fraction(row.theorem_3)
        assert row.theorem_3 <= row.union_bound


def test_the_union_bound_is_not_cut_off():
    tables = bottleneck.tables(p_deletes=(0.5,), num_attackers=6)
    assert tables["bounds"]["union_bound"].tolist() == pytest.approx([0.25 * radius for radius in range(1, 7)])
    measures = bottleneck.measures(tables)
    assert measures["largest_union_bound"] == pytest.approx(1.5)
    assert measures["largest_exact"] == pytest.approx(0.5 * (1 - 0.5**6))
    assert measures["error_of_closed_form"] <= 1e-14
    assert measures["theorem_3_above_exact_at_most"] == pytest.approx(1 - 0.75**6 - 0.5 * (1 - 0.5**6))
    assert measures["union_above_theorem_3_at_least"] == pytest.approx(0.0, abs=1e-14)


def test_the_figure_has_a_panel_per_p_delete():
    tables = bottleneck.tables(p_deletes=(0.5, 0.75), num_attackers=3)
    with paper_style():
        figure = bottleneck.draw(tables)
    assert [axes.get_title() for axes in figure.axes] == ["$p_d = 0.5$", "$p_d = 0.75$"]
    assert figure.axes[0].get_ylabel() == r"bound of $\Delta$"
    assert all(axes.get_xlabel() == r"hostile nodes $\rho$" for axes in figure.axes)
    names = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
    assert names == ["union bound", "Theorem 3", "exact"]
