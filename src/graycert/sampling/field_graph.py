"""The part of a graph that the targets' outputs can depend on."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.utils import index_to_mask

from graycert.sampling.streams import edge_ids


@dataclass(frozen=True)
class FieldGraph:
    """A subgraph with the identities of the graph it comes from.

    Args:
        nodes: Original index of each node, int64 (num_nodes,), ascending.
        edge_index: Edges in the subgraph's own numbering, int64 (2, num_edges); with a third row where edges carry
            values (`graycert.models.edge_inputs`).
        edge_ids: Identity of each edge in the original graph, int64 (num_edges,).
        targets: Subgraph index of each target, int64 (num_targets,).
    """

    nodes: Tensor
    edge_index: Tensor
    edge_ids: Tensor
    targets: Tensor

    def to(self, device: torch.device) -> "FieldGraph":
        """Move all tensors to ``device``."""
        return FieldGraph(
            self.nodes.to(device),
            self.edge_index.to(device),
            self.edge_ids.to(device),
            self.targets.to(device),
        )


def whole_graph(edge_index: Tensor, targets: Tensor, *, num_nodes: int) -> FieldGraph:
    """Return the graph itself as a field."""
    return FieldGraph(torch.arange(num_nodes), edge_index, edge_ids(edge_index, num_nodes=num_nodes), targets)


def field_graph(edge_index: Tensor, targets: Tensor, *, num_nodes: int, num_layers: int) -> FieldGraph:
    """Return the receptive field of the targets, with every edge into it.

    Sources one hop further than the field are kept, so that each node of the field has all its in-edges and a
    degree-normalised convolution sees the degrees of the whole graph.

    Args:
        edge_index: int64 (2, num_edges), row 0 = source, or with a third row of values.
        targets: Target nodes, int64 (num_targets,).
        num_nodes: Number of nodes of the graph.
        num_layers: Number k of propagation steps.
    """
    source, target = edge_index[:2]
    field = index_to_mask(targets, num_nodes)
    for _ in range(num_layers):
        grown = field.clone()
        grown[source[field[target]]] = True
        field = grown
    into_field = field[target]
    visible = field.clone()
    visible[source[into_field]] = True
    nodes = visible.nonzero().squeeze(1)
    position = torch.full((num_nodes,), -1, dtype=torch.long)
    position[nodes] = torch.arange(nodes.numel())
    kept = edge_index[:, into_field]
    edges = torch.cat([position[kept[:2]], kept[2:]])
    return FieldGraph(nodes, edges, edge_ids(kept, num_nodes=num_nodes), position[targets])
