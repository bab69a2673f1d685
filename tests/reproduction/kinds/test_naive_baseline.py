"""Attributes converted to nodes beside whole nodes, from results made by hand."""

import numpy as np
import pytest
from pydantic import ValidationError

from graycert.reproduction.catalogue import catalogue
from graycert.reproduction.experiment import SCALES
from graycert.reproduction.kinds.naive_baseline import OURS, RIVAL, NaiveBaseline
from graycert.reproduction.results import Results
from graycert.reproduction.style import paper_style

NAME = "distance2-multiplicative-sound-0.01"
RIVALS_NAME = "attribute-flips-distance1-auto-sound-0.01"
OURS_SETTINGS = {
    "graph": "cora_ml",
    "skip": True,
    "training_p_ablate": 0.6,
    "p_delete": 0.3,
    "p_ablate": 0.8,
    "min_distance": 2,
}


def comparison(**changes):
    values = {"ours": OURS_SETTINGS, "attributes": (1, 2, 100), "seeds": (1, 2), "max_deletions": 8, "last_radius": 6}
    return NaiveBaseline.model_validate({**values, **changes})


def batched(jobs):
    """Return ours and the rival's of each seed."""
    return list(zip(jobs[::2], jobs[1::2], strict=True))


@pytest.fixture
def results(tmp_path):
    kind, made = comparison(), Results(tmp_path)
    labels = np.zeros(4, dtype=np.int64)
    made_up = ([3, 1, 0, -1], [7, 4, 0, -1]), ([5, 2, 2, 0], [3, 2, 1, 1])
    for (our_job, rival_job), (radius, deletions) in zip(batched(kind.jobs()), made_up, strict=True):
        common = {"targets": np.arange(4), "labels": labels, "seconds": 1.0}
        ours = {"radius": np.array(radius), "num_eligible": np.array([4, 4, 4, 4]), "prediction": labels}
        made.write(our_job, common | {f"{NAME}/{name}": values for name, values in ours.items()})
        rival = {"radius": np.array(deletions), "num_eligible": np.array([4, 4, 4, 4]), "prediction": labels}
        made.write(rival_job, common | {f"{RIVALS_NAME}/{name}": values for name, values in rival.items()})
    return made


def test_both_methods_have_the_split_and_votes_are_shared_with_figure_3_a():
    kind = comparison()
    (ours, rival), second = batched(kind.jobs())
    assert [each.model.seed for each in (ours, rival, *second)] == [1, 1, 2, 2]
    assert set(catalogue()["fig-3a"].at_scale("paper").jobs()) > {catalogue()["fig-3c"].at_scale("small").jobs()[0]}
    assert [each.min_distance for each in ours.conclusions] == [1, 2]
    assert (rival.model.graph, rival.model.seed) == (ours.model.graph, ours.model.seed)
    assert ours.model.skip
    assert not rival.model.skip  # it would show attributes before they are drawn
    assert rival.model.recipe == "sparse"


def test_attributes_are_divided_by_d_and_nodes_are_whole(results):
    tables = comparison().tables(results)
    curves = tables["curves"].query("method == @RIVAL").set_index(["attributes", "radius"])["share"]
    nodes = tables["nodes"].query("method == @RIVAL").set_index(["attributes", "radius"])
    # rho-tilde: 7 4 0 -1 with one seed, 3 2 1 1 with the other
    assert curves[1].tolist() == [7 / 8, 6 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 1 / 8, 1 / 8, 0.0]
    for number in (2, 100):
        assert curves[number].tolist() == curves[1].tolist()
        assert curves[number].index.tolist() == pytest.approx([step / number for step in range(9)])
    assert nodes.loc[1, "certified"].tolist() == [7, 6, 4, 3, 2, 1, 1]
    assert nodes.loc[2, "certified"].tolist() == [7, 4, 2, 1, 0, 0, 0]  # halves: 3 2 0 -1, and 1 1 0 0
    assert nodes.loc[100, "certified"].tolist() == [7, 0, 0, 0, 0, 0, 0]
    assert (nodes["targets"] == 8).all()
    assert nodes.loc[(2, 1.0), "share_standard_deviation"] == 0.0
    assert nodes.loc[(1, 1.0), "share_standard_deviation"] == pytest.approx(np.std([2 / 4, 4 / 4], ddof=1))


