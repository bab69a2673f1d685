"""Fraud among 50,000 accounts: which decisions hold if some accounts are hostile, at what price, and what to run.

``python examples/fraud.py`` writes two tables (accounts and payments), chooses on the validation accounts what to train
a GraphSAGE of its own under and to smooth it by, certifies test accounts, and runs the classifier on tomorrow's
accounts. ``--accounts`` makes it smaller, ``--embedded`` does the same on a real graph, of which there is no tomorrow.

The tables are random, but their rules (`written_tables`) were fixed before anything was certified: frauds pay each
other in rings, and an account's own features say little.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MLP, SAGEConv

import graycert

NUMBERS = ("night_share", "round_amounts", "new_payees", "cash_share", "failed_logins", "devices")
COUNTRIES, KINDS = ("DE", "FR", "IT", "NL", "PL"), ("private", "shop", "club")
FRAUD_SHARE, RING, SHIFT = 0.02, 25, 0.45
OK, FRAUD = 0, 1
Pairs = tuple[tuple[float, float], ...]
SETTINGS: Pairs = ((0.0, 0.6), (0.0, 0.7), (0.0, 0.8), (0.0, 0.9), (0.3, 0.7), (0.3, 0.8))
TRAINING: Pairs = ((0.0, 0.6), (0.0, 0.8))
HOSTILE = graycert.NodeFeatureThreat(min_distance=1)


def written_tables(folder: Path, num_accounts: int, seed: int = 0) -> NDArray[np.int64]:
    """Write today's and tomorrow's tables; return which accounts are frauds, tomorrow's new ones last.

    Tomorrow there is 1 % more accounts, and everybody of today. A tenth of the accounts pays one hub. Rows come twice,
    accounts pay themselves, cells are empty, a fifth of the labels is unknown, and 2 % of the accounts pay nobody.
    """
    rng = np.random.default_rng(seed)
    total = num_accounts + num_accounts // 100
    is_fraud = np.zeros(total, dtype=np.int64)
    is_fraud[rng.choice(np.arange(1, total), int(FRAUD_SHARE * total), replace=False)] = FRAUD
    ids = np.array([f"acc-{number:06x}" for number in rng.permutation(16 * total)[:total]])
    ids[0] = "HUB"
    pays = rng.random(total) >= 0.02
    pairs = np.concatenate([_payments(rng, is_fraud, pays), _ring_payments(rng, is_fraud, pays)])
    payers = np.flatnonzero(pays)
    payers = rng.choice(payers[payers > 0], num_accounts // 10, replace=False)
    pairs = np.concatenate([pairs, np.stack([payers, np.zeros_like(payers)], axis=1)])
    pairs = np.concatenate([pairs, pairs[rng.integers(len(pairs), size=len(pairs) // 50)]])  # twice
    itself = rng.choice(np.flatnonzero(pays), total // 200)
    pairs = np.concatenate([pairs, np.stack([itself, itself], axis=1)])
    accounts = _account_table(rng, ids, is_fraud)
    accounts.loc[num_accounts:, ["is_fraud", "split"]] = ["unknown", "test"]
    payments = pd.DataFrame({"payer": ids[pairs[:, 0]], "payee": ids[pairs[:, 1]]})
    for day, size in (("today", num_accounts), ("tomorrow", total)):
        accounts[:size].to_csv(folder / f"accounts_{day}.csv", index=False)
        payments[(pairs < size).all(axis=1)].to_csv(folder / f"payments_{day}.csv", index=False)
    return is_fraud


def _payments(rng: np.random.Generator, is_fraud: NDArray[np.int64], pays: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return who pays whom at random: four payments of an honest account, two of a fraud."""
    payers = np.flatnonzero(pays)
    payers = np.repeat(payers, np.where(is_fraud[payers] == FRAUD, 2, 4))
    return np.stack([payers, rng.choice(np.flatnonzero(pays), payers.size)], axis=1)


