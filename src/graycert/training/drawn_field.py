"""What a draw leaves of a graph, seen from the targets: who can reach them, hop by hop."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import remove_self_loops

from graycert._compilation import kernel
from graycert._types import BoolArray, IntArray
from graycert.sampling.kernels.coins import CoinKeys, is_intercepted, sample_key
from graycert.sampling.placed_smoothing import place_smoothing
from graycert.sampling.streams import CoinStream, edge_ids
from graycert.smoothing.interception.parameters import InterceptionSmoothing


@dataclass(frozen=True)
class DrawnField:
    """The drawn graphs around the targets, one disjoint copy per sample, copies numbered through.

    Copies are ordered by their distance to the targets (all targets first), edges by their receiver. So what a layer
    computes, and the edges it needs, are prefixes.

    Args:
        nodes: Node of the graph per copy, int64 (num_copies,).
        ablated: Which copies are ablated, bool (num_copies,).
        edge_index: Edges that survive, into all copies at most k - 1 hops away, int64 (2, num_edges).
        in_degree: Surviving in-edges per copy, int64 (num_copies,).
        copies_within: Number of copies at most 0, ..., k hops away.
        edges_within: Number of edges into copies at most 0, ..., k - 1 hops away.
    """

    nodes: Tensor
    ablated: Tensor
    edge_index: Tensor
    in_degree: Tensor
    copies_within: list[int]
    edges_within: list[int]


class FieldSampler:
    """Draws from φ on a graph, walking from the targets against the edges that survive.

    The coins are those of `InterceptionSampler`; coins of edges and nodes that nobody reaches are never thrown.

    Args:
        edge_index: Edges of the graph, int64 (2, num_edges); self-loops are left out, each layer adds its own.
        targets: Target nodes, int64 (num_targets,), no repeats.
        num_nodes: Number of nodes of the graph.
        num_layers: Number k of message-passing layers.
        smoothing: p_d, per column of ``edge_index`` if an array, and p_a.
        stream: Where the coins come from.
    """

    def __init__(
        self,
        edge_index: Tensor,
        targets: Tensor,
        *,
        num_nodes: int,
        num_layers: int,
        smoothing: InterceptionSmoothing,
        stream: CoinStream,
    ) -> None:
        edges, _ = remove_self_loops(edge_index.cpu())
        edges = edges[:, torch.argsort(edges[1], stable=True)]
        degree = torch.bincount(edges[1], minlength=num_nodes)
        self.num_layers = num_layers
        self._targets = targets.cpu().numpy()
        self._sources = edges[0].contiguous().numpy()
        self._indptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)]).numpy()
        ids = edge_ids(edges, num_nodes=num_nodes).numpy()
        placed = place_smoothing(smoothing, edge_index, num_nodes=num_nodes)
        self._edge_coins = CoinKeys.of(stream, "edge", ids, placed.p_delete)
        self._node_coins = CoinKeys.of(stream, "node", np.arange(num_nodes), placed.p_ablate)

    def draw(self, samples: range) -> DrawnField:
        """Return the drawn graphs with the given sample numbers."""
        edge_coins, node_coins = self._edge_coins, self._node_coins
        place = np.full((len(samples), self._indptr.size - 1), -1)
        nodes, in_degree = np.empty((2, place.size), dtype=np.int64)
        ablated = np.empty(place.size, dtype=np.bool_)
        edge_index = np.empty((2, len(samples) * self._sources.size), dtype=np.int64)
        copies_within, edges_within = np.zeros((2, self.num_layers + 1), dtype=np.int64)
        _walk(
            samples.start,
            edge_coins,
            node_coins,
            self._indptr,
            self._sources,
            self._targets,
            place,
            nodes,
            ablated,
            edge_index,
            in_degree,
            copies_within,
            edges_within,
        )
        num_copies, num_edges = copies_within[-1], edges_within[-1]
        return DrawnField(
            nodes=torch.tensor(nodes[:num_copies]),
            ablated=torch.tensor(ablated[:num_copies]),
            edge_index=torch.tensor(edge_index[:, :num_edges]),
            in_degree=torch.tensor(in_degree[:num_copies]),
            copies_within=copies_within.tolist(),
            edges_within=edges_within[:-1].tolist(),
        )


@kernel
def _walk(
    first_sample: int,
    edge_coins: CoinKeys,
    node_coins: CoinKeys,
    indptr: IntArray,
    sources: IntArray,
    targets: IntArray,
    place: IntArray,
    nodes: IntArray,
    ablated: BoolArray,
    edge_index: IntArray,
    in_degree: IntArray,
    copies_within: IntArray,
    edges_within: IntArray,
) -> None:
    """Fill the arrays of a `DrawnField`; ``place[s, w]`` is the number of copy s of node w, -1 if not reached."""
    num_samples = place.shape[0]
    num_layers = copies_within.size - 1
    sample_of = np.empty(nodes.size, dtype=np.int64)
    edge_keys, node_keys = np.empty(num_samples, dtype=np.int64), np.empty(num_samples, dtype=np.int64)
    reached = linked = done = 0
    for s in range(num_samples):
        edge_keys[s] = sample_key(first_sample + s, edge_coins[0])
        node_keys[s] = sample_key(first_sample + s, node_coins[0])
        for w in targets:
            place[s, w], nodes[reached], sample_of[reached] = reached, w, s
            reached += 1
    for hop in range(num_layers + 1):
        copies_within[hop] = reached
        for receiver in range(done, copies_within[hop]):
            s, w = sample_of[receiver], nodes[receiver]
            ablated[receiver] = is_intercepted(node_keys[s], node_coins[1][w], node_coins[2][w])
            in_degree[receiver] = 0
            for e in range(indptr[w], indptr[w + 1]):
                if is_intercepted(edge_keys[s], edge_coins[1][e], edge_coins[2][e]):
                    continue
                in_degree[receiver] += 1
                if hop == num_layers:
                    continue
                u = sources[e]
                if place[s, u] < 0:
                    place[s, u], nodes[reached], sample_of[reached] = reached, u, s
                    reached += 1
                edge_index[0, linked], edge_index[1, linked] = place[s, u], receiver
                linked += 1
        done = copies_within[hop]
        edges_within[hop] = linked
