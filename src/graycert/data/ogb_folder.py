"""ogbn-arxiv from the text files that OGB publishes, without the package ``ogb``.

OGB's own cached copy needs an unsafe ``torch.load`` and fails with torch >= 2.6 (ogb 1.3.6), so it is not
used.
"""

import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from graycert.errors import InvalidFileError

_SPLIT_MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}


def read_ogb_graph(folder: Path) -> Data:
    """Read ``folder/raw/*.csv.gz`` and, as masks, the published split in ``folder/split/time`` if there.

    Raises:
        InvalidFileError: If a file is missing, truncated or has a wrong number of rows or columns.
    """
    raw = folder / "raw"
    edges = _read(raw / "edge.csv.gz", np.int64, columns=2)
    features = _read(raw / "node-feat.csv.gz", np.float32)
    labels = _read(raw / "node-label.csv.gz", np.int64, columns=1)
    num_nodes = int(_read(raw / "num-node-list.csv.gz", np.int64, columns=1)[0, 0])
    for name, array in (("node-feat", features), ("node-label", labels)):
        if array.shape[0] != num_nodes:
            raise InvalidFileError(
                f"'{raw / name}.csv.gz' must have {num_nodes} rows, got {array.shape[0]}. Download the graph again."
            )
    data = Data(
        x=torch.from_numpy(features),
        edge_index=torch.from_numpy(np.ascontiguousarray(edges.T)),
        y=torch.from_numpy(labels[:, 0].copy()),
    )
    for part, mask_name in _SPLIT_MASKS.items():
        path = folder / "split" / "time" / f"{part}.csv.gz"
        if path.is_file():
            mask = torch.zeros(num_nodes, dtype=torch.bool)
            mask[torch.from_numpy(_indices(path, num_nodes))] = True
            data[mask_name] = mask
    return data


def _read(path: Path, dtype: type[np.generic], *, columns: int | None = None) -> NDArray[np.generic]:
    try:
        frame = pd.read_csv(path, compression="gzip", header=None, dtype=np.dtype(dtype))
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise InvalidFileError(
            f"'{path}' must be a table of numbers as OGB publishes it, but it is missing, truncated or "
            f"another format ({error}). Download the graph again."
        ) from error
    if columns is not None and frame.shape[1] != columns:
        raise InvalidFileError(f"'{path}' must have {columns} columns, got {frame.shape[1]}. Download the graph again.")
    return np.array(frame.to_numpy(), dtype=dtype)


def _indices(path: Path, num_nodes: int) -> NDArray[np.generic]:
    indices = _read(path, np.int64, columns=1)[:, 0]
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < num_nodes:
        raise InvalidFileError(f"'{path}' must hold node numbers in [0, {num_nodes - 1}]. Download the graph again.")
    return indices
