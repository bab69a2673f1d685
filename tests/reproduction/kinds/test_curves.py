"""Curves over ρ: what is computed for them, the numbers in the tables, and the picture."""

import numpy as np
import pytest
from pydantic import ValidationError

from graycert.reproduction.catalogue import catalogue
from graycert.reproduction.experiment import SCALES
from graycert.reproduction.graph_jobs import TreeShapedJob
from graycert.reproduction.kinds.curves import Curves
from graycert.reproduction.pool import run_jobs
from graycert.reproduction.results import Results
from graycert.reproduction.settings import SplitSettings
from support.commands import write_graph

NAMES = (
    *("fig-3a", "fig-3b", "fig-4a", "fig-4b", "fig-8a", "fig-8b", "fig-10a", "fig-16a", "fig-16b", "fig-18a"),
    *("fig-18b", "fig-21b", "beyond-exact", "beyond-exact-accuracy"),
)
DISTANCES = [{"label": "distance >= 1", "min_distance": 1}, {"label": "distance 2", "min_distance": 2}]


def curves(**changes):
    values = {
        "graph": "cora_ml",
        "quantity": "certified ratio",
        "last_radius": 2,
        "skip": True,
        "p_delete": 0.3,
        "p_ablate": 0.8,
        "seeds": (0, 1),
        "curves": DISTANCES,
    }
    return Curves.model_validate({**values, **changes})


def write(results, job, radius, num_eligible, *, prediction=(0, 0, 0, 0), labels=(0, 0, 1, 0), targets=(0, 1, 2, 3)):
    """Store a made result, the same for all conclusions unless ``radius`` has one row per conclusion."""
    rows = np.broadcast_to(radius, (len(job.conclusions), len(labels)))
    arrays = {"targets": np.array(targets), "labels": np.array(labels), "seconds": 0.0}
    for each, row in zip(job.conclusions, rows, strict=True):
        arrays |= {f"{each.name}/radius": row, f"{each.name}/num_eligible": np.array(num_eligible)}
        arrays[f"{each.name}/prediction"] = np.array(prediction)
    results.write(job, arrays)


@pytest.fixture
def made(tmp_path):
    """Two seeds, four targets; the second conclusion (distance 2) certifies one more at ρ = 2."""
    results = Results(tmp_path)
    for job, second in zip(curves().jobs(), (-1, 0), strict=True):
        write(results, job, [[1, second, 2, 1], [2, second, 2, 1]], [5, 5, 2, 1])
    return results


def rows_of(table, **columns):
    for name, value in columns.items():
        table = table[table[name] == value]
    return table


def test_curves_of_one_model_and_smoothing_share_their_votes():
    jobs = curves(seeds=(7,)).jobs()
    assert [each.name for each in jobs[0].conclusions] == [
        "distance1-multiplicative-sound-0.01",
        "distance2-multiplicative-sound-0.01",
    ]
    assert len(jobs) == 1
    assert jobs[0].model.seed == 7
    another = {"label": "more deletion", "p_delete": 0.4}
    assert len(curves(seeds=(7,), curves=[*DISTANCES, another]).jobs()) == 2


def test_figures_of_one_setting_share_their_computations():
    jobs = {name: set(catalogue()[name].at_scale("paper").jobs()) for name in ("fig-3a", "fig-3b", "fig-16a")}
    assert jobs["fig-3a"] == jobs["fig-3b"]
    assert jobs["fig-3a"] == {job for job in jobs["fig-16a"] if job.model.recipe not in ("mlp", "distilled")}
    assert len(jobs["fig-3a"]) == 5


