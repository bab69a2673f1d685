"""Train GraphSAGE, and GATv2 with edge attributes, in mini-batches under random interception, then certify every node.

``python examples/mini_batches.py`` makes a graph of 50,000 nodes, trains both models with `NeighborLoader`, certifies
all nodes, and prints accuracy, certified share, time and memory. ``--nodes``, ``--epochs`` and ``--draws`` make it
smaller.

`NeighborLoader` samples with pyg-lib or torch-sparse. Neither can be installed from PyPI alone, so where both are
missing the loader is given `InNeighborSampler`, which does the same in plain PyTorch.
"""

import argparse
import importlib.util
import resource
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GATv2Conv, SAGEConv
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput

import graycert

NUM_CLASSES, NUM_FEATURES, NUM_NEIGHBORS = 4, 16, [10, 10]
HAS_SAMPLER = any(importlib.util.find_spec(name) is not None for name in ("pyg_lib", "torch_sparse"))


class InNeighborSampler(BaseSampler):  # type: ignore[misc]
    """Samples up to so many in-neighbours per node and hop, without replacement, as `NeighborLoader` does.

    Args:
        edge_index: Edges of the graph, int64 (2, num_edges).
        num_nodes: Number of its nodes.
        num_neighbors: How many neighbours per node, hop by hop.
        seed: Seeds the choice.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, num_neighbors: list[int], seed: int = 0) -> None:
        self.order = edge_index[1].argsort(stable=True)
        self.sources = edge_index[0, self.order]
        degrees = torch.bincount(edge_index[1], minlength=num_nodes)
        self.start = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])
        self.num_neighbors, self.generator = num_neighbors, torch.Generator().manual_seed(seed)
        self.place = torch.full((num_nodes,), -1)

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> SamplerOutput:
        """Return the sampled graph around some nodes, which come first in it."""
        nodes, (low, high) = index.node, (0, index.node.numel())
        rows, cols, edges, per_hop = [], [], [], []
        self.place[nodes] = torch.arange(high)
        for limit in self.num_neighbors:
            receiver, edge = self._in_edges(nodes[low:high], limit)
            new = torch.unique(self.sources[edge])
            new = new[self.place[new] < 0]
            self.place[new] = torch.arange(new.numel()) + nodes.numel()
            rows.append(self.place[self.sources[edge]])
            cols.append(receiver + low)
            edges.append(edge)
            nodes, (low, high) = torch.cat([nodes, new]), (high, high + new.numel())
            per_hop.append(edge.numel())
        self.place[nodes] = -1
        return SamplerOutput(
            node=nodes,
            row=torch.cat(rows),
            col=torch.cat(cols),
            edge=torch.cat(edges),
            num_sampled_edges=per_hop,
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(self, *_: Any, **__: Any) -> SamplerOutput:
        """Only nodes are sampled from."""
        raise NotImplementedError

    @property
    def edge_permutation(self) -> Tensor:
        """The order in which edges are numbered here."""
        return self.order

    def _in_edges(self, nodes: Tensor, limit: int) -> tuple[Tensor, Tensor]:
        """Return the receiver, as a position in ``nodes``, and the number of each sampled edge."""
        degree = self.start[nodes + 1] - self.start[nodes]
        receiver = torch.repeat_interleave(degree)
        first = degree.cumsum(0) - degree
        edge = torch.arange(receiver.numel()) + (self.start[nodes] - first)[receiver]
        shuffled = (receiver + torch.rand(receiver.numel(), generator=self.generator, dtype=torch.float64)).argsort()
        chosen = shuffled[torch.arange(receiver.numel()) - first[receiver] < limit]
        return receiver[chosen], edge[chosen]


class TwoLayers(nn.Module):
    """Two convolutions, and the token that stands for ablated features: `certify` finds it by its name."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.ablation_token = nn.Parameter(torch.zeros(NUM_FEATURES))

    def forward(self, x: Tensor, edge_index: Tensor, **edge_inputs: Tensor) -> Tensor:
        """Return class scores."""
        hidden = torch.relu(self.first(x, edge_index, **edge_inputs))
        scores: Tensor = self.second(hidden, edge_index, **edge_inputs)
        return scores


MODELS = {
    "GraphSAGE": lambda: TwoLayers(SAGEConv(NUM_FEATURES, 32), SAGEConv(32, NUM_CLASSES)),
    "GATv2": lambda: TwoLayers(GATv2Conv(NUM_FEATURES, 8, heads=4, edge_dim=2), GATv2Conv(32, NUM_CLASSES, edge_dim=2)),
}
EDGE_INPUTS: dict[str, tuple[str, ...]] = {"GraphSAGE": (), "GATv2": ("edge_attr",)}


