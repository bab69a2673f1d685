"""Settings are compared on validation nodes alone, a model is audited once, and what is wanted is recommended."""

import numpy as np
import pandas as pd
import pytest
import torch

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.tuning.choosing import trial_seed
from graycert.tuning.measures import Measures
from graycert.tuning.recommendation import recommended
from graycert.tuning.want import Want
from support.certified_groups import trained_model
from support.every_smoothing import small_graph

VALIDATION = np.arange(0, 42, 2)
FEW = graycert.Draws(num_selection=20, num_estimation=100)
ASKED = {
    "validation": VALIDATION,
    "threat": graycert.NodeFeatureThreat(min_distance=1),
    "draws": FEW,
    "settings": [(0.5, 0.6), (0.0, 0.3), (0.5, 0.9)],
    "execution": graycert.Execution(engine="torch", say=lambda _: None),
}


@pytest.fixture(scope="module")
def tuning():
    return graycert.tune(trained_model(), small_graph(), **ASKED)


@pytest.mark.deep
def test_the_table_is_what_certify_says_of_the_validation_nodes(tuning):
    row = tuning.table.iloc[0]
    found = graycert.certify(
        trained_model(),
        small_graph(),
        targets=VALIDATION,
        smoothing=graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.6),
        threat=ASKED["threat"],
        draws=FEW,
        max_radius=5,
        seed=trial_seed(0),
        execution=ASKED["execution"],
    )
    right = (found.prediction == found.labels) & (found.radius >= 0)
    for radius in (1, 3, 5):
        held = right & (found.radius >= radius) & (found.num_eligible >= radius)
        assert row[f"correct_{radius}"] == held.mean()
        assert row[f"correct_{radius} of left"] == held[found.labels == 0].mean()
    assert row["accuracy"] == right.mean()
    assert row["seconds"] > 0
    assert tuning.table["correct_1"].max() > 0


def test_a_model_is_audited_once(monkeypatch):
    audited = []
    audit = graycert.audit_model
    monkeypatch.setattr("graycert.audit.audit_model", lambda *a, **k: audited.append(1) or audit(*a, **k))

    def refuse(*_, **__):
        raise AssertionError("audited again")

    monkeypatch.setattr("graycert.smoothing.model_check.examine_model", refuse)
    assert not graycert.tune(trained_model(), small_graph(), **ASKED).failed
    assert len(audited) == 1


def test_other_labels_are_not_looked_at(tuning):
    data = small_graph().clone()
    data.y = data.y.clone()
    data.y[1::2] = 0
    again = graycert.tune(trained_model(), data, **ASKED)
    pd.testing.assert_frame_equal(again.table.drop(columns="seconds"), tuning.table.drop(columns="seconds"))


def test_trials_toss_coins_of_their_own():
    assert trial_seed(0) not in range(1_000)
    assert len({trial_seed(seed) for seed in range(100)}) == 100


@pytest.mark.deep
def test_models_are_trained_once_for_each_setting_in_training():
    under = []

    def trained(smoothing):
        under.append((smoothing.p_delete, smoothing.p_ablate))
        return trained_model()

    found = graycert.tune(trained, small_graph(), **ASKED, training=[(0.0, 0.5), (0.1, 0.8)])
    assert under == [(0.0, 0.5), (0.1, 0.8)]
    assert len(found.table) == 6
    assert found.training.p_ablate in (0.5, 0.8)
    assert found.model is trained_model()
    assert "train under it" in found.certify_line
    with pytest.raises(InvalidParameterError, match="`training` must be left out"):
        graycert.tune(trained_model(), small_graph(), **ASKED, training=[(0.0, 0.5)])


