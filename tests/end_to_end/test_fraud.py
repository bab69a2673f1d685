"""The story of examples/fraud.py, small: its tables have what real ones have, and every step works on them."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graycert

_FILE = Path(__file__).resolve().parents[2] / "examples" / "fraud.py"
_SPEC = importlib.util.spec_from_file_location("fraud", _FILE)
example = importlib.util.module_from_spec(_SPEC)
sys.modules["fraud"] = example  # dataclasses look their module up
_SPEC.loader.exec_module(example)

NUM_ACCOUNTS = 3_000


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    return folder, example.written_tables(folder, NUM_ACCOUNTS)


def test_the_tables_have_what_real_ones_have(tables):
    folder, is_fraud = tables
    accounts, payments = pd.read_csv(folder / "accounts_today.csv"), pd.read_csv(folder / "payments_today.csv")
    assert len(accounts) == NUM_ACCOUNTS
    assert is_fraud.mean() == pytest.approx(0.02, abs=0.001)
    assert payments.duplicated().sum() > 50
    assert (payments["payer"] == payments["payee"]).sum() >= 15
    assert accounts[list(example.NUMBERS)].isna().any().all()
    assert accounts["kind"].isna().any()
    assert (accounts["is_fraud"] == "unknown").mean() == pytest.approx(0.2, abs=0.03)
    hub = payments[payments["payee"] == "HUB"]["payer"].nunique()
    assert hub >= NUM_ACCOUNTS // 10 - 5
    alone = set(accounts["account_id"]) - set(payments["payer"]) - set(payments["payee"])
    assert len(alone) > 30
    later = pd.read_csv(folder / "accounts_tomorrow.csv")
    assert later["account_id"][:NUM_ACCOUNTS].tolist() == accounts["account_id"].tolist()
    assert (later["is_fraud"][NUM_ACCOUNTS:] == "unknown").all()


def test_the_same_seed_writes_the_same_tables(tables, tmp_path):
    example.written_tables(tmp_path, NUM_ACCOUNTS)
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (tables[0] / file.name).read_bytes()


@pytest.mark.deep
def test_the_whole_story(tmp_path, capsys):
    found = example.story(
        tmp_path, NUM_ACCOUNTS, max_epochs=25, settings=((0.0, 0.6), (0.0, 0.8)), training=((0.0, 0.6),)
    )
    assert found.without.recall - found.without.false_alarms > found.alone.recall - found.alone.false_alarms
    assert 0.0 < found.smoothed.recall <= 1.0
    assert found.certified[1] > 0.0
    assert found.certified[1] >= found.certified[2] >= found.certified[3]
    printed = capsys.readouterr().out
    for part in ("of class fraud", "correct@1", "What it costs", "What runs tomorrow", "30 new accounts"):
        assert part in printed
    classifier = graycert.SmoothedClassifier.load(tmp_path / "classifier", model=example.GraphSAGE(14))
    again = classifier.predict(example.read(tmp_path, "today"), found.certificates.targets, seed="certified")
    expected = np.where(found.certificates.radius >= 0, found.certificates.prediction, -1)
    np.testing.assert_array_equal(again, expected)
