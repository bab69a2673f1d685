"""The floor beside a certificate: shown wherever no target may be hostile, kept with the run, and checked."""

import json

import numpy as np
import pytest
import torch

import graycert
from graycert.errors import InvalidParameterError
from graycert.models.node_model import NodeModel, NodeModelConfig
from graycert.runs.floor import floor_of_run
from graycert.runs.words import summary_record
from support.certified_groups import OTHERS, SMOOTHING, TARGETS, three_groups, trained_model

DRAWS = graycert.Draws(num_selection=50, num_estimation=200)


@pytest.fixture(scope="module")
def floor():
    data = three_groups()
    nodes = torch.arange(42)
    return graycert.distill(
        data,
        trained_model(),
        train_mask=nodes < 30,
        validation_mask=nodes >= 30,
        members=2,
        hidden_channels=8,
        input_dropout=0.0,
        max_epochs=100,
    )


def certified(**changes):
    arguments = {"targets": TARGETS, "smoothing": SMOOTHING, "threat": OTHERS, "draws": DRAWS, "max_radius": 6}
    return graycert.certify(trained_model(), three_groups(), **{**arguments, **changes})


@pytest.fixture(scope="module")
def run(floor):
    return certified(floor=floor)


def test_the_floor_is_the_node_model_s_own_prediction(run, floor):
    data = three_groups()
    with torch.no_grad():
        own = floor(data.x).argmax(dim=1).numpy()
    assert run.prediction_of_floor.tolist() == own[TARGETS].tolist()
    assert run.to_dataframe()["prediction_of_floor"].tolist() == own[TARGETS].tolist()
    assert run.setup.provenance["floor"] == {
        "architecture": "per-node",
        "weights_sha256": graycert.models.weights_sha256(floor),
    }


def test_it_is_said_in_words_and_as_data_and_drawn(run, tmp_path):
    found = floor_of_run(run)
    assert found.source == "a distilled model"
    share = f"{found.correct * 1000 // 12 / 10} %"
    text = run.summary()
    assert f"From its own features alone (the floor) {share} of the targets are predicted correctly at every ρ" in text
    assert "not computed" not in text
    record = summary_record(run)["floor"]
    assert record == {
        "not_computed": None,
        "source": "a distilled model",
        "correct": found.correct,
        "targets": 12,
        "beats_from": found.beats_from,
    }
    page = (run.save(tmp_path / "run") / "report.html").read_text()
    assert "from its own features alone" in page
    assert "by a distilled model" in page


def test_what_it_beats_is_said(run):
    said = set()
    for right in range(13):
        classes = np.where(np.arange(12) < right, run.labels, (run.labels + 1) % 3)
        c = run.replace(prediction_of_floor=classes, prediction_without_messages=None)
        found, text = floor_of_run(c), c.summary()
        assert found.correct == right
        if found.beats_from is None:
            forever = (c.whole_field & (c.prediction == c.labels)).sum() >= right
            far = "at every ρ" if forever else "up to ρ = 6"
            assert f"What is correct and certified, whole fields included, is no less {far}." in text
        elif found.beats_from == 0:
            assert "That is more than the smoothed classifier predicts correctly without any attack." in text
        else:
            assert f"certified, whole fields included, from ρ = {found.beats_from} on." in text
        said.add(None if found.beats_from is None else min(found.beats_from, 1))
    assert said == {None, 0, 1}


def test_the_best_of_several_floors_is_shown(run):
    wrong = (run.labels + 1) % 3
    c = run.replace(prediction_of_floor=wrong, prediction_without_messages=run.labels)
    assert floor_of_run(c).source == "the same model without messages"
    assert floor_of_run(c).correct == 12


def test_without_a_floor_the_line_that_computes_one_is_shown():
    c = certified()
    assert c.prediction_of_floor is None
    assert "not computed. It takes seconds: `graycert.certify(..., floor=graycert.distill(split))`" in c.summary()
    assert summary_record(c)["floor"]["not_computed"].startswith("It takes seconds")
    alone = c.replace(prediction_without_messages=None)
    assert "From its own features alone (the floor): not computed." in alone.summary()
    from_options = c.replace(setup=c.setup.replace(provenance={"options": {"seed": 0}}))
    assert (
        "`graycert certify --config THIS-RUN/config.toml --floor distill`, THIS-RUN being the folder"
        in from_options.summary()
    )


