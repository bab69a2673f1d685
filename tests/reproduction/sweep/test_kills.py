"""Sweeps that are killed at any moment, with SIGKILL, and end as if nothing had been."""

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from graycert.errors import InvalidParameterError
from graycert.reproduction.sweep import run_sweep
from support.sweep_processes import (
    PATIENCE,
    TWO,
    kill_a_worker,
    kill_all,
    kill_parent,
    logged_sweep,
    running_sweep,
    wait_until,
    workers_of,
)

# one list per start of the sweep; the last kill of each ends its parent
KILLS = (
    (kill_all,),
    (kill_a_worker, kill_parent),
    (kill_a_worker, kill_a_worker, kill_all),
    (kill_a_worker, kill_parent),
    (kill_a_worker, kill_all),
)
FILES = {"sweep.toml", "sweep.lock", "trials.parquet"}
ENDLESS = 2_000
WORKERS = 2


def _runs(folder: Path) -> Counter[str]:
    """Return how often each trial was run to its end, by its x."""
    log = Path(f"{folder}.log")
    return Counter(log.read_text().splitlines() if log.exists() else [])


def _stored(folder: Path) -> dict[str, bytes]:
    """Return the results that are in the store."""
    return {file.name: file.read_bytes() for file in Path(f"{folder}.lab").glob("results/paraboloid/[!.]*.npz")}


def _comparable(table: Path) -> pd.DataFrame:
    return pd.read_parquet(table).drop(columns=["seconds"])


@pytest.mark.deep
@pytest.mark.end_to_end
@pytest.mark.parametrize("sampler", ["random", "nsga2"])
def test_ten_kills_change_nothing(tmp_path: Path, sampler: str) -> None:
    folder = tmp_path / "killed"
    generator = random.Random(11)
    assert sum(map(len, KILLS)) == 10
    kept: list[dict[str, bytes]] = []
    asked: list[list[Any]] = []
    for kills in KILLS:
        with running_sweep(folder, trials=ENDLESS, sampler=sampler) as process:
            for kill in kills:
                if generator.random() < 0.7:  # else while it starts
                    before = _runs(folder).total()
                    wait_until(lambda before=before: _runs(folder).total() > before)
                time.sleep(generator.uniform(0, 0.15))
                assert process.poll() is None
                kill(process)
        kept.append(_stored(folder))
        asked.append(_asked(folder))
    num_trials = len(kept[-1]) + 6
    assert num_trials > 6, "the kills left no trial the time to end; there is nothing to see here"

    done = run_sweep(logged_sweep(folder, trials=num_trials, sampler=sampler), execution=TWO)
    assert done.num_finished == num_trials
    stored, table = _stored(folder), _comparable(done.table)
    for earlier in kept:  # nothing finished was lost, or run again: that would have taken another time
        assert earlier.items() <= stored.items()
    runs = _runs(folder)
    assert set(runs) == {repr(x) for x in table["x"]}
    assert runs.total() <= num_trials + WORKERS * sum(map(len, KILLS))  # no more than what was under way
    if sampler == "random":
        assert {path.name for path in folder.iterdir()} == FILES
        undisturbed = run_sweep(logged_sweep(tmp_path / "calm", trials=num_trials), execution=TWO)
        pd.testing.assert_frame_equal(table, _comparable(undisturbed.table), check_exact=True)
    else:
        assert {path.name for path in folder.iterdir()} == {*FILES, "asked.json"}
        last = _asked(folder)
        for earlier in asked:
            assert last[: len(earlier)] == earlier
        assert [point["params"] for point in last][:num_trials] == table[["x", "y"]].to_dict("records")


def _asked(folder: Path) -> list[Any]:
    """Return the points that the sampler was asked for."""
    file = folder / "asked.json"
    return json.loads(file.read_text()) if file.exists() else []


@pytest.mark.deep
@pytest.mark.end_to_end
def test_an_interruption_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "interrupted"
    with running_sweep(folder, trials=ENDLESS) as process:
        wait_until(lambda: _runs(folder).total() > 3)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.wait(PATIENCE) != 0
    told = Path(f"{folder}.err").read_text()
    assert "logged: 0 of 2000 trials done; 2 workers" in told
    assert "Finished trials are kept: run the same again to go on." in told
    assert told.rstrip().splitlines()[-1].startswith(("KeyboardInterrupt", "Interrupted."))
    of_pool = told.count("Exception in thread ExecutorManagerThread")  # joblib's own, whose queue may close first
    assert told.count("Traceback") - of_pool == 1, "workers hear what is for their parent"
    num_finished = len(pd.read_parquet(folder / "trials.parquet"))
    assert 0 < num_finished <= len(_stored(folder)) <= num_finished + 2  # each worker may have stored one unheard
    done = run_sweep(logged_sweep(folder, trials=num_finished + 2))
    assert done.num_finished >= num_finished + 2


@pytest.mark.end_to_end
def test_one_process_drives_a_sweep_and_a_killed_one_holds_nobody_up(tmp_path: Path) -> None:
    folder = tmp_path / "driven"
    with running_sweep(folder, trials=ENDLESS) as process:
        wait_until(lambda: _runs(folder).total() > 0)
        with pytest.raises(InvalidParameterError, match="another process runs the sweep"):
            run_sweep(logged_sweep(folder, trials=ENDLESS))
        assert process.poll() is None
        workers = workers_of(process)
        assert len(workers) == WORKERS
        kill_parent(process)
        assert not [worker for worker in workers if worker.is_running()]
        num_stored = len(_stored(folder))
        assert run_sweep(logged_sweep(folder, trials=num_stored + 1)).num_finished >= num_stored