@pytest.mark.parametrize(
    ("denominator", "counts", "totals"),
    [
        ("all", [7, 5, 4, 2, 1, 0, 0], [8] * 7),
        ("whole_field", [7, 5, 4, 2, 1, 1, 1], [8] * 7),
        ("paper", [7, 5, 4, 2, 1, 0, 0], [8] * 5 + [0, 0]),
    ],
)
def test_whole_nodes_are_counted_as_in_figure_3_a(results, denominator, counts, totals):
    tables = comparison(denominator=denominator).tables(results)
    ours = tables["nodes"].query("method == @OURS")
    assert ours["certified"].tolist() == counts
    assert ours["targets"].tolist() == totals


def test_measures_say_how_far_each_curve_reaches(results):
    measures = comparison().measures(comparison().tables(results))
    reached = [measures[f"{RIVAL}, d = {number}: largest radius"] for number in (1, 2, 100)]
    assert reached == [6.0, 3.0, 0.0]  # 7 lies beyond the last radius
    assert measures[f"{OURS}: largest radius"] == 4.0  # of 5, but there are only 4 nodes
    assert measures[f"{RIVAL}, d = 2: certified ratio at 1"] == 0.5
    assert measures[f"{OURS}: clean accuracy"] == 7 / 8
    assert measures[f"{RIVAL}: largest d with a certified node"] == 7.0
    assert measures[f"{RIVAL}: largest radius at the largest d"] == 0.07


def test_nothing_certified_is_zero_and_no_error(tmp_path):
    kind, made = comparison(seeds=(1,)), Results(tmp_path)
    nothing = {"radius": np.array([-1]), "num_eligible": np.array([3]), "prediction": np.array([0])}
    common = {"targets": np.array([0]), "labels": np.array([0]), "seconds": 1.0}
    our_job, rival_job = kind.jobs()
    made.write(our_job, common | {f"{NAME}/{name}": values for name, values in nothing.items()})
    made.write(rival_job, common | {f"{RIVALS_NAME}/{name}": values for name, values in nothing.items()})
    tables = kind.tables(made)
    measures = kind.measures(tables)
    assert {measures[f"{name}: largest radius"] for name in (OURS, f"{RIVAL}, d = 1")} == {0.0}
    assert measures[f"{RIVAL}: largest d with a certified node"] == 0.0
    assert (tables["curves"]["share_standard_deviation"] == 0.0).all()
    with paper_style():
        kind.draw(tables)


def test_the_curves_are_drawn_where_they_fall(results):
    kind = comparison()
    with paper_style():
        figure = kind.draw(kind.tables(results))
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    lines = axes.get_lines()
    assert len(lines) == 4
    x, y = lines[1].get_data()  # d = 2
    assert x[1:].tolist() == [step / 2 for step in range(1, 9)]
    assert y.tolist() == [6 / 8, 6 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 1 / 8, 1 / 8, 0.0]
    assert {line.get_drawstyle() for line in lines} == {"steps-pre"}  # falls only after its position
    written = [text.get_text() for text in axes.texts]
    assert written == ["less than one node", "$d$ = 1", "$d$ = 2", "$d$ = 100"]
    assert len(axes.get_legend().get_texts()) == 2
    assert "hostile nodes" in axes.get_xlabel()
    assert axes.get_ylabel() == "certified ratio"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"attributes": (4, 2)}, "must rise"),
        ({"attributes": (0,)}, "greater than or equal to 1"),
        ({"ours": {**OURS_SETTINGS, "test_graph": "diffusion"}}, "graph as it is"),
    ],
)
def test_wrong_settings_are_refused(changes, problem):
    with pytest.raises(ValidationError, match=problem):
        comparison(**changes)


def test_the_definition_has_the_attributes_of_cora_ml():
    experiment = catalogue()["fig-3c"]
    for scale in SCALES:
        kind = experiment.at_scale(scale)
        assert kind.attributes[-1] == 2_879
        assert {claim.measure.split(":")[0] for claim in experiment.claims} <= {
            OURS,
            *(f"{RIVAL}, d = {number}" for number in kind.attributes),
        }
