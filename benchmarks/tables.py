"""How long tables take to become a graph, and how much memory: as a ratio to the bytes of the files.

A node table with text ids, features and labels, and an edge table, by default of as many rows. A quarter of the rows is
loaded as well, so that growth can be seen: time and memory are to grow as the rows do.
Usage: python benchmarks/tables.py [--rows 1000000] [--nodes 200000] [--features 8] [--rounds 1] [--json FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

LOADING = """
import resource, sys, time
import graycert, torch
import graycert.data.load
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
wall, cpu = time.perf_counter(), time.process_time()
data = graycert.load_graph(sys.argv[1], nodes=sys.argv[2])
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(wall, cpu, (after - before) * 1024, data.num_nodes)
"""


def write_tables(folder: Path, *, rows: int, num_nodes: int, features: int) -> tuple[Path, Path]:
    """Write an edge table and a node table of so many rows."""
    generator = np.random.default_rng(0)
    names = "acc" + pd.Series(np.arange(num_nodes)).astype(str)
    numbers = generator.normal(size=(num_nodes, features)).round(4)
    nodes = pd.DataFrame(numbers, columns=[f"f{i}" for i in range(features)])
    nodes.insert(0, "id", names)
    nodes.insert(1, "label", np.where(np.arange(num_nodes) % 7, "ok", "fraud"))
    ends = generator.integers(0, num_nodes, (2, rows))
    edges = pd.DataFrame({"payer": names.to_numpy()[ends[0]], "payee": names.to_numpy()[ends[1]], "amount": 1.5})
    edges.to_csv(folder / "edges.csv", index=False)
    nodes.to_csv(folder / "nodes.csv", index=False)
    return folder / "edges.csv", folder / "nodes.csv"


def measure(*, rows: int, num_nodes: int, features: int, rounds: int) -> dict[str, Any]:
    """Return the best time of some rounds and the memory taken, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_tables(Path(folder), rows=rows, num_nodes=num_nodes, features=features)
        size = sum(path.stat().st_size for path in paths)
        found = []
        for _ in range(rounds):
            command = [sys.executable, "-c", LOADING, *map(str, paths)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append([float(word) for word in done.stdout.split()])
    wall, cpu, memory, _ = min(found)
    return {
        "what": "tables",
        "rows": rows,
        "nodes": num_nodes,
        "features": features,
        "file_mb": size / 1e6,
        "seconds": wall,
        "cpu_seconds": cpu,
        "memory_mb": memory / 1e6,
        "memory_to_files": memory / size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    started = time.perf_counter()
    records = []
    num_nodes = options.rows if options.nodes is None else options.nodes
    for part in (4, 1):
        rows, nodes = options.rows // part, num_nodes // part
        record = measure(rows=rows, num_nodes=nodes, features=options.features, rounds=options.rounds)
        records.append(record)
        times = f"{record['seconds']:.2f} s ({record['cpu_seconds']:.2f} s of processor)"
        memory = f"{record['memory_mb']:.0f} MB of memory, {record['memory_to_files']:.1f} times the files"
        print(f"{rows:,} edges and {nodes:,} nodes, {record['file_mb']:.0f} MB: {times}, {memory}")
    print(f"four times the rows: {records[1]['cpu_seconds'] / records[0]['cpu_seconds']:.1f} times the processor time")
    print(f"in all {time.perf_counter() - started:.0f} s")
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