def generated_graph(num_nodes: int, seed: int = 0) -> Data:
    """Return a graph with four kinds of nodes, ten in-edges per node, eight of them from its own kind, and noise.

    ``edge_attr`` says whether a tie is close, as 80 % are within a kind and 30 % of the others, and how old it is.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(NUM_CLASSES, (num_nodes,), generator=generator)
    by_class = labels.argsort(stable=True)
    counts = torch.bincount(labels, minlength=NUM_CLASSES)
    receivers = torch.arange(num_nodes).repeat_interleave(5)
    kinds = labels[receivers]
    within = (torch.rand(receivers.numel(), generator=generator) * counts[kinds]).long() + (counts.cumsum(0) - counts)[
        kinds
    ]
    anybody = torch.randint(num_nodes, receivers.shape, generator=generator)
    own = torch.rand(receivers.numel(), generator=generator) < 0.8
    one_way = torch.stack([torch.where(own, by_class[within], anybody), receivers])
    one_way = one_way[:, one_way[0] != one_way[1]]
    edges = torch.unique(torch.cat([one_way, one_way.flip(0)], dim=1), dim=1)
    x = torch.randn(num_nodes, NUM_FEATURES, generator=generator)
    x[:, :NUM_CLASSES] += 1.5 * nn.functional.one_hot(labels, NUM_CLASSES)
    chance = torch.where(labels[edges[0]] == labels[edges[1]], 0.8, 0.3)
    close = (torch.rand(chance.shape, generator=generator) < chance).float()
    age = torch.randint(1, 4, chance.shape, generator=generator) / 3
    return Data(
        x=x,
        edge_index=edges,
        edge_attr=torch.stack([close, age], dim=1),
        y=labels,
        train_mask=torch.rand(num_nodes, generator=generator) < 0.2,
    )


def train_in_batches(
    model: TwoLayers,
    data: Data,
    *,
    epochs: int,
    edge_inputs: tuple[str, ...] = (),
    batch_size: int = 512,
    seed: int = 0,
) -> None:
    """Train as one trains with `NeighborLoader`; the one line more is ``batch = intercept(batch)``."""
    torch.manual_seed(seed)
    sampler = None if HAS_SAMPLER else InNeighborSampler(data.edge_index, int(data.num_nodes or 0), NUM_NEIGHBORS, seed)
    loader = NeighborLoader(
        data, NUM_NEIGHBORS, data.train_mask, batch_size=batch_size, shuffle=True, neighbor_sampler=sampler
    )
    intercept = graycert.RandomInterception(p_delete=0.1, p_ablate=0.6, token=model.ablation_token, seed=seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model.train()
    for _ in range(epochs):
        for batch in loader:
            batch = intercept(batch)
            values = {name: batch[name] for name in edge_inputs}
            scores = model(batch.x, batch.edge_index, **values)[: batch.batch_size]
            loss = cross_entropy(scores, batch.y[: batch.batch_size])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    model.eval()


@dataclass(frozen=True)
class Outcome:
    """What came out.

    Args:
        certificates: Of all nodes.
        train_seconds: Processor time of the training.
        certify_seconds: Processor time of the certification.
    """

    certificates: graycert.Certificates
    train_seconds: float
    certify_seconds: float


def run(name: str, data: Data, *, epochs: int, draws: graycert.Draws, engine: str = "auto") -> Outcome:
    """Train a model and certify every node of the graph, which is never cut into batches for that."""
    torch.manual_seed(0)
    model = MODELS[name]()
    started = time.process_time()
    train_in_batches(model, data, epochs=epochs, edge_inputs=EDGE_INPUTS[name])
    trained = time.process_time()
    certificates = graycert.certify(
        model,
        data,
        smoothing=graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794),
        threat=graycert.NodeFeatureThreat(),
        draws=draws,
        edge_inputs=EDGE_INPUTS[name],
        execution=graycert.Execution(engine=engine),
    )
    return Outcome(certificates, trained - started, time.process_time() - trained)


def main() -> None:
    """Read the arguments, run both models, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--draws", type=int, default=1_000, help="a fifth as many choose the class")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    arguments = parser.parse_args()
    data = generated_graph(arguments.nodes)
    sampler = "pyg-lib or torch-sparse" if HAS_SAMPLER else "InNeighborSampler"
    print(f"{data.num_nodes:,} nodes, {data.num_edges:,} edges; NeighborLoader samples with {sampler}")
    draws = graycert.Draws(num_selection=max(1, arguments.draws // 5), num_estimation=arguments.draws)
    for name in arguments.models:
        out = run(name, data, epochs=arguments.epochs, draws=draws)
        found = out.certificates
        right = torch.from_numpy(found.prediction.copy()) == data.y
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        shares = float(right.double().mean()), float((found.radius >= 1).mean())
        print(
            f"{name}: accuracy of the smoothed classifier {shares[0]:.1%}, certified at radius 1 {shares[1]:.1%}, mean "
            f"radius {float(found.radius.clip(0).mean()):.2f}; processor time {out.train_seconds:.0f} s to train, "
            f"{out.certify_seconds:.0f} s to certify, peak memory {peak:.1f} GiB; {found.setup.engine}"
        )


if __name__ == "__main__":
    main()