def test_series_have_the_settings_of_the_figure_unless_they_say_otherwise():
    thick, thin = curves(num_selection=50, curves=[{"label": "a"}, {"label": "b", "num_selection": 7}]).curves
    assert (thick.num_selection, thin.num_selection, thin.p_ablate) == (50, 7, 0.8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"curves": []}, "curves"),
        ({"curves": [DISTANCES[0], DISTANCES[0]]}, "label of its own"),
        ({"targets": "tree-shaped", "test_graph": "trees"}, "full graph"),
        ({"mlp_floor": True}, "normalised accuracy"),
        ({"mlp_floor": True, "quantity": "certified accuracy"}, "whole_field"),
        ({"mlp_floor": True, "quantity": "normalised accuracy", "skip": False, "min_distance": 0}, "trusted"),
        (
            {"distilled_floor": True, "quantity": "normalised accuracy", "skip": False, "min_distance": 0},
            "`distilled_floor` needs trusted",
        ),
        ({"mlp_floor": True, "quantity": "normalised accuracy", "seres": 1}, "seres"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    without_distance = [{"label": each["label"]} for each in DISTANCES]
    with pytest.raises(ValidationError, match=message):
        curves(**{"curves": without_distance, **changes})


def test_a_floor_needs_the_same_targets_in_all_series():
    lines = [*DISTANCES, {"label": "elsewhere", "graph": "citeseer"}]
    with pytest.raises(ValidationError, match="same targets"):
        curves(mlp_floor=True, quantity="normalised accuracy", curves=lines)


def test_the_table_has_means_deviations_and_counts_in_all_conventions(made):
    table = rows_of(curves().tables(made)["curves"], quantity="certified ratio")
    # Radii (1, -1 | 0, 2, 1) with (5, 5, 2, 1) eligible nodes: at ρ = 1 three of four targets, at ρ = 2 one.
    paper = rows_of(table, label="distance >= 1", denominator="paper")
    assert paper["radius"].tolist() == [0, 1, 2]
    assert paper["share"].tolist() == [(0.75 + 1.0) / 2, 0.75, 1 / 3]
    assert paper["share_standard_deviation"].tolist() == pytest.approx([0.25 / 2**0.5, 0.0, 0.0])
    assert paper["certified"].tolist() == [7, 6, 2]
    assert paper["targets"].tolist() == [8, 8, 6]
    everywhere = rows_of(table, label="distance >= 1", radius=2).set_index("denominator")["share"]
    assert everywhere.to_dict() == {"all": 0.25, "whole_field": 0.5, "paper": 1 / 3}  # the last target: all hostile
    assert rows_of(table, label="distance 2", denominator="all", radius=2)["share"].tolist() == [0.5]


def test_an_accuracy_counts_correct_predictions_only(made):
    table = rows_of(curves(quantity="certified accuracy").tables(made)["curves"], quantity="certified accuracy")
    correct = rows_of(table, label="distance >= 1", denominator="all")
    assert correct["share"].tolist() == [(0.5 + 0.75) / 2, 0.5, 0.0]  # the third target is certified, but wrong


def test_a_normalised_curve_is_over_percents_of_the_attack_surface(made):
    table = rows_of(curves(quantity="normalised ratio").tables(made)["curves"], quantity="normalised ratio")
    line = rows_of(table, label="distance >= 1")
    assert (line["attack_surface"].iloc[0], line["attack_surface"].iloc[-1], len(line)) == (0.0, 1.0, 101)
    values = dict(zip(line["attack_surface"].round(2), line["share"], strict=True))
    assert (values[0.2], values[0.21], values[1.0]) == (0.75, 0.5, 0.5)  # 1 of 5 eligible nodes is 20 %


def test_measures_are_means_over_the_seeds_and_gains(made):
    kind = curves()
    measures = kind.measures(kind.tables(made))
    assert measures["distance >= 1: clean accuracy"] == (0.5 + 0.75) / 2
    assert measures["distance >= 1: abstain ratio"] == 0.125
    assert measures["distance >= 1: AUCRC"] == 1.0
    assert measures["distance 2: AUCRC"] == 1.25
    assert measures["distance 2: largest radius"] == 2.0
    assert measures["distance 2: certified ratio at 2"] == pytest.approx(2 / 3)
    assert measures["distance 2 over distance >= 1: smallest gain"] == 0.0
    assert measures["distance 2 over distance >= 1: largest gain"] == pytest.approx(1 / 3)
    assert measures["distance 2 over distance >= 1: gain in AUCRC"] == 0.25
    assert measures["distance 2 over distance >= 1: relative gain in AUCRC"] == 0.25
    normalised = curves(quantity="normalised ratio")
    assert normalised.measures(normalised.tables(made))["distance >= 1: normalised ratio at 20%"] == 0.75


def test_the_largest_radius_is_not_larger_than_a_field(tmp_path):
    kind, results = curves(seeds=(0,), curves=DISTANCES[:1]), Results(tmp_path)
    write(results, kind.jobs()[0], [40, 1, 0, 40], [3, 5, 2, 0])  # 40: whatever all eligible nodes do
    assert kind.measures(kind.tables(results))["distance >= 1: largest radius"] == 3.0


def test_the_floor_is_flat_and_each_panel_has_one(tmp_path):
    lines = [{**each, "panel": each["label"]} for each in DISTANCES]
    kind = curves(quantity="certified accuracy", denominator="whole_field", mlp_floor=True, curves=lines, seeds=(0,))
    results = Results(tmp_path)
    certify, floor = kind.jobs()
    write(results, certify, [1, -1, 2, 1], [5, 5, 2, 1])
    wide = [5, 5, 2, 1, 7]
    write(results, floor, wide, wide, prediction=(0, 0, 1, 1, 1), labels=(0, 0, 1, 0, 0), targets=(0, 1, 2, 3, 9))
    tables = kind.tables(results)
    lines = rows_of(tables["curves"], label="MLP", denominator="whole_field", quantity="certified accuracy")
    assert lines["panel"].tolist() == ["distance >= 1"] * 3 + ["distance 2"] * 3
    assert lines["share"].tolist() == [0.75] * 6
    assert kind.measures(tables)["distance 2, MLP: clean accuracy"] == 0.75


def test_the_distilled_floor_is_computed_and_drawn_beside_the_mlp():
    found = curves(
        **{"quantity": "certified accuracy", "denominator": "whole_field", "seeds": (0,), "curves": DISTANCES[:1]},
        **{"mlp_floor": True, "distilled_floor": True},
    )
    assert [each.label for each in found.all_curves] == [DISTANCES[0]["label"], "MLP", "distilled"]
    assert {job.model.recipe for job in found.jobs()} >= {"mlp", "distilled"}


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    """Two rings with some chords: few fields are trees."""
    folder = tmp_path_factory.mktemp("ring")
    return str(write_graph(folder / "ring.npz", extra_edges=20)), folder / "lab"


@pytest.mark.deep
def test_real_certificates_with_a_floor_on_tree_shaped_fields(ring):
    graph, folder = ring
    kind = curves(
        **{"graph": graph, "architecture": "gcn", "per_class": 3, "max_epochs": 5, "targets": "tree-shaped"},
        **{"quantity": "certified accuracy", "denominator": "whole_field", "mlp_floor": True},
        **{"num_selection": 20, "num_estimation": 200, "seeds": (0,)},
    )
    assert kind.graphs == (graph,)
    (floor_job,) = [job for job in kind.jobs() if job.job == "certify" and job.model.recipe == "mlp"]
    assert [job.job for job in set(kind.jobs()) - {floor_job}].count("certify") == 1
    assert {job.job for job in kind.jobs()} == {"certify", "tree-shaped"}
    assert run_jobs(kind.jobs(), folder) == {}
    results = Results(folder / "results")
    trees = results[TreeShapedJob(split=SplitSettings(graph=graph, per_class=3))]["targets"]
    floor = results[floor_job] | {"prediction": results[floor_job][f"{floor_job.conclusions[0].name}/prediction"]}
    assert 0 < trees.size < floor["targets"].size
    tables = kind.tables(results)
    assert set(tables["seeds"]["targets"]) == {trees.size}
    kept = np.isin(floor["targets"], trees)
    expected = np.mean(floor["prediction"][kept] == floor["labels"][kept])
    assert set(
        rows_of(tables["curves"], label="MLP", denominator="whole_field", quantity="certified accuracy")["share"]
    ) == {expected}
    axes = kind.draw(tables).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["distance ≥ 1", "distance 2", "MLP"]
    assert axes.get_ylabel() == "certified accuracy"
    assert axes.get_xlabel() == r"hostile nodes $\rho$, or all if fewer"


@pytest.mark.few(1)
@pytest.mark.parametrize("name", NAMES)
def test_every_definition_draws_its_panels_and_measures_what_it_claims(name, tmp_path):
    experiment, results = catalogue()[name], Results(tmp_path)
    for scale in SCALES:
        kind = experiment.at_scale(scale)
        kind = kind.model_copy(update={"seeds": kind.seeds[:2]})
        for number, job in enumerate(kind.jobs()):
            if job.job == "certify":
                write(results, job, np.minimum([3, 1, 0, -1], number), [9, 7, 3, 2])
            else:
                results.write(job, {"targets": [0, 1, 2, 3], "seconds": 0.0})
        tables = kind.tables(results)
        missing = {claim.measure for claim in experiment.claims} - set(kind.measures(tables))
        assert not missing
    figure = kind.draw(tables)
    assert len(figure.axes) == len({each.panel for each in kind.curves})
    for axes in figure.axes:
        assert axes.get_xlabel()
        inside = len(figure.axes) > 1 or len(axes.get_lines()) <= 4
        assert (axes.get_legend() is not None) == inside
        assert len(figure.legends) == (not inside)  # many names would lie on the curves of the only panel
