"""Killed at any moment, a certification goes on: equal bytes at the end, and no finished block computed twice."""

import random
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from graycert._archives import read_archive
from support.block_processes import (
    NUM_TARGETS,
    PATIENCE,
    Written,
    a_cluster,
    assert_goes_on_to_its_end,
    assert_kept,
    blocks_in,
    kill,
    results,
    running,
    undisturbed,
    wait_for,
    wait_for_blocks,
    workers_of,
)

pytestmark = pytest.mark.processes

KILLS = 10
FEW_KILLS = 4
MANY = {"num_estimation": 20_000}  # so that results of a cluster do not wait for the disk


def drivers_are_killed(folder: Path, *, seed: int, **execution: object) -> Written:
    """Kill one driver after the other, half of them before, or while, their first block is written."""
    moments, kept = random.Random(seed), Written()
    for number in range(KILLS):
        with running(folder, **execution) as process:
            wait_for_blocks(folder, len(kept) + number % 2, process)
            time.sleep(moments.random() / 10)
            kill(process)
        kept = assert_kept(kept, folder)
    return kept


@pytest.mark.parametrize("execution", [{}, {"backend": "processes", "workers": 2}], ids=["threads", "processes"])
def test_the_driver_is_killed_at_ten_random_moments(tmp_path: Path, execution: dict[str, object]) -> None:
    kept = drivers_are_killed(tmp_path / "run", seed=13, **execution)
    assert_goes_on_to_its_end(tmp_path / "run", kept)


@pytest.mark.parametrize("execution", [{}, {"backend": "processes", "workers": 2}], ids=["threads", "processes"])
def test_a_driver_that_is_killed_while_it_draws_goes_on_after_the_votes_that_are_kept(
    tmp_path: Path, execution: dict[str, object]
) -> None:
    folder, moments, done = tmp_path / "run", random.Random(2), {}
    blocks = {"block_size": NUM_TARGETS // 2, "num_estimation": 1_000_000}

    def draws_kept() -> dict[str, int]:
        found = {file.name: read_archive(file)[0]["done"] for file in folder.glob("votes-*.npz")}
        return {name: sum(kept.values()) for name, kept in found.items()}

    for _ in range(FEW_KILLS):
        with running(folder, every=0.05, **blocks, **execution) as process:
            wait_for(
                lambda before=done: any(draws_kept().get(name, 0) > before.get(name, 0) for name in draws_kept()),
                process,
            )
            time.sleep(moments.random() / 20)
            kill(process)
        assert not blocks_in(folder), "a block was finished before it was killed"
        now = draws_kept()
        assert all(now[name] >= number for name, number in done.items()), "votes that were kept are lost"
        done = now
    with running(folder, **blocks, **execution) as process:
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert results(Path(f"{folder}.run")) == undisturbed(1_000_000, block_size=NUM_TARGETS // 2)


def test_workers_are_killed_at_ten_random_moments(tmp_path: Path) -> None:
    moments, folder, kept = random.Random(5), tmp_path / "run", Written()
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


def test_drivers_of_a_cluster_are_killed_at_ten_random_moments(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with a_cluster() as cluster:
        execution = {"backend": "dask", "scheduler": cluster.address, **MANY}
        kept = drivers_are_killed(tmp_path / "run", seed=3, **execution)
        assert_goes_on_to_its_end(tmp_path / "run", kept, **execution)


def test_workers_of_a_cluster_are_killed_at_ten_random_moments(tmp_path: Path) -> None:
    """Every other time all of them, so that nobody holds the problem any more."""
    pytest.importorskip("distributed")
    moments, folder, kept = random.Random(8), tmp_path / "run", Written()
    with a_cluster() as cluster, running(folder, backend="dask", scheduler=cluster.address, **MANY) as process:
        for number in range(KILLS):
            wait_for_blocks(folder, len(kept) + 1, process)
            time.sleep(moments.random() / 10)
            kept = assert_kept(kept, folder)
            cluster.kill(cluster.workers[number % 2 :])
            cluster.hire()
        assert len(kept) < NUM_TARGETS, "it was finished before it was killed"
        process.join(PATIENCE)
        assert process.exitcode == 0, Path(f"{folder}.log").read_text()
    assert_kept(kept, folder)
    assert results(Path(f"{folder}.run")) == undisturbed(**MANY)


def test_a_lost_scheduler_is_told_and_loses_nothing(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    folder = tmp_path / "run"
    with a_cluster() as cluster, running(folder, backend="dask", scheduler=cluster.address, **MANY) as process:
        wait_for_blocks(folder, 1, process)
        cluster.scheduler.kill()
        process.join(PATIENCE)
        assert process.exitcode == 1
    assert "the connection to the scheduler is lost. Finished blocks are kept" in Path(f"{folder}.log").read_text()
    assert_goes_on_to_its_end(folder, blocks_in(folder), **MANY)
