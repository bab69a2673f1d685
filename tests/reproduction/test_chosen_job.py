"""Settings are chosen on validation nodes only, and test nodes are certified under the chosen ones."""

import shutil

import numpy as np
import pytest
from pydantic import ValidationError

import graycert
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.chosen_job import ChosenJob
from graycert.reproduction.kinds.curves import Curves
from graycert.reproduction.lab import Lab
from graycert.reproduction.pool import run_jobs
from graycert.reproduction.settings import Conclusion, DrawSettings, SmoothingSettings, TrainingSettings
from support.commands import write_graph

GRID = [{"p_delete": [0.0, 0.7], "p_ablate": [0.3, 0.6]}, {"p_delete": [0.95], "p_ablate": [0.0]}]
PLACES = [(0.0, 0.3), (0.0, 0.6), (0.7, 0.3), (0.7, 0.6), (0.95, 0.0)]
FEW = {"num_selection": 20, "num_estimation": 100}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return str(write_graph(tmp_path_factory.mktemp("graph") / "ring.npz", num_nodes=80, extra_edges=30))


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return Lab(tmp_path_factory.mktemp("lab"))


def candidate(graph, p_delete, p_ablate, **changes):
    model = {"graph": graph, "architecture": "gcn", "skip": True, "per_class": 5, "max_epochs": 5, "seed": 1}
    return CertifyJob(
        model=TrainingSettings(**model),
        smoothing=SmoothingSettings.of("interception", p_delete=p_delete, p_ablate=p_ablate),
        draws=DrawSettings.of(**FEW),
        **{"conclusions": (Conclusion(bound="auto"),), **changes},
    )


def chosen(graph, radii=(1, 2), **changes):
    return ChosenJob(candidates=tuple(candidate(graph, *place, **changes) for place in PLACES), radii=radii)


def by_hand(lab, job, candidate):
    """Return the certified accuracy on validation nodes at each radius of the job."""
    split = lab.split(candidate.model)
    found = graycert.certify(
        lab.model(candidate.model),
        split.validation.data,
        targets=split.validation.nodes,
        smoothing=candidate.smoothing.made(),
        threat=graycert.NodeFeatureThreat(min_distance=1),
        draws=graycert.Draws(**FEW),
        seed=1,
        execution=graycert.Execution(say=lambda _: None),
        num_layers=2,
    )
    right = found.prediction == found.labels
    return [np.mean(right & (found.radius >= np.minimum(radius, found.num_eligible))) for radius in job.radii]


@pytest.mark.deep
def test_the_best_on_validation_nodes_is_chosen(graph, lab):
    job = chosen(graph)
    arrays = lab.do(job)
    expected = [np.mean(by_hand(lab, job, each)) for each in job.candidates]
    np.testing.assert_allclose(arrays["scores"], expected)
    assert len(set(np.round(expected, 9))) > 1
    assert int(arrays["chosen"]) == expected.index(max(expected))
    alone = lab.do(job.candidates[int(arrays["chosen"])])
    name = job.candidates[0].conclusions[0].name
    assert arrays[f"{name}/radius"].tolist() == alone[f"{name}/radius"].tolist()
    assert arrays["targets"].tolist() == lab.split(job.candidates[0].model).test.nodes.tolist()


def test_test_nodes_are_looked_at_under_the_chosen_settings_only(graph, tmp_path):
    lab, job = Lab(tmp_path), chosen(graph)
    found = int(lab.do(job)["chosen"])
    assert [each in lab.results for each in job.candidates] == [place == found for place in range(len(PLACES))]
    validation = [each.model_copy(update={"part": "validation"}) for each in job.candidates]
    assert all(each in lab.results for each in validation)
    assert lab.results[validation[0]]["targets"].size == 10


@pytest.mark.deep
def test_no_test_label_has_a_say(graph, tmp_path):
    """With the labels of all test nodes exchanged, the same settings are chosen by the same scores."""
    lab, job = Lab(tmp_path), chosen(graph)
    arrays = lab.do(job)
    other, split = Lab(tmp_path / "other"), lab.split(job.candidates[0].model)
    exchanged = split.test.data.clone()
    exchanged.y = split.test.data.y.clone()
    exchanged.y[split.test.nodes] = 1 - exchanged.y[split.test.nodes]
    part = type(split.test)(data=exchanged, nodes=split.test.nodes, original=split.test.original)
    other._split = lambda *_: type(split)(**{**vars(split), "test": part})
    again = other.do(job)
    assert again["scores"].tolist() == arrays["scores"].tolist()
    assert again["chosen"] == arrays["chosen"]
    assert not np.array_equal(again["labels"], arrays["labels"])


