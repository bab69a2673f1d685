"""Survivors of one adversary against those of one each, from real runs on a small graph."""

import pytest

import graycert
from graycert.reproduction.kinds.collective_curves import CollectiveCurves
from graycert.reproduction.lab import Lab
from graycert.reproduction.style import paper_style
from support.commands import write_graph

BUDGETS = (1, 2, 4)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return Lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def kind(tmp_path_factory):
    graph = str(write_graph(tmp_path_factory.mktemp("graph") / "ring.npz", num_nodes=80))
    model = {"graph": graph, "architecture": "gat", "skip": True, "per_class": 5, "max_epochs": 10}
    return CollectiveCurves(
        **model,
        training_p_ablate=0.3,
        seeds=(3, 4),
        p_delete=0.4,
        p_ablate=0.8,
        budgets=BUDGETS,
        num_selection=50,
        num_estimation=400,
        alpha=0.05,
    )


@pytest.fixture(scope="module")
def tables(kind, lab):
    for job in kind.jobs():
        lab.do(job)
    return kind.tables(lab.results)


@pytest.mark.deep
def test_counts_are_those_of_the_certificates(kind, lab, tables):
    counts = tables["counts"].query("seed == 4")
    job = kind.jobs()[1]
    split = lab.split(job.model)
    run = graycert.certify(
        lab.model(job.model),
        split.test.data,
        smoothing=graycert.InterceptionSmoothing(p_delete=0.4, p_ablate=0.8),
        targets=split.test.nodes.numpy(),
        threat=graycert.NodeFeatureThreat(min_distance=1),
        draws=graycert.Draws(num_selection=50, num_estimation=400),
        alpha=0.05,
        simultaneous=True,
        bound="multiplicative",
        max_radius=4,
        seed=4,
    )
    collective = run.against_one_adversary(split.test.data, BUDGETS)
    assert counts["theorem_3"].tolist() == [
        sum(radius >= min(rho, most) for radius, most in zip(run.radius, run.num_eligible, strict=True))
        for rho in BUDGETS
    ]
    assert counts["num_predicted"].tolist() == [(run.radius >= 0).sum()] * 3
    assert set(counts["num_targets"]) == {len(run)}
    assert (counts["together"].to_numpy() >= collective.num_robust).all()  # the exact radii can only help
    assert counts["together"].iloc[0] > counts["together"].iloc[-1]


def test_curves_are_means_over_seeds(kind, tables):
    counts, curves = tables["counts"], tables["curves"]
    assert curves.groupby("label").size().to_dict() == {"together": 3, "exact": 3, "theorem_3": 3}
    shares = (counts["together"] / counts["num_targets"])[counts["radius"] == 2]
    row = curves.query("label == 'together' and radius == 2").iloc[0]
    assert row["share"] == pytest.approx(shares.mean())
    assert row["share_standard_deviation"] == pytest.approx(abs(shares.iloc[0] - shares.iloc[1]) / 2)
    measures = kind.measures(tables)
    assert measures["together_at_2"] == row["share"]
    gains = [row.together - max(row.exact, row.theorem_3) for row in counts.itertuples()]
    assert measures["smallest_gain_in_nodes"] == min(gains)
    # Only the shared adversary takes test nodes that it controls, at most as many as it has.
    assert all(gain >= -budget for gain, budget in zip(gains, counts["radius"], strict=True))


def test_the_figure_names_its_curves(kind, tables):
    with paper_style():
        figure = kind.draw(tables)
    (axes,) = figure.axes
    assert axes.get_xlabel() == r"hostile nodes $\rho$"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "together",
        "one by one, exact",
        "one by one, Theorem 3",
    ]
    assert len(axes.collections) == 3  # bands
