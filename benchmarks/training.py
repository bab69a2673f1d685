"""Milliseconds per training epoch: `graycert.train` against the dense textbook epoch, alternating in one process.

The textbook epoch draws masks on the full training graph, runs one full-graph PyTorch Geometric pass on masked dense
features (two with skip connection), cross entropy, backward, an Adam step, and one such pass on the validation graph
without gradients. Usage: python benchmarks/training.py [--graph cora_ml] [--rounds 5] [--threads 1] [--json FILE]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

import graycert
from graycert.models import InterceptionGNN

TEXTBOOK_EPOCHS, EPOCHS = 5, 100
LEARNING_RATE, WEIGHT_DECAY = 1e-3, 5e-4


def textbook_loss(model: InterceptionGNN, part: Any, smoothing: graycert.InterceptionSmoothing) -> torch.Tensor:
    """Return the cross entropy on the nodes of ``part`` under a fresh draw: one full-graph pass (two with skip)."""
    data = part.data
    ablated = torch.rand(data.num_nodes) < float(smoothing.p_ablate)
    kept = torch.rand(data.edge_index.size(1)) >= float(smoothing.p_delete)
    x = torch.where(ablated[:, None], model.ablation_token, data.x.clone())
    scores = model(x, data.edge_index[:, kept])
    if model.skip:
        scores = scores + model.skip_logits(data.x)
    return cross_entropy(scores[part.nodes], data.y[part.nodes])


def textbook(model: InterceptionGNN, split: Any, smoothing: graycert.InterceptionSmoothing, num_epochs: int) -> float:
    """Train and return wall seconds per epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    started = time.perf_counter()
    for _ in range(num_epochs):
        model.train()
        optimizer.zero_grad()
        torch.autograd.backward(textbook_loss(model, split.train, smoothing))
        optimizer.step()
        model.eval()
        with torch.no_grad():
            textbook_loss(model, split.validation, smoothing)
    return (time.perf_counter() - started) / num_epochs


def ours(model: InterceptionGNN, split: Any, smoothing: graycert.InterceptionSmoothing, num_epochs: int) -> float:
    """Train and return wall seconds per epoch, preparation included."""
    record = graycert.train(
        model,
        split,
        smoothing=smoothing,
        learning_rate=LEARNING_RATE,
        weight_decay=WEIGHT_DECAY,
        max_epochs=num_epochs,
        patience=num_epochs,
    )
    return record.seconds / record.epochs


def compare(
    build: Callable[[], InterceptionGNN], split: Any, smoothing: graycert.InterceptionSmoothing, rounds: int
) -> tuple[float, float]:
    """Return median seconds per epoch, textbook and ours."""
    slow, fast = [], []
    textbook(build(), split, smoothing, 2)
    ours(build(), split, smoothing, 2)  # compiles
    for _ in range(rounds):
        slow.append(textbook(build(), split, smoothing, TEXTBOOK_EPOCHS))
        fast.append(ours(build(), split, smoothing, EPOCHS))
    return statistics.median(slow), statistics.median(fast)


def main() -> None:
    """Print milliseconds per epoch and the ratio, per architecture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="cora_ml")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the records to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    split = graycert.inductive_split(graycert.load_graph(options.graph), seed=42)
    smoothing = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
    print(f"{options.graph}, {options.threads} thread(s), torch {torch.__version__}")
    print(f"{'model':14} {'textbook':>12} {'graycert':>12} {'ratio':>8}")
    records = []
    for architecture, skip in (("gat", True), ("gatv2", True), ("gcn", True), ("sma", True), ("gat", False)):

        def build() -> InterceptionGNN:
            return graycert.build_model(architecture, split, skip=skip, seed=0)  # noqa: B023

        plain, fast = compare(build, split, smoothing, options.rounds)
        name = architecture + (" + skip" if skip else "")
        print(f"{name:14} {1e3 * plain:9.1f} ms {1e3 * fast:9.2f} ms {plain / fast:7.1f}x", flush=True)
        about = {"graph": options.graph, "model": architecture, "skip": skip}
        records.append(about | {"textbook_ms": 1e3 * plain, "graycert_ms": 1e3 * fast, "ratio": plain / fast})
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
