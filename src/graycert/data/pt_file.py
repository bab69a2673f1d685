"""Graphs that ``torch.save`` wrote, read as data only: nothing in the file is executed."""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from graycert.errors import InvalidFileError

# What a saved Data is made of; which of them exist depends on the version of PyTorch Geometric.
_DATA_PARTS = (
    ("torch_geometric.data.data", ("Data", "DataEdgeAttr", "DataTensorAttr")),
    ("torch_geometric.data.storage", ("GlobalStorage",)),
)


def read_saved_graph(path: Path) -> Data:
    """Read a ``Data`` object, or the single graph of a data set that PyTorch Geometric processed.

    Raises:
        InvalidFileError: If the file is truncated, corrupted, or holds anything but tensors and a ``Data``
            object.
    """
    content = _load(path)
    if isinstance(content, tuple | list) and len(content) in (
        2,
        3,
    ):  # InMemoryDataset.save: (data, slices, class)
        if content[1] is not None:
            raise InvalidFileError(f"'{path}' must hold one graph, got a data set of several. Save one of them.")
        content = content[0]
    if isinstance(content, dict) and isinstance(content.get("edge_index"), torch.Tensor):
        content = Data.from_dict(content)
    if not isinstance(content, Data):
        raise InvalidFileError(
            f"'{path}' must hold a torch_geometric.data.Data, got {_describe(content)}. "
            "Save the graph with torch.save(data, path); weights of a model are not a graph."
        )
    return content


def _load(path: Path) -> Any:
    homes = [(import_module(module), name) for module, names in _DATA_PARTS for name in names]
    classes = [getattr(module, name) for module, name in homes if hasattr(module, name)]
    try:
        with torch.serialization.safe_globals(classes), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about some foreign files before it refuses them
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can fail anywhere inside the unpickler
        if "Unsupported" in str(error) or "GLOBAL" in str(error):
            raise InvalidFileError(
                f"'{path}' must hold tensors and a torch_geometric.data.Data only, got other Python "
                "objects, which can run code when they are read. Save a plain Data(x=..., edge_index=..., "
                "y=...) with torch.save."
            ) from error
        raise InvalidFileError(
            f"'{path}' must be a file that torch.save wrote, but it is truncated, corrupted or another "
            f"format ({type(error).__name__}). Save the graph again."
        ) from error


def _describe(content: Any) -> str:
    if isinstance(content, dict):
        return f"a dict with the keys {', '.join(str(key) for key in list(content)[:4])}"
    return f"a {type(content).__name__}"
