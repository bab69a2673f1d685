"""Table 1 of Appendix J: the share of nodes whose label probabilities can be computed instead of estimated.

Two layers, all nodes, at most 100,000 kept sets (the paper's criterion) or evaluations of the model (ours).
Usage: python benchmarks/derandomization.py [--graph cora_ml] [--graph citeseer] [--json FILE]
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

import graycert
from graycert.graph import as_adjacency
from graycert.smoothing.retention.derandomized_share import derandomized_share
from graycert.smoothing.retention.parameters import UniformRetention

KEPT = (0.01, 0.03, 0.1, 0.3)


def main() -> None:
    """Print a line per graph and share of kept nodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", action="append", help="name, repeatable; default cora_ml and citeseer")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    records = []
    print(f"{'graph':10} {'k_rel':>6} {'kept sets':>10} {'distinct':>9} {'evaluations':>12} {'seconds':>8} {'load':>5}")
    for name in options.graph or ["cora_ml", "citeseer"]:
        adjacency = as_adjacency(graycert.load_graph(name))
        nodes = np.arange(adjacency.num_nodes)
        for kept in KEPT:
            wall, cpu = time.perf_counter(), time.process_time()
            row = derandomized_share(adjacency, nodes, smoothing=UniformRetention(keep_ratio=kept), num_layers=2)
            record = {
                "graph": name,
                "keep_ratio": kept,
                "by_kept_sets": row.by_kept_sets,
                "mean_distinct": row.mean_distinct,
                "by_representatives": row.by_representatives,
                "seconds": time.perf_counter() - wall,
                "cpu_seconds": time.process_time() - cpu,
                "load": os.getloadavg()[0],
            }
            records.append(record)
            print(
                f"{name:10} {kept:6.2f} {row.by_kept_sets:10.4f} {row.mean_distinct:9.4f} "
                f"{row.by_representatives:12.4f} {record['seconds']:8.1f} {record['load']:5.1f}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