def _ring_payments(rng: np.random.Generator, is_fraud: NDArray[np.int64], pays: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return who pays whom within rings of frauds: six payments each."""
    members = rng.permutation(np.flatnonzero((is_fraud == FRAUD) & pays))
    rings = np.array_split(members, max(1, members.size // RING))
    pairs = [np.stack([np.repeat(ring, 6), rng.choice(ring, 6 * ring.size)], axis=1) for ring in rings]
    return np.concatenate(pairs)


def _account_table(rng: np.random.Generator, ids: NDArray[Any], is_fraud: NDArray[np.int64]) -> pd.DataFrame:
    """Return a row per account: numbers that are a little higher for frauds, categories, gaps and unknown labels."""
    numbers = rng.normal(size=(ids.size, len(NUMBERS))) + SHIFT * is_fraud[:, None]
    numbers[rng.random(numbers.shape) < 0.02] = np.nan
    label = np.where(is_fraud == FRAUD, "fraud", "ok").astype(object)
    label[rng.random(ids.size) < 0.2] = "unknown"
    return pd.DataFrame(
        {
            "account_id": ids,
            "country": rng.choice(COUNTRIES, ids.size),
            "kind": np.where(rng.random(ids.size) < 0.05, "", rng.choice(KINDS, ids.size)),
            **{name: numbers[:, column].round(3) for column, name in enumerate(NUMBERS)},
            "is_fraud": label,
            "split": rng.choice(["train", "validation", "test"], ids.size, p=[0.6, 0.2, 0.2]),
        }
    )


def read(folder: Path, day: str) -> Data:
    """Return the graph of a day: money flows one way, news of fraud both ways.

    Gaps become zeros: a median would be computed from the features of all accounts, the hostile ones among them.
    """
    return graycert.load_graph(
        folder / f"payments_{day}.csv",
        nodes=folder / f"accounts_{day}.csv",
        class_names="ok,fraud",
        one_hot="country,kind",
        fill="zero",
        undirected=True,
        drop_self_loops=True,
    )


class GraphSAGE(nn.Module):
    """Two layers of one's own."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(num_features, 32), SAGEConv(32, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return a score per class."""
        scores: Tensor = self.second(torch.relu(self.first(x, edge_index)), edge_index)
        return scores


class FeaturesAlone(nn.Module):
    """What the accounts' own features tell."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.layers = MLP([num_features, 32, 2], norm=None)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return a score per class; nobody's payments are looked at."""
        del edge_index
        scores: Tensor = self.layers(x)
        return scores


def trained(
    make: Callable[[int], nn.Module], data: Data, smoothing: graycert.InterceptionSmoothing, max_epochs: int
) -> nn.Module:
    """Train under a smoothing, so that the rare class counts as much as the other one."""
    torch.manual_seed(0)
    model = make(data.num_features)
    graycert.train(
        model,
        data,
        train_mask=labelled(data, "train_mask"),
        validation_mask=labelled(data, "val_mask"),
        smoothing=smoothing,
        class_weight="balanced",
        stop_on="balanced accuracy",
        learning_rate=0.01,
        max_epochs=max_epochs,
        patience=15,
    )
    return model


def labelled(data: Data, mask: str) -> Tensor:
    """Return the accounts of a part whose label is known."""
    chosen: Tensor = data[mask] & (data.y >= 0)
    return chosen


@dataclass(frozen=True)
class Found:
    """What is found of the frauds, and which share of honest accounts is suspected.

    Args:
        recall: Share of frauds that are found.
        false_alarms: Share of honest accounts that are taken for frauds.
    """

    recall: float
    false_alarms: float

    @classmethod
    def of(cls, prediction: Any, truth: Any) -> "Found":
        """Compare predictions with the truth."""
        suspected, truth = np.asarray(prediction) == FRAUD, np.asarray(truth)
        return cls(float(suspected[truth == FRAUD].mean()), float(suspected[truth == OK].mean()))

    def __str__(self) -> str:
        return f"{self.recall:6.1%} found, {self.false_alarms:5.1%} of the others suspected"


def plain(model: nn.Module, data: Data) -> Tensor:
    """Return the predictions without smoothing."""
    with torch.no_grad():
        found: Tensor = model.eval()(data.x, data.edge_index).argmax(dim=1)
    return found


@dataclass(frozen=True)
class Outcome:
    """What the story came to, on test accounts that nothing was chosen by.

    Args:
        alone: What features alone find.
        without: What the GraphSAGE finds that was trained without smoothing, as it was trained.
        as_trained: What the chosen GraphSAGE finds without smoothing.
        smoothed: What it finds smoothed; abstaining finds nothing and suspects nobody.
        certified: Share of frauds that are found whatever ρ other accounts do, by ρ.
        certificates: Of the test accounts.
    """

    alone: Found
    without: Found
    as_trained: Found
    smoothed: Found
    certified: dict[int, float]
    certificates: graycert.Certificates


def certified(data: Data, *, max_epochs: int = 40, settings: Pairs = SETTINGS, training: Pairs = TRAINING) -> Outcome:
    """Choose on the validation accounts, certify the test accounts, and print what comes of it."""
    test, rare = labelled(data, "test_mask"), data.class_names[FRAUD]
    nothing = graycert.InterceptionSmoothing(p_delete=0, p_ablate=0)
    tuning = graycert.tune(
        lambda smoothing: trained(GraphSAGE, data, smoothing, max_epochs),
        data,
        validation=labelled(data, "val_mask"),
        threat=HOSTILE,
        want=f"radius=1 of {rare}",
        settings=settings,
        training=training,
        draws=graycert.Draws(num_selection=100, num_estimation=500),
    )
    print(f"\nWhat to smooth by, on the validation nodes:\n{tuning}")
    certificates = graycert.certify(
        tuning.model,
        data,
        targets=test,
        smoothing=tuning.smoothing,
        threat=HOSTILE,
        draws=graycert.Draws(num_selection=500, num_estimation=2_000),
        max_radius=5,
    )
    decided = np.where(certificates.radius >= 0, certificates.prediction, -1)
    found = np.where(decided == FRAUD, np.minimum(certificates.radius, certificates.num_eligible), -1)
    held = found[certificates.labels == FRAUD]
    outcome = Outcome(
        alone=Found.of(plain(trained(FeaturesAlone, data, nothing, max_epochs), data)[test], data.y[test]),
        without=Found.of(plain(trained(GraphSAGE, data, nothing, max_epochs), data)[test], data.y[test]),
        as_trained=Found.of(plain(tuning.model, data)[test], data.y[test]),
        smoothed=Found.of(decided, certificates.labels),
        certified={radius: float((held >= radius).mean()) for radius in (1, 2, 3)},
        certificates=certificates,
    )
    kept = outcome.smoothed.recall / outcome.as_trained.recall
    print(
        f"\nWhat it costs, on {held.size:,} of class {rare} and {decided.size - held.size:,} others of the test nodes:"
    )
    print(f"  features alone (MLP)         {outcome.alone}")
    print(f"  GraphSAGE trained plainly    {outcome.without}")
    print(f"  the chosen one as trained    {outcome.as_trained}")
    print(f"  the same, smoothed           {outcome.smoothed}: {kept:.2f} of what it finds as trained")
    for radius, share in outcome.certified.items():
        print(f"  whatever {radius} others do         {share:6.1%} found")
    print(f"\nWho matters:\n{certificates.protect_first(data, top=10)}")
    print("\nConditions for tonight's run:")
    for verdict in certificates.judge(f"correct@1[{rare}]=0.5", f"accuracy[{rare}]=0.9", "abstained=0.05"):
        print(f"  {verdict}")
    return outcome


def tomorrow(certificates: graycert.Certificates, folder: Path, is_fraud: NDArray[np.int64], num_accounts: int) -> None:
    """Run what was certified on the accounts that are new tomorrow."""
    kept = certificates.classifier().save(folder / "classifier")
    data = read(folder, "tomorrow")
    classifier = graycert.SmoothedClassifier.load(kept, model=GraphSAGE(data.num_features))
    new = np.arange(num_accounts, data.num_nodes)
    print(f"\nWhat runs tomorrow:\n{classifier.statement()}")
    classes = classifier.predict(data, new)  # audits the new graph
    started = time.perf_counter()
    classifier.predict(data, np.arange(1, 1_001))
    seconds = time.perf_counter() - started
    print(f"  {new.size:,} new accounts: {Found.of(classes, is_fraud[new])}, {(classes < 0).mean():.1%} abstained")
    print(f"  1,000 accounts take {seconds:.1f} s once the graph is audited")


def story(folder: Path, num_accounts: int, **options: Any) -> Outcome:
    """Tell the whole story in a folder."""
    is_fraud = written_tables(folder, num_accounts)
    data = read(folder, "today")
    print("\n".join(["Today's tables:", *(f"  {remark}" for remark in data.preparation)]))
    outcome = certified(data, **options)
    tomorrow(outcome.certificates, folder, is_fraud, num_accounts)
    return outcome


def embedded_graph() -> Data:
    """Return a real graph with a rare class: nouns about shapes among nouns about other things (3 %)."""
    data = graycert.load_graph("wordnet_nouns")
    data.y = (data.y == data.class_names.index("shape")).long()
    data.class_names = ["other", "shape"]
    part = torch.rand(data.num_nodes, generator=torch.Generator().manual_seed(0))
    data.train_mask, data.val_mask, data.test_mask = part < 0.6, (part >= 0.6) & (part < 0.8), part >= 0.8
    return data


def main() -> None:
    """Read the arguments, and tell the story."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", type=int, default=50_000)
    parser.add_argument("--embedded", action="store_true", help="the same on the real graph in the package")
    arguments = parser.parse_args()
    started = time.perf_counter()
    if arguments.embedded:
        certified(embedded_graph())
    else:
        with tempfile.TemporaryDirectory() as folder:
            story(Path(folder), arguments.accounts)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    wall, processor = time.perf_counter() - started, time.process_time()
    print(f"\nAll of this: {wall:.0f} s, {processor:.0f} s of processor time, peak memory {peak:.1f} GiB")


if __name__ == "__main__":
    main()