def test_an_interrupted_call_goes_on(tmp_path, monkeypatch):
    calls = []
    certify = graycert.certify

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return certify(*args, **kwargs)

    monkeypatch.setattr("graycert.certification.certify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        graycert.tune(trained_model(), small_graph(), **ASKED, directory=tmp_path)
    found = graycert.tune(trained_model(), small_graph(), **ASKED, directory=tmp_path)
    assert len(found.table) == 3
    assert len(calls) == 4  # one done, one interrupted, two more
    with pytest.raises(InvalidParameterError, match="must hold the same sweep"):
        graycert.tune(trained_model(), small_graph(), **{**ASKED, "validation": VALIDATION[1:]}, directory=tmp_path)


@pytest.mark.few(1)
@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_a_sampler_looks_in_the_whole_square(sampler):
    asked = {name: value for name, value in ASKED.items() if name != "settings"}
    found = graycert.tune(trained_model(), small_graph(), **asked, sampler=sampler, budget="3")
    assert len(found.table) == 3
    assert found.table["p_ablate"].nunique() == 3


def test_a_model_that_cannot_be_certified_is_refused_at_once():
    class Leaky(torch.nn.Module):
        def forward(self, x, edge_index):
            return x - x.mean(dim=0)

    with pytest.raises(UnsoundSetupError):
        graycert.tune(Leaky(), small_graph(), **ASKED, num_layers=1)


TRIALS = pd.DataFrame(
    {
        "accuracy": [0.9, 0.8, 0.6],
        "balanced_accuracy": [0.5, 0.8, 0.6],
        "correct_1": [0.1, 0.5, 0.6],
        "correct_2": [0.1, 0.2, 0.6],
        "correct_3": [0.0, 0.1, 0.5],
        "correct_5": [0.0, 0.1, 0.3],
        "correct_1 of fraud": [0.0, 0.6, 0.7],
        "correct_2 of fraud": [0.0, 0.3, 0.4],
    }
)


@pytest.mark.parametrize(
    ("want", "expected"),
    [
        ("accuracy=0.7", (1, True)),
        ("accuracy>=0.85", (0, True)),
        ("balanced accuracy=0.7", (1, True)),
        ("accuracy=0.95", (0, False)),
        ("radius=1 of fraud", (1, True)),
        ("radius=2 of fraud", (2, False)),
        ("radius=2", (2, True)),
        (None, (0, True)),
    ],
)
def test_what_is_recommended_follows_from_what_is_wanted(want, expected):
    assert recommended(TRIALS, Want.parse(want), prefix="") == expected


@pytest.mark.parametrize(
    "want", ["", "accuracy", "accuracy=1.5", "accuracy=.", "radius=0", "radius=1 of ", "recall=0.5"]
)
def test_other_wishes_are_refused(want):
    with pytest.raises(InvalidParameterError, match="`want` must be"):
        Want.parse(want)


def test_a_wish_about_no_class_of_the_graph_names_those_that_there_are():
    with pytest.raises(InvalidParameterError, match="'left', 'middle', 'right'"):
        graycert.tune(trained_model(), small_graph(), **ASKED, want="radius=1 of fraud")


def test_unequal_classes_are_averaged_over():
    arrays = {
        "labels": np.array([0, 0, 0, 1]),
        "prediction": np.array([0, 0, 0, 0]),
        "radius": np.array([3, 3, 0, 3]),
        "num_eligible": np.array([5, 2, 5, 5]),
        "certify_seconds": np.array(0.5),
    }
    numbers = Measures(class_names=("ok", "fraud"))(arrays)
    assert numbers["accuracy"] == 0.75
    assert numbers["balanced_accuracy"] == 0.5
    assert numbers["accuracy of fraud"] == 0.0
    assert (numbers["correct_1"], numbers["correct_3"]) == (0.5, 0.25)  # only two could attack the second


class NeverLeft(torch.nn.Module):
    """A model that answers "middle" to everything but the rightmost nodes, whatever they are."""

    def forward(self, x, edge_index):
        del edge_index
        return torch.stack([x[:, 0] - 9, torch.ones(len(x)) / 2, x[:, 2]], dim=1)


def test_a_class_that_is_never_found_is_warned_of_and_shown():
    data = small_graph().clone()
    data.y = torch.where((data.y == 0) & (torch.arange(42) % 4 > 0), -1, data.y)  # few are left
    asked = {**ASKED, "validation": np.arange(42), "settings": [(0.0, 0.3)]}
    found = graycert.tune(NeverLeft(), data, **asked, num_layers=1)
    assert found.unequal
    assert found.focus == "left"
    assert "left correct@1" in found.lines()[0]
    assert "WARNING: it finds no node of class left" in found.recommendation()


def test_it_says_what_is_recommended_and_how_to_go_on(tuning, tmp_path):
    text = str(tuning)
    chosen = tuning.table[tuning.table["recommended"]].iloc[0]
    assert f"p_delete={chosen['p_delete']}" in tuning.certify_line
    assert tuning.recommendation() in text
    assert tuning.figure(tmp_path / "front.png").stat().st_size > 1_000
    from matplotlib import pyplot as plt

    axes = plt.subplots()[1]
    assert tuning.plot(axes, radius=3) is axes
    assert axes.get_xlabel() == "certified and correct at radius 3"
    star = axes.collections[-1].get_offsets()[0].tolist()
    assert star == [chosen[tuning.correct_column(3)], chosen[tuning.accuracy_column]]
    plt.close("all")
    with pytest.raises(InvalidParameterError, match="`radius` must be one of 1, 3, 5, got 2"):
        tuning.plot(radius=2)
    reached = graycert.tune(trained_model(), small_graph(), **{**ASKED, "settings": [(0.0, 0.0)]}, want="radius=1")
    assert not reached.is_reached
    assert "NO SETTING REACHES" in reached.recommendation()
