"""Rivals on the same splits: what jobs store, what tables count, and that every curve is drawn."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

import graycert
from graycert.reproduction.catalogue import catalogue
from graycert.reproduction.experiment import SCALES
from graycert.reproduction.kinds.curves import Curves
from graycert.reproduction.lab import Lab
from graycert.reproduction.pool import run_jobs
from graycert.reproduction.style import paper_style
from support.commands import write_graph

MLP = "MLP"
SEEDS = (1, 2)
FEW = {"num_selection": 20, "num_estimation": 150}
STRONG = {"p_delete": 0.7, "p_ablate": 0.5}
LEVINE = {"method": "levine", "panel": "rivals", "p_ablate": 0.7, "training_p_ablate": 0.5}
EXACT = {"bound": "auto", "rule": "event-aware"}
METHODS = (
    {"panel": "ours", "label": "Theorem 3", **STRONG},
    {"panel": "ours", "label": "event-aware", **STRONG, **EXACT},
    {**LEVINE, "label": "local", "scope": "local"},
    {**LEVINE, "label": "global", "scope": "global"},
    {"method": "voting", "panel": "rivals", "label": "T = 3", "num_subgraphs": 3},
    {"method": "voting", "panel": "rivals", "label": "T = 3, own", "num_subgraphs": 3, "tightened": False},
    {"method": "sparse", "panel": "rivals", "label": "d = 2", "num_attributes": 2},
)


def comparison(graph, **changes):
    return Curves.model_validate(
        {
            **{"graph": graph, "architecture": "gcn", "skip": True, "per_class": 3, "max_epochs": 5},
            "curves": METHODS,
            "seeds": SEEDS,
            "also_distances": (1, 2),
            "quantity": "certified accuracy",
            "denominator": "whole_field",
            "last_radius": 4,
            "floors": [{"method": "silent", "label": "no messages"}],
            "mlp_floor": True,
            "background": "ours",
            "draws": {
                "interception smoothing": FEW,
                "sparse smoothing": FEW,
                "Levine, local": {**FEW, "num_targets": 4},
                "Levine, global": FEW,
            },
            **changes,
        }
    )


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return str(write_graph(tmp_path_factory.mktemp("graph") / "ring.npz", num_nodes=70, extra_edges=30))


@pytest.fixture(scope="module")
def lab(graph, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    assert run_jobs(comparison(graph).jobs(), folder) == {}
    return Lab(folder)


@pytest.fixture(scope="module")
def tables(graph, lab):
    return comparison(graph).tables(lab.results)


def found_of(kind, label, seed, lab):
    (found,) = {id(found): found for curve, found in kind.certified(seed, lab.results) if curve.label == label}.values()
    return found


def job_of(kind, seed, name, *, recipe="interception", **parameters):
    found = [each for each in kind.jobs() if each.model.seed == seed and each.model.recipe == recipe]
    found = [each for each in found if each.smoothing.name == name]
    (job,) = {each for each in found if parameters.items() <= each.smoothing.parameters.items()}
    return job


def values_of(arrays, name, *, distance, threat="", rule="sound"):
    return arrays[f"{threat}distance{distance}-auto-{rule}-0.01/{name}"].tolist()


@pytest.mark.deep
@pytest.mark.parametrize("scope", ["local", "global"])
def test_a_levine_job_concludes_for_every_distance_as_a_certificate_of_its_own(graph, lab, scope):
    job = job_of(comparison(graph), 1, "randomized-ablation", scope=scope)
    arrays = lab.results[job]
    for distance in (1, 2):
        found = graycert.certify(
            lab.model(job.model),
            lab.split(job.model).test.data,
            smoothing=graycert.RandomizedAblation(scope=scope, p_ablate=0.7),
            targets=arrays["targets"],
            threat=graycert.NodeFeatureThreat(min_distance=distance),
            draws=graycert.Draws(**FEW),
            max_radius=job.max_radius,
            seed=1,
        )
        assert values_of(arrays, "radius", distance=distance) == found.radius.tolist()
        assert values_of(arrays, "prediction", distance=distance) == found.prediction.tolist()
        if scope == "local":
            assert values_of(arrays, "num_eligible", distance=distance) == found.num_eligible.tolist()
    local = lab.results[job_of(comparison(graph), 1, "randomized-ablation", scope="local")]
    common = np.isin(arrays["targets"], local["targets"])
    for distance in (1, 2):  # reach of the field, whichever nodes the draws choose from
        counts = np.array(values_of(arrays, "num_eligible", distance=distance))
        assert counts[common].tolist() == values_of(local, "num_eligible", distance=distance)


def test_a_voting_job_has_both_radii(graph, lab):
    job = job_of(comparison(graph), 2, "subgraphs")
    arrays, split = lab.results[job], lab.split(job.model)
    assert job.model.p_delete == 1 - 1 / 3
    for distance in (1, 2):
        tightened = graycert.NodeFeatureThreat(min_distance=distance)
        for threat, name in ((tightened, ""), (graycert.FeaturesAndOutEdgesThreat(), "features-and-out-edges-")):
            found = graycert.certify(
                lab.model(job.model),
                split.test.data,
                smoothing=graycert.SubgraphVoting(num_subgraphs=3),
                targets=arrays["targets"],
                threat=threat,
                seed=2,
            )
            place = {"distance": distance, "threat": name, "rule": "exact"}
            assert values_of(arrays, "radius", **place) == found.radius.tolist()
            if threat is tightened:
                reach = found.num_eligible.tolist()
            assert values_of(arrays, "num_eligible", **place) == reach


def test_both_distances_rest_on_the_same_computations(graph):
    near, far = comparison(graph), comparison(graph, min_distance=2)
    assert near.jobs() == far.jobs()
    assert len(near.jobs()) == len(SEEDS) * (len(METHODS) - 2 + 2)  # bounds and radii share votes; two floors


def test_counts_are_those_of_the_targets(graph, lab, tables):
    kind = comparison(graph)
    curves = tables["curves"].set_index(["label", "quantity", "denominator", "radius"])
    for settings in METHODS:
        found = [found_of(kind, settings["label"], seed, lab) for seed in SEEDS]
        for radius in range(5):
            certified = [
                (each.radius >= np.minimum(radius, each.num_eligible)) & (each.prediction == each.labels)
                for each in found
            ]
            row = curves.loc[settings["label"], "certified accuracy", "whole_field", radius]
            assert row["certified"] == sum(each.sum() for each in certified)
            assert row["targets"] == sum(each.size for each in certified)
            assert row["share"] == pytest.approx(np.mean([each.mean() for each in certified]))
            assert row["share_standard_deviation"] == pytest.approx(np.std([each.mean() for each in certified], ddof=1))
    assert curves.loc["local", "certified ratio", "all", 0]["targets"] == 4 * len(SEEDS)


def test_sparse_smoothing_counts_whole_nodes(graph, lab):
    kind = comparison(graph, min_distance=2)
    job = job_of(kind, 1, "sparse", recipe="sparse")
    arrays, found = lab.results[job], found_of(kind, "d = 2", 1, lab)
    deletions = np.array(values_of(arrays, "radius", distance=2, threat="attribute-flips-"))
    assert deletions.max() >= 2  # otherwise nothing is divided
    assert found.radius.tolist() == [-1 if each < 0 else each // 2 for each in deletions.tolist()]
    levine = lab.results[job_of(kind, 1, "randomized-ablation", scope="global")]
    assert found.num_eligible.tolist() == values_of(levine, "num_eligible", distance=2)  # nodes, as of all methods


def test_the_floor_is_an_mlp_whatever_other_nodes_do(graph, lab, tables):
    jobs = [job_of(comparison(graph), seed, "features-only", recipe="mlp") for seed in SEEDS]
    expected = []
    for job in jobs:
        data, targets = lab.split(job.model).test.data, lab.results[job]["targets"]
        with torch.inference_mode():
            alone = lab.model(job.model)(data.x, torch.zeros(2, 0, dtype=torch.int64)).argmax(dim=1)
        expected.append((alone == data.y).numpy()[targets].mean())
    curves = tables["curves"].query("label == @MLP and quantity == 'certified accuracy'")
    for _, line in curves.query("denominator == 'whole_field'").groupby("panel"):
        assert line["share"].to_numpy() == pytest.approx(np.full(5, np.mean(expected)))
    kind = comparison(graph)
    eligible = found_of(kind, "d = 2", 1, lab).num_eligible
    for found in (found for _, label, found in kind._lines(1, lab.results) if label == MLP):
        assert found.radius.tolist() == found.num_eligible.tolist() == eligible.tolist()


def test_a_model_without_messages_is_that_model_on_a_graph_without_edges(graph, lab, tables):
    kind = comparison(graph)
    floor = kind.floors[0]
    found = floor.certified(lab.results[floor.job(1, (1, 2))])
    settings = floor.training(1)
    data = lab.split(settings).test.data
    with torch.inference_mode():
        alone = lab.model(settings)(data.x, torch.zeros(2, 0, dtype=torch.int64)).argmax(dim=1).numpy()
    assert found.prediction.tolist() == alone[found.targets].tolist()
    curves = tables["curves"].query("label == 'no messages' and denominator == 'whole_field'")
    assert (curves.groupby(["panel", "quantity"])["share"].nunique() == 1).all()


def test_tables_say_what_each_method_guarantees(tables):
    guarantees = tables["methods"].set_index("label")["guarantee"]
    assert (
        guarantees["Theorem 3"]
        == guarantees["local"]
        == "all features of any eligible nodes; with probability 0.99 per target"
    )
    assert guarantees["T = 3"] == "all features of any eligible nodes; with certainty"
    assert "out-edges" in guarantees["T = 3, own"]
    assert guarantees["d = 2"].startswith("deleted attributes of any nodes")
    assert set(tables["seeds"]["label"]) == {*(each["label"] for each in METHODS), "no messages", MLP}
    assert (tables["seeds"]["core_seconds"] > 0).all()


def test_measures_compare_curves_and_methods(graph, tables):
    measures = comparison(graph).measures(tables)
    curves = tables["curves"].query("quantity == 'certified accuracy' and denominator == 'whole_field'")
    lines = {label: rows["share"].to_numpy() for label, rows in curves.groupby("label", sort=False)}
    assert measures["rivals, local: certified accuracy at 2"] == lines["local"][2]
    assert measures["ours, Theorem 3 over rivals, T = 3: gain at 3"] == pytest.approx(
        lines["Theorem 3"][3] - lines["T = 3"][3]
    )
    ours = np.maximum(lines["Theorem 3"], lines["event-aware"])[1:]
    rivals = np.maximum(lines["T = 3"], lines["T = 3, own"])[1:]
    assert measures["best interception smoothing over best subgraph voting: smallest gain"] == (ours - rivals).min()
    floor = lines[MLP][1:5]
    assert measures["best interception smoothing over best MLP: largest gain"] == pytest.approx((ours - floor).max())
    radius = measures["ours, event-aware: largest radius"]
    assert radius == tables["seeds"].query("label == 'event-aware'")["largest_radius"].max()


def test_every_curve_is_drawn_with_its_name(graph, tables):
    with paper_style():
        figure = comparison(graph).draw(tables)
    first, second = figure.axes
    assert [text.get_text() for text in first.get_legend().get_texts()] == [
        "Theorem 3",
        "event-aware",
        "no messages",
        MLP,
    ]
    shown = [text.get_text() for text in second.get_legend().get_texts()]
    assert shown == ["thin: curves of (a)", "local", "global", "T = 3", "T = 3, own", "d = 2", "no messages", MLP]
    looks = [(line.get_color(), str(line.get_linestyle())) for line in second.get_lines() if line.get_linewidth() > 1]
    assert len(set(looks)) == len(looks)
    assert "certified accuracy" in first.get_ylabel()
    assert all("hostile nodes" in axes.get_xlabel() and axes.get_title() for axes in (first, second))


def test_one_panel_needs_no_title(graph, lab):
    single = [{**each, "panel": ""} for each in METHODS[:2]]
    draws = {"interception smoothing": FEW}
    kind = comparison(graph, curves=single, quantity="certified ratio", mlp_floor=False, background=None, draws=draws)
    with paper_style():
        figure = kind.draw(kind.tables(lab.results))
    assert figure.axes[0].get_title() == ""
    assert figure.axes[0].get_ylabel().startswith("certified ratio")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"curves": [METHODS[0], METHODS[0]]}, "label of its own"),
        ({"curves": [{**METHODS[0], "label": MLP}]}, "label of its own"),
        ({"curves": [{**METHODS[0], "label": str(number)} for number in range(5)]}, "at most 4 settings"),
        ({"draws": {"voting": FEW}}, "must name methods"),
        ({"background": "theirs"}, "title of a panel"),
        (
            {"curves": METHODS[4:6], "background": None, "floors": [], "draws": {}, "p_delete": 0.3},
            "those of some curve",
        ),
        ({"curves": [{**METHODS[4], "num_estimation": 5}]}, "num_estimation"),
        ({"curves": [{"method": "guessing", "label": "a"}]}, "method"),
        ({"quantity": "certified ratio"}, "mlp_floor"),
        ({"denominator": "all"}, "mlp_floor"),
        ({"curves": [{**METHODS[4], "num_subgraphs": 0}]}, "greater than or equal to 1"),
    ],
)
def test_figures_that_would_mislead_are_refused(graph, changes, problem):
    with pytest.raises(ValidationError, match=problem):
        comparison(graph, **changes)


@pytest.mark.parametrize("name", ["fig-7", "beyond-baselines", "beyond-baselines-second-hop"])
def test_the_definitions_compare_equal_models_and_splits(name):
    experiment = catalogue()[name]
    for scale in SCALES:
        kind = experiment.at_scale(scale)
        assert isinstance(kind, Curves)
        trainings = [job.model for job in kind.jobs()]
        assert {(each.graph, each.split, each.per_class) for each in trainings} == {("cora_ml", "inductive", 20)}
        assert {each.seed for each in trainings} == set(kind.seeds)
