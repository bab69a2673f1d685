"""Which way edges go: said in numbers, because a list of undirected edges looks like one of directed edges."""

from typing import Any

import numpy as np

from graycert.data.checks import count_nodes
from graycert.data.edges import distinct
from graycert.graph.conversion import as_array


def remark_on_directions(data: Any, *, asked: bool) -> None:
    """Add to ``data.preparation`` how many edges lack their reverse, and how many nodes receive nothing.

    Args:
        data: The graph, prepared.
        asked: Whether it was said that edges are directed.
    """
    num_nodes = count_nodes(data)
    sources, targets = as_array(data.edge_index)
    proper = sources != targets
    sources, targets = sources[proper], targets[proper]
    reached = np.zeros(num_nodes, dtype=np.bool_)
    reached[targets] = True
    deaf = num_nodes - int(reached.sum())
    keys, reverse = distinct(sources * num_nodes + targets), distinct(targets * num_nodes + sources)
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
