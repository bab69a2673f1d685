import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from graycert.runs.explain import proved_lead
from graycert.runs.floor import floor_of_run
from graycert.runs.words import ratio_table
from support.certificates import small_certificates
from support.every_smoothing import any_case, made


@pytest.fixture
def axes():
    return Figure().subplots()


def values(axes, label):
    (line,) = (line for line in axes.lines if line.get_label() == label)
    return np.asarray(line.get_ydata())


@any_case
def test_curves_are_the_shares_of_the_table(case, axes):
    c = made(case)
    assert c.plot(axes) is axes
    rows = ratio_table(c)
    for label, key in (("certified", "certified"), ("certified and correct", "certified_and_correct")):
        drawn = values(axes, label)
        assert np.allclose(drawn * len(c), [row[key] for row in rows][: drawn.size])
        assert not any(row["certified"] for row in rows[drawn.size :])
    floor = floor_of_run(c)
    if floor is not None:
        assert np.allclose(values(axes, "from its own features alone"), floor.correct / floor.targets)
    assert ("NOT" in axes.get_title()) == (not c.setup.the_rule.is_sound)


@any_case
def test_what_decides_a_target_is_drawn_for_every_certificate(case, axes):
    c = made(case)
    node = int(c.targets[0])
    assert c.plot_target(node, axes) is axes
    heights = [patch.get_height() for patch in axes.patches]
    if c.delta_upper is None:
        assert len(heights) == c.setup.num_classes
    else:
        assert np.allclose(heights, c.delta_upper[0, : len(heights)])
        blue = [patch.get_facecolor() for patch in axes.patches].count(axes.patches[0].get_facecolor())
        lead = proved_lead(c, 0)
        if c.radius[0] >= 1:
            assert blue == min(c.radius[0], len(heights))
        if lead is not None and lead > 0:
            assert np.allclose(axes.lines[0].get_ydata(), lead / 2)
    axes.figure.canvas.draw()


def test_names_are_text_and_a_target_may_be_named(axes):
    c = small_certificates(node_ids=np.array([f"$\\frac{{{i}$ <b>" for i in range(6)]))
    c.plot_target("$\\frac{3$ <b>", axes)
    assert axes.get_title().startswith("$\\frac{3$ <b>: 'zero & co', radius")
    axes.figure.canvas.draw()


def test_without_axes_a_new_figure_is_made():
    c = small_certificates()
    for drawn in (c.plot(), c.plot_target(0)):
        assert drawn.figure.get_axes() == [drawn]
        plt.close(drawn.figure)
