"""Arrays as PyTorch Geometric's Data, where a model is to be called."""

from typing import TYPE_CHECKING, Any

import numpy as np

from graycert.data.arrays import GraphArrays

if TYPE_CHECKING:
    from torch_geometric.data import Data


def as_data(graph: "GraphArrays | Data") -> "Data":
    """Return a ``Data`` whose tensors share the memory of the arrays; one that is there already as it is."""
    if not isinstance(graph, GraphArrays):
        return graph
    from torch_geometric.data import Data

    return Data(**{name: _tensor(graph[name]) for name in graph.keys()})  # noqa: SIM118 (a graph is no dict)


def _tensor(value: Any) -> Any:
    import torch

    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
