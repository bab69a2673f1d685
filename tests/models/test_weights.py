"""Weights on disk: what is written comes back, everything else is refused, nothing is unpickled."""

import json
import os
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from graycert.errors import InvalidFileError, InvalidParameterError, WriteError
from graycert.models import build_model, load_model, load_weights, save_model
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph


@pytest.fixture
def saved(tmp_path):
    model = build_model("gcn", random_graph(), hidden_channels=4)
    return model, save_model(model, tmp_path / "model.safetensors")


@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_round_trip(architecture, tmp_path):
    data = random_graph()
    model = build_model(architecture, data, num_layers=3, skip=True, seed=7).eval()
    path = save_model(model, tmp_path / "new" / "folder" / "m.safetensors", notes={"epochs": 3})
    loaded = load_model(path)
    assert loaded.config == model.config
    assert not loaded.training
    with torch.no_grad():
        assert torch.equal(loaded(data.x, data.edge_index), model(data.x, data.edge_index))
        assert torch.equal(loaded.skip_logits(data.x), model.skip_logits(data.x))
    assert torch.equal(loaded.ablation_token, model.ablation_token)
    assert json.loads(path.with_suffix(".json").read_text())["notes"] == {"epochs": 3}
    assert sorted(file.name for file in path.parent.iterdir()) == ["m.json", "m.safetensors"]


def test_saving_again_replaces_both_files(saved, tmp_path):
    other = build_model("gat", random_graph(), seed=1)
    save_model(other, saved[1])
    assert load_model(saved[1]).config == other.config


class Bomb:
    def __reduce__(self):
        return (os.system, ("touch exploded",))


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_a_pickle_is_refused_and_never_executed(saved, suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved[1].with_suffix(suffix).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InvalidFileError):
        load_model(saved[1])
    assert not Path("exploded").exists()


def test_a_torch_checkpoint_is_refused(saved):
    torch.save(saved[0].state_dict(), saved[1])
    with pytest.raises(InvalidFileError, match="never opened"):
        load_model(saved[1])


def test_every_truncation_of_the_weights_is_refused(saved):
    content = saved[1].read_bytes()
    for length in [*range(0, 64, 7), *range(64, len(content), 97), len(content) - 1]:
        saved[1].write_bytes(content[:length])
        with pytest.raises(InvalidFileError):
            load_model(saved[1])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format_version": 2, "config": {}}',
        '{"format_version": 1}',
        '{"format_version": 1, "config": []}',
        '{"format_version": 1, "config": {"architecture": "gcn"}}',
        '{"format_version": 1, "config": {"architecture": "mlp", "num_features": 5, "num_classes": 3}}',
        '{"format_version": 1, "config": {"architecture": ["gcn"], "num_features": 5, "num_classes": 3}}',
        '{"format_version": 1, "config": {"architecture": "gcn", "num_features": 0, "num_classes": 3}}',
        '{"format_version": 1, "config": {"architecture": "gcn", "num_features": 5, "num_classes": 3, "wide": 1}}',
    ],
)
def test_a_foreign_description_is_refused(saved, text):
    saved[1].with_suffix(".json").write_text(text)
    with pytest.raises(InvalidFileError, match=r"\.json"):
        load_model(saved[1])


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_a_missing_file_is_named(saved, suffix):
    saved[1].with_suffix(suffix).unlink()
    with pytest.raises(InvalidFileError, match=suffix.strip(".")):
        load_model(saved[1])


@pytest.mark.parametrize("change", ["missing", "extra", "shape"])
def test_misfitting_weights_change_nothing(saved, change):
    model, path = saved
    tensors = {name: value + 1 for name, value in model.state_dict().items()}
    if change == "missing":
        del tensors["ablation_token"]
    elif change == "extra":
        tensors["more"] = torch.zeros(2)
    else:
        tensors["ablation_token"] = torch.zeros(9)
    save_file(tensors, path)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(InvalidFileError, match="more" if change == "extra" else "ablation_token"):
        load_weights(model, path)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_failed_save_leaves_the_old_files(saved, monkeypatch):
    path = saved[1]
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(InvalidParameterError, match="notes"):
        save_model(build_model("gat", random_graph()), path, notes={"when": object()})
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(WriteError, match="No space left"):
        save_model(build_model("gat", random_graph()), path)
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before


def test_refuses_a_foreign_module_and_a_folder_that_is_a_file(tmp_path):
    with pytest.raises(InvalidParameterError, match="`model`"):
        save_model(torch.nn.Linear(2, 2), tmp_path / "m")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFileError, match="`path`"):
        save_model(build_model("gcn", random_graph()), tmp_path / "file" / "m")
