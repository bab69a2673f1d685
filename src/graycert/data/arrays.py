"""A graph as NumPy arrays: what files are read into, without torch, which takes longer to load than small graphs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class GraphArrays:
    """What PyTorch Geometric's ``Data`` holds, by the same names and calls, as arrays rather than tensors.

    ``edge_index`` (2, num_edges) and ``y`` (num_nodes,) are int64, ``x`` (num_nodes, num_features) is float32, masks
    are bool; all else is as in :func:`graycert.data.load_graph`. What needs no model works on it as on a ``Data``.

    Args:
        attributes: What it holds.
    """

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    def __getattr__(self, name: str) -> Any:
        """Return the number of nodes if it follows from features or labels; nothing else is guessed."""
        known = next((vars(self)[each] for each in ("x", "y") if each in vars(self)), None)
        if name == "num_nodes" and known is not None:
            return int(known.shape[0])
        raise AttributeError(f"the graph has no {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set what the graph holds."""
        vars(self)[name] = value

    def __delattr__(self, name: str) -> None:
        """Forget what the graph holds."""
        del vars(self)[name]

    def __getitem__(self, name: str) -> Any:
        """Return what the graph holds."""
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        """Set what the graph holds."""
        vars(self)[name] = value

    def __contains__(self, name: str) -> bool:
        """Return whether the graph holds something."""
        return name in vars(self)

    def get(self, name: str, default: Any = None) -> Any:
        """Return what the graph holds, or else the default."""
        return vars(self).get(name, default)

    def keys(self) -> list[str]:
        """Return the names of what the graph holds."""
        return list(vars(self))


def kind_of(value: Any) -> Any:
    """Return what an array or a tensor is, whatever of these it is in particular, such as a part of a file."""
    if isinstance(value, np.ndarray):
        return np.ndarray
    from torch import Tensor

    return Tensor


def same_kind(value: Any, array: NDArray[Any]) -> Any:
    """Return an array as what another value is: as an array, or as a tensor on its device."""
    if isinstance(value, np.ndarray):
        return array
    import torch

    return torch.from_numpy(array).to(value.device)
