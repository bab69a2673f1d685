"""Figures of robustness against accuracy: which sweeps they need, and how fronts are found, compared and drawn."""

import itertools

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from graycert.errors import InvalidParameterError
from graycert.reproduction.catalogue import catalogue
from graycert.reproduction.experiment import SCALES
from graycert.reproduction.kinds.pareto import BOUNDS, ParetoFronts
from graycert.reproduction.pareto_fronts import MARGIN, draw_panel, marked, mean_robustness
from graycert.reproduction.results import Results
from graycert.reproduction.style import new_figure, paper_style

FIGURES = [each for each in catalogue().values() if each.kind == "pareto"]
SMOOTHED = ("deletion and ablation", "deletion", "ablation")


def invented(kind, folder, *, seed=0, failing=()):
    """Store made-up results of all trials but those in ``failing``, numbered through all lines."""
    generator = np.random.default_rng(seed)
    results = Results(folder)
    jobs = [job for line in kind.lines_of_panels() for sweep in line.sweeps for job in sweep.jobs()]
    for number, job in enumerate(dict.fromkeys(jobs)):
        if number in failing:
            continue
        arrays = {"labels": np.zeros(40, dtype=np.int64), "seconds": 1.0}
        accuracy = generator.uniform(0.7, 0.8)
        for conclusion, more in zip(BOUNDS.values(), (0, 1), strict=True):
            arrays[f"{conclusion.name}/radius"] = generator.integers(0, 5, size=40) + more
            arrays[f"{conclusion.name}/num_eligible"] = np.full(40, 9)
            arrays[f"{conclusion.name}/prediction"] = (np.arange(40) >= 40 * accuracy).astype(np.int64)
        results.write(job, arrays)
    return results


def few(kind, num_trials=3):
    return kind.model_copy(update={"num_trials": num_trials})


@pytest.fixture
def kind():
    return ParetoFronts(datasets=("cora_ml", "citeseer"), skips=(False, True), smoothed=SMOOTHED, num_trials=5)


def test_all_pareto_figures_of_the_paper_are_there():
    numbers = ("5a", "5b", "5c", "6a", "6b", "6c", "11", "12", "13", "14", "15")
    assert {f"fig-{number}" for number in numbers} | {"beyond-fig-6"} == {each.id for each in FIGURES}
    panels = [line.panel for each in FIGURES if each.source.endswith("(App. H)") for line in lines(each)]
    assert len(panels) == 24 * 3 + 9


def lines(experiment, scale="paper"):
    return experiment.at_scale(scale).lines_of_panels()


def swept_by(scale):
    """Return the sweeps of each figure; more trials extend a sweep."""
    return {
        each.id: {sweep.model_copy(update={"num_trials": 1}) for sweep in each.at_scale(scale).sweeps()}
        for each in FIGURES
    }


def test_figures_share_sweeps():
    swept = swept_by("paper")
    assert swept["fig-6a"] | swept["fig-6b"] | swept["fig-6c"] == swept["beyond-fig-6"] <= swept["fig-11"]
    assert swept["fig-5b"] <= swept["fig-11"]
    for number in (11, 12, 13, 14):
        assert len(swept["fig-5a"] & swept[f"fig-{number}"]) == 1
    assert len(set().union(*swept.values())) == 72 + 9 + 3


def test_at_small_scale_figures_with_shared_models_and_claims_are_trained_as_in_the_paper():
    swept = swept_by("small")
    assert swept["fig-6a"] | swept["fig-6b"] | swept["fig-6c"] == swept["beyond-fig-6"] <= swept["fig-11"]
    assert swept["fig-5b"] <= swept["fig-11"]
    small = {each.id: each.at_scale("small") for each in FIGURES}
    assert len(swept["fig-5a"] & swept["fig-6a"]) == len(small["fig-6a"].seeds) == 2
    for each in FIGURES:
        trained_fully = (small[each.id].learning_rate, small[each.id].max_epochs) == (1e-3, 1_000)
        shortened = each.id == "fig-5c" or (each.source.endswith("(App. H)") and each.id != "fig-11")
        assert trained_fully != shortened
        assert small[each.id].margin == 0.05


@pytest.mark.few(1)
@pytest.mark.parametrize("experiment", FIGURES, ids=lambda each: each.id)
def test_every_claim_names_a_measure(experiment, tmp_path):
    for scale in SCALES:
        kind = few(experiment.at_scale(scale))
        measures = kind.measures(kind.tables(invented(kind, tmp_path / scale)))
        assert {claim.measure for claim in experiment.claims if scale in claim.scales} <= measures.keys()


