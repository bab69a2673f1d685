"""ogbn-arxiv, ogbn-products and others from the files that OGB publishes, without the package ``ogb``.

OGB's own cached copy needs an unsafe ``torch.load`` and fails with torch >= 2.6 (ogb 1.3.6), so it is not
used.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert.data.arrays import GraphArrays
from graycert.data.edges_in_pieces import EdgeFile
from graycert.data.on_disk import features_of_file, new_array
from graycert.errors import InvalidFileError

_SPLIT_MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}
_ROWS = 2**18  # of a text file at a time


def is_ogb_folder(path: Path) -> bool:
    """Say whether a folder has edges where OGB puts them."""
    return (path / "raw" / "edge.csv.gz").is_file()


def read_ogb_graph(folder: Path) -> tuple[GraphArrays, EdgeFile]:
    """Read ``folder/raw/*.csv.gz`` in pieces and, as masks, the published split in ``folder/split/*`` if there.

    Features are taken from ``raw/node-feat.npy`` if there is one, mapped rather than loaded; OGB publishes a text.

    Returns:
        The graph without its edges, and these, still to be read.

    Raises:
        InvalidFileError: If a file is missing, truncated or has a wrong number of rows or columns.
    """
    raw = folder / "raw"
    num_nodes = int(_read(raw / "num-node-list.csv.gz", np.int64, columns=1)[0, 0])
    mapped = raw / "node-feat.npy"
    features = features_of_file(mapped) if mapped.is_file() else _features(raw / "node-feat.csv.gz", num_nodes)
    labels = _read(raw / "node-label.csv.gz", np.int64, columns=1)
    for name, rows in ((mapped.name, features.shape[0]), ("node-label.csv.gz", labels.shape[0])):
        if rows != num_nodes:
            raise InvalidFileError(f"'{raw / name}' must have {num_nodes} rows, got {rows}. Download the graph again.")
    data = GraphArrays(x=features, y=labels[:, 0].copy())
    for path in sorted(folder.glob("split/*/*.csv.gz")):
        mask_name = _SPLIT_MASKS.get(path.name.removesuffix(".csv.gz"))
        if mask_name is not None and mask_name not in data:
            mask = np.zeros(num_nodes, dtype=np.bool_)
            mask[_indices(path, num_nodes)] = True
            data[mask_name] = mask

    def read() -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        for rows in _parts(raw / "edge.csv.gz", np.int64, columns=2):
            yield rows[:, 0], rows[:, 1]

    return data, EdgeFile(name=str(raw / "edge.csv.gz"), num_nodes=num_nodes, read=read)


def _features(path: Path, num_nodes: int) -> NDArray[np.float32]:
    """Return the features of a text file, which may fill the disk but not the memory."""
    made, done = None, 0
    for rows in _parts(path, np.float32):
        if made is None:
            made = new_array((num_nodes, rows.shape[1]), np.float32)
        kept = rows[: num_nodes - done]
        made[done : done + kept.shape[0]] = kept
        done += rows.shape[0]
    if made is None or done != num_nodes:
        raise InvalidFileError(f"'{path}' must have {num_nodes} rows, got {done}. Download the graph again.")
    return made


def _read(path: Path, dtype: type[np.generic], *, columns: int | None = None) -> NDArray[Any]:
    return np.concatenate(list(_parts(path, dtype, columns=columns)))


def _parts(path: Path, dtype: type[np.generic], *, columns: int | None = None) -> Iterator[NDArray[Any]]:
    import pandas as pd

    try:
        with (
            gzip.open(path) as stream,
            pd.read_csv(stream, header=None, dtype=np.dtype(dtype), chunksize=_ROWS) as frames,
        ):
            for frame in frames:
                if columns is not None and frame.shape[1] != columns:
                    raise InvalidFileError(
                        f"'{path}' must have {columns} columns, got {frame.shape[1]}. Download the graph again."
                    )
                yield np.array(frame.to_numpy(), dtype=dtype)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise InvalidFileError(
            f"'{path}' must be a table of numbers as OGB publishes it, but it is missing, truncated or "
            f"another format ({error}). Download the graph again."
        ) from error


def _indices(path: Path, num_nodes: int) -> NDArray[Any]:
    indices = _read(path, np.int64, columns=1)[:, 0]
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < num_nodes:
        raise InvalidFileError(f"'{path}' must hold node numbers in [0, {num_nodes - 1}]. Download the graph again.")
    return indices