def test_there_is_none_where_a_target_may_be_hostile_or_no_class_is_known(run, floor):
    smoothing = graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.6)
    c = certified(threat=graycert.NodeFeatureThreat(), smoothing=smoothing)
    assert "floor" not in c.summary()
    assert floor_of_run(c) is None
    assert "floor" not in run.replace(labels=None).summary()
    with pytest.raises(InvalidParameterError, match="hostile itself"):
        certified(threat=graycert.NodeFeatureThreat(), floor=floor)
    trusted = np.zeros(42, dtype=bool)
    trusted[TARGETS] = True
    c = certified(threat=graycert.NodeFeatureThreat(trusted=trusted), floor=floor)
    assert floor_of_run(c) is not None


def test_what_sees_single_nodes_is_its_own_floor(floor):
    c = graycert.certify(floor, three_groups(), targets=TARGETS, smoothing=graycert.FeaturesOnly(), threat=OTHERS)
    text = c.summary()
    assert "not computed" not in text
    assert "by the same model without messages" in text
    assert "whole fields included, is no less at every ρ." in text
    assert floor_of_run(c).beats_from is None


def test_an_mlp_is_a_floor_too_and_sees_each_target_alone():
    mlp = trained_model()
    c = certified(floor=mlp)
    x = three_groups().x
    no_edges = torch.empty(2, 0, dtype=torch.long)
    with torch.no_grad():
        alone = [int(mlp(x[target : target + 1], no_edges).argmax()) for target in TARGETS]
    assert c.prediction_of_floor.tolist() == alone
    assert "by the model that was given as the floor" in c.replace(prediction_without_messages=None).summary()


@pytest.mark.parametrize(
    ("change", "match"), [({"num_features": 4}, "3 features"), ({"num_classes": 5}, "3 classes of the model")]
)
def test_a_floor_that_does_not_fit_is_refused_before_a_draw(change, match, monkeypatch):
    size = {"num_features": 3, "num_classes": 3, "hidden_channels": 4, "members": 1, "input_dropout": 0, "dropout": 0}
    other = NodeModel(NodeModelConfig(**{**size, **change})).eval()
    monkeypatch.setattr("graycert.smoothing.interception.method.METHOD.draw", None)
    with pytest.raises(InvalidParameterError, match=match):
        certified(floor=other)


def test_a_model_of_unknown_kind_is_refused():
    with pytest.raises(InvalidParameterError, match=r"graycert\.distill\(split, teacher=model\)"):
        certified(floor=torch.nn.Linear(3, 3))


def test_files_and_conclusions_drawn_again_keep_it(run, tmp_path):
    loaded = graycert.Certificates.load(run.save(tmp_path / "run"))
    assert np.array_equal(loaded.prediction_of_floor, run.prediction_of_floor)
    assert loaded.summary() == run.summary()
    again = run.again(three_groups(), threat=graycert.NodeFeatureThreat(min_distance=2))
    assert np.array_equal(again.prediction_of_floor, run.prediction_of_floor)


def test_verify_asks_the_floor(run, floor, tmp_path):
    folder, data = run.save(tmp_path / "run"), three_groups()
    without = graycert.verify(folder, data=data)
    assert without.passed
    assert any("floor" in each for each in without.not_redone)
    assert graycert.verify(folder, data=data, floor=floor, model=trained_model()).passed
    graycert.save_model(floor, folder / "floor.safetensors")
    assert [check.name for check in graycert.verify(folder, data=data).checks][-2:] == ["floor: weights", "floor"]
    assert graycert.Certificates.load(folder).prediction_of_floor is not None


def test_verify_finds_another_floor_and_other_predictions(run, floor, tmp_path):
    data = three_groups()
    changed = run.replace(prediction_of_floor=(run.prediction_of_floor + 1) % 3)
    failed = graycert.verify(changed.save(tmp_path / "changed"), data=data, floor=floor)
    assert [check.name for check in failed.checks if not check.passed] == ["floor"]
    other = graycert.load_model(graycert.save_model(floor, tmp_path / "other"))
    with torch.no_grad():
        other.members[0].first.weight += 1e-3
    failed = graycert.verify(run.save(tmp_path / "run"), data=data, floor=other)
    assert "floor: weights" in [check.name for check in failed.checks if not check.passed]
    edited = tmp_path / "run" / "summary.json"
    record = json.loads(edited.read_text())
    record["floor"]["correct"] = 0
    edited.write_text(json.dumps(record))
    failed = graycert.verify(tmp_path / "run", data=data, floor=floor)
    assert [check.name for check in failed.checks if not check.passed] == ["summary.json"]