def test_tables_hold_every_trial_and_count_those_that_failed(kind, tmp_path):
    tables = kind.tables(invented(kind, tmp_path, failing=(1, 2, 5)))
    trials, fronts = tables["trials"], tables["fronts"]
    assert len(trials) == 2 * 2 * 3 * 5 - 3
    assert fronts["failed"].tolist() == [2, 1] + [0] * 10
    assert fronts["trials"].tolist() == [3, 4] + [5] * 10
    assert trials.loc[0, ["panel", "line", "trial"]].tolist() == ["Cora-ML", "deletion and ablation", 0]
    assert set(trials["panel"]) == {"Cora-ML", "Citeseer", "Cora-ML, with skip", "Citeseer, with skip"}
    assert (trials.loc[trials["line"] == "deletion", ["p_ablate", "train_p_ablate"]] == 0.0).all(axis=None)
    for _, line in trials.groupby(["panel", "line"]):
        for _, trial in line.iterrows():
            dominated = (
                (line["clean_accuracy"] >= trial["clean_accuracy"])
                & (line["normalized_aucrc"] >= trial["normalized_aucrc"])
                & (
                    (line["clean_accuracy"] > trial["clean_accuracy"])
                    | (line["normalized_aucrc"] > trial["normalized_aucrc"])
                )
            ).any()
            assert trial["dominating"] == (not dominated)
    for _, panel in trials.groupby("panel"):
        assert (panel["within"] == (panel["clean_accuracy"] >= panel["clean_accuracy"].max() - 0.05)).all()


def test_the_bound_that_is_shown(kind, tmp_path):
    results = invented(kind, tmp_path)
    by_theorem = kind.tables(results)["trials"]
    exact = kind.model_copy(update={"bound": "exact"}).tables(results)["trials"]
    assert (exact["certified_ratio_1"] == 1.0).all()
    assert not (by_theorem["certified_ratio_1"] == 1.0).all()
    assert exact["clean_accuracy"].tolist() == by_theorem["clean_accuracy"].tolist()


def test_the_mean_robustness_of_a_front_is_what_it_says():
    trials = pd.DataFrame(
        {"clean_accuracy": [0.8, 0.78, 0.77, 0.76, 0.5], "normalized_aucrc": [0.5, 2.0, 1.0, 3.0, 9.0]}
    )
    levels = 0.8 - MARGIN + MARGIN * (np.arange(100_000) + 0.5) / 100_000
    best = [trials.loc[trials["clean_accuracy"] >= level, "normalized_aucrc"].max() for level in levels[::100]]
    assert mean_robustness(trials, best=0.8) == pytest.approx(np.mean(best), abs=5e-3)
    assert mean_robustness(trials, best=0.8) == pytest.approx((0.01 * 3 + 0.02 * 2 + 0.02 * 0.5) / 0.05)
    assert mean_robustness(trials, best=0.9) == 0.0
    higher = trials.assign(clean_accuracy=trials["clean_accuracy"] + 0.02)  # 0.82: better than needed counts as well
    assert mean_robustness(higher, best=0.8) >= mean_robustness(trials, best=0.8)


def test_measures_say_who_dominates(tmp_path):
    kind = ParetoFronts(datasets=("cora_ml",), architectures=("gat", "gcn"), lines="architecture", num_trials=2)
    results = invented(kind, tmp_path)
    gat, gcn = (line.sweeps[0].jobs() for line in kind.lines_of_panels())
    for jobs, radius, correct in ((gat, 3, 36), (gcn, 2, 35)):
        for shift, job in enumerate(jobs):
            arrays = dict(results[job])
            for conclusion in BOUNDS.values():
                arrays[f"{conclusion.name}/radius"] = np.full(40, radius + shift)
                arrays[f"{conclusion.name}/prediction"] = (np.arange(40) >= correct - shift).astype(np.int64)
            results.write(job, arrays)
    measures = kind.measures(kind.tables(results))
    assert measures["Cora-ML: share of GCN dominated by GAT"] == 1.0
    assert measures["Cora-ML: GAT"] == pytest.approx((0.025 * 3 / 9 + 0.025 * 4 / 9) / 0.05)  # accuracies 0.9 and 0.875
    assert measures["Cora-ML: GCN"] == pytest.approx(0.025 * 2 / 9 / 0.05)  # 0.875; 0.85 is the end of the margin
    assert measures["Cora-ML: GAT over GCN"] == pytest.approx(measures["Cora-ML: GAT"] - measures["Cora-ML: GCN"])


