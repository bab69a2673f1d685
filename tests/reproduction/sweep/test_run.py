"""Whole sweeps on real worker processes."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from filelock import FileLock

from graycert.errors import GraycertError, InvalidFileError, InvalidParameterError
from graycert.problem import Execution
from graycert.reproduction.live import live
from graycert.reproduction.sweep import AdaptiveDesign, Budget, RandomDesign, run_sweep
from graycert.reproduction.sweep.course import checked_numbers
from support.sweep_jobs import RANGES, paraboloid, toy_sweep
from support.sweep_processes import TWO

COLUMNS = ["index", "x", "y", "accuracy", "robustness", "sum", "ratio", "seconds"]


def _large(number: int, threshold: float) -> list[int]:
    design = RandomDesign(ranges=RANGES, seed=1)
    return [index for index in range(number) if design.point(index)["x"] > threshold]


def test_a_table_has_a_row_for_each_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calm = run_sweep(toy_sweep(tmp_path / "calm"))
    table = pd.read_parquet(calm.table)
    assert table.columns.tolist() == COLUMNS
    assert table.dtypes.tolist() == ["int64"] + ["float64"] * 7
    for index, row in table.iterrows():
        point = RandomDesign(ranges=RANGES, seed=1).point(index)
        values = pd.Series(paraboloid(**point))
        assert row["index"] == index
        assert row[["x", "y"]].to_dict() == point
        pd.testing.assert_series_equal(row[values.index].astype(float), values, check_names=False, check_exact=True)
    assert calm.failed == ()
    assert not (tmp_path / "calm" / "failed.parquet").exists()
    assert capsys.readouterr() == ("", "")


@pytest.mark.deep
def test_a_trial_that_raises_stops_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mended = tmp_path / "mended"
    fails = {"fails_above": 0.6, "mended": str(mended)}
    sweep = toy_sweep(tmp_path / "fails", options=fails, budget=Budget(trials=10))
    expected = _large(10, 0.6)
    assert 1 < len(expected) < 9
    failing = run_sweep(sweep, execution=TWO, progress=True)
    assert [trial.index for trial in failing.failed] == expected
    assert failing.num_finished == 10 - len(expected)
    assert set(pd.read_parquet(failing.table)["index"]) == set(range(10)) - set(expected)
    first = failing.failed[0]
    assert first.error == f"ArithmeticError: {first.params['x']:.3f} is too large"
    failures = pd.read_parquet(tmp_path / "fails" / "failed.parquet")
    assert failures.columns.tolist() == ["index", "x", "y", "error", "traceback"]
    assert failures["index"].tolist() == expected
    assert failures["error"][0] == first.error
    assert "sweep_jobs.py" in failures["traceback"][0]
    told = capsys.readouterr()
    assert told.out == ""
    assert "fails: 0 of 10 trials done; 2 workers\n" in told.err
    assert f"fails: a trial failed: {first.error}\n" in told.err

    mended.touch()
    assert run_sweep(sweep).failed == failing.failed  # not by itself
    healed = run_sweep(sweep, retry_failed=True)
    assert (healed.num_finished, healed.failed) == (10, ())
    assert pd.read_parquet(healed.table)["index"].tolist() == list(range(10))
    assert not (tmp_path / "fails" / "failed.parquet").exists()


def test_more_trials_extend_a_sweep(tmp_path: Path) -> None:
    log = tmp_path / "log"
    folder = tmp_path / "sweep"
    options = {"log": str(log)}
    first = pd.read_parquet(run_sweep(toy_sweep(folder, options=options)).table)
    run_sweep(toy_sweep(folder, options=options))  # nothing left to do
    assert log.read_text().count("\n") == 3
    more = toy_sweep(folder, options=options, budget=Budget(trials=5))
    table = pd.read_parquet(run_sweep(more, execution=TWO).table)
    assert log.read_text().count("\n") == 5
    pd.testing.assert_frame_equal(table[:3], first, check_exact=True)
    assert table["index"].tolist() == [0, 1, 2, 3, 4]
    again = run_sweep(toy_sweep(folder, options=options))  # a smaller budget: all there is stays in the table
    pd.testing.assert_frame_equal(pd.read_parquet(again.table), table, check_exact=True)
    again.table.unlink()
    again = run_sweep(toy_sweep(folder, options=options, budget=Budget(trials=5)))  # made again from the results
    pd.testing.assert_frame_equal(pd.read_parquet(again.table), table, check_exact=True)
    assert log.read_text().count("\n") == 5
    with pytest.raises(InvalidParameterError, match=r"differs in design.seed"):
        run_sweep(toy_sweep(folder, options=options, design=RandomDesign(ranges=RANGES, seed=2)))


def test_a_trial_whose_result_is_missing_is_run_again_and_no_other(tmp_path: Path) -> None:
    log = tmp_path / "log"
    sweep = toy_sweep(tmp_path / "sweep", options={"log": str(log)}, budget=Budget(trials=6))
    before = pd.read_parquet(run_sweep(sweep).table)
    lost = sweep.job(sweep.design.point(2))
    (sweep.lab.folder / "results" / lost.job / f"{lost.key}.npz").unlink()
    runs = log.read_text()
    after = pd.read_parquet(run_sweep(sweep).table)
    assert log.read_text() == f"{runs}{float(before['x'][2])!r}\n"
    pd.testing.assert_frame_equal(before.drop(columns="seconds"), after.drop(columns="seconds"), check_exact=True)


def test_equal_trials_are_run_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    fixed = RandomDesign(ranges=dict.fromkeys(RANGES, (0.25, 0.25)), seed=1)
    sweep = toy_sweep(tmp_path / "sweep", design=fixed, options={"log": str(log)}, budget=Budget(trials=5))
    assert run_sweep(sweep, execution=TWO).num_finished == 5
    other = toy_sweep(tmp_path / "other", lab=sweep.lab, design=fixed, options={"log": str(log)})
    assert run_sweep(other, execution=TWO).num_finished == 3  # from the results of the other sweep
    assert log.read_text() == "0.25\n"


def _design(sampler: str) -> RandomDesign | AdaptiveDesign:
    if sampler == "random":
        return RandomDesign(ranges=RANGES, seed=1)
    return AdaptiveDesign(ranges=RANGES, seed=1, sampler=sampler)


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_a_budget_of_time_starts_nothing_when_it_is_over(
    tmp_path: Path, sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]

    class Clock:  # a trial takes a second of it
        monotonic = staticmethod(lambda: clock[0])

    def numbers(arrays: dict[str, Any]) -> dict[str, float]:
        clock[0] += 1
        return {name: float(arrays[name]) for name in ("accuracy", "robustness")}

    monkeypatch.setattr("graycert.reproduction.sweep.course.time", Clock)
    sweep = toy_sweep(tmp_path / sampler, numbers=numbers, budget=Budget(seconds=2.5), design=_design(sampler))
    assert run_sweep(sweep).num_finished == 3
    assert run_sweep(sweep).num_finished == 6  # goes on


@pytest.mark.deep
def test_a_trial_that_kills_each_worker_is_given_up(tmp_path: Path) -> None:
    large = _large(9, 0.6)[0]
    sweep = toy_sweep(
        tmp_path / "deadly", options={"kills_above": 0.6, "log": str(tmp_path / "log")}, budget=Budget(trials=large + 1)
    )
    done = run_sweep(sweep, execution=TWO)
    assert [trial.index for trial in done.failed] == [large]
    assert done.failed[0].error == "WorkerDied: 3 workers were killed with it (out of memory?)"
    assert done.num_finished == large
    again = run_sweep(sweep, execution=TWO)  # not tried again by itself
    assert again == done


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
    with pytest.raises(InvalidParameterError, match=message):
        checked_numbers(toy_sweep(tmp_path), results)


def test_a_trial_with_unusable_numbers_has_failed(tmp_path: Path) -> None:
    done = run_sweep(toy_sweep(tmp_path / "nan", numbers=lambda arrays: {"accuracy": 1.0}))
    assert done.num_finished == 0
    assert [trial.index for trial in done.failed] == [0, 1, 2]
    assert "Missing: robustness" in done.failed[0].error


@pytest.mark.parametrize("sampler", ["nsga2", "tpe"])
def test_an_adaptive_sweep_goes_on(tmp_path: Path, sampler: str) -> None:
    design = AdaptiveDesign(ranges=RANGES, seed=3, sampler=sampler)
    folder = tmp_path / "adaptive"
    options = {"log": str(tmp_path / "log")}
    for trials in range(1, 14):  # each time as after a restart
        done = run_sweep(toy_sweep(folder, design=design, options=options, budget=Budget(trials=trials)))
        assert done.num_finished == trials
    table = pd.read_parquet(done.table)
    assert table["x"].nunique() == 13  # a sampler that starts anew must not repeat itself
    assert (tmp_path / "log").read_text().split() == [repr(x) for x in table["x"]]
    straight = toy_sweep(tmp_path / "straight", design=design, budget=Budget(trials=13))
    pd.testing.assert_frame_equal(
        pd.read_parquet(run_sweep(straight).table).drop(columns="seconds"), table.drop(columns="seconds")
    )


def test_only_one_process_drives_a_sweep(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    folder.mkdir()
    with FileLock(folder / "sweep.lock"):
        with pytest.raises(InvalidParameterError, match="another process runs the sweep"):
            run_sweep(toy_sweep(folder))
        assert [path.name for path in folder.iterdir()] == ["sweep.lock"]
    run_sweep(toy_sweep(folder))


def test_threads_that_would_share_their_random_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="`workers` must be 1 with threads"):
        run_sweep(toy_sweep(tmp_path), execution=Execution(workers=2))
    with pytest.raises(InvalidParameterError, match="`execution` must say who works and nothing else, got memory"):
        run_sweep(toy_sweep(tmp_path), execution=Execution(memory=2**30))
    assert not list(tmp_path.glob("*.parquet"))


def test_workers_that_cannot_start_are_no_endless_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = """
import os
from support.sweep_jobs import Paraboloid
if os.getpid() != PARENT:
    raise SystemExit(9)
