"""Sweeps over smoothing parameters: where trials lie, what they compute, and that they share what they can."""

import math

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from graycert.reproduction.lab import Lab
from graycert.reproduction.settings import Conclusion, TrainingSettings
from graycert.reproduction.smoothing_sweep import (
    OBJECTIVES,
    SharedTrainingDesign,
    SmoothingSweep,
    run_smoothing_sweeps,
    trial_numbers,
)
from graycert.reproduction.sweep import RandomDesign, run_sweep
from support.commands import write_graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return str(write_graph(tmp_path_factory.mktemp("graph") / "ring.npz", extra_edges=20))


def sweep(graph="ring", **changes):
    training = TrainingSettings(graph=graph, architecture="gcn", skip=True, per_class=3, max_epochs=3)
    values = {"training": training, "num_selection": 20, "num_estimation": 60, "num_trials": 4}
    return SmoothingSweep(**{**values, **changes})


def test_what_is_not_smoothed_is_not_drawn():
    assert sweep().parameters == ("train_p_delete", "train_p_ablate", "p_delete", "p_ablate")
    assert sweep(smoothed="deletion").parameters == ("train_p_delete", "p_delete")
    assert sweep(smoothed="ablation", training_rule="less").parameters == ("p_ablate",)
    job = sweep(smoothed="deletion").job({"train_p_delete": 0.3, "p_delete": 0.6})
    assert (job.model.p_delete, job.model.p_ablate, job.smoothing.p_delete, job.smoothing.p_ablate) == (
        0.3,
        0.0,
        0.6,
        0.0,
    )


@pytest.mark.parametrize(
    ("rule", "p_ablate", "in_training"),
    [
        ("equal", 0.4, 0.4),
        ("more", 0.25, 0.35),
        ("more", 0.95, 1.0),
        ("less", 0.75, 0.65),
        ("less", 0.05, 0.0),
        ("less", 0.0, 0.0),
    ],
)
def test_training_rules_of_figure_5c(rule, p_ablate, in_training):
    job = sweep(training_rule=rule).job({"p_delete": 0.2, "p_ablate": p_ablate})
    assert job.model.p_ablate == pytest.approx(in_training, abs=1e-15)
    assert (job.model.p_delete, job.smoothing.p_delete, job.smoothing.p_ablate) == (0.2, 0.2, p_ablate)


def test_trials_share_models_and_nothing_else():
    ranges = dict.fromkeys(("train_p_ablate", "p_ablate"), (0.0, 1.0))
    shared = SharedTrainingDesign(ranges=ranges, seed=5, trials_per_training=2)
    own = RandomDesign(ranges=ranges, seed=5)
    models = [0, 1, 0, 1, 2, 3, 2, 3, 4]
    points = [shared.point(index) for index in range(9)]
    assert [list(point) for point in points] == [list(ranges)] * 9
    assert [point["train_p_ablate"] for point in points] == [own.point(i)["train_p_ablate"] for i in models]
    assert [point["p_ablate"] for point in points] == [own.point(i)["p_ablate"] for i in range(9)]
    jobs = sweep(trials_per_training=2, num_trials=9, low_discrepancy=True).jobs()
    assert len({job.model for job in jobs}) == 5
    assert len(set(jobs)) == 9


def test_more_trials_extend_a_sweep():
    few, many = sweep(), sweep(num_trials=9)
    assert many.jobs()[:4] == few.jobs()
    assert not set(sweep(seed=14).jobs()) & set(few.jobs())
    assert sweep(trials_per_training=2).jobs() != few.jobs()


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValidationError, match="must be left out, because they are swept"):
        sweep(training=TrainingSettings(graph="ring", p_ablate=0.5))
    with pytest.raises(ValidationError, match="needs the training rule"):
        sweep(training_rule="less", trials_per_training=2)
    with pytest.raises(ValidationError, match="at least 1"):
        sweep(conclusions=())


