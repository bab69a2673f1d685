"""A generated graph in which the features of most nodes are noise: only neighbours tell their classes."""

from typing import TYPE_CHECKING

import numpy as np

from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer, check_probability, check_seed
from graycert.data.arrays import GraphArrays

if TYPE_CHECKING:
    from torch_geometric.data import Data

NUM_NODES, NUM_CLASSES, NUM_FEATURES = 6_000, 6, 480
NEIGHBOURS = 8
HOMOPHILY = 0.8
INFORMATIVE = 0.15
_OFTEN, _SELDOM = 0.15, 0.02  # how likely a node has a word of its class, and any other


def noisy_features(num_nodes: int = NUM_NODES, *, informative: float = INFORMATIVE, seed: int = 0) -> "Data":
    """Generate an undirected graph of classes that neighbours share, with binary features that mostly say nothing.

    Each node has about 8 neighbours, four out of five of its class but for chance. There are 480 words, each of one of
    six classes; a node has 15 % of the words of the class that it speaks of, and 2 % of all others.

    Args:
        num_nodes: Number of nodes, >= 6.
        informative: Share of nodes in [0, 1] that speak of their own class; all others of a class drawn at random.
        seed: Of everything; the same graph on every machine and version of NumPy.

    Returns:
        A ``Data`` with ``x``, ``edge_index`` and ``y``; it may have isolated nodes.

    Raises:
        InvalidParameterError: If a parameter is out of range.

    Example:
        >>> noisy_features(60).num_nodes
        60
    """
    from graycert.data.as_data import as_data

    return as_data(noisy_arrays(num_nodes, informative=informative, seed=seed))


def noisy_arrays(num_nodes: int = NUM_NODES, *, informative: float = INFORMATIVE, seed: int = 0) -> GraphArrays:
    """Generate the same graph as arrays."""
    check_integer("num_nodes", num_nodes, at_least=NUM_CLASSES)
    check_probability("informative", informative)
    stream = np.random.PCG64(check_seed(seed))
    labels = np.arange(num_nodes) % NUM_CLASSES
    said = np.where(_uniform(stream, num_nodes) < informative, labels, _below(stream, NUM_CLASSES, num_nodes))
    topics = np.arange(NUM_FEATURES) % NUM_CLASSES
    likely = np.where(topics == said[:, None], _OFTEN, _SELDOM)
    features = (_uniform(stream, likely.size).reshape(likely.shape) < likely).astype(np.float32)
    edges = _edges(stream, labels)
    return GraphArrays(
        x=features,
        edge_index=np.concatenate([edges, edges[::-1]], axis=1),
        y=labels,
    )


def _uniform(stream: np.random.PCG64, number: int) -> FloatArray:
    """Return numbers in [0, 1), from the raw stream, which no version of NumPy changes."""
    return np.asarray((stream.random_raw(number) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def _below(stream: np.random.PCG64, bound: int, number: int) -> IntArray:
    return (_uniform(stream, number) * bound).astype(np.int64)


def _edges(stream: np.random.PCG64, labels: IntArray) -> IntArray:
    """Return each undirected edge once: most within a class, the others anywhere."""
    number = labels.size * NEIGHBOURS // 2
    source = _below(stream, labels.size, number)
    members = labels.size // NUM_CLASSES  # node c + 6 k is of class c
    within = labels[source] + NUM_CLASSES * _below(stream, members, number)
    target = np.where(_uniform(stream, number) < HOMOPHILY, within, _below(stream, labels.size, number))
    low, high = np.minimum(source, target), np.maximum(source, target)
    return np.unique(np.stack([low, high])[:, low < high], axis=1)
