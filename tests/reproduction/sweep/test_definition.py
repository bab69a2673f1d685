import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.reproduction.sweep import AdaptiveDesign, Budget, RandomDesign, Sweep
from graycert.reproduction.sweep.definition import keep_settings
from support.sweep_jobs import RANGES, Paraboloid, toy_sweep

SETTINGS = {"dataset": "cora_ml", "model": {"skip": False, "layers": 2}}


def _sweep(folder: Path, **changed: Any) -> Sweep:
    return toy_sweep(folder, **{"name": "cora", "job": one_job, "settings": SETTINGS, **changed})


def one_job(point: Mapping[str, float]) -> Paraboloid:
    return Paraboloid(**point)


def another_job(point: Mapping[str, float]) -> Paraboloid:
    return Paraboloid(**point, wait=1)


def test_the_same_sweep_may_go_on_with_another_budget(tmp_path: Path) -> None:
    keep_settings(_sweep(tmp_path))
    (tmp_path / ".sweep.toml.left.toml").write_text("of a killed process")
    keep_settings(_sweep(tmp_path, budget=Budget(seconds=60)))
    keep_settings(_sweep(tmp_path, budget=Budget(seconds=60)))
    stored = tomllib.loads((tmp_path / "sweep.toml").read_text())
    assert stored["budget"] == {"seconds": 60}
    assert stored["job"].endswith("test_definition.one_job")
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.toml"]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"name": "citeseer"}, r"name \('cora' there, 'citeseer' here\)"),
        ({"job": another_job}, "job "),
        ({"directions": {"robustness": "maximize", "accuracy": "maximize"}}, "directions "),  # order of the values
        ({"design": RandomDesign(ranges=RANGES, seed=2)}, r"design.seed \(1 there, 2 here\)"),
        ({"design": RandomDesign(ranges=dict(reversed(RANGES.items())), seed=1)}, "design.ranges "),
        ({"design": RandomDesign(ranges=RANGES, seed=1, low_discrepancy=True)}, "design.low_discrepancy "),
        ({"design": AdaptiveDesign(ranges=RANGES, seed=1)}, "design.kind .* design.low_discrepancy .* design.sampler"),
        ({"settings": {"dataset": "cora_ml", "model": {"skip": True}}}, "settings.model.layers .* settings.model.skip"),
    ],
)
def test_another_sweep_is_told_in_what_it_differs(tmp_path: Path, changed: dict[str, Any], named: str) -> None:
    keep_settings(_sweep(tmp_path))
    before = (tmp_path / "sweep.toml").read_bytes()
    with pytest.raises(InvalidParameterError, match=f"must hold the same sweep, but .* differs in {named}"):
        keep_settings(_sweep(tmp_path, **changed, budget=Budget(trials=9)))
    assert (tmp_path / "sweep.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"directions": {}}, "at least one objective value"),
        ({"directions": {"accuracy": "up"}}, r"`directions\['accuracy'\]` must be one of"),
        ({"directions": {"x": "maximize"}}, "`x` must name one column"),
        ({"directions": {"seconds": "minimize"}}, "`seconds` must name one column"),
        ({"name": ""}, "`name` must not be empty"),
    ],
)
def test_impossible_sweeps_are_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        _sweep(tmp_path, **changed)


def test_settings_are_what_toml_can_hold(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="`settings` must hold only values that TOML has"):
        keep_settings(_sweep(tmp_path, settings={"alpha": None}))
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text("name = ")
    with pytest.raises(InvalidFileError, match="cannot be read as TOML"):
        keep_settings(_sweep(tmp_path))


def test_a_file_of_another_version_is_told(tmp_path: Path) -> None:
    keep_settings(_sweep(tmp_path))
    file = tmp_path / "sweep.toml"
    file.write_text(file.read_text().replace("format_version = 2", "format_version = 1"))
    with pytest.raises(InvalidParameterError, match=r"differs in format_version \(1 there, 2 here\)"):
        keep_settings(_sweep(tmp_path))
