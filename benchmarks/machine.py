"""What the numbers were measured on. Usage: python benchmarks/machine.py [--json FILE]."""

import argparse
import json
import os
import platform
import resource
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "torch_geometric", "numba", "numpy", "scipy")


def describe() -> dict[str, Any]:
    """Return processor, memory, versions, the load, and the speed of a matrix product on one thread."""
    return {
        "what": "machine",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
        "load": os.getloadavg()[0],
        "multiply_adds_per_second": multiply_adds_per_second(),
    }


def multiply_adds_per_second(size: int = 768, rounds: int = 15) -> float:
    """Return the best of some products of square float32 matrices on one thread."""
    import torch

    torch.set_num_threads(1)
    left, right = torch.ones(size, size), torch.ones(size, size)
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        left @ right
        seconds.append(time.perf_counter() - started)
    return size**3 / min(seconds)


def peak_mib() -> float:
    """Return the peak memory of this process; Linux's ru_maxrss would begin with the peak of the parent."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS counts bytes


def _processor() -> str:
    """Return the name of the processor, or of its architecture."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def main() -> None:
    """Print the description and write it as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the record to this file")
    options = parser.parse_args()
    record = describe()
    print(", ".join(f"{key} {value}" for key, value in record.items()))
    if options.json:
        options.json.write_text(json.dumps([record], indent=1) + "\n")


if __name__ == "__main__":
    main()
