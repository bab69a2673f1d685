"""Tables and measures over n1 and α from results made by hand, and from real votes on a small graph."""

import numpy as np
import pytest
from pydantic import ValidationError

from graycert.reproduction.catalogue import catalogue
from graycert.reproduction.kinds.sample_efficiency import SampleEfficiency
from graycert.reproduction.lab import Lab
from graycert.reproduction.results import Results
from graycert.reproduction.style import paper_style
from support.commands import write_graph

SETTINGS = {
    **{"graph": "ring.npz", "architecture": "gcn", "skip": True, "per_class": 3, "max_epochs": 5},
    "p_delete": 0.0,
    "p_ablate": 0.8,
    "num_estimations": (20, 80),
    "alphas": (0.1, 0.001),
    "shown": "accuracy",
    "num_selection": 20,
    "max_radius": 3,
    "seeds": (1, 2),
}


def kind(**changes):
    return SampleEfficiency.model_validate({**SETTINGS, **changes})


def write_by_hand(results, made):
    """Four targets with 4, 4, 1 and 0 nodes that may be hostile; the last one is predicted wrongly."""
    radii = {  # (seed, n1, α)
        (1, 20, 0.1): [1, 0, 1, 3],
        (1, 20, 0.001): [0, -1, 0, -1],
        (1, 80, 0.1): [2, 1, 3, 3],
        (1, 80, 0.001): [2, 0, 3, 3],
        (2, 20, 0.1): [1, 1, -1, 3],
        (2, 20, 0.001): [0, 0, -1, 3],
        (2, 80, 0.1): [2, 2, 3, 3],
        (2, 80, 0.001): [2, 2, 3, 3],
    }
    for job in made.jobs():
        arrays = {"targets": np.arange(4), "labels": np.array([0, 1, 0, 1]), "seconds": 0.0}
        for each in job.conclusions:
            arrays[f"{each.name}/radius"] = np.array(radii[job.model.seed, job.draws.num_estimation, each.alpha])
            arrays[f"{each.name}/num_eligible"] = np.array([4, 4, 1, 0])
            arrays[f"{each.name}/prediction"] = np.array([0, 1, 0, 0])
        results.write(job, arrays)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    results = Results(tmp_path_factory.mktemp("results"))
    write_by_hand(results, kind())
    return kind().tables(results)


def row(table, **place):
    chosen = table.loc[np.logical_and.reduce([table[name] == value for name, value in place.items()])]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_the_ratio_counts_targets_that_so_many_nodes_could_attack(tables):
    ratio = row(tables["ratios"], num_estimation=80, alpha=0.1, radius=1)
    assert (ratio["certified"], ratio["targets"]) == (6, 6)  # the target without hostile nodes does not count
    ratio = row(tables["ratios"], num_estimation=80, alpha=0.001, radius=2)
    assert (ratio["certified"], ratio["targets"]) == (3, 4)
    assert ratio["share"] == 0.75
    assert ratio["share_standard_deviation"] == pytest.approx(np.std([0.5, 1.0], ddof=1))
    assert row(tables["ratios"], num_estimation=80, alpha=0.1, radius=3)["certified"] == 0


def test_scores_are_means_over_the_seeds(tables):
    score = row(tables["scores"], num_estimation=20, alpha=0.001)
    assert score["clean_accuracy"] == 0.5  # two right of four in both
    assert score["abstain_ratio"] == (0.5 + 0.25) / 2
    assert score["targets"] == 8
    score = row(tables["scores"], num_estimation=80, alpha=0.1)
    assert score["AUCRC"] == (4 / 4 + 5 / 4) / 2
    assert score["AUCRC_standard_deviation"] == pytest.approx(np.std([1.0, 1.25], ddof=1))


