"""Figure 2 against the formula of a single path in fractions."""

from fractions import Fraction
from itertools import pairwise

import pytest

from graycert.reproduction.formulas import single_source
from graycert.reproduction.style import paper_style


@pytest.fixture(scope="module")
def tables():
    return single_source.tables(distances=(0, 1, 2, 3), cells=8)


def test_every_cell_is_delta_of_its_middle_and_the_areas_count_those_below_one_half(tables):
    below = dict.fromkeys((0, 1, 2, 3), 0)
    for row in tables["heatmap"].itertuples():
        kept, shown = 1 - Fraction(row.p_delete), 1 - Fraction(row.p_ablate)
        exact = kept**row.distance * shown
        assert exact <= Fraction(row.delta) <= exact + Fraction(1, 10**12)
        below[row.distance] += exact < Fraction(1, 2)
    areas = tables["areas"].set_index("distance")
    assert areas["num_certifiable"].to_dict() == below
    assert set(areas["num_cells"]) == {64}
    assert areas.loc[2, "certifiable_share"] == below[2] / 64


def test_measures_tell_the_target_from_nodes_behind_edges(tables):
    measures = single_source.measures(tables)
    assert measures["certifiable_share_distance_0"] == 0.5
    assert measures["influence_of_p_delete_distance_0"] == 0.0
    assert measures["influence_of_p_delete_distance_1"] == pytest.approx((1 - 1 / 16) * (14 / 16))
    shares = tables["areas"]["certifiable_share"].tolist()
    assert measures["smallest_gain_per_step"] == min(b - a for a, b in pairwise(shares))


def test_the_figure_names_its_axes_and_shows_the_line(tables):
    with paper_style():
        figure = single_source.draw(tables)
    *panels, bar = figure.axes
    assert [axes.get_title() for axes in panels] == [
        "(a) the target itself",
        "(b) a direct neighbour",
        "(c) a second-hop neighbour",
        "(d) a node 3 edges away",
    ]
    assert all(axes.get_xlabel() == "edge deletion $p_d$" for axes in panels)
    assert "Delta" in bar.get_ylabel()
    values = panels[1].collections[0].get_array().reshape(8, 8)  # rows are p_a, columns p_d
    rows = tables["heatmap"].query("distance == 1").set_index(["p_delete", "p_ablate"])["delta"]
    assert values[0, 7] == rows.loc[15 / 16, 1 / 16]
    assert values[6, 1] == rows.loc[3 / 16, 13 / 16]
