"""Ctrl-C and SIGTERM while a run is deep in compiled code, or its workers are: it leaves, and the command goes on."""

import signal
from pathlib import Path

import pytest

from support.block_processes import PATIENCE, blocks_in, wait_for, workers_of
from support.interrupted_commands import interrupted, started

pytestmark = pytest.mark.processes

MOST = 20.0  # seconds on a machine that does other things; alone it takes less than one
RESULTS = ("certificates.parquet", "votes.npz", "summary.json")
FEW = ("--num-selection", "20", "--num-estimation", "20")
ENDINGS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def assert_left_in_time(folder: Path, seconds: float) -> None:
    assert seconds < MOST
    kept = len(blocks_in(folder / "run.unfinished"))
    assert kept
    told = f"Kept in run.unfinished: {kept} finished blocks and the trained model. The same command with --out run goes"
    assert told in (folder / "log").read_text()
    assert not (folder / "run").exists()


@pytest.mark.parametrize("number", list(ENDINGS), ids=lambda each: each.name)
@pytest.mark.parametrize("stage", ["bounds", "draws"])
def test_in_compiled_code(tmp_path: Path, stage: str, number: signal.Signals) -> None:
    process = started(tmp_path, stage, *FEW)
    wait_for(lambda: (tmp_path / "there").exists(), process)
    seconds = interrupted(process, number)
    assert process.exitcode == ENDINGS[number]
    assert_left_in_time(tmp_path, seconds)
    kept = blocks_in(tmp_path / "run.unfinished")
    assert len(kept) == 1
    for folder in (tmp_path, tmp_path / "calm"):
        last = started(folder, "", *FEW)
        last.join(PATIENCE)
        assert last.exitcode == 0
    for name in RESULTS:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "calm" / "run" / name).read_bytes()


@pytest.mark.parametrize(("backend", "number"), [("processes", signal.SIGINT), ("dask", signal.SIGTERM)])
def test_with_workers(tmp_path: Path, backend: str, number: signal.Signals) -> None:
    if backend == "dask":
        pytest.importorskip("distributed")
    many = ("--num-selection", "1000", "--num-estimation", "200000")
    process = started(tmp_path, "", *many, "--backend", backend, "--workers", "2")
    wait_for(lambda: bool(blocks_in(tmp_path / "run.unfinished")), process)
    assert len(workers_of(process)) == 2
    seconds = interrupted(process, number)
    assert process.exitcode == ENDINGS[number]
    assert_left_in_time(tmp_path, seconds)
