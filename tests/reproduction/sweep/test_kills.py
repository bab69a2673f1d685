"""Sweeps that are killed at any moment, with SIGKILL, and end as if nothing had been."""

import json
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from graycert.reproduction.sweep import run_sweep
from graycert.reproduction.sweep.journal import is_finished
from graycert.reproduction.sweep.worker import open_journal
from support.sweep_processes import (
    PATIENCE,
    kill_a_worker,
    kill_all,
    kill_parent,
    logged_sweep,
    running_sweep,
    wait_until,
)

# one list per start of the sweep; the last kill of each ends its parent
KILLS = (
    (kill_all,),
    (kill_a_worker, kill_parent),
    (kill_a_worker, kill_a_worker, kill_all),
    (kill_a_worker, kill_parent),
    (kill_a_worker, kill_all),
)
FILES = {"sweep.toml", "sweep.journal", "sweep.journal.lock", "sweep.lock", "trials.parquet"}
ENDLESS = 100_000


def _num_runs(folder: Path) -> int:
    log = Path(f"{folder}.log")
    return log.read_text().count("\n") if log.exists() else 0


def _comparable(table: Path) -> pd.DataFrame:
    return pd.read_parquet(table).drop(columns=["seconds", "worker"])


@pytest.mark.end_to_end
def test_ten_kills_change_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    generator = random.Random(11)
    assert sum(map(len, KILLS)) == 10
    for kills in KILLS:
        with running_sweep(folder, trials=ENDLESS, seconds=0.05) as process:
            for kill in kills:
                if generator.random() < 0.7:  # else while it starts
                    before = _num_runs(folder)
                    wait_until(lambda before=before: _num_runs(folder) > before)
                time.sleep(generator.uniform(0, 0.15))
                assert process.poll() is None
                kill(process)

    journal = open_journal(logged_sweep(folder, trials=ENDLESS, seconds=0))
    num_trials = max((index for index, trial in journal.latest().items() if is_finished(trial)), default=0) + 6
    done = run_sweep(logged_sweep(folder, trials=num_trials, seconds=0), workers=2)
    undisturbed = run_sweep(logged_sweep(tmp_path / "calm", trials=num_trials, seconds=0), workers=2)

    assert done.num_finished == undisturbed.num_finished == num_trials
    pd.testing.assert_frame_equal(_comparable(done.table), _comparable(undisturbed.table), check_exact=True)
    assert {path.name for path in folder.iterdir()} == FILES
    for line in (folder / "sweep.journal").read_text().splitlines():
        json.loads(line)
    _check_that_nothing_finished_was_run_again(folder, num_trials)


def _check_that_nothing_finished_was_run_again(folder: Path, num_trials: int) -> None:
    journal = open_journal(logged_sweep(folder, trials=num_trials, seconds=0))
    attempts: dict[int, list[str]] = {index: [] for index in range(num_trials)}
    for trial in journal._study.trials:
        attempts[trial.user_attrs["index"]].append(trial.state.name)
    for states in attempts.values():
        assert states == ["FAIL"] * (len(states) - 1) + ["COMPLETE"]
    assert sum(map(len, attempts.values())) > num_trials, "the kills hit no trial; there is nothing to see here"
    runs = Counter(Path(f"{folder}.log").read_text().splitlines())
    points = pd.read_parquet(folder / "trials.parquet")["x"]
    assert set(runs) == {repr(x) for x in points}
    assert all(runs[repr(x)] <= len(attempts[index]) for index, x in enumerate(points))


@pytest.mark.end_to_end
def test_an_interruption_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "interrupted"
    with running_sweep(folder, trials=ENDLESS, seconds=0.03) as process:
        wait_until(lambda: _num_runs(folder) > 3)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) != 0
    told = Path(f"{folder}.err").read_text()
    assert "logged: 0 of 100000 trials done; 2 worker processes" in told
    assert "Finished trials are kept: run the same again to go on." in told
    assert told.rstrip().splitlines()[-1].startswith(("KeyboardInterrupt", "Interrupted."))
    num_finished = len(pd.read_parquet(folder / "trials.parquet"))
    assert 0 < num_finished <= _num_runs(folder)
    done = run_sweep(logged_sweep(folder, trials=num_finished + 2, seconds=0))
    assert done.num_finished >= num_finished + 2


@pytest.mark.end_to_end
def test_workers_whose_parent_was_killed_finish_their_trial_and_it_counts(tmp_path: Path) -> None:
    folder = tmp_path / "orphans"
    journal = folder / "sweep.journal"
    with running_sweep(folder, trials=2, seconds=2.0) as process:
        wait_until(lambda: journal.exists() and journal.read_text().count('"index":') == 2)
        process.kill()
        process.wait(PATIENCE)
        done = run_sweep(logged_sweep(folder, trials=3, seconds=0))
    assert done.num_finished == 3
    assert _num_runs(folder) == 3  # none was run twice, although two were under way
    workers = pd.read_parquet(done.table)["worker"]
    assert workers[2] not in set(workers[:2])
