"""How time and memory of sampling grow: samples, edges, targets, layers, width, graphs.

One thread, one process, best of some rounds; memory is the peak of a process of its own. With `--large` instead: every
node of the largest graph certified from the command line on two threads.
Usage: python benchmarks/growth.py [--graph cora_ml] [--rounds 3] [--quick] [--large] [--json FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graycert
from graycert.sampling import Purpose, choose_engine
from machine import peak_mib

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
SHARES = (0.125, 0.25, 0.5, 1.0)
NUM_SAMPLES = {"compiled": (100, 300, 1_000, 3_000, 10_000), "torch": (10, 30, 100, 300)}
MEMORY_SAMPLES = {"compiled": (1_000, 100_000), "torch": (100, 1_000)}
GRAPHS = ("cora_ml", "citeseer", "wordnet_nouns", "pubmed_partial", "dblp", "amazon_electronics_photo")
LARGE = "wordnet30_synsets"
ARCHITECTURES = ("gcn", "gat", "gatv2", "sma")
Record = dict[str, Any]

STARTED = time.perf_counter()


def build(architecture: str, data: Any, targets: np.ndarray, *, engine: str = "compiled", **options: Any) -> Any:
    """Return an engine for an untrained model with skip connection."""
    model = graycert.build_model(architecture, data, skip=True, seed=0, **options).eval()
    num_layers = model.num_layers
    return choose_engine(model, data, targets, smoothing=SMOOTHING, num_layers=num_layers, engine=engine)


def seconds(engine: Any, num_samples: int, rounds: int) -> float:
    """Return the best wall time."""
    engine.votes(0, Purpose.ESTIMATION, num_samples=min(num_samples, 32))  # warms up
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        engine.votes(0, Purpose.ESTIMATION, num_samples=num_samples)
        best = min(best, time.perf_counter() - started)
    return best


def per_sample(engine: Any, rounds: int, *, about: float = 0.15) -> float:
    """Return milliseconds per sample, from as many samples as take ``about`` some seconds."""
    once = seconds(engine, 64, 1) / 64
    number = max(64, int(about / once) // 64 * 64)
    return 1e3 * seconds(engine, number, rounds) / number


def measurements(options: argparse.Namespace) -> Iterator[Record]:
    """Yield all records."""
    if options.large:
        yield {"what": "large", "graph": LARGE, "model": "gat"} | large_run(num_samples=10 if options.quick else 1_000)
        return
    data = graycert.load_graph(options.graph)
    test = graycert.inductive_split(data, seed=42).test.nodes.numpy()
    everyone = np.arange(data.num_nodes)
    rounds, base = options.rounds, {"graph": options.graph}
    for engine, numbers in NUM_SAMPLES.items():
        made = build("gat", data, test, engine=engine)
        for number in numbers:
            taken = seconds(made, number, rounds)
            yield base | {"what": "samples", "model": "gat", "engine": engine, "samples": number, "seconds": taken}
    for architecture in ARCHITECTURES[:2] if options.quick else ARCHITECTURES:
        about = base | {"model": architecture}
        for share in SHARES:
            part = thinned(data, share)
            taken = per_sample(build(architecture, part, everyone), rounds)
            yield about | {"what": "edges", "edges": part.edge_index.size(1), "ms": taken}
        for number in (10, 30, 100, 300, 1_000, data.num_nodes):
            targets = np.random.default_rng(0).permutation(data.num_nodes)[:number]
            taken = per_sample(build(architecture, data, targets), rounds)
            yield about | {"what": "targets", "targets": number, "ms": taken}
        for num_layers in (1, 2, 3, 4):
            taken = per_sample(build(architecture, data, test, num_layers=num_layers), rounds)
            yield about | {"what": "layers", "layers": num_layers, "ms": taken}
        for width in (16, 32, 64, 128, 256, 512):
            hidden = width // 8 if architecture.startswith("gat") else width
            taken = per_sample(build(architecture, data, test, hidden_channels=hidden), rounds)
            yield about | {"what": "width", "width": width, "ms": taken}
    for name in GRAPHS[:3] if options.quick else (*GRAPHS, LARGE):
        other = graycert.load_graph(name)
        sizes = {"graph": name, "nodes": other.num_nodes, "edges": other.edge_index.size(1)}
        for architecture in ARCHITECTURES[:2]:
            taken = per_sample(build(architecture, other, np.arange(other.num_nodes)), rounds)
            yield {"what": "graph", **sizes, "model": architecture, "ms": taken}
    for engine, numbers in MEMORY_SAMPLES.items():
        for number in numbers:
            number = number // 10 if options.quick else number
            yield base | {"what": "memory", "model": "gat", "engine": engine} | peak_of(options.graph, engine, number)


def thinned(data: Any, share: float) -> Any:
    """Return the graph with all nodes and a share of its undirected edges."""
    source, target = data.edge_index
    edges = data.edge_index[:, source < target]
    order = torch.from_numpy(np.random.default_rng(0).permutation(edges.size(1))[: int(share * edges.size(1))])
    kept = edges[:, order]
    part = data.clone()
    part.edge_index = torch.cat([kept, kept.flip(0)], dim=1)
    return part


def peak_of(graph: str, engine: str, num_samples: int) -> Record:
    """Return the peak memory of a process that draws ``num_samples``."""
    return _in_process("--peak", graph, engine, str(num_samples))


def peak_here(graph: str, engine: str, num_samples: int) -> Record:
    """Draw samples here, and return the peak before the first and after the last."""
    torch.set_num_threads(1)
    data = graycert.load_graph(graph)
    made = build("gat", data, graycert.inductive_split(data, seed=42).test.nodes.numpy(), engine=engine)
    made.votes(0, Purpose.ESTIMATION, num_samples=1)
    before = peak_mib()
    taken = seconds(made, num_samples, 1)
    return {"samples": num_samples, "seconds": taken, "before_mib": before, "peak_mib": peak_mib()}


def large_run(num_samples: int) -> Record:
    """Certify every node of the largest graph: bounds and twice ``num_samples``, two layers, two threads."""
    with tempfile.TemporaryDirectory() as folder:
        graph, weights = ["--graph", LARGE, "--quiet"], f"{folder}/model.safetensors"
        _in_process("--command", "train", *graph, "--model", "gat", "--max-epochs", "3", "--out", weights)
        certify = ["certify", *graph, "--model", weights, "--targets", "all", "--out", f"{folder}/run"]
        done = _in_process("--command", *certify, "--n0", str(num_samples), "--n1", str(num_samples))
    data = graycert.load_graph(LARGE)
    sizes = {"nodes": data.num_nodes, "edges": data.edge_index.size(1)}
    return sizes | {"samples": 2 * num_samples, "threads": 2} | done


def command_here(arguments: list[str]) -> Record:
    """Run a command of graycert in this process, imports included."""
    from graycert.cli.main import main as run

    torch.set_num_threads(2)
    status = run(arguments)
    if status:
        raise SystemExit(f"graycert {' '.join(arguments)} failed with status {status}")
    return {"seconds": time.perf_counter() - STARTED, "peak_mib": peak_mib()}


def _in_process(*arguments: str) -> Record:
    """Return what this file prints last when it is called with ``arguments``."""
    done = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    found: Record = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a line per measurement and write them all as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="cora_ml")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, two architectures, small graphs, few samples")
    parser.add_argument("--large", action="store_true", help=f"only certify every node of {LARGE}: minutes")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    if options.quick:
        options.rounds = 1
    torch.set_num_threads(1)
    records = []
    for record in measurements(options):
        print(", ".join(f"{key} {shown(value)}" for key, value in record.items()), flush=True)
        records.append(record)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


def shown(value: Any) -> str:
    """Return a value for people."""
    if isinstance(value, str):
        return value
    return f"{value:.3g}" if isinstance(value, float) and value < 1000 else f"{value:,.0f}"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--peak", graph, engine, number]:
            print(json.dumps(peak_here(graph, engine, int(number))))
        case ["--command", *arguments]:
            print(json.dumps(command_here(arguments)))
        case _:
            main()
