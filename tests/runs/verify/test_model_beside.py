"""CASES B6: the model beside a run is asked, without a draw, whether the run says the truth about it."""

import copy
import dataclasses
import shutil

import pytest
import torch

import graycert
from graycert.models import build_model, save_model, weights_sha256
from support.certified_groups import certify_groups, three_groups, trained_model


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = certify_groups().save(tmp_path_factory.mktemp("runs") / "run")
    save_model(trained_model(), folder / "model")
    return folder


def checks_of(folder, **options):
    return {check.name: check for check in graycert.verify(folder, data=three_groups(), **options).checks}


def test_an_honest_run_passes(honest):
    found = checks_of(honest)
    assert all(check.passed for check in found.values())
    assert {"model: skip", "model: depth", "model: classes", "model: features"} <= set(found)


def beside(run, model, folder):
    run.save(folder)
    save_model(model, folder / "model")
    return folder


def test_a_skip_connection_that_shows_a_hostile_target(tmp_path):
    skipping = build_model("gcn", three_groups(), skip=True, hidden_channels=8)
    forged = certify_groups(threat=graycert.NodeFeatureThreat(min_distance=0))  # made with another model
    found = checks_of(beside(forged, skipping, tmp_path / "run"))
    assert not found["model: skip"].passed
    assert "min_distance" in found["model: skip"].detail or "skip" in found["model: skip"].detail
    assert not graycert.verify(tmp_path / "run", data=three_groups(), model=skipping).passed


def test_fewer_steps_than_the_model_takes(tmp_path):
    shallow = certify_groups().replace(setup=certify_groups().setup.replace(num_layers=1))
    forged = shallow.again(three_groups())  # all that follows from one layer, told as such
    assert forged.setup.num_layers == 1
    assert forged.radius.sum() >= certify_groups().radius.sum()
    found = checks_of(beside(forged, trained_model(), tmp_path / "run"))
    assert [name for name, check in found.items() if not check.passed] == ["model: depth"]
    assert "assumes 1 propagation steps, the model takes 2" in found["model: depth"].detail


def test_other_classes_and_features(tmp_path):
    data = three_groups()
    other = dataclasses.replace(trained_model().config, num_classes=4, num_features=5)
    from graycert.models.build import build_from_config

    found = checks_of(beside(certify_groups(), build_from_config(other), tmp_path / "run"))
    assert not found["model: classes"].passed
    assert not found["model: features"].passed
    assert data.x.size(1) == 3


def test_damaged_models_are_named(honest, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(honest, folder)
    (folder / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(graycert.errors.InvalidFileError, match=r"model\.safetensors|model\.json"):
        graycert.verify(folder, data=three_groups())


@pytest.mark.deep
def test_a_model_in_memory_is_compared_with_the_hash_of_the_run(honest, tmp_path):
    run = certify_groups()
    provenance = {"model": {"weights_sha256": weights_sha256(trained_model())}}
    folder = run.replace(setup=run.setup.replace(provenance=provenance)).save(tmp_path / "run")
    assert checks_of(folder, model=trained_model())["model: weights"].passed
    other = copy.deepcopy(trained_model())
    with torch.no_grad():
        next(other.parameters())[0] += 1e-6
    found = checks_of(folder, model=other)
    assert not found["model: weights"].passed
    assert "the run was made with" in found["model: weights"].detail
    assert "model: weights" not in checks_of(honest, model=trained_model()), "that run stores no hash"
