"""Table 1 from real runs on a small graph whose kept sets can be counted by hand."""

from math import comb

import numpy as np
import pytest

import graycert
from graycert.reproduction.kinds.derandomization import PAPER, QUANTITIES, Derandomization, Part, _counts
from graycert.reproduction.lab import Lab
from graycert.reproduction.settings import TrainingSettings
from graycert.reproduction.style import paper_style
from support.commands import write_graph

KEPT = (0.3, 0.5)  # of the four nodes around each node of a ring: 2 either way; more where edges were added


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return str(write_graph(tmp_path_factory.mktemp("graph") / "rings.npz", num_nodes=120, extra_edges=30))


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return Lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def kind(graph):
    return Derandomization(
        parts=(
            Part(title="Citeseer", structure=graph, graph=graph),
            Part(title="Cora-ML", structure=graph, graph=graph),
        ),
        keep_ratios=KEPT,
        training=TrainingSettings(graph="replaced", architecture="gcn", per_class=3, max_epochs=30),
        seeds=(3, 5),
        tau=6,
        num_selection=20,
        num_estimation=100,
        alpha=0.05,
        num_targets=8,
    )


@pytest.fixture(scope="module")
def tables(kind, lab):
    for job in kind.jobs():
        lab.do(job)
    return kind.tables(lab.results)


def test_equal_graphs_are_computed_once(kind):
    jobs = kind.jobs()
    assert len(jobs) == 2 * len(set(jobs)) == 2 * 2 * (1 + 2)


@pytest.mark.deep
def test_the_share_counts_kept_sets_of_all_nodes(graph, lab, tables):
    data = lab.graph(graph)
    neighbours = [set(data.edge_index[0, data.edge_index[1] == node].tolist()) for node in range(120)]
    fields = [
        set.union({node}, around, *(neighbours[each] for each in around)) for node, around in enumerate(neighbours)
    ]
    rows = tables["derandomization"].query("graph == 'Cora-ML'").set_index("keep_ratio")
    for kept in KEPT:
        others = np.array([len(field) - 1 for field in fields])
        few = [comb(int(d), int(np.ceil(d * kept - 1e-9))) <= 6 for d in others]
        assert rows.loc[kept, "derandomized"] == np.mean(few)
        assert 0.0 < np.mean(few) < 1.0
        assert rows.loc[kept, "num_nodes"] == 120
        assert rows.loc[kept, "derandomized_by_evaluations"] >= rows.loc[kept, "derandomized"]


def test_predictions_are_those_of_certify(kind, lab, tables):
    job = kind.jobs()[2]  # second seed
    targets = lab.results[job]["targets"]
    split = lab.split(job.model)
    run = graycert.certify(
        lab.model(job.model),
        split.test.data,
        smoothing=graycert.UniformRetention(keep_ratio=0.3, tau=6),
        threat=graycert.NodeFeatureThreat(min_distance=1),
        targets=targets,
        draws=graycert.Draws(num_selection=20, num_estimation=100),
        alpha=0.05,
        max_radius=3,
        seed=5,
    )
    row = tables["seeds"].query("graph == 'Citeseer' and keep_ratio == 0.3 and seed == 5").iloc[0]
    labels = split.test.data.y.numpy()[targets]
    assert set(targets) <= set(split.test.nodes.tolist())
    assert row["num_targets"] == len(set(targets)) == 8
    exact = run.evaluation == "exact"
    assert row["num_abstained"] == ((run.radius < 0) & ~exact).sum()
    assert row["num_tied"] == ((run.radius < 0) & exact).sum()
    assert row["num_correct"] == ((run.prediction == labels) & ((run.radius >= 0) | exact)).sum()
    assert row["num_robust_to_one"] == (run.radius >= 1).sum()
    assert 0 < row["num_exact"] == exact.sum() < 8


def test_ties_are_predictions_where_all_kept_sets_are_known():
    found = {
        "radius": np.array([1, 0, -1, -1, -1]),
        "exact": np.array([True, False, True, True, False]),
        "prediction": np.array([1, 0, 0, 1, 0]),
        "labels": np.array([1, 1, 0, 0, 0]),
    }
    assert _counts(found) == {
        "num_targets": 5,
        "num_exact": 3,
        "num_tied": 2,
        "num_abstained": 1,
        "num_correct": 2,  # the first, and the first tie
        "num_robust_to_one": 1,
    }


def test_rows_are_means_over_seeds(tables):
    seeds = tables["seeds"].query("graph == 'Cora-ML' and keep_ratio == 0.3")
    row = tables["derandomization"].query("graph == 'Cora-ML' and keep_ratio == 0.3").iloc[0]
    assert row["accuracy"] == pytest.approx(seeds["num_correct"].sum() / 16)
    assert row["abstained"] == pytest.approx(seeds["num_abstained"].sum() / 16)
    assert [row[f"{name}_paper"] for name in QUANTITIES] == list(PAPER["Cora-ML", 0.3]) == [0.31, 0.46, 0.0142, 0.80]
    unknown = tables["derandomization"].query("keep_ratio == 0.5")
    assert unknown["accuracy_paper"].isna().all()


def test_measures_compare_with_the_paper(kind, tables):
    rows = tables["derandomization"]
    measures = kind.measures(tables)
    gaps = (rows["accuracy"] - rows["accuracy_paper"]).abs()
    assert measures["largest_difference_accuracy"] == gaps.max() > 0.0
    cora = rows.query("graph == 'Cora-ML'").set_index("keep_ratio")["derandomized"]
    assert measures["derandomized_Cora-ML_0.5"] == cora[0.5]
    assert measures["smallest_drop_of_derandomized"] == pytest.approx(cora[0.3] - cora[0.5])
    assert measures["citeseer_above_cora_ml"] == 0.0
    assert measures["smallest_gain_by_evaluations"] >= 0.0


def test_the_figure_holds_both_numbers_of_every_field(kind, tables):
    with paper_style():
        figure = kind.draw(tables)
    citeseer, cora, bar = figure.axes
    assert (citeseer.get_title(), cora.get_title()) == ("Citeseer", "Cora-ML")
    assert [label.get_text() for label in cora.get_xticklabels()] == list(QUANTITIES.values())
    assert [label.get_text() for label in cora.get_yticklabels()] == ["0.3", "0.5"]
    assert bar.get_ylabel() == "ours - the paper's"
    assert [text.get_text() for text in cora.texts][1::2][:4] == ["0.31", "0.46", "0.014", "0.80"]
    assert len(cora.texts) == 2 * len(KEPT) * len(QUANTITIES)
