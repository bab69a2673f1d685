"""Cost of arrival records: time and bytes per sample and target.

All samples of every target, and only a share of them (as those that miss the majority class), for the test nodes and
for all nodes. Usage: python benchmarks/arrivals.py [--graph cora_ml] [--threads 1] [--json FILE]
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import graycert
from graycert.graph import as_adjacency
from graycert.sampling import Purpose
from graycert.sampling.arrivals import ArrivalRecorder


def measure(
    recorder: ArrivalRecorder, targets: NDArray[np.int64], num_samples: int, share: float, rounds: int
) -> dict[str, Any]:
    """Return the best time of some rounds and the bytes of the records."""
    wanted = np.random.default_rng(0).random((targets.size, num_samples)) < share
    best = np.inf
    for _ in range(rounds):
        started = time.perf_counter()
        records = recorder.record(0, Purpose.ESTIMATION, targets, samples=np.arange(num_samples), wanted=wanted)
        best = min(best, time.perf_counter() - started)
    num_recorded = int(wanted.sum())
    return {
        "num_layers": recorder.num_layers,
        "num_targets": int(targets.size),
        "num_samples": num_samples,
        "share": share,
        "mean_eligible": float(np.diff(records.indptr).mean()),
        "seconds": best,
        "microseconds_per_sample": 1e6 * best / num_samples,
        "microseconds_per_sample_and_target": 1e6 * best / num_samples / targets.size,
        "bytes": int(records.words.nbytes),
        "bytes_per_record": records.words.nbytes / num_recorded,
    }


def main() -> None:
    """Print one line per depth, set of targets and share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="cora_ml")
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = graycert.load_graph(options.graph)
    test = graycert.inductive_split(data, seed=42).test.nodes.numpy()
    found = []
    print(f"{options.graph}, {options.samples:,} samples, {options.threads} thread(s)")
    print(
        f"{'layers':>6} {'targets':>8} {'eligible':>9} {'share':>6} {'seconds':>8} {'us/sample':>10} "
        f"{'us/sample/target':>17} {'MiB':>7} {'bytes/record':>13}"
    )
    for num_layers in (2, 3):
        recorder = ArrivalRecorder(
            adjacency=as_adjacency(data),
            smoothing=graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794),
            threat=graycert.NodeFeatureThreat(min_distance=1),
            num_layers=num_layers,
        )
        measure(recorder, test, 512, 1.0, 1)  # compiles
        for targets in (test, np.arange(data.num_nodes)):
            for share in (1.0, 0.15):
                row = measure(recorder, targets, options.samples, share, options.rounds)
                found.append(row)
                print(
                    f"{num_layers:6} {targets.size:8,} {row['mean_eligible']:9.1f} {share:6.2f} {row['seconds']:8.3f} "
                    f"{row['microseconds_per_sample']:10.1f} {row['microseconds_per_sample_and_target']:17.4f} "
                    f"{row['bytes'] / 2**20:7.1f} {row['bytes_per_record']:13.1f}",
                    flush=True,
                )
    if options.json:
        options.json.write_text(
            json.dumps({"graph": options.graph, "threads": options.threads, "rows": found}, indent=2)
        )


if __name__ == "__main__":
    main()
