"""Batches of samples as disjoint copies of one graph, on any device."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from graycert.sampling.drawn_batch import DrawnBatch
from graycert.sampling.field_graph import FieldGraph
from graycert.sampling.interception import InterceptionSampler, disjoint_copies
from graycert.sampling.placed_smoothing import AnySmoothing
from graycert.sampling.streams import CoinStream


@dataclass(frozen=True)
class DisjointCopies:
    """Draws batches of copies of a field, one per sample, in the order of its nodes and edges.

    Args:
        field: Part of the graph that the targets depend on, or the whole graph.
        samples_per_pass: Copies per batch.
    """

    field: FieldGraph
    samples_per_pass: int

    def batches(self, smoothing: AnySmoothing, stream: CoinStream, samples: Tensor) -> Iterator[DrawnBatch]:
        """Yield batches that hold the given samples, in order."""
        sampler = InterceptionSampler(smoothing, stream, self.field.edge_ids, self.field.nodes)
        num_nodes = self.field.nodes.numel()
        positions = torch.arange(num_nodes, device=samples.device)
        for part in torch.split(samples, self.samples_per_pass):
            draw = sampler.draw(part)
            edges = disjoint_copies(self.field.edge_index, draw.kept, num_nodes=num_nodes)
            rows = positions.expand(part.numel(), -1).masked_fill(draw.ablated, num_nodes)
            first = num_nodes * torch.arange(part.numel(), device=samples.device)
            yield DrawnBatch(rows.flatten(), edges, (first.unsqueeze(1) + self.field.targets).flatten())
