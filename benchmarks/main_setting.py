"""The paper's main setting on Cora-ML (Figure 3 a): the tables of docs/results.md.

A GAT with skip connection per seed, trained and certified as `graycert certify --graph cora_ml --seed SEED --bound
multiplicative` does, and again from the same votes for hostile nodes at distance 2.
Usage: python benchmarks/main_setting.py [--seeds 13 17 26 35 69] [--page docs/results.md]
"""

import argparse
import re
from itertools import product
from pathlib import Path

import numpy as np
import torch

import graycert
from graycert.metrics import DENOMINATORS, abstain_ratio, certified_ratio, clean_accuracy

SEEDS = (13, 17, 26, 35, 69)
TRAINING = graycert.InterceptionSmoothing(p_delete=0.01, p_ablate=0.6)
SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
LAST = 6  # radius
BLOCK = re.compile(r"(<!-- main setting: (\w+) -->\n\n).*?(\n<!-- end -->)", re.DOTALL)
NAMES = {"all": "all", "whole_field": "whole field", "paper": "paper"}
Runs = list[tuple[int, int, graycert.Certificates, graycert.Certificates, graycert.Certificates]]


def main() -> None:
    """Print both tables, and write them into a page if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--page", type=Path, help="page whose tables to replace")
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs: Runs = []
    for seed in options.seeds:
        runs.append(run(seed))
        print(row(*runs[-1]), flush=True)
    tables = {"seeds": seeds_table(runs), "means": means_table(runs), "paper": paper_line(runs)}
    print("\n" + "\n\n".join(tables.values()))
    if options.page:
        text = options.page.read_text(encoding="utf-8")
        options.page.write_text(BLOCK.sub(lambda found: found[1] + tables[found[2]] + found[3], text), encoding="utf-8")


def run(seed: int) -> tuple[int, int, graycert.Certificates, graycert.Certificates, graycert.Certificates]:
    """Return the seed, the epochs trained, certificates at both distances, and those of rule "paper" at distance 1."""
    data = graycert.load_graph("cora_ml")
    split = graycert.inductive_split(data, seed=seed)
    model = graycert.build_model("gat", data, skip=True, seed=seed)
    record = graycert.train(model, split, smoothing=TRAINING, seed=seed)
    near = graycert.certify(
        model,
        split.test.data,
        targets=split.test.nodes,
        smoothing=SMOOTHING,
        threat=graycert.NodeFeatureThreat(min_distance=1),
        bound="multiplicative",
        seed=seed,
    )
    far = near.again(split.test.data, threat=graycert.NodeFeatureThreat(min_distance=2))
    return seed, record.epochs, near, far, near.again(split.test.data, rule="paper")


def ratios(certificates: graycert.Certificates, denominator: str = "all") -> list[float]:
    """Return the certified ratio at ρ = 1 … 6."""
    c = certificates
    found = certified_ratio(c.radius, c.num_eligible, max_radius=LAST, denominator=denominator)
    return [float(value) for value in found.values[1:]]


def row(seed: int, epochs: int, near: graycert.Certificates, far: graycert.Certificates, _: object) -> str:
    """Return the row of a seed."""
    assert near.labels is not None
    accuracy = clean_accuracy(near.radius, prediction=near.prediction, labels=near.labels)
    five = [" / ".join(f"{value:.3f}" for value in ratios(each)[:5]) for each in (near, far)]
    return f"| {seed} | {epochs} | {accuracy:.3f} | {abstain_ratio(near.radius):.3f} | {five[0]} | {five[1]} |"


def seeds_table(runs: Runs) -> str:
    """Return the table with a row per seed."""
    names = (
        "seed",
        "epochs",
        "smoothed accuracy",
        "abstained",
        "certified ratio (all), ρ = 1 … 5, distance ≥ 1",
        "at distance 2",
    )
    head = f"| {' | '.join(names)} |"
    return "\n".join([head, "|---|---|---|---|---|---|", *(row(*each) for each in runs)])


def means_table(runs: Runs) -> str:
    """Return mean and standard deviation over the seeds."""
    rows = ["| distance | denominator |" + "".join(f" ρ = {rho} |" for rho in range(1, LAST + 1)), "|---" * 8 + "|"]
    for (column, distance), denominator in product(((2, "≥ 1"), (3, "2")), DENOMINATORS):
        values = np.array([ratios(each[column], denominator) for each in runs])  # type: ignore[arg-type]
        cells = [
            f"{mean:.3f} ± {deviation:.3f}"
            for mean, deviation in zip(values.mean(0), values.std(0, ddof=len(runs) > 1), strict=True)
        ]
        rows.append(f"| {distance} | {NAMES[denominator]} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def paper_line(runs: Runs) -> str:
    """Return what the rule of the paper's implementation gives."""
    values = np.array([ratios(each[4], "paper")[:5] for each in runs]).mean(0)
    return "By the paper's rule: " + " / ".join(f"{value:.3f}" for value in values) + "."


if __name__ == "__main__":
    main()
