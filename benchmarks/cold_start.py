"""Seconds of commands from a cold process: imports, and everything else by phase.

Every command runs in fresh processes, several times; the fastest is shown. The wall time is that of the command as
people start it, on one processor; all else are seconds of processors, which what else a machine does changes little,
in processes that take their own time. Byte code lies on disk, as it does where graycert is installed. Weights for
`certify` are trained first unless given.
Usage: python benchmarks/cold_start.py [--graph cora_ml] [--model WEIGHTS] [--rounds 3] [--json FILE]
"""

import argparse
import builtins
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

# Where a function of each phase is looked up when it is called; the modules are loaded before the command starts.
PHASES = {
    "load graph": ("graycert.cli.graphs", "load"),
    "load model": ("graycert.cli.models", "choose"),
    "split": ("graycert.cli.graphs", "test_nodes"),
    "check graph": ("graycert.data", "validate_data"),
    "audit": ("graycert.smoothing.model_check", "examine_model"),
    "bounds": ("graycert.smoothing.interception.method", "evaluate_bounds"),
    "engine": ("graycert.sampling.engines", "choose_engine"),
    "foresight": ("graycert.smoothing.fixed_votes", "check_can_certify"),
    "certificates": ("graycert.smoothing.interception.method", "certify_counts"),
    "fingerprint": ("graycert.problem", "describe_graph"),
    "save and report": ("graycert.runs.store", "save_run"),
    "save model": ("graycert.cli.certify", "_keep_model"),
}
HEAVY = ("torch", "torch_geometric", "numba", "scipy", "pandas", "pyarrow", "sympy", "sklearn", "matplotlib", "optuna")
ENGINES = (("graycert.sampling.compiled", "CompiledEngine"), ("graycert.sampling.voting", "VotingEngine"))


class Clock:
    """Adds up the seconds of outermost imports, and per phase those of its calls without the imports inside."""

    def __init__(self) -> None:
        self.imports = 0.0
        self.phases: dict[str, float] = defaultdict(float)
        self._inside = False

    def importing(self, load: Any) -> Any:
        """Return ``load``, timed unless it is called by another import."""

        @functools.wraps(load)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return load(*args, **kwargs)
            self._inside = True
            started = time.process_time()
            try:
                return load(*args, **kwargs)
            finally:
                self.imports += time.process_time() - started
                self._inside = False

        return timed

    def watch(self, phase: str, owner: Any, name: str) -> None:
        """Replace a function by one that adds its seconds to ``phase``."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            started, imports = time.process_time(), self.imports
            try:
                return function(*args, **kwargs)
            finally:
                self.phases[phase] += time.process_time() - started - (self.imports - imports)

        setattr(owner, name, timed)


def run_here(arguments: list[str]) -> None:
    """Run a command in this process and print its times as the last line of standard error."""
    clock = Clock()
    builtins.__import__ = clock.importing(builtins.__import__)
    importlib.import_module = clock.importing(importlib.import_module)
    command = importlib.import_module("graycert.cli.main")
    command.delay(*command.SELDOM_USED)  # before the modules below load them
    if arguments[0] == "certify":
        for phase, (module, name) in PHASES.items():
            clock.watch(phase, importlib.import_module(module), name)
        for module, name in ENGINES:
            clock.watch("sampling", getattr(importlib.import_module(module), name), "votes")
    status = command.main(arguments)
    total = time.process_time()
    modules = [name for name in HEAVY if name in sys.modules]
    clock.phases["rest"] = total - clock.imports - sum(clock.phases.values())
    record = {"total": total, "imports": clock.imports, "phases": clock.phases, "modules": modules}
    print("\n" + json.dumps(record), file=sys.stderr)
    sys.exit(status)


def run_cold(arguments: list[str], rounds: int) -> dict[str, Any]:
    """Return the record of the fastest of ``rounds`` fresh processes, and the wall time of the fastest plain ones."""
    records, walls = [], []
    for _ in range(rounds):
        done = _finished([str(Path(__file__)), "--here", *arguments])
        started = time.perf_counter()
        _finished(["-m", "graycert", *arguments])
        walls.append(time.perf_counter() - started)
        records.append(json.loads(done.stderr.splitlines()[-1]))
    fastest = min(records, key=lambda record: record["total"] - record["imports"])
    return {**fastest, "wall": min(walls), "command": arguments}


def _finished(program: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run Python on one processor, with byte code on disk."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    one = min(os.sched_getaffinity(0))
    done = subprocess.run(
        [sys.executable, *program],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, {one}),
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(program)} failed:\n{done.stderr}")
    return done


def main() -> None:
    """Print one line per command, and the phases of `certify`."""
    if sys.argv[1:2] == ["--here"]:
        run_here(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="cora_ml")
    parser.add_argument("--model", help="weights; default: a GAT trained for 30 epochs")
    parser.add_argument("--n0", default="1000")
    parser.add_argument("--n1", default="3000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the records to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        weights, run = options.model or f"{folder}/model.safetensors", f"{folder}/run"
        graph = ["--graph", options.graph]
        if options.model is None:
            run_cold(
                ["train", *graph, "--max-epochs", "30", "--learning-rate", "0.01", "--out", weights, "--overwrite"], 1
            )
        certify = ["certify", *graph, "--model", weights, "--n0", options.n0, "--n1", options.n1]
        certify += ["--out", run, "--overwrite"]
        run_cold(certify, 1)  # compiles what is not in the kernel cache
        commands = [certify, ["--help"], ["datasets"], ["report", run], ["inspect", run]]
        commands += [["bounds", *graph], ["verify", run]]
        records = [run_cold(command, options.rounds) for command in commands]
    drawing = records[0]["phases"]["sampling"]
    print(f"certify from start to end, without its draws: {records[0]['wall'] - drawing:.2f} s")
    print(f"{'command':10} {'wall':>8} {'CPU':>8} {'imports':>8} {'besides':>8}   modules")
    for record in records:
        besides = record["total"] - record["imports"]
        times = " ".join(f"{each:7.2f}s" for each in (record["wall"], record["total"], record["imports"], besides))
        print(f"{record['command'][0]:10} {times}   {', '.join(record['modules'])}")
    print("\ncertify, besides imports:")
    for phase, seconds in records[0]["phases"].items():
        print(f"  {phase:16} {1e3 * seconds:8.1f} ms")
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