class Other(Paraboloid):
    pass
"""
    (tmp_path / "only_in_the_parent.py").write_text(module.replace("PARENT", str(os.getpid())))
    monkeypatch.syspath_prepend(tmp_path)
    import only_in_the_parent

    with pytest.raises(GraycertError, match="worker processes cannot start"):
        run_sweep(toy_sweep(tmp_path / "sweep", job=lambda point: only_in_the_parent.Other(**point)), execution=TWO)


def test_what_a_killed_process_left_unfinished_is_removed(tmp_path: Path) -> None:
    design = AdaptiveDesign(ranges=RANGES, seed=3)
    folder = tmp_path / "adaptive"
    folder.mkdir()
    names = ("sweep.toml", "asked.json", "trials.parquet", "failed.parquet")
    for name in names:
        (folder / f".{name}.ab12{Path(name).suffix}").write_text("half of")
    run_sweep(toy_sweep(folder, design=design))
    assert {path.name for path in folder.iterdir()} == {"sweep.lock", *names[:-1]}


@pytest.mark.parametrize("text", ["nonsense", "[1]", "[{}]", '[{"params": {"x": 0.5}, "sampler": {}}]', '[{"params"'])
def test_a_damaged_file_is_told(tmp_path: Path, text: str) -> None:
    design = AdaptiveDesign(ranges=RANGES, seed=3)
    folder = tmp_path / "adaptive"
    run_sweep(toy_sweep(folder, design=design))
    (folder / "asked.json").write_text(text)
    with pytest.raises(InvalidFileError, match=r"asked\.json is damaged"):
        run_sweep(toy_sweep(folder, design=design))


@pytest.mark.parametrize("name", ["trials.parquet", "failed.parquet"])
def test_a_damaged_table_is_told(tmp_path: Path, name: str) -> None:
    run_sweep(toy_sweep(tmp_path / "sweep"))
    (tmp_path / "sweep" / name).write_text("no table")
    with pytest.raises(InvalidFileError, match=f"{name} is damaged"):
        run_sweep(toy_sweep(tmp_path / "sweep"))


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidFileError, match="cannot be written"):
        run_sweep(toy_sweep(tmp_path / "file" / "sweep"))


@pytest.mark.deep
def test_only_adaptive_sweeps_need_optuna_and_say_what_to_install(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["optuna"] = None
from pathlib import Path
from graycert.errors import InvalidParameterError
from graycert.reproduction.sweep import AdaptiveDesign, run_sweep
from support.sweep_jobs import RANGES, toy_sweep
print(run_sweep(toy_sweep(Path(sys.argv[1]) / "random")).num_finished)
try:
    run_sweep(toy_sweep(Path(sys.argv[1]) / "adaptive", design=AdaptiveDesign(ranges=RANGES, seed=1)))
except InvalidParameterError as error:
    print(error, "torch" in sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == '3\nadaptive sweeps need optuna: pip install "graycert[sweep]". False\n'


def test_a_pipe_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graycert.reproduction.live._EVERY", 0.0)
    told: list[str] = []
    with live("sweep", unit="trials", total=9, shown=True, say=told.append) as shown:
        shown.before(4)
        shown.tick()
        for _ in range(2):
            shown.done("cora, best accuracy 0.75")
        shown.tick()
    assert told[0] == "4 of 9 trials done, 0 per hour"
    assert re.fullmatch(
        r"6 of 9 trials done, [\d,]+ per hour, about \d+\.\d min left, cora, best accuracy 0\.75", told[1]
    )
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("total", [18, None])
def test_a_terminal_gets_a_bar(
    total: int | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    told: list[str] = []
    with live("sweep", unit="trials", total=total, shown=True, say=told.append) as shown:
        shown.before(4)
        shown.done("cora, best accuracy 0.5")
        shown.tick()
        shown.say("a line only where there is no bar")
    bar = capsys.readouterr().err
    assert "best accuracy 0.5" in bar
    assert ("5/18" if total else "5/?") in bar
    assert told == []
