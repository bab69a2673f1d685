"""`graycert tune`: a table, a picture, the weights, and a line that certifies with them."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from graycert.cli.main import main

SHORT = ["--n0", "10", "--n1", "60", "--quiet"]


@pytest.fixture
def tables(tmp_path):
    accounts = [f"a{i},{i % 2}.{i % 7},{'fraud' if i % 2 else 'ok'}" for i in range(60)]
    payments = [f"a{i},a{(i + step) % 60}" for i in range(60) for step in (2, 4)]
    (tmp_path / "accounts.csv").write_text("\n".join(["id,amount,label", *accounts]))
    (tmp_path / "payments.csv").write_text("\n".join(["from,to", *payments]))
    return ["--graph", str(tmp_path / "payments.csv"), "--nodes", str(tmp_path / "accounts.csv"), "--directed"]


@pytest.mark.deep
def test_on_tables_it_trains_recommends_and_names_the_line_to_certify_with(tables, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = ["--model", "gcn", "--per-class", "5", "--max-epochs", "3"]
    tried = ["--settings", "0:0.6,0.3:0.8", "--training", "0.01:0.6", "--want", "radius=1 of fraud"]
    command = ["tune", *tables, *train, *tried, *SHORT, "--out", "tuned", "--json"]
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "matplotlib", None)
        assert main(command) == 0
    found = capsys.readouterr()
    assert "front.png is not drawn: figures need matplotlib" in found.err
    assert [Path(file).name for file in json.loads(found.out)["files"]] == ["settings.csv", "model.safetensors"]
    assert main(command) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["settings"]) == 2
    assert sum(row["recommended"] for row in record["settings"]) == 1
    assert {"settings.csv", "front.png", "model.safetensors"} <= {path.name for path in (tmp_path / "tuned").iterdir()}
    line = shlex.split(record["certify"])[1:]
    assert main([*line, *SHORT, "--out", "certified", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["smoothing"] == "interception"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--want", "recall=1"], "`want` must be"),
        (["--settings", "0.3"], "`--settings` must be pairs"),
        (["--budget", "24"], "`budget` must be left out"),
    ],
)
def test_wrong_options_are_refused(options, message, capsys, tmp_path):
    assert main(["tune", "--model", "gcn", *SHORT, *options, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
