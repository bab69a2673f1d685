"""The grid of probabilities: what its models are trained with, how seeds are averaged, and its figure."""

import numpy as np
import pytest
from pydantic import ValidationError

from graycert.reproduction.catalogue import catalogue
from graycert.reproduction.kinds.smoothing_heatmap import SmoothingHeatmap
from graycert.reproduction.lab import Lab
from graycert.reproduction.results import Results
from graycert.reproduction.style import paper_style
from support.commands import write_graph

SETTINGS = {
    **{"graph": "ring.npz", "architecture": "gcn", "per_class": 3, "max_epochs": 5},
    "p_deletes": (0.0, 0.5),
    "p_ablates": (0.2, 0.9, 1.0),
    "num_selection": 20,
    "num_estimation": 60,
    "seeds": (1, 2),
}


def kind(**changes):
    return SmoothingHeatmap.model_validate({**SETTINGS, **changes})


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Of four targets as many abstain as seed and cell say; the others are right, but for the last."""
    results = Results(tmp_path_factory.mktemp("results"))
    for job in kind().jobs():
        p_delete, p_ablate = job.smoothing.p_delete, job.smoothing.p_ablate
        abstaining = {0.2: 0, 0.9: job.model.seed, 1.0: 0}[p_ablate] + (p_delete > 0) * (p_ablate < 1)
        name = job.conclusions[0].name
        arrays = {"radius": np.where(np.arange(4) < abstaining, -1, 1), "prediction": np.array([0, 1, 0, 1])}
        arrays["num_eligible"] = np.full(4, 1)
        common = {"targets": np.arange(4), "labels": np.array([0, 1, 0, 0]), "seconds": 0.0}
        results.write(job, common | {f"{name}/{key}": each for key, each in arrays.items()})
    return kind().tables(results)


def test_each_cell_counts_and_averages_its_seeds(tables):
    cells = tables["cells"].set_index(["p_delete", "p_ablate"])
    assert len(cells) == 6
    cell = cells.loc[(0.5, 0.9)]  # 2 and 3 of 4
    assert (cell["abstained"], cell["targets"], cell["abstain_ratio"]) == (5, 8, 0.625)
    assert cell["abstain_ratio_standard_deviation"] == pytest.approx(np.std([0.5, 0.75], ddof=1))
    assert cell["clean_accuracy"] == (0.25 + 0.0) / 2
    assert cells.loc[(0.0, 0.2), "clean_accuracy"] == 0.75


def test_measures_say_where_it_abstains(tables):
    measured = kind().measures(tables)
    assert measured["mean abstain ratio, both below 1/2"] == 0.0
    assert measured["mean abstain ratio, one at least 1/2"] == pytest.approx((0.25 + 0.375 + 0.625) / 5)
    assert measured["abstains more with one at least 1/2"] == pytest.approx(0.25)
    assert measured["largest abstain ratio"] == 0.625
    assert (measured["p_d of the largest abstain ratio"], measured["p_a of the largest abstain ratio"]) == (0.5, 0.9)
    assert measured["largest abstain ratio at p_a = 1"] == 0.0


def test_the_figure_has_p_a_upward_and_p_d_to_the_right(tables):
    with paper_style():
        figure = kind().draw(tables)
    abstained, accuracy = figure.axes[:2]
    assert [text.get_text() for text in abstained.texts] == [".000", ".250", ".375", ".625", ".000", ".000"]
    assert accuracy.texts[0].get_text() == ".750"
    assert [tick.get_text() for tick in abstained.get_yticklabels()] == ["0.2", "0.9", "1"]
    assert (abstained.get_xlabel(), abstained.get_ylabel()) == ("edge deletion $p_d$", "node ablation $p_a$")
    assert [axes.get_ylabel() for axes in figure.axes[2:]] == ["abstained ratio", "clean accuracy"]


def test_models_are_trained_with_what_the_paper_names():
    trained = {(job.model.p_delete, job.model.p_ablate) for job in kind().jobs()}
    assert trained == {(0.0, 0.2), (0.0, 0.9), (0.0, 1.0)}
    for job in kind(same_in_training="deletion and ablation").jobs():
        assert (job.model.p_delete, job.model.p_ablate) == (job.smoothing.p_delete, job.smoothing.p_ablate)


@pytest.mark.deep
def test_real_votes_are_certain_only_without_smoothing_or_with_nothing_left(tmp_path):
    graph = str(write_graph(tmp_path / "ring.npz"))
    training = {"graph": graph, "max_epochs": 40, "learning_rate": 0.05}
    made = kind(**training, p_ablates=(0.0, 0.7, 1.0), seeds=(1,))
    lab = Lab(tmp_path / "lab")
    for job in made.jobs():
        lab.do(job)
    cells = made.tables(lab.results)["cells"].set_index(["p_delete", "p_ablate"])["abstained"]
    assert cells.loc[(0.0, 0.0)] == cells.loc[(0.0, 1.0)] == cells.loc[(0.5, 1.0)] == 0
    assert min(cells.loc[(0.0, 0.7)], cells.loc[(0.5, 0.7)]) > 0


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"training_p_ablate": 0.5}, "training_p_ablate must be left out"),
        ({"p_deletes": (0.5, 0.5)}, "p_deletes must increase"),
        ({"p_ablates": (0.5, 0.1)}, "p_ablates must increase"),
    ],
)
def test_what_is_no_grid_is_refused(changes, complaint):
    with pytest.raises(ValidationError, match=complaint):
        kind(**changes)


def test_the_paper_has_a_model_per_ablation_probability():
    jobs = catalogue()["fig-17"].at_scale("paper").jobs()
    assert len({job.model for job in jobs}) == 5 * 11
    assert len(set(jobs)) == 5 * 11 * 11
