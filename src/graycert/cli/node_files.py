"""Files that name nodes, one a line."""

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graycert._parameters import Parameters
from graycert.cli.configs import Config
from graycert.cli.declared import options_of
from graycert.errors import InvalidFileError

if TYPE_CHECKING:  # NumPy is loaded when a command runs, not for its help
    import numpy as np
    from numpy.typing import NDArray


def read_nodes(path: str, data: Any, *, flag: str) -> "NDArray[np.int64]":
    """Return the indices of the nodes that a text file names, in its order, shape (num_named,).

    A line holds a node id if the graph has ids (`data.node_ids`), else a node index. Empty lines are skipped.

    Raises:
        InvalidFileError: If the file is missing, names no node, an unknown node, or a node twice.
    """
    import numpy as np

    file = Path(path).expanduser()
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidFileError(
            f"`--{flag}` must name a readable text file, got {file} ({reason}). Check the path."
        ) from error
    names = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    if not names:
        raise InvalidFileError(f"{file} must name at least one node, one a line, but it is empty.")
    find = _finder(data)
    seen: dict[int, int] = {}
    for number, name in names:
        node = find(name, f"{file}, line {number}")
        if node in seen:
            raise InvalidFileError(f"{file}, line {number}: node {name!r} is already in line {seen[node]}. Remove one.")
        seen[node] = number
    return np.array(list(seen), dtype=np.int64)


def _finder(data: Any) -> Any:
    node_ids = getattr(data, "node_ids", None)
    num_nodes = int(data.num_nodes)
    if node_ids is None:

        def by_index(name: str, where: str) -> int:
            if not name.isdecimal() or int(name) >= num_nodes:
                raise InvalidFileError(f"{where}: must be a node index in [0, {num_nodes - 1}], got {name!r}.")
            return int(name)

        return by_index
    positions: dict[str, list[int]] = {}
    for index, node_id in enumerate(node_ids):
        positions.setdefault(str(node_id), []).append(index)

    def by_id(name: str, where: str) -> int:
        found = positions.get(name, [])
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidFileError(f"{where}: {len(found)} nodes have the id {name!r}, so it names none of them.")
        # among numbers nothing looks alike for a reason: an index was meant, or another graph
        close = [] if name.isdecimal() else difflib.get_close_matches(name, positions, n=1)
        hint = f"This graph is addressed by ids such as {next(iter(positions))!r}."
        if close:
            hint = f"Did you mean {close[0]!r}?"
        raise InvalidFileError(f"{where}: the graph has no node {name!r}. {hint}")

    return by_id


def read_masks(kind: type[Parameters], config: Config, data: Any) -> "dict[str, NDArray[np.bool_]]":
    """Return which nodes are named by the files that options of a class name, each bool (num_nodes,)."""
    import numpy as np

    masks = {}
    for name, field in options_of(kind).items():
        path = getattr(config, name)
        if field.metadata["option"] == "nodes" and path is not None:
            masks[name] = np.zeros(int(data.num_nodes), dtype=np.bool_)
            masks[name][read_nodes(path, data, flag=name)] = True
    return masks
