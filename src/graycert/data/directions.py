"""Which way edges go: said in numbers, because a list of undirected edges looks like one of directed edges."""

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from graycert.data.checks import count_nodes


def remark_on_directions(data: Data, *, asked: bool) -> None:
    """Add to ``data.preparation`` how many edges lack their reverse, and how many nodes receive nothing.

    Args:
        data: The graph, prepared.
        asked: Whether it was said that edges are directed.
    """
    num_nodes = count_nodes(data)
    sources, targets = data.edge_index.cpu().numpy()
    proper = sources != targets
    sources, targets = sources[proper], targets[proper]
    reached = np.zeros(num_nodes, dtype=np.bool_)
    reached[targets] = True
    deaf = num_nodes - int(reached.sum())
    keys, reverse = _distinct(sources * num_nodes + targets), _distinct(targets * num_nodes + sources)
    places = np.minimum(np.searchsorted(keys, reverse), max(keys.size - 1, 0))
    alone = int((keys[places] != reverse).sum())
    remark = ""
    if keys.size and alone == keys.size:
        remark = f"no edge has its reverse ({alone:,} edges)"
    elif alone:
        remark = f"edges without their reverse: {alone:,} of {keys.size:,}"
    if deaf:
        remark += f"{'; ' if remark else ''}nodes that receive nothing: {deaf:,} of {num_nodes:,}"
    if remark and alone and not asked:
        remark += "; if edges go both ways: undirected=True (--undirected)"
    if remark:
        data.preparation.append(remark)


def _distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return them sorted; edges are many, and mostly sorted already."""
    ordered = np.sort(keys, kind="stable")
    first = np.ones(ordered.size, dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    distinct: NDArray[np.int64] = ordered[first]
    return distinct
