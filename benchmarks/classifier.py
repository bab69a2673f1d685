"""What a smoothed classifier costs to run: processor time for a thousand nodes, and for the audit of a new graph.

Usage: GRAYCERT_DATA=FOLDER python benchmarks/classifier.py [--graphs wordnet_nouns cora_ml pubmed_partial]
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch_geometric.nn import GraphSAGE

import graycert

NODES = 1_000
THREAT = graycert.NodeFeatureThreat(min_distance=1)
SMOOTHINGS = {
    "interception, 1,000 + 3,000 draws": graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794),
    "subgraphs, nothing drawn": graycert.SubgraphVoting(num_subgraphs=20),
}


def seconds(run: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    started = time.process_time()
    run()
    return time.process_time() - started


def main() -> None:
    """Print a row of a Markdown table for each graph and smoothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+", default=["wordnet_nouns", "cora_ml", "pubmed_partial"])
    print("| graph | smoothing | audit of a new graph | 1,000 nodes predicted | 1,000 nodes certified |")
    print("|---|---|---|---|---|")
    for name in parser.parse_args().graphs:
        data = graycert.load_graph(name, largest_component=False)
        torch.manual_seed(0)
        model = GraphSAGE(data.num_features, 32, num_layers=2, out_channels=int(data.y.max()) + 1).eval()
        nodes = torch.arange(NODES)
        for words, smoothing in SMOOTHINGS.items():
            threat = THREAT if smoothing.name == "interception" else graycert.FeaturesAndOutEdgesThreat()
            certificates = graycert.certify(model, data, targets=nodes[:10], smoothing=smoothing, threat=threat)
            classifier = certificates.classifier()
            first = seconds(lambda: classifier.predict(data, nodes[:1]))  # noqa: B023 (called at once)
            again = seconds(lambda: classifier.predict(data, nodes[:1]))  # noqa: B023
            predicted = seconds(lambda: classifier.predict(data, nodes))  # noqa: B023
            certified = seconds(lambda: classifier.predict_certified(data, nodes))  # noqa: B023
            audit = first - again if certificates.setup.draws is not None else again
            print(f"| {name} | {words} | {audit:.1f} s | {predicted:.1f} s | {certified:.1f} s |")


if __name__ == "__main__":
    main()