def test_measures_compare_with_the_most_samples_and_the_largest_alpha(tables):
    measured = kind().measures(tables)
    assert measured["largest radius"] == 2.0
    assert measured["AUCRC at alpha 0.1, n1 = 20"] == 0.5
    assert measured["smallest share of AUCRC at n1 = 20"] == 0.0  # of α = 0.001
    assert measured["smallest share of AUCRC at n1 = 80"] == 1.0
    assert measured["largest loss of AUCRC at alpha 0.001"] == 0.5
    assert measured["clean accuracy at alpha 0.001, n1 = 20"] == 0.5
    assert measured["largest loss of clean accuracy at alpha 0.001"] == pytest.approx(0.125)
    assert measured["largest loss of certified ratio at alpha 0.001"] == pytest.approx(2 / 3)


def test_without_certificates_the_largest_radius_is_0(tmp_path):
    made = kind(num_estimations=(20,), alphas=(0.001,), seeds=(1,))
    results = Results(tmp_path)
    write_by_hand(results, made)
    tables = made.tables(results)
    assert made.measures(tables)["largest radius"] == 0.0
    assert (tables["scores"]["AUCRC_standard_deviation"] == 0.0).all()
    with paper_style():
        axes = kind(num_estimations=(20,), alphas=(0.001,), shown="ratio over samples").draw(tables).axes[0]
    assert [line.get_ydata().tolist() for line in axes.lines] == [[0.0]]


def test_a_smaller_alpha_never_certifies_more_of_the_same_votes(tmp_path):
    graph = str(write_graph(tmp_path / "ring.npz"))
    made = kind(graph=graph, seeds=(1,))
    lab = Lab(tmp_path / "lab")
    assert [lab.do(job)["targets"].size for job in made.jobs()] == [6, 6]
    curves = made.tables(lab.results)["ratios"].pivot_table(
        index=["num_estimation", "radius"], columns="alpha", values="certified"
    )
    assert (curves[0.1] >= curves[0.001]).all()
    assert curves.loc[20, 0.1].sum() > curves.loc[20, 0.001].sum()


def test_the_accuracy_is_a_number_in_each_cell(tables):
    with paper_style():
        axes = kind().draw(tables).axes[0]
    assert [text.get_text() for text in axes.texts] == [".500", ".750", ".625", ".750"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["20", "80"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["0.001", "0.1"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Monte-Carlo samples $n_1$", r"failure probability $\alpha$")


def test_a_line_per_radius_over_samples(tables):
    one_alpha = {name: table[table["alpha"] == 0.1] for name, table in tables.items()}
    with paper_style():
        left, right = kind(alphas=(0.1,), shown="ratio over samples").draw(one_alpha).axes
    assert [text.get_text() for text in left.get_legend().get_texts()] == [r"$\rho = 1$", r"$\rho = 2$"]
    np.testing.assert_array_equal(left.lines[1].get_xdata(), [20, 80])
    np.testing.assert_array_equal(left.lines[1].get_ydata(), [0.0, 0.75])
    np.testing.assert_array_equal(right.lines[0].get_ydata(), [0.5, 1.125])
    assert left.get_xscale() == right.get_xscale() == "log"


def test_a_line_per_alpha_over_the_radius(tables):
    few = {name: table[table["num_estimation"] == 20] for name, table in tables.items()}
    with paper_style():
        (axes,) = kind(num_estimations=(20,), shown="ratio over radius").draw(few).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [r"$\alpha$ = 0.1", r"$\alpha$ = 0.001"]
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [0, 1, 2])
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.875, 2 / 3, 0.0])
    assert axes.get_title() == "$n_1 = 20$"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"num_estimations": (80, 20)}, "num_estimations must increase"),
        ({"alphas": (0.001, 0.1)}, "alphas must decrease"),
        ({"shown": "ratio over samples"}, "shows one of alphas"),
        ({"shown": "ratio over radius"}, "shows one of num_estimations"),
    ],
)
def test_what_cannot_be_shown_is_refused(changes, complaint):
    with pytest.raises(ValidationError, match=complaint):
        kind(**changes)


def test_figures_over_alpha_share_their_votes():
    jobs = {name: set(catalogue()[name].at_scale("small").jobs()) for name in ("fig-19a", "fig-19b", "fig-20")}
    assert jobs["fig-19a"] | jobs["fig-19b"] < jobs["fig-20"]
