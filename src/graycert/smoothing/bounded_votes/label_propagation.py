"""Label propagation: what the labels of training nodes say of all others, by the structure alone."""

import numpy as np
import scipy.sparse as sp

from graycert._types import FloatArray, IntArray
from graycert.graph import Adjacency

STEPS = 20
RESTART = 0.1
_LEAST = 1e-12  # where no label arrives all classes are alike


def propagated_labels(adjacency: Adjacency, labels: IntArray, *, num_classes: int) -> FloatArray:
    r"""Spread the labels of training nodes over the graph.

    $$h \leftarrow 0.9\, \hat A h + 0.1\, Y, \qquad
    \hat A = D^{-1/2} (A + I) D^{-1/2}, \quad D = \mathrm{diag}((A + I) 1)$$

    Twenty steps from h = Y, then rows are normalised. No feature is read, so no hostile feature can change it.

    Args:
        adjacency: The graph; A[v, w] = 1 for an edge w -> v.
        labels: Class of each training node, -1 for all other nodes, int64, shape (num_nodes,).
        num_classes: Number of classes.

    Returns:
        Float64, shape (num_nodes, num_classes), rows sum to 1; uniform where no label arrives.

    References:
        Zhu and Ghahramani (2002).
    """
    size = adjacency.num_nodes
    heard = sp.csr_array((np.ones(adjacency.num_edges), adjacency.sources, adjacency.indptr), shape=(size, size))
    step = sp.csr_array(heard + sp.eye_array(size))
    scale = 1.0 / np.sqrt(step.sum(axis=1))
    shares: FloatArray = np.repeat(scale, np.diff(step.indptr)) * scale[step.indices]
    step = sp.csr_array((shares, step.indices, step.indptr), shape=(size, size))
    known = np.flatnonzero(labels >= 0)
    start = np.zeros((size, num_classes))
    start[known, labels[known]] = 1.0
    found = start
    for _ in range(STEPS):
        found = (1 - RESTART) * np.asarray(step @ found) + RESTART * start
    found = found + _LEAST
    normalised: FloatArray = found / found.sum(axis=1, keepdims=True)
    return normalised
