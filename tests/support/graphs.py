"""Small graphs for tests of the data package."""

import numpy as np
import torch
from torch_geometric.data import Data


def path_graph(**overrides: object) -> Data:
    """0 -> 1 -> 2 with two features and two classes; overrides replace or (None) remove attributes."""
    attributes: dict[str, object] = {
        "x": torch.tensor([[0.5, 0.0], [0.0, -1.0], [2.0, 3.0]]),
        "edge_index": torch.tensor([[0, 1], [1, 2]]),
        "y": torch.tensor([0, 1, 0]),
    }
    attributes.update(overrides)
    return Data(**{name: value for name, value in attributes.items() if value is not None})


def labelled_graph(class_sizes: list[int], *, seed: int = 0, unlabelled: int = 0) -> Data:
    """A random undirected-looking graph whose classes have the given sizes."""
    random = np.random.default_rng(seed)
    labels = np.concatenate([np.full(size, c) for c, size in enumerate(class_sizes)] + [np.full(unlabelled, -1)])
    labels = random.permutation(labels)
    edges = random.integers(0, labels.size, size=(2, 4 * labels.size))
    return Data(
        x=torch.from_numpy(random.random((labels.size, 3), dtype=np.float32)),
        edge_index=torch.from_numpy(np.unique(edges, axis=1)),
        y=torch.from_numpy(labels.astype(np.int64)),
    )


def edge_set(data: Data) -> set[tuple[int, int]]:
    """The edges as (source, target) pairs."""
    return set(map(tuple, data.edge_index.t().tolist()))
