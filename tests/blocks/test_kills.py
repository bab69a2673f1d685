"""Killed at any moment, a certification goes on: equal bytes at the end, and no finished block computed twice."""

import random
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil
import pytest

from support.block_processes import NUM_TARGETS, PATIENCE, blocks_in, certified, running, wait_for, workers_of

pytestmark = pytest.mark.processes

KILLS = 10
RESULTS = ("certificates.parquet", "votes.npz", "summary.json")


@cache
def undisturbed() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        return results(certified().save(Path(folder) / "run"))


def results(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in RESULTS}


def assert_kept(before: dict[str, tuple[int, int]], folder: Path) -> dict[str, tuple[int, int]]:
    """Check that no block that was finished has been written again."""
    now = blocks_in(folder)
    assert before.items() <= now.items()
    return now


def assert_goes_on_to_its_end(folder: Path, kept: dict[str, tuple[int, int]]) -> None:
    assert len(kept) < NUM_TARGETS, "it was finished before it was killed"
    with running(folder) as process:
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert_kept(kept, folder)
    assert results(Path(f"{folder}.run")) == undisturbed()


def test_the_driver_is_killed_at_ten_random_moments(tmp_path: Path) -> None:
    moments, folder = random.Random(13), tmp_path / "run"
    kept: dict[str, tuple[int, int]] = {}
    for number in range(KILLS):
        awaited = len(kept) + number % 2  # half of the time before, or while, the first block is written
        with running(folder) as process:
            wait_for(lambda least=awaited: len(blocks_in(folder)) >= least and folder.exists(), process)
            time.sleep(moments.random() / 10)
            process.kill()
        kept = assert_kept(kept, folder)
    assert_goes_on_to_its_end(folder, kept)


def test_workers_are_killed_at_ten_random_moments(tmp_path: Path) -> None:
    moments, folder = random.Random(5), tmp_path / "run"
    kept: dict[str, tuple[int, int]] = {}
    with running(folder, backend="processes", workers=2) as process:
        for _ in range(KILLS):
            had = len(kept)
            wait_for(lambda had=had: len(blocks_in(folder)) > had and bool(workers_of(process)), process)
            time.sleep(moments.random() / 100)
            kept = assert_kept(kept, folder)
            with suppress(IndexError, psutil.NoSuchProcess):
                moments.choice(workers_of(process)).kill()
        assert len(kept) < NUM_TARGETS, "it was finished before it was killed"
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert_kept(kept, folder)
    assert results(Path(f"{folder}.run")) == undisturbed()
