"""How far messages travel: measured on probe graphs."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from torch import Tensor, nn
from torch_geometric.utils import sort_edge_index

from graycert.errors import GraycertError
from graycert.models.edge_inputs import probed_edges
from graycert.models.private_copy import private_copy

HOSTILE_VALUES = (1e4, float("nan"), float("inf"), -1e4)
_LONGEST_PROBE = 64


@dataclass(frozen=True)
class Influence:
    """How far a changed node was seen to reach.

    Args:
        distance: Largest hop distance at which an output changed.
        leaks: Whether a node changed the output of a node that it has no path to.
    """

    distance: int
    leaks: bool


def measure_influence(model: nn.Module, *, num_features: int, dtype: torch.dtype, at_least: int) -> Influence:
    """Change single nodes of path graphs and see up to which distance other nodes notice.

    The path is longer than ``at_least`` hops, and grows until its far end has no influence (or 64 hops). Two nodes
    beside it have no path to it, and on the directed path nothing flows backwards. Hostile values are huge, infinite
    and NaN: NaN survives nearly every operation. The largest finite values and 0 pass a model that clears values that
    are not finite.
    """
    length = at_least + 3
    while True:
        influence = max(
            (
                _influence_on_path(model, length, num_features, dtype, undirected=undirected)
                for undirected in (False, True)
            ),
            key=lambda seen: (seen.leaks, seen.distance),
        )
        if influence.leaks or influence.distance < length or length >= _LONGEST_PROBE:
            return influence
        length = min(2 * length, _LONGEST_PROBE)


def _influence_on_path(
    model: nn.Module, length: int, num_features: int, dtype: torch.dtype, *, undirected: bool
) -> Influence:
    num_nodes = length + 3  # the path 0 ... length, and a connected pair beside it
    chain = torch.stack([torch.arange(1, length + 1), torch.arange(length)])
    pair = torch.tensor([[length + 2], [length + 1]])
    edges = torch.cat([chain, pair], dim=1)
    if undirected:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    model = private_copy(model)  # what it remembers of one graph must not meet another
    edges = sort_edge_index(edges, sort_by_row=False)
    generator = torch.Generator().manual_seed(0)
    clean = torch.rand(num_nodes, num_features, generator=generator, dtype=dtype)
    # One copy of the graph per hostile node, all in one pass: what mixes copies is seen by nodes without a path, too.
    copies = torch.arange(num_nodes).repeat_interleave(edges.size(1)) * num_nodes
    many_edges, many = edges.repeat(1, num_nodes) + copies, clean.repeat(num_nodes, 1)
    hostile = torch.arange(num_nodes) * (num_nodes + 1)  # node i of copy i
    hops = _hops(edges, num_nodes).reshape(-1)
    distance, leaks = 0, False
    for taken in probed_edges(model, many_edges):
        expected = model(many, taken)
        for value in (*HOSTILE_VALUES, torch.finfo(dtype).max, torch.finfo(dtype).min, 0.0):
            attacked = many.clone()
            attacked[hostile] = value
            noticed = hops[~rows_with_same_bits(model(attacked, taken), expected)]
            leaks |= bool((noticed < 0).any())
            distance = max(distance, int(noticed.max(initial=0)))
    return Influence(distance, leaks)


def _hops(edges: Tensor, num_nodes: int) -> NDArray[np.int64]:
    """Return the hop distance from each node (row) to each node (column), -1 without a path."""
    adjacency = sp.csr_array((np.ones(edges.size(1)), tuple(edges.numpy())), shape=(num_nodes, num_nodes))
    hops = shortest_path(adjacency, unweighted=True)
    return np.where(np.isinf(hops), -1, hops).astype(np.int64)


def same_bits(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors are equal bit for bit, NaN equal to NaN."""
    return first.shape == second.shape and bool(rows_with_same_bits(first, second).all())


def rows_with_same_bits(first: Tensor, second: Tensor) -> Tensor:
    """Return per row whether two tensors are equal bit for bit, NaN equal to NaN; bool (rows,)."""
    same: Tensor = (first == second) | (first.isnan() & second.isnan())
    return same.reshape(same.size(0), -1).all(dim=1) if same.dim() else same


def probe_model(model: nn.Module, *, num_features: int, dtype: torch.dtype, at_least: int) -> Influence | None:
    """Return what `measure_influence` sees, or None if the model cannot run on a graph of another size."""
    try:
        return measure_influence(model, num_features=num_features, dtype=dtype, at_least=at_least)
    except GraycertError:
        raise
    except Exception:  # foreign code: whatever it raises, it does not run on another graph
        return None