def test_of_equal_settings_the_first_is_chosen(graph, lab):
    twice = candidate(graph, 0.7, 0.6)
    job = ChosenJob(candidates=(twice, twice.model_copy(update={"max_radius": 39})), radii=(1,))
    arrays = lab.do(job)
    assert arrays["scores"][0] == arrays["scores"][1]
    assert int(arrays["chosen"]) == 0


def test_all_validation_nodes_are_asked_even_if_few_test_nodes_are_certified(graph, lab):
    job = chosen(graph, num_targets=3)
    assert lab.do(job)["targets"].size == 3
    assert lab.do(job)["scores"].tolist() == lab.do(chosen(graph))["scores"].tolist()


def test_a_candidate_concludes_once(graph):
    with pytest.raises(ValidationError, match="one conclusion"):
        chosen(graph, conclusions=(Conclusion(), Conclusion(min_distance=2)))


def figure(graph, **changes):
    settings = {
        "quantity": "certified accuracy",
        "denominator": "whole_field",
        "seeds": (1, 2),
        "architecture": "gcn",
        "skip": True,
        "per_class": 5,
        "max_epochs": 5,
        "bound": "auto",
        "curves": [
            {"label": "chosen", "grid": GRID, **FEW},
            {"label": "fixed", "p_delete": 0.7, "p_ablate": 0.6, **FEW},
            {"method": "mlp", "label": "MLP"},
        ],
        "panels": [{"panel": "ring", "graph": graph}],
    }
    return Curves.model_validate(settings | changes)


@pytest.mark.deep
def test_a_figure_shows_choices_on_several_graphs_with_seeds_of_their_own(graph, tmp_path):
    other = shutil.copy(graph, tmp_path / "other.npz")
    few = {"panel": "few", "graph": str(other), "seeds": [2], "num_targets": 3}
    kind = figure(graph, panels=[{"panel": "ring", "graph": graph}, few])
    assert run_jobs(kind.jobs(), tmp_path) == {}
    tables = kind.tables(Lab(tmp_path).results)
    seeds = tables["seeds"].groupby(["panel", "label"])["seed"].agg(list).to_dict()
    assert {key: value for key, value in seeds.items() if key[0] == "ring"} == {
        ("ring", label): [1, 2] for label in ("chosen", "fixed", "MLP")
    }
    assert seeds["few", "chosen"] == [2]
    assert tables["seeds"].query("panel == 'few'")["targets"].tolist() == [3] * 3
    choices = tables["choices"]
    assert choices[["panel", "seed"]].to_numpy().tolist() == [["ring", 1], ["ring", 2], ["few", 2]]
    assert (choices["of"] == len(PLACES)).all()
    assert choices["chosen"][0].startswith("p_delete = ")
    assert choices["chosen"][1] == choices["chosen"][2]  # the graph is the same, and so are the validation nodes
    measures = kind.measures(tables)
    assert measures["ring, chosen: certified accuracy at 1"] >= 0.0
    assert not any(name.startswith("best ") for name in measures)  # graphs are not mixed
    kind.draw(tables)


def test_candidates_come_in_the_order_of_the_grid(graph):
    curve = figure(graph).curves[0]
    assert [(each.p_delete, each.p_ablate) for each in curve.candidates] == PLACES
    assert all(each.bound == "auto" for each in curve.candidates)


@pytest.mark.parametrize(
    "wrong",
    [{"graph": ["other"]}, {"min_distance": [1, 2]}, {"p_forget": [0.1]}, {"seeds": [[1]]}, {"num_targets": [3]}],
)
def test_what_is_compared_is_no_matter_of_choice(graph, wrong):
    with pytest.raises(ValidationError, match="grid"):
        figure(graph, curves=[{"label": "chosen", "grid": [wrong]}])


def test_attributes_are_not_chosen_by(graph):
    with pytest.raises(ValidationError, match="attributes are certified"):
        figure(graph, curves=[{"method": "sparse", "label": "x", "num_attributes": 2, "grid": [{"p_minus": [0.5]}]}])


def test_panels_hold_settings_of_curves(graph):
    with pytest.raises(ValidationError, match="must hold settings of curves"):
        figure(graph, panels=[{"panel": "ring", "graf": graph}])
    with pytest.raises(ValidationError, match="among those of the figure"):
        figure(graph, panels=[{"panel": "ring", "graph": graph, "seeds": [3]}])
