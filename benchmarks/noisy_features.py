"""A generated graph in which the features of most nodes are noise: only neighbours tell their classes.

Usage: python benchmarks/noisy_features.py FOLDER      # writes FOLDER/noisy_features.npz; FOLDER may be GRAYCERT_DATA
"""

import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

NUM_NODES, NUM_CLASSES, NUM_FEATURES = 6_000, 6, 480
NEIGHBOURS = 8
HOMOPHILY = 0.8
INFORMATIVE = 0.15
_OFTEN, _SELDOM = 0.15, 0.02  # how likely a node has a word of its class, and any other


def noisy_features(num_nodes: int = NUM_NODES, *, informative: float = INFORMATIVE, seed: int = 0) -> Data:
    """Return an undirected graph of classes that neighbours share, with binary features that mostly say nothing.

    Args:
        num_nodes: Number of nodes.
        informative: Share of nodes in [0, 1] that have the words of their class; all others have as many words of
            classes drawn at random.
        seed: Of everything.
    """
    random = np.random.default_rng(seed)
    labels = np.arange(num_nodes) % NUM_CLASSES
    said = np.where(random.random(num_nodes) < informative, labels, random.integers(NUM_CLASSES, size=num_nodes))
    topics = np.arange(NUM_FEATURES) % NUM_CLASSES
    likely = np.where(topics[None, :] == said[:, None], _OFTEN, _SELDOM)
    features = (random.random(likely.shape) < likely).astype(np.float32)
    edges = _edges(random, labels)
    return Data(
        x=torch.from_numpy(features),
        edge_index=torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1)),
        y=torch.from_numpy(labels),
    )


def _edges(random: np.random.Generator, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each undirected edge once: most within a class, the others anywhere."""
    number = labels.size * NEIGHBOURS // 2
    source = random.integers(labels.size, size=number)
    members = [np.flatnonzero(labels == each) for each in range(NUM_CLASSES)]
    places = random.random(number)
    within = np.array(
        [
            members[labels[node]][int(place * members[labels[node]].size)]
            for node, place in zip(source, places, strict=True)
        ]
    )
    target = np.where(random.random(number) < HOMOPHILY, within, random.integers(labels.size, size=number))
    low, high = np.minimum(source, target), np.maximum(source, target)
    return np.unique(np.stack([low, high])[:, low < high], axis=1)


def main(folder: Path) -> None:
    """Write the graph where `graycert.load_graph` finds it by its name."""
    data = noisy_features()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "noisy_features.npz"
    np.savez_compressed(file, A=data.edge_index.numpy(), X=data.x.numpy(), y=data.y.numpy())
    print(f"{file}: {data.num_nodes:,} nodes, {data.num_edges // 2:,} edges")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
