"""Interception of messages in a graph with node types and relations, or in a batch of one."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from graycert.heterogeneous import columns_of_one_graph, smoothing_on_one_graph, typed_nodes
from graycert.heterogeneous.classifier import token_row
from graycert.sampling.interception import InterceptionDraw, ablate
from graycert.smoothing.interception.parameters import InterceptionSmoothing

Draw = Callable[[InterceptionSmoothing, Tensor, int], InterceptionDraw]


def intercept_types(data: HeteroData, smoothing: InterceptionSmoothing, token: Any, draw: Draw) -> HeteroData:
    """Return the graph that a draw leaves; ``data`` is as before.

    All edges from one node to another, of whatever relations, have one coin, as when certifying.

    Args:
        data: Node types with ``x``, relations with ``edge_index``.
        smoothing: p_d: a number or one per relation; p_a: a number or one per node type.
        token: Features of an ablated node, a tensor per node type; None for zeros.
        draw: Draws for a smoothing, edges and a number of nodes.
    """
    types = typed_nodes(data)
    edges = columns_of_one_graph(data, types)
    counts = [data[relation].edge_index.size(1) for relation in types.relations]
    relation_of = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts, dtype=torch.long))
    drawn = draw(smoothing_on_one_graph(smoothing, types, edges, relation_of), edges, sum(types.num_nodes))
    kept = dict(zip(types.relations, torch.split(drawn.kept[0], counts), strict=True))
    plain = copy.copy(data)
    for store in plain.edge_stores:
        store.pop("num_sampled_edges", None)  # a list, which is no value per edge however long it is
    made: HeteroData = plain.edge_subgraph(
        {relation: mask.to(data[relation].edge_index.device) for relation, mask in kept.items()}
    )
    for relation, mask in kept.items():
        _count_again(made, data, relation, mask)
    row = token_row(token, types)
    for name in types.node_types:
        x = data[name].x
        part = row[types.columns_of(name)].to(x.device, x.dtype)
        made[name].x = ablate(x, part, drawn.ablated[0, types.nodes_of(name)].to(x.device))
    return made


def _count_again(made: HeteroData, data: HeteroData, relation: Any, kept: Tensor) -> None:
    """Count the sampled edges of each hop, one after the other, that are left."""
    sizes = data[relation].get("num_sampled_edges")
    if sizes is not None:
        counts = [int(size) for size in sizes]
        made[relation].num_sampled_edges = [int(part.sum()) for part in torch.split(kept[: sum(counts)], counts)]
