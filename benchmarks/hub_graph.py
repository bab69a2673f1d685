"""Generated graphs as large as ogbn-arxiv, with hubs: 169,343 nodes, 1.17 million undirected edges, 40 classes."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

NUM_NODES, NUM_CLASSES, NUM_FEATURES = 169_343, 40, 128
EDGES_PER_NODE = 6.91
_EXPONENT, _OFFSET = 0.75, 7.5  # degrees fall as a power of the rank: the largest of 169,343 nodes is about 7,000


def hub_graph(num_nodes: int = NUM_NODES, *, hub: int = 0, num_classes: int = NUM_CLASSES, seed: int = 0) -> Data:
    """Return an undirected graph whose degrees follow a power law, with noisy features of its classes.

    Args:
        num_nodes: Number of nodes; the degree law stays the same.
        hub: How many further neighbours one node has, < num_nodes.
        num_classes: Number of classes.
        seed: Of everything.
    """
    random = np.random.default_rng(seed)
    ends = _drawn_ends(random, num_nodes, int(EDGES_PER_NODE * num_nodes))
    if hub:
        spokes = 1 + random.permutation(num_nodes - 1)[:hub]
        ends = np.concatenate([ends, np.stack([np.zeros_like(spokes), spokes])], axis=1)
    low, high = ends.min(axis=0), ends.max(axis=0)
    edges = np.unique(low[low < high] * num_nodes + high[low < high])
    source, target = edges // num_nodes, edges % num_nodes
    labels = random.integers(num_classes, size=num_nodes)
    centres = random.normal(size=(num_classes, NUM_FEATURES))
    features = (centres[labels] + 2.0 * random.normal(size=(num_nodes, NUM_FEATURES))).astype(np.float32)
    return Data(
        x=torch.from_numpy(features),
        edge_index=torch.from_numpy(np.stack([np.r_[source, target], np.r_[target, source]])),
        y=torch.from_numpy(labels),
    )


def _drawn_ends(random: np.random.Generator, num_nodes: int, num_edges: int) -> NDArray[np.int64]:
    """Return both ends of each edge, drawn by weight; ranks are shuffled, so that a hub's number says nothing."""
    weights = (np.arange(num_nodes) + _OFFSET) ** -_EXPONENT
    bounds = np.cumsum(weights) / weights.sum()
    drawn = np.searchsorted(bounds, random.random((2, num_edges)))
    shuffled: NDArray[np.int64] = random.permutation(num_nodes)[np.minimum(drawn, num_nodes - 1)]
    return shuffled


def describe(data: Any) -> dict[str, int]:
    """Return nodes, directed edges and the largest in-degree."""
    degrees = torch.bincount(data.edge_index[1], minlength=data.num_nodes)
    return {"nodes": data.num_nodes, "edges": data.edge_index.size(1), "largest_degree": int(degrees.max())}