def test_several_splits_are_averaged_trial_by_trial(tmp_path):
    settings = {"datasets": ("cora_ml",), "architectures": ("gat", "gcn"), "lines": "architecture", "num_trials": 4}
    several = ParetoFronts(**settings, seeds=(13, 17, 26))
    results = invented(several, tmp_path)
    sweeps = [sweep for line in several.lines_of_panels() for sweep in line.sweeps]
    assert {sweep.seed for sweep in sweeps} == {13}  # the same distributions on every split
    assert [sweep.training.seed for sweep in sweeps] == [13, 17, 26] * 2
    tables = several.tables(results)

    splits = [found_on_one_split(settings, sweeps, seed, results) for seed in (13, 17, 26)]
    for name in ("clean_accuracy", "normalized_aucrc"):
        values = np.array([each["trials"][name] for each in splits])
        np.testing.assert_allclose(tables["trials"][name], values.mean(axis=0))
        np.testing.assert_allclose(tables["trials"][f"{name}_standard_deviation"], values.std(axis=0, ddof=1))
    gains = np.array([each["comparisons"]["gain"][0] for each in splits])
    assert tables["splits"]["gain"].tolist() == gains.tolist()
    measures = several.measures(tables)
    assert measures["Cora-ML: GAT over GCN, mean of splits"] == pytest.approx(gains.mean())
    assert measures["Cora-ML: GAT over GCN, standard error"] == pytest.approx(gains.std(ddof=1) / np.sqrt(3))
    assert measures["Cora-ML: GAT over GCN"] == pytest.approx(measures["Cora-ML: GAT"] - measures["Cora-ML: GCN"])


def found_on_one_split(settings, sweeps, seed, results):
    """Return the tables of one split alone, from the results of the distributions of all."""
    alone = ParetoFronts(**settings, seeds=(seed,))
    mine = [line.model_copy(update={"sweeps": (sweep,)}) for line, sweep in zip(
        alone.lines_of_panels(), [each for each in sweeps if each.training.seed == seed], strict=True
    )]  # fmt: skip
    object.__setattr__(alone, "lines_of_panels", lambda: mine)
    return alone.tables(results)


def test_a_trial_that_failed_on_one_split_counts_on_none(tmp_path):
    kind = ParetoFronts(datasets=("cora_ml",), seeds=(13, 17), num_trials=3)
    tables = kind.tables(invented(kind, tmp_path, failing=(1,)))
    assert tables["trials"]["trial"].tolist() == [0, 2]
    assert tables["fronts"]["failed"].tolist() == [1]


def test_no_trial_at_all_is_told(kind, tmp_path):
    with pytest.raises(InvalidParameterError, match="must hold at least one trial"):
        kind.tables(Results(tmp_path))


def test_the_figure_names_everything(kind, tmp_path):
    figure = kind.draw(kind.tables(invented(kind, tmp_path)))
    axes = figure.axes
    assert [place.get_title() for place in axes] == [
        "Cora-ML",
        "Citeseer",
        "Cora-ML, with skip",
        "Citeseer, with skip",
    ]
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["> 5% below the best", *SMOOTHED]
    assert [place.get_xlabel() for place in axes] == ["", ""] + ["normalised AUCRC"] * 2
    assert [place.get_ylabel() for place in axes] == ["clean accuracy", ""] * 2


def test_drawn_lines_connect_the_dominating_points():
    trials = pd.DataFrame({"clean_accuracy": [0.8, 0.7, 0.75, 0.72], "normalized_aucrc": [1.0, 3.0, 2.0, 1.5]})
    trials = marked(trials.assign(panel="", line="deletion"))
    with paper_style():
        _, axes = new_figure()
        draw_panel(axes[0, 0], trials)
    (line,) = axes[0, 0].get_lines()
    assert list(zip(*line.get_data(), strict=True)) == [(1.0, 0.8), (2.0, 0.75), (3.0, 0.7)]
    assert axes[0, 0].collections[0].get_offsets().shape == (4, 2)


@pytest.mark.parametrize(
    "several", [{"architectures": ("gat", "gcn")}, {"training_rules": ("equal", "less")}, {"lines": "skip"}]
)
def test_lines_differ_in_one_thing(several):
    with pytest.raises(ValidationError, match="there must be one"):
        ParetoFronts(**{"datasets": ("cora_ml",), "smoothed": SMOOTHED, **several})


def test_lines_are_told_apart():
    for experiment, scale in itertools.product(FIGURES, SCALES):
        named = [(line.panel, line.name) for line in lines(experiment, scale)]
        assert len(set(named)) == len(named)
