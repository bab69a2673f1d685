"""Whole sweeps on real worker processes."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from filelock import FileLock

from graycert.errors import GraycertError, InvalidFileError, InvalidParameterError
from graycert.reproduction.lab import Lab
from graycert.reproduction.live import live
from graycert.reproduction.sweep import AdaptiveDesign, Budget, RandomDesign, run_sweep, run_sweeps
from graycert.reproduction.sweep.course import checked_numbers
from support.sweep_jobs import RANGES, paraboloid, toy_sweep

COLUMNS = ["index", "x", "y", "accuracy", "robustness", "sum", "ratio", "seconds"]


def _large(number: int, threshold: float) -> list[int]:
    design = RandomDesign(ranges=RANGES, seed=1)
    return [index for index in range(number) if design.point(index)["x"] > threshold]


def test_sweeps_share_their_workers_and_a_trial_that_raises_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mended = tmp_path / "mended"
    lab = Lab(tmp_path / "lab")
    fails = {"fails_above": 0.6, "mended": str(mended)}
    sweeps = [
        toy_sweep(tmp_path / "calm", lab=lab),
        toy_sweep(tmp_path / "fails", lab=lab, options=fails, budget=Budget(trials=10)),
    ]
    expected = _large(10, 0.6)
    assert 1 < len(expected) < 9

    calm, failing = run_sweeps(sweeps, workers=1, progress=True)
    table = pd.read_parquet(calm.table)
    assert table.columns.tolist() == COLUMNS
    for index, row in table.iterrows():
        point = RandomDesign(ranges=RANGES, seed=1).point(index)
        values = pd.Series(paraboloid(**point))
        assert row["index"] == index
        assert row[["x", "y"]].to_dict() == point
        pd.testing.assert_series_equal(row[values.index].astype(float), values, check_names=False, check_exact=True)

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
    assert "2 sweeps: 0 of 13 trials done; 1 workers\n" in told.err
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
    options = {"log": str(log)}
    first = pd.read_parquet(run_sweep(toy_sweep(folder, options=options)).table)
    run_sweep(toy_sweep(folder, options=options))  # nothing left to do
    assert log.read_text().count("\n") == 3
    more = toy_sweep(folder, options=options, budget=Budget(trials=5))
    table = pd.read_parquet(run_sweep(more, workers=2).table)
    assert log.read_text().count("\n") == 5
    pd.testing.assert_frame_equal(table[:3], first, check_exact=True)
    assert table["index"].tolist() == [0, 1, 2, 3, 4]
    (folder / "trials.parquet").unlink()
    again = run_sweep(toy_sweep(folder, options=options))  # a smaller budget: all there is stays in the table
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


def test_sweeps_with_trials_in_common_run_them_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    lab = Lab(tmp_path / "lab")
    fixed = RandomDesign(ranges=dict.fromkeys(RANGES, (0.25, 0.25)), seed=1)
    sweeps = [toy_sweep(tmp_path / name, lab=lab, design=fixed, options={"log": str(log)}) for name in ("a", "b")]
    results = run_sweeps(sweeps, workers=2)
    assert [result.num_finished for result in results] == [3, 3]
    assert log.read_text() == "0.25\n"


def test_a_budget_of_time_starts_nothing_when_it_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    class Clock:  # a trial takes a second of it
        monotonic = staticmethod(lambda: clock[0])

    def numbers(arrays: dict[str, Any]) -> dict[str, float]:
        clock[0] += 1
        return {name: float(arrays[name]) for name in ("accuracy", "robustness")}

    monkeypatch.setattr("graycert.reproduction.sweep.course.time", Clock)
    lab = Lab(tmp_path / "lab")
    design = AdaptiveDesign(ranges=RANGES, seed=1, sampler="tpe")
    sweeps = [
        toy_sweep(tmp_path / "random", lab=lab, numbers=numbers, budget=Budget(seconds=2.5)),
        toy_sweep(tmp_path / "adaptive", lab=lab, numbers=numbers, budget=Budget(seconds=0.5), design=design),
    ]
    assert [result.num_finished for result in run_sweeps(sweeps)] == [3, 1]
    assert [result.num_finished for result in run_sweeps(sweeps)] == [6, 2]  # goes on


def test_a_trial_that_kills_each_worker_is_given_up(tmp_path: Path) -> None:
    large = _large(9, 0.6)[0]
    sweep = toy_sweep(
        tmp_path / "deadly", options={"kills_above": 0.6, "log": str(tmp_path / "log")}, budget=Budget(trials=large + 1)
    )
    done = run_sweep(sweep, workers=2)
    assert [trial.index for trial in done.failed] == [large]
    assert done.failed[0].error == "WorkerDied: 3 workers were killed with it (out of memory?)"
    assert done.num_finished == large
    again = run_sweep(sweep, workers=2)  # not tried again by itself
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


def test_another_backend_may_be_given(tmp_path: Path) -> None:
    names: list[str] = []

    def threads(number: int) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(number, initializer=lambda: names.append(threading.current_thread().name))

    done = run_sweep(toy_sweep(tmp_path / "threads"), workers=2, backend=threads)
    assert done.num_finished == 3
    assert names


def test_only_one_process_drives_a_sweep(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    folder.mkdir()
    with FileLock(folder / "sweep.lock"):
        with pytest.raises(InvalidParameterError, match="another process runs the sweep"):
            run_sweep(toy_sweep(folder))
        assert [path.name for path in folder.iterdir()] == ["sweep.lock"]
    run_sweep(toy_sweep(folder))


def test_sweeps_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "lab")
    with pytest.raises(InvalidParameterError, match="a folder each"):
        run_sweeps([toy_sweep(tmp_path, lab=lab), toy_sweep(tmp_path, lab=lab)])
    with pytest.raises(InvalidParameterError, match="all a time as budget"):
        run_sweeps([toy_sweep(tmp_path / "a", lab=lab), toy_sweep(tmp_path / "b", lab=lab, budget=Budget(seconds=1))])
    with pytest.raises(InvalidParameterError, match="of one lab"):
        run_sweeps([toy_sweep(tmp_path / "a"), toy_sweep(tmp_path / "b")])
    with pytest.raises(InvalidParameterError, match="`workers` must be >= 1"):
        run_sweep(toy_sweep(tmp_path), workers=0)
    assert run_sweeps([]) == []
    assert not list(tmp_path.iterdir())


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
        run_sweep(toy_sweep(tmp_path / "sweep", job=lambda point: only_in_the_parent.Other(**point)))


@pytest.mark.parametrize("rest", ['{"params": {"x"', "{", '{"params": {"π": "\N{SNOWMAN}"'])
def test_half_a_line_is_cut_off(tmp_path: Path, rest: str) -> None:
    design = AdaptiveDesign(ranges=RANGES, seed=3)
    folder = tmp_path / "adaptive"
    run_sweep(toy_sweep(folder, design=design))
    asked = folder / "asked.jsonl"
    whole = asked.read_bytes()
    with asked.open("ab") as file:
        file.write(rest.encode())
    assert run_sweep(toy_sweep(folder, design=design, budget=Budget(trials=4))).num_finished == 4
    assert asked.read_bytes().startswith(whole)
    assert asked.read_bytes().count(b"\n") == 4
    asked.write_bytes(rest.encode())  # of the first line: no point was asked for
    run_sweep(toy_sweep(folder, design=design))
    assert asked.read_bytes() == whole


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"params": {"x": 0.5}, "sampler": {}}', '{"params": {}}'])
def test_a_damaged_file_is_told(tmp_path: Path, line: str) -> None:
    design = AdaptiveDesign(ranges=RANGES, seed=3)
    folder = tmp_path / "adaptive"
    run_sweep(toy_sweep(folder, design=design))
    (folder / "asked.jsonl").write_text(f"{line}\n")
    with pytest.raises(InvalidFileError, match=r"asked\.jsonl is damaged"):
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
    with live("sweep", unit="trials", total=9, num_done=4, shown=True, say=told.append) as shown:
        shown.tick()
        shown.done("cora, best accuracy 0.75")
        shown.done("cora, best accuracy 0.75")
    assert "4 of 9 trials" in told[0]
    assert told[0].endswith("none done yet")
    assert told[-1].startswith("6 of 9 trials, ")
    assert "cora, best accuracy 0.75; about 0.0 min left" in told[-1]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("total", [18, None])
def test_a_terminal_gets_a_bar(
    total: int | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    seconds = None if total else 120.0
    told: list[str] = []
    with live("sweep", unit="trials", total=total, seconds=seconds, num_done=4, shown=True, say=told.append) as shown:
        shown.done("cora, best accuracy 0.5")
        shown.tick()
        shown.say("a line only where there is no bar")
    bar = capsys.readouterr().err
    assert "best accuracy 0.5" in bar
    assert ("5/18" if total else "0/120") in bar
    assert told == []
