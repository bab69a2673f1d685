"""Draws per second: the engine against the textbook loop, alternating in one process.

The textbook loop runs, per draw, one full-graph PyTorch Geometric forward pass on masked features (two with skip
connection), without gradients. Usage: python benchmarks/sampling.py [--graph cora_ml] [--rounds 3] [--threads 1]
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import graycert as gc
from graycert.sampling import CoinStream, InterceptionSampler, Purpose, ablate, build_engine


def textbook_loop(model, data, targets, smoothing, num_samples: int) -> torch.Tensor:
    """Return votes (num_targets, num_classes) of one full forward pass per draw."""
    stream = CoinStream(0, Purpose.ESTIMATION)
    sampler = InterceptionSampler.of_graph(smoothing, stream, data.edge_index, num_nodes=data.num_nodes)
    votes = None
    with torch.no_grad():
        for sample in range(num_samples):
            draw = sampler.draw(torch.tensor([sample]))
            scores = model(ablate(data.x, model.ablation_token, draw.ablated[0]), data.edge_index[:, draw.kept[0]])
            if model.skip:
                scores = scores + model.skip_logits(data.x)
            one_hot = torch.nn.functional.one_hot(scores[targets].argmax(dim=1), scores.size(1))
            votes = one_hot if votes is None else votes + one_hot
    return votes


def seconds_per_draw(run: Callable[[int], object], num_samples: int) -> float:
    """Return wall seconds per draw."""
    started = time.perf_counter()
    run(num_samples)
    return (time.perf_counter() - started) / num_samples


def main() -> None:
    """Print milliseconds per draw and the ratio, per architecture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="cora_ml")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = gc.load_graph(options.graph)
    split = gc.inductive_split(data, seed=42)
    targets = split.test.nodes
    smoothing = gc.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
    print(f"{options.graph}, {targets.numel()} targets, {options.threads} thread(s), torch {torch.__version__}")
    print(f"{'model':14} {'textbook':>12} {'engine':>12} {'ratio':>8}")
    for architecture in ("gcn", "gat", "gatv2", "sma"):
        for skip in (True, False):
            model = gc.build_model(architecture, split, skip=skip, seed=0).eval()
            engine = build_engine(model, data, targets.numpy(), smoothing=smoothing, num_layers=2)
            slow, fast = [], []
            for _ in range(options.rounds):
                slow.append(seconds_per_draw(lambda n: textbook_loop(model, data, targets, smoothing, n), 5))  # noqa: B023
                fast.append(seconds_per_draw(lambda n: engine.votes(0, Purpose.ESTIMATION, num_samples=n), 60))  # noqa: B023
            plain, ours = statistics.median(slow), statistics.median(fast)
            name = architecture + (" + skip" if skip else "")
            print(f"{name:14} {1e3 * plain:9.1f} ms {1e3 * ours:9.2f} ms {plain / ours:7.1f}x", flush=True)


if __name__ == "__main__":
    main()
