"""Arrays as PyTorch Geometric's Data, where a model is to be called."""

from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graycert.data.arrays import GraphArrays


def as_data(graph: GraphArrays) -> Data:
    """Return a ``Data`` whose tensors share the memory of the arrays."""
    return Data(**{name: _tensor(graph[name]) for name in graph.keys()})  # noqa: SIM118 (a graph is no dict)


def _tensor(value: Any) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