def test_numbers_of_a_trial():
    conclusion = Conclusion(min_distance=2)
    values = {"radius": [3, -1, 0, 5], "num_eligible": [2, 4, 4, 9], "prediction": [1, 1, 0, 0]}
    arrays = {f"{conclusion.name}/{name}": np.array(value) for name, value in values.items()}
    arrays["labels"] = np.array([1, 1, 1, 0])
    numbers = trial_numbers(arrays, conclusion)
    assert numbers.keys() >= OBJECTIVES.keys()
    assert numbers["clean_accuracy"] == 0.5  # the second target has no prediction, the third a wrong one
    assert numbers["aucrc"] == (2 + 0 + 0 + 5) / 4
    assert numbers["normalized_aucrc"] == pytest.approx((1 + 0 + 0 + 5 / 9) / 4)
    assert numbers["abstain_ratio"] == 0.25
    assert numbers["mean_radius"] == pytest.approx((2 + 0 + 5) / 3)
    assert [numbers[f"certified_ratio_{radius}"] for radius in (1, 2, 3, 5, 6)] == [0.5, 0.5, 0.25, 0.25, 0.0]
    arrays[f"{conclusion.name}/radius"] = np.full(4, -1)
    assert math.isnan(trial_numbers(arrays, conclusion)["mean_radius"])


def test_numbers_by_several_conclusions():
    theorem, exact = Conclusion(min_distance=2), Conclusion(min_distance=2, bound="auto")
    arrays = {"labels": np.array([1, 1])}
    for conclusion, radius in ((theorem, [1, 2]), (exact, [2, 2])):
        arrays |= {f"{conclusion.name}/radius": np.array(radius)}
        arrays |= {f"{conclusion.name}/{name}": np.array([4, 4]) for name in ("num_eligible", "prediction")}
    numbers = sweep(conclusions=(theorem, exact)).numbers(arrays)
    assert {name: numbers[name] for name in trial_numbers(arrays, theorem)} == trial_numbers(arrays, theorem)
    assert numbers[f"{exact.name}/aucrc"] == trial_numbers(arrays, exact)["aucrc"] == 2.0
    assert numbers["aucrc"] == 1.5


@pytest.mark.few(1)
@pytest.mark.parametrize(("trials_per_training", "kept"), [(None, 0), (2, 2)])
def test_models_of_one_trial_are_removed_and_shared_ones_kept(graph, tmp_path, trials_per_training, kept):
    swept = sweep(graph, smoothed="ablation", trials_per_training=trials_per_training, num_trials=3)
    lab = Lab(tmp_path / "lab")
    done = run_sweep(swept.as_sweep(lab, directory=tmp_path / "sweep"))
    assert done.num_finished == 3
    models = tmp_path / "lab" / "models"
    assert len(list(models.glob("*.safetensors"))) == kept
    assert kept or not list(models.iterdir())  # a thousand would fill the disk
    results = Lab(tmp_path / "lab").results
    table = pd.read_parquet(done.table)
    for index, job in enumerate(swept.jobs()):
        assert table["seconds"][index] == float(results[job]["seconds"])
        for name, value in swept.numbers(results[job]).items():
            assert table[name][index] == pytest.approx(value, nan_ok=True, abs=0)
    again = run_sweep(swept.as_sweep(lab, directory=tmp_path / "other"))  # answered from the files
    pd.testing.assert_frame_equal(pd.read_parquet(again.table), table, check_exact=True)


@pytest.mark.processes
@pytest.mark.end_to_end
def test_a_sweep_that_several_figures_need_runs_once(graph, tmp_path):
    lab = Lab(tmp_path)
    few, many = sweep(graph, num_trials=2), sweep(graph, num_trials=3)
    told: list[str] = []
    run_smoothing_sweeps([few, many, few], lab, say=told.append)
    assert all(job in lab.results for job in many.jobs())
    assert len(list((tmp_path / "results" / "certify").iterdir())) == 3
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    run_smoothing_sweeps([few], lab, say=told.append)  # nothing to do
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before
    assert told == []
