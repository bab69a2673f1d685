"""Seconds from Ctrl-C or SIGTERM until `graycert certify` is gone, by backend and by what it does at the moment.

Each run is a process of its own, interrupted half a second into what is measured: Ctrl-C as a terminal sends it, to all
processes of the run, SIGTERM to the one that was started. With workers, these are at work by then, and what is left of
them is counted: nothing may be. A Dask cluster is one of the run ("dask"), or was there before ("scheduler") and stays.
Usage: python benchmarks/interruptions.py [--graph NAME] [--rounds 1]
"""

import argparse
import functools
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from distributed import LocalCluster

PATIENCE, MOMENT = 600.0, 0.5  # seconds
COMMON = ("--max-radius", "8", "--block-size", "100", "--out", "run", "--targets", "all")
BOUNDS = (*COMMON, "--max-epochs", "5", "--n0", "20", "--n1", "20", "--bound", "auto", "--num-layers", "3")
DRAWS = (*COMMON, "--n0", "20", "--n1", "200000", "--bound", "multiplicative")
WEIGHTS = ("--model", "model.safetensors")

# what is called when a stage begins, in the process that was started, and options with which it takes long
STAGES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "training": ("graycert.cli.training", "train_model", (*COMMON, "--max-epochs", "100000", "--patience", "100000")),
    "workers": ("graycert.blocks.crews", "_cluster", (*DRAWS, *WEIGHTS)),  # which start, or are looked for
    "audit": ("graycert.smoothing.model_check", "examine_model", (*DRAWS, *WEIGHTS)),
    "bounds": ("graycert.smoothing.interception.method", "evaluate_bounds", (*BOUNDS,)),
    "draws": ("graycert.smoothing.interception.method", "choose_engine", (*DRAWS, *WEIGHTS)),
}
BACKENDS: dict[str, tuple[str, ...]] = {
    "threads": ("--backend", "threads"),
    "processes": ("--backend", "processes", "--workers", "2"),
    "dask": ("--backend", "dask", "--workers", "2"),
    "scheduler": ("--backend", "dask", "--scheduler"),  # and its address
}
BLOCKS = ("bounds", "draws")
MEASURED = {  # stages of the process that was started, whatever the backend, once
    "threads": ("training", "audit", *BLOCKS),
    "processes": BLOCKS,
    "dask": ("workers", *BLOCKS),
    "scheduler": ("workers", *BLOCKS),
}
ENDINGS = {"Ctrl-C": (signal.SIGINT, 130), "SIGTERM": (signal.SIGTERM, 143)}


def run_here(stage: str, arguments: list[str]) -> None:
    """Run the command, and leave a file when a stage begins."""
    module, name, _ = STAGES[stage]
    owner = importlib.import_module(module)
    function = getattr(owner, name)

    @functools.wraps(function)
    def noted(*given: Any, **named: Any) -> Any:
        Path("begun").touch()
        return function(*given, **named)

    setattr(owner, name, noted)
    sys.argv = ["graycert", *arguments]
    importlib.import_module("graycert.cli.main").run()


def begun(folder: Path, stage: str, backend: str) -> bool:
    """Return whether a stage has begun; of workers, whether they have finished a block and are at the next ones."""
    here = backend == "threads" or stage == "workers"
    return (folder / "begun").exists() if here else any(folder.glob("run.unfinished/block-*.npz"))


def interrupted(folder: Path, graph: str, stage: str, backend: str, ending: str, address: str) -> tuple[float, int]:
    """Return the seconds that a run takes to be gone, and how many of its processes are left."""
    number, status = ENDINGS[ending]
    work = (*BACKENDS[backend], address) if backend == "scheduler" else BACKENDS[backend]
    arguments = ["certify", "--graph", graph, *STAGES[stage][2], *work]
    command = [sys.executable, str(Path(__file__).absolute()), "--here", stage, *arguments, "--overwrite"]
    for file in (folder / "begun", *folder.glob("run.unfinished/block-*.npz")):
        file.unlink(missing_ok=True)
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True) as process,
    ):
        ends = time.monotonic() + PATIENCE
        while not begun(folder, stage, backend):
            if process.poll() is not None or time.monotonic() > ends:
                os.killpg(process.pid, signal.SIGKILL)
                raise SystemExit(f"{stage} on {backend} was not reached:\n{(folder / 'log').read_text()}")
            time.sleep(0.01)
        time.sleep(MOMENT)
        children = psutil.Process(process.pid).children(recursive=True)
        started = time.perf_counter()
        (os.killpg if ending == "Ctrl-C" else os.kill)(process.pid, number)
        found = process.wait(PATIENCE)
        seconds = time.perf_counter() - started
    _, left = psutil.wait_procs(children, 5)
    for each in left:
        each.kill()
    if found != status:
        raise SystemExit(f"{stage} on {backend} ended with {found}, not {status}:\n{(folder / 'log').read_text()}")
    return seconds, len(left)


def main() -> None:
    """Print a table."""
    if sys.argv[1:2] == ["--here"]:
        run_here(sys.argv[2], sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="wordnet_nouns")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS))
    parser.add_argument("--stages", nargs="+", default=list(STAGES))
    options = parser.parse_args()
    print(f"| {'backend':9} | {'stage':8} | {'signal':7} | seconds | left |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place, LocalCluster(n_workers=2, threads_per_worker=1) as cluster:
        folder = Path(place)
        train = [sys.executable, "-m", "graycert", "train", "--graph", options.graph, "--max-epochs", "5"]
        subprocess.run([*train, "--out", "model.safetensors"], cwd=folder, check=True, capture_output=True)
        for backend in options.backends:
            for stage in options.stages:
                if stage not in MEASURED[backend]:
                    continue
                for ending in ENDINGS:
                    taken = [
                        interrupted(folder, options.graph, stage, backend, ending, cluster.scheduler_address)
                        for _ in range(options.rounds)
                    ]
                    seconds, left = (max(values) for values in zip(*taken, strict=True))
                    print(f"| {backend:9} | {stage:8} | {ending:7} | {seconds:.2f} | {left} |", flush=True)


if __name__ == "__main__":
    main()
