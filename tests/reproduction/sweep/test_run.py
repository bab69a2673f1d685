"""Whole sweeps on real worker processes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from filelock import FileLock

from graycert.errors import GraycertError, InvalidFileError, InvalidParameterError
from graycert.reproduction.sweep import (
    AdaptiveDesign,
    Budget,
    RandomDesign,
    Sweep,
    export_sweep,
    run_sweep,
    run_sweeps,
)
from graycert.reproduction.sweep.live import live
from support.sweep_objectives import FailsAbove, KillsItself, Logged, Returns, paraboloid

RANGES = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
COLUMNS = ["index", "x", "y", "accuracy", "robustness", "sum", "ratio", "seconds", "worker"]


def _sweep(folder: Path, **changed: Any) -> Sweep:
    given: dict[str, Any] = {
        "directory": folder,
        "name": folder.name,
        "objective": paraboloid,
        "directions": {"accuracy": "maximize", "robustness": "minimize"},
        "design": RandomDesign(ranges=RANGES, seed=1),
        "budget": Budget(trials=3),
    }
    return Sweep(**{**given, **changed})


def _large(number: int, threshold: float) -> list[int]:
    design = RandomDesign(ranges=RANGES, seed=1)
    return [index for index in range(number) if design.point(index)["x"] > threshold]


def test_sweeps_share_their_workers_and_a_trial_that_raises_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mended = tmp_path / "mended"
    fails = FailsAbove(threshold=0.6, mended=str(mended))
    sweeps = [_sweep(tmp_path / "calm"), _sweep(tmp_path / "fails", objective=fails, budget=Budget(trials=10))]
    expected = _large(10, 0.6)
    assert 1 < len(expected) < 9

    calm, failing = run_sweeps(sweeps, workers=1, progress=True)
    table = pd.read_parquet(calm.table)
    assert table.columns.tolist() == COLUMNS
    for index, row in table.iterrows():
        point = RandomDesign(ranges=RANGES, seed=1).point(index)
        values = pd.Series(paraboloid(point))
        assert row["index"] == index
        assert row[["x", "y"]].to_dict() == point
        pd.testing.assert_series_equal(row[values.index].astype(float), values, check_names=False, check_exact=True)
    assert table["worker"].nunique() == 1
    assert set(table["worker"]) == set(pd.read_parquet(failing.table)["worker"])  # the same process

    assert [trial.index for trial in failing.failed] == expected
    assert failing.num_finished == 10 - len(expected)
    assert set(pd.read_parquet(failing.table)["index"]) == set(range(10)) - set(expected)
    first = failing.failed[0]
    assert first.error == f"ArithmeticError: {first.params['x']:.3f} is too large"
    failures = pd.read_parquet(tmp_path / "fails" / "failed.parquet")
    assert failures["index"].tolist() == expected
    assert failures["error"][0] == first.error
    assert "sweep_objectives.py" in failures["traceback"][0]
    told = capsys.readouterr()
    assert told.out == ""
    assert "2 sweeps: 0 of 13 trials done; 1 worker processes\n" in told.err
    assert f"fails: trial {expected[0]} failed: {first.error}\n" in told.err
    assert f"fails: {failing.num_finished} trials finished, {len(expected)} failed: {expected[0]} (" in told.err

    mended.touch()
    assert run_sweep(sweeps[1]).failed == failing.failed  # not by itself
    healed = run_sweep(sweeps[1], retry_failed=True)
    assert (healed.num_finished, healed.failed) == (10, ())
    assert pd.read_parquet(healed.table)["index"].tolist() == list(range(10))
    assert not (tmp_path / "fails" / "failed.parquet").exists()


def test_more_trials_extend_a_sweep(tmp_path: Path) -> None:
    log = tmp_path / "log"
    folder = tmp_path / "sweep"
    objective = Logged(log=str(log))
    first = pd.read_parquet(run_sweep(_sweep(folder, objective=objective)).table)
    run_sweep(_sweep(folder, objective=objective))  # nothing left to do
    assert log.read_text().count("\n") == 3
    more = _sweep(folder, objective=objective, budget=Budget(trials=5))
    table = pd.read_parquet(run_sweep(more, workers=2).table)
    assert log.read_text().count("\n") == 5
    pd.testing.assert_frame_equal(table[:3], first, check_exact=True)
    assert table["index"].tolist() == [0, 1, 2, 3, 4]
    (folder / "trials.parquet").unlink()
    pd.testing.assert_frame_equal(pd.read_parquet(export_sweep(folder)), table, check_exact=True)
    with pytest.raises(InvalidParameterError, match=r"differs in design.seed"):
        run_sweep(_sweep(folder, objective=objective, design=RandomDesign(ranges=RANGES, seed=2)))


def test_a_budget_of_time_starts_nothing_when_it_is_over(tmp_path: Path) -> None:
    log = tmp_path / "log"
    objective = Logged(log=str(log), seconds=0.2)
    sweep = _sweep(tmp_path / "sweep", objective=objective, budget=Budget(seconds=0.3))
    design = AdaptiveDesign(ranges=RANGES, seed=1, sampler="tpe")
    adaptive = _sweep(tmp_path / "adaptive", objective=objective, budget=Budget(seconds=0.1), design=design)
    results = run_sweeps([sweep, adaptive])
    # the first trial starts at once; a trial started after the end would need an earlier one of 0 s
    assert 1 <= results[0].num_finished <= 2
    assert results[1].num_finished == 1
    assert log.read_text().count("\n") == sum(result.num_finished for result in results)
    assert run_sweep(sweep).num_finished > results[0].num_finished  # goes on


def test_a_trial_that_kills_each_worker_is_given_up(tmp_path: Path) -> None:
    large = _large(5, 0.6)[0]
    sweep = _sweep(tmp_path / "deadly", objective=KillsItself(threshold=0.6), budget=Budget(trials=large + 1))
    done = run_sweep(sweep)
    assert [trial.index for trial in done.failed] == [large]
    assert done.failed[0].error == "WorkerDied: 3 worker processes died of it, the last with exit status -9"
    assert done.num_finished == large


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({"accuracy": 0.5}, "Missing: robustness; taken: none"),
        ({"accuracy": 0.5, "robustness": float("nan")}, "finite numbers, got robustness = nan"),
        ({"accuracy": 0.5, "robustness": 0.5, "loss": float("inf")}, "finite numbers, got loss = inf"),
        ({"accuracy": 0.5, "robustness": "high"}, "finite numbers, got robustness = 'high'"),
        ({"accuracy": 0.5, "robustness": 0.5, "x": 1}, "Missing: none; taken: x"),
    ],
)
def test_unusable_results_are_refused(tmp_path: Path, results: dict[str, object], message: str) -> None:
    from graycert.reproduction.sweep.worker import check_results

    with pytest.raises(InvalidParameterError, match=message):
        check_results(_sweep(tmp_path), Returns(results=tuple(results.items()))({}))


def test_only_one_process_drives_a_sweep(tmp_path: Path) -> None:
    sweep = _sweep(tmp_path)
    with FileLock(tmp_path / "sweep.lock"):
        with pytest.raises(InvalidParameterError, match="another process runs the sweep"):
            run_sweep(sweep)
        assert [path.name for path in tmp_path.iterdir()] == ["sweep.lock"]
    run_sweep(sweep)
    with (
        FileLock(tmp_path / "sweep.lock"),
        pytest.raises(InvalidParameterError, match=rf"but process {os.getpid()} on .* runs the sweep"),
    ):
        run_sweep(sweep)


def test_sweeps_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="a folder each"):
        run_sweeps([_sweep(tmp_path), _sweep(tmp_path)])
    with pytest.raises(InvalidParameterError, match="all a time as budget"):
        run_sweeps([_sweep(tmp_path / "a"), _sweep(tmp_path / "b", budget=Budget(seconds=1))])
    with pytest.raises(InvalidParameterError, match="`workers` must be >= 1"):
        run_sweep(_sweep(tmp_path), workers=0)
    assert run_sweeps([]) == []
    assert not list(tmp_path.iterdir())


def test_workers_that_cannot_start_are_no_endless_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"import os\nif os.getpid() != {os.getpid()}:\n    raise SystemExit(9)\ndef objective(params):\n    ...\n"
    (tmp_path / "only_in_the_parent.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    import only_in_the_parent

    with pytest.raises(GraycertError, match="worker processes end before they begin"):
        run_sweep(_sweep(tmp_path / "sweep", objective=only_in_the_parent.objective))


def test_a_folder_without_a_sweep_has_no_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidFileError, match="holds no sweep"):
        export_sweep(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidFileError, match="cannot be written"):
        run_sweep(_sweep(tmp_path / "file" / "sweep"))


def test_without_optuna_only_running_fails_and_says_what_to_install() -> None:
    program = """
