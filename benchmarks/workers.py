"""What two workers gain: one process, two processes and a local Dask cluster of two, one after the other in one run.

Each has one thread per worker and certifies the same targets; starting workers counts. Votes must be equal.
Usage: NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/workers.py [--graph NAME] [--seconds 90] [--workers 2]
"""

import argparse
import time
from typing import Any

import numpy as np
import torch

import graycert

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)


def certified(data: Any, num_estimation: int, **execution: Any) -> tuple[float, graycert.Certificates]:
    """Certify all nodes; return the seconds that it took, too."""
    model = graycert.build_model("gcn", data, skip=False, seed=0)
    begun = time.perf_counter()
    certificates = graycert.certify(
        model,
        data,
        smoothing=SMOOTHING,
        threat=graycert.NodeFeatureThreat(),
        draws=graycert.Draws(num_selection=1_000, num_estimation=num_estimation),
        execution=graycert.Execution(progress=False, say=lambda _: None, **execution),
    )
    return time.perf_counter() - begun, certificates


def num_draws(data: Any, seconds: float) -> int:
    """Return how many draws take about so long."""
    certified(data, 10)  # compiles, or loads what is compiled
    few, many = (certified(data, number)[1].seconds["draws"] for number in (1_000, 5_000))
    return max(1_000, int(seconds * 4_000 / max(many - few, 1e-3)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="wordnet_nouns")
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = graycert.load_graph(options.graph)
    number = num_draws(data, options.seconds)
    size = -(-data.num_nodes // (4 * options.workers))
    print(f"{options.graph}, {data.num_nodes:,} targets, 1,000 + {number:,} draws, blocks of {size:,}", flush=True)
    alone, expected = certified(data, number, block_size=size)
    print(f"one process: {alone:.1f} s", flush=True)
    for backend in ("processes", "dask"):
        taken, found = certified(data, number, block_size=size, backend=backend, workers=options.workers)
        pairs = ((getattr(found, name), getattr(expected, name)) for name in ("estimation_votes", "radius"))
        equal = all(np.array_equal(new, old) for new, old in pairs)
        print(
            f"{backend}, {options.workers} workers: {taken:.1f} s, ratio {alone / taken:.2f}, equal {equal}", flush=True
        )


if __name__ == "__main__":
    main()
