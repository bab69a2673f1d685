"""Milliseconds per sample: the textbook loop, the plain engine and the compiled one, alternating in one process.

The textbook loop runs, per sample, one full-graph PyTorch Geometric forward pass on masked features (two with skip
connection), without gradients. All three use the same masks; their votes are compared before they are timed. GCN and
GraphConv with and without edge weights alternate, too; of their processor times the least counts.
Usage: python benchmarks/sampling.py [--graph cora_ml] [--rounds 5] [--quick] [--json FILE]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import one_hot
from torch_geometric.nn import GCNConv, GraphConv

import graycert
from graycert.models import InterceptionGNN
from graycert.sampling import CoinStream, InterceptionSampler, Purpose, ablate, choose_engine
from graycert.sampling.kernels.draws import LANES
from graycert.sampling.layered_field import layered_field

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
ARCHITECTURES = ("gcn", "gat", "gatv2", "sma")
ENGINES = ("torch", "compiled")
SAMPLES = {"textbook": 5, "torch": 64, "compiled": 2_000}  # per round
COMPARED = 8  # samples whose votes are compared
Record = dict[str, Any]


def textbook_loop(model: InterceptionGNN, data: Any, targets: torch.Tensor, num_samples: int) -> torch.Tensor:
    """Return votes (num_targets, num_classes) of one full forward pass per sample, two with skip connection."""
    stream = CoinStream(0, Purpose.ESTIMATION)
    sampler = InterceptionSampler.of_graph(SMOOTHING, stream, data.edge_index, num_nodes=data.num_nodes)
    votes = torch.tensor(0)
    with torch.no_grad():
        for sample in range(num_samples):
            draw = sampler.draw(torch.tensor([sample]))
            scores = model(ablate(data.x, model.ablation_token, draw.ablated[0]), data.edge_index[:, draw.kept[0]])
            if model.skip:
                scores = scores + model.skip_logits(data.x)
            votes = votes + one_hot(scores[targets].argmax(dim=1), scores.size(1))
    return votes


def build(model: InterceptionGNN, data: Any, targets: torch.Tensor, engine: str) -> Any:
    """Return an engine."""
    made = choose_engine(model, data, targets.numpy(), smoothing=SMOOTHING, num_layers=model.num_layers, engine=engine)
    made.votes(0, Purpose.ESTIMATION, num_samples=32)  # warms up
    return made


def drawing(engine: Any) -> Callable[[int], Any]:
    """Return a function that draws so many samples."""
    return lambda number: engine.votes(0, Purpose.ESTIMATION, num_samples=number)


def milliseconds(run: Callable[[int], object], num_samples: int) -> float:
    """Return wall milliseconds per sample."""
    started = time.perf_counter()
    run(num_samples)
    return 1e3 * (time.perf_counter() - started) / num_samples


def compare(model: InterceptionGNN, data: Any, targets: torch.Tensor, rounds: int) -> Record:
    """Return median milliseconds per sample of the loop and both engines, and how many votes differ."""
    runs: dict[str, Callable[[int], Any]] = {"textbook": lambda number: textbook_loop(model, data, targets, number)}
    for name in ENGINES:
        runs[name] = drawing(build(model, data, targets, name))
    votes = {name: torch.as_tensor(run(COMPARED)) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(milliseconds(run, SAMPLES[name]))
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {
        "what": "engines",
        **{f"{name}_ms": medians[name] for name in runs},
        **{f"{name}_ratio": medians["textbook"] / medians[name] for name in ENGINES},
        **{f"{name}_samples_per_second": 1e3 / medians[name] for name in runs},
        "compared_votes": COMPARED * targets.numel(),
        **{f"{name}_differing": int((votes[name] - votes["textbook"]).abs().sum()) // 2 for name in ENGINES},
    }


def scale(model: InterceptionGNN, data: Any, targets: torch.Tensor, engine: str, rounds: int) -> Record:
    """Return median milliseconds per sample of an engine on one thread and on two, alternating."""
    made = build(model, data, targets, engine)
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for threads, found in times.items():
            torch.set_num_threads(threads)
            found.append(
                milliseconds(lambda number: made.votes(0, Purpose.ESTIMATION, num_samples=number), SAMPLES[engine])
            )
    torch.set_num_threads(1)
    one, two = (statistics.median(found) for found in times.values())
    return {"what": "threads", "engine": engine, "one_ms": one, "two_ms": two, "ratio": one / two, "load": load()}


def load() -> float:
    """Return how many processes wanted a core in the last minute, this one included."""
    return os.getloadavg()[0]


class TwoLayers(torch.nn.Module):
    """Two convolutions of PyTorch Geometric that take edge weights."""

    def __init__(self, make: Callable[[int, int], Any], num_features: int, num_classes: int) -> None:
        super().__init__()
        self.first, self.second = make(num_features, 64), make(64, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_weight: torch.Tensor | None = None) -> Any:
        """Return class scores."""
        hidden = self.first(x, edge_index, edge_weight).relu()
        return self.second(hidden, edge_index, edge_weight)


WEIGHTED: dict[str, Callable[[int, int], Any]] = {
    "GCN": GCNConv,
    "GraphConv, sum": GraphConv,
    "GraphConv, mean": lambda width, width_out: GraphConv(width, width_out, aggr="mean"),
}


def weigh(name: str, data: Any, targets: torch.Tensor, rounds: int) -> Record:
    """Return the least milliseconds of processor time per sample without and with edge weights, alternating."""
    torch.manual_seed(0)
    valued = data.clone()
    valued.edge_weight = 0.1 + torch.rand(data.num_edges)
    model = TwoLayers(WEIGHTED[name], data.num_features, int(data.y.max()) + 1).eval()
    runs = {}
    for names in ((), ("edge_weight",)):
        engine = choose_engine(
            model, valued, targets.numpy(), smoothing=SMOOTHING, num_layers=2, edge_inputs=names, engine="compiled"
        )
        engine.votes(0, Purpose.ESTIMATION, num_samples=32)
        runs[len(names)] = drawing(engine)
    times: dict[int, list[float]] = {number: [] for number in runs}
    for _ in range(rounds):
        for number, run in runs.items():
            started = time.process_time()
            run(SAMPLES["compiled"])
            times[number].append(1e3 * (time.process_time() - started) / SAMPLES["compiled"])
    without, given = (min(found) for found in times.values())
    return {"what": "weights", "without_ms": without, "with_ms": given, "ratio": given / without}


def floor(model: InterceptionGNN, data: Any, targets: torch.Tensor) -> Record:
    """Return what one sample of a two-layer GCN or GAT with 64 hidden columns cannot do without."""
    engine = build(model, data, targets, "compiled")
    field = layered_field(engine.graph, engine.targets, num_layers=2)
    hidden, receivers, classes = int(field.sizes[1]), int(field.sizes[2]), engine.num_classes
    first, second = int(field.indptr[hidden]) + hidden, int(field.indptr[receivers]) + receivers
    width, attends = engine.table.shape[1], model.config.architecture == "gat"
    coins = field.nodes.size + (int(field.sources.size) if attends else field.num_edges)
    rows_per_sample = field.nodes.size / LANES
    return {
        "what": "floor",
        "nodes": int(field.nodes.size),
        "coins": int(coins),
        "hidden_nodes": hidden,
        "first_messages": first,
        "second_messages": second,
        "width": width,
        "classes": classes,
        "lanes": LANES,
        "multiply_adds": first * width + hidden * width * classes + second * classes,
        "exponentials": hidden * width + second if attends else 0,  # ELU, and attention of the second layer
        "bytes": int(2 * coins + 4 * (rows_per_sample * width + (hidden + second) * classes)),
    }


def compile_afresh(model: InterceptionGNN, graph: str) -> Record:
    """Return the seconds of building an engine in a process with an empty kernel cache."""
    program = (
        "import time, torch, sampling\n"
        "torch.set_num_threads(1)\n"
        f"data, split = sampling.load_data({graph!r})\n"
        f"model = sampling.graycert.build_model({model.config.architecture!r}, split, skip=True, seed=0).eval()\n"
        "started = time.perf_counter()\n"
        "sampling.build(model, data, split.test.nodes, 'compiled')\n"
        "print(time.perf_counter() - started)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
            env={**os.environ, "NUMBA_CACHE_DIR": folder},
        )
    return {"what": "compile", "seconds": float(done.stdout)}


def load_data(graph: str) -> tuple[Any, Any]:
    """Return the graph and its split."""
    data = graycert.load_graph(graph)
    return data, graycert.inductive_split(data, seed=42)


def measurements(options: argparse.Namespace) -> Iterator[Record]:
    """Yield all records."""
    data, split = load_data(options.graph)
    targets = split.test.nodes

    def models(skips: tuple[bool, ...]) -> Iterator[tuple[InterceptionGNN, Record]]:
        for architecture in ARCHITECTURES:
            for skip in skips:
                about = {"graph": options.graph, "targets": targets.numel(), "model": architecture, "skip": skip}
                yield graycert.build_model(architecture, split, skip=skip, seed=0).eval(), about

    for name in WEIGHTED:
        about = {"graph": options.graph, "targets": targets.numel(), "model": name, "skip": False}
        yield about | weigh(name, data, targets, options.rounds)
    for model, about in models((True, False)):
        yield about | compare(model, data, targets, options.rounds)
    for model, about in models((True,)):
        yield about | scale(model, data, targets, "compiled", options.rounds)
        if about["model"] == "gat":
            yield about | scale(model, data, targets, "torch", options.rounds)
        if about["model"] in ("gcn", "gat"):
            yield about | floor(model, data, targets)
        if about["model"] == "gat":
            yield about | compile_afresh(model, options.graph)


def main() -> None:
    """Print a line per measurement and write them all as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="cora_ml")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    if options.quick:
        options.rounds = 1
    torch.set_num_threads(1)
    records = []
    for record in measurements(options):
        print(shown(record), flush=True)
        records.append(record)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


def shown(record: Record) -> str:
    """Return one line."""
    name = record["model"] + (" + skip" if record["skip"] else "")
    match record["what"]:
        case "engines":
            ours = (f"{each} {record[f'{each}_ms']:.3g} ms ({record[f'{each}_ratio']:.3g} x)" for each in ENGINES)
            differing = record["compiled_differing"]
            return f"{name:13} textbook {record['textbook_ms']:.1f} ms, {', '.join(ours)}, {differing} votes differ"
        case "threads":
            return f"{name:13} {record['engine']}: two threads {record['ratio']:.2f} x one ({record['one_ms']:.3g} ms)"
        case "weights":
            return f"{name:15} with edge weights {record['with_ms']:.3g} ms, {record['ratio']:.2f} x without"
        case "floor":
            return f"{name:13} {record['multiply_adds']:,} multiply-adds, {record['coins']:,} coins per sample"
        case _:
            return f"{name:13} compiles in {record['seconds']:.1f} s"


if __name__ == "__main__":
    main()
