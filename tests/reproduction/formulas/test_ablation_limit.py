"""Figure 21 (a) against powers of fractions."""

from fractions import Fraction
from math import inf

import pytest

from graycert.reproduction.formulas import ablation_limit
from graycert.reproduction.style import paper_style


@pytest.fixture(scope="module")
def tables():
    return ablation_limit.tables(steps=40, max_radius=12)


def test_the_limit_is_the_last_radius_whose_power_is_above_one_half(tables):
    limit = tables["limit"]
    assert limit["p_ablate"].iloc[[0, -1]].tolist() == [0.0, 1.0]
    assert limit["largest_radius"].iloc[-1] == inf
    for row in limit.iloc[:-1].itertuples():
        radius = 0
        while Fraction(row.p_ablate) ** (radius + 1) > Fraction(1, 2):
            radius += 1
        assert row.largest_radius == radius


def test_the_thresholds_are_roots_of_one_half(tables):
    thresholds = tables["thresholds"]
    assert thresholds["radius"].tolist() == list(range(1, 13))
    assert (thresholds["threshold"] ** thresholds["radius"]).tolist() == pytest.approx([0.5] * 12)
    measures = ablation_limit.measures(tables)
    assert measures["wrong_thresholds"] == 0.0
    assert measures["limit_up_to_0.5"] == 0.0
    assert measures["limit_at_0.7"] == 1.0
    assert measures["limit_at_0.85"] == 4.0
    assert measures["p_ablate_of_radius_10"] == 0.95  # the first step of 0.025 above 0.933


def test_a_wrong_threshold_is_counted(tables):
    shifted = tables["thresholds"].assign(limit_below=tables["thresholds"]["limit_above"])
    assert ablation_limit.measures({**tables, "thresholds": shifted})["wrong_thresholds"] == 12.0


def test_the_figure_names_its_axes_and_thresholds(tables):
    with paper_style():
        figure = ablation_limit.draw(tables)
    (axes,) = figure.axes
    assert axes.get_xlabel() == "node ablation $p_a$ (no edge is deleted)"
    assert axes.get_ylabel() == r"largest certifiable radius $\rho$"
    assert [text.get_text() for text in axes.texts] == ["0.500", "0.707", "0.841", "0.891", "0.933"]
    assert max(axes.lines[0].get_ydata()) <= 12.0
