"""`graycert certify --floor`: distilled or from a file, kept with the run, repeated and verified."""

import pytest

import graycert
from support.commands import FAST, run_command, write_graph


def certify(capsys, folder, out, *options):
    graph = write_graph(folder / "toy.npz")
    return run_command(capsys, "certify", "--graph", graph, "--out", out, *FAST, *options)


@pytest.mark.deep
def test_a_distilled_floor_is_kept_repeated_and_verified(capsys, tmp_path):
    found = certify(capsys, tmp_path, tmp_path / "run", "--floor", "distill")
    assert found.status == 0, found.err
    assert "predicted correctly at every ρ, whatever all other nodes do: by" in found.out
    run = graycert.Certificates.load(tmp_path / "run")
    assert run.setup.provenance["options"]["floor"] == "distill"
    floor = graycert.load_model(tmp_path / "run" / "floor.safetensors")
    assert isinstance(floor, graycert.NodeModel)
    checked = run_command(capsys, "verify", tmp_path / "run", "--redraw")
    assert checked.status == 0, checked.out
    assert "ok    floor: weights: is the model of the run" in checked.out
    again = run_command(capsys, "certify", "--config", tmp_path / "run" / "config.toml", "--out", tmp_path / "again")
    assert again.status == 0, again.err
    loaded = graycert.Certificates.load(tmp_path / "again")
    assert loaded.prediction_of_floor.tolist() == run.prediction_of_floor.tolist()
    replaced = certify(capsys, tmp_path, tmp_path / "run", "--overwrite")
    assert replaced.status == 0, replaced.err
    assert f"graycert certify --config {tmp_path / 'run'}/config.toml --floor distill" in replaced.out


@pytest.mark.deep
def test_a_floor_from_a_file(capsys, tmp_path):
    assert certify(capsys, tmp_path, tmp_path / "first", "--floor", "distill").status == 0
    file = tmp_path / "first" / "floor.safetensors"
    found = certify(capsys, tmp_path, tmp_path / "second", "--floor", file)
    assert found.status == 0, found.err
    runs = [graycert.Certificates.load(tmp_path / name) for name in ("first", "second")]
    assert runs[0].prediction_of_floor.tolist() == runs[1].prediction_of_floor.tolist()
    assert runs[1].setup.provenance["options"]["floor"] == str(file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--floor", "mlp"), "must be distill or FILE.safetensors"),
        (("--floor", "distill", "--min-distance", "0", "--no-skip"), "hostile itself"),
        (("--floor", "missing.safetensors"), "cannot be read"),
    ],
)
def test_what_can_be_no_floor_is_refused_before_any_training(capsys, tmp_path, options, message):
    found = certify(capsys, tmp_path, tmp_path / "run", *options)
    assert found.status == 2
    assert message in found.err
    assert "training" not in found.err