import sys
sys.modules["optuna"] = None
from graycert.reproduction.sweep import Budget, RandomDesign, Sweep
from graycert.errors import InvalidParameterError
try:
    from graycert.reproduction.sweep import run_sweep
except InvalidParameterError as error:
    print(error, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == 'sweeps need optuna: pip install "graycert[sweep]". False\n'


def test_a_pipe_gets_a_line_now_and_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graycert.reproduction.sweep.live._EVERY", 0.0)
    sweep = _sweep(tmp_path)
    with live([Budget(trials=9)], num_done=4, shown=True) as shown:
        shown.tick()
        shown.done(sweep, {"accuracy": 0.5, "robustness": 0.25})
        shown.done(sweep, {"accuracy": 0.75, "robustness": 0.5})
        shown.done(sweep, None)
        shown.tick()
    first, second = capsys.readouterr().err.splitlines()
    assert "4 of 9 trials" in first
    assert first.endswith("no trial done yet")
    assert f"{sweep.name}: 7 of 9 trials, " in second
    assert ", best accuracy 0.75, best robustness 0.25, about 0.0 min left" in second
    with live([Budget(trials=9)], num_done=4, shown=False) as shown:
        shown.tick()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("budget", [Budget(trials=9), Budget(seconds=60)])
def test_a_terminal_gets_a_bar(
    tmp_path: Path, budget: Budget, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with live([budget, budget], num_done=4, shown=True) as shown:
        shown.done(_sweep(tmp_path), {"accuracy": 0.5, "robustness": 0.25})
        shown.tick()
        shown.say("a line only where there is no bar")
    told = capsys.readouterr().err
    assert "best accuracy 0.5, best robustness 0.25" in told
    assert ("5/18" if budget.trials else "0/120") in told
    assert "a line" not in told
