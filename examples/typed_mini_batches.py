"""Train a model of a heterogeneous graph in mini-batches under random interception, then certify every paper.

``python examples/typed_mini_batches.py`` makes a graph of 30,000 papers and 20,000 authors, trains GraphSAGE as
`to_hetero` makes it of all relations, with `NeighborLoader`, certifies all papers against hostile authors, and prints
accuracy, certified share, time and memory. ``--nodes`` and ``--epochs`` make it smaller.

`NeighborLoader` samples with pyg-lib or torch-sparse. Neither can be installed from PyPI alone, so where both are
missing the loader is given `TypedInNeighborSampler`, which does the same in plain PyTorch.
"""

import argparse
import importlib.util
import resource
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot
from torch_geometric.data import HeteroData
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv, to_hetero
from torch_geometric.sampler import BaseSampler, HeteroSamplerOutput, NodeSamplerInput

import graycert

NUM_CLASSES, NUM_NEIGHBORS = 4, [10, 10]
WIDTHS = {"paper": 16, "author": 8}
WRITES, WRITTEN_BY = ("author", "writes", "paper"), ("paper", "written_by", "author")
CITES = ("paper", "cites", "paper")
HAS_SAMPLER = any(importlib.util.find_spec(name) is not None for name in ("pyg_lib", "torch_sparse"))
Relation = tuple[str, str, str]


class TypedInNeighborSampler(BaseSampler):  # type: ignore[misc]
    """Samples up to so many in-neighbours per node, relation and hop, without replacement, as `NeighborLoader` does.

    Args:
        data: The graph.
        num_neighbors: How many neighbours per node and relation, hop by hop.
        seed: Seeds the choice.
    """

    def __init__(self, data: HeteroData, num_neighbors: list[int], seed: int = 0) -> None:
        self.num_neighbors, self.generator = num_neighbors, torch.Generator().manual_seed(seed)
        self.sizes = {name: int(data[name].num_nodes) for name in data.node_types}
        self.order, self.sources, self.start = {}, {}, {}
        for relation, edges in data.edge_index_dict.items():
            degrees = torch.bincount(edges[1], minlength=self.sizes[relation[2]])
            self.order[relation] = edges[1].argsort(stable=True)
            self.sources[relation] = edges[0, self.order[relation]]
            self.start[relation] = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> HeteroSamplerOutput:
        """Return the sampled graph around some nodes, which come first among those of their type."""
        place = {name: torch.full((size,), -1) for name, size in self.sizes.items()}
        nodes = {name: torch.empty(0, dtype=torch.long) for name in self.sizes}
        nodes[index.input_type] = index.node
        place[index.input_type][index.node] = torch.arange(index.node.numel())
        low = dict.fromkeys(self.sizes, 0)
        found: dict[Relation, list[tuple[Tensor, Tensor, Tensor]]] = {relation: [] for relation in self.sources}
        for limit in self.num_neighbors:
            high = {name: each.numel() for name, each in nodes.items()}
            for relation, sources in self.sources.items():
                ring = nodes[relation[2]][low[relation[2]] : high[relation[2]]]
                receiver, edge = self._in_edges(relation, ring, limit)
                new = torch.unique(sources[edge])
                new = new[place[relation[0]][new] < 0]
                place[relation[0]][new] = torch.arange(new.numel()) + nodes[relation[0]].numel()
                nodes[relation[0]] = torch.cat([nodes[relation[0]], new])
                row = place[relation[0]][sources[edge]]
                found[relation].append((row, receiver + low[relation[2]], edge))
            low = high
        joined = {relation: [torch.cat(part) for part in zip(*parts, strict=True)] for relation, parts in found.items()}
        return HeteroSamplerOutput(
            node=nodes,
            row={relation: row for relation, (row, _, _) in joined.items()},
            col={relation: col for relation, (_, col, _) in joined.items()},
            edge={relation: edge for relation, (_, _, edge) in joined.items()},
            num_sampled_edges={name: [edge.numel() for _, _, edge in parts] for name, parts in found.items()},
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(self, *_: Any, **__: Any) -> HeteroSamplerOutput:
        """Only nodes are sampled from."""
        raise NotImplementedError

    @property
    def edge_permutation(self) -> dict[Relation, Tensor]:
        """The order in which edges are numbered here."""
        return self.order

    def _in_edges(self, relation: Relation, nodes: Tensor, limit: int) -> tuple[Tensor, Tensor]:
        """Return the receiver, as a position in ``nodes``, and the number of each sampled edge."""
        start = self.start[relation]
        degree = start[nodes + 1] - start[nodes]
        receiver = torch.repeat_interleave(degree)
        first = degree.cumsum(0) - degree
        edge = torch.arange(receiver.numel()) + (start[nodes] - first)[receiver]
        shuffled = (receiver + torch.rand(receiver.numel(), generator=self.generator, dtype=torch.float64)).argsort()
        chosen = shuffled[torch.arange(receiver.numel()) - first[receiver] < limit]
        return receiver[chosen], edge[chosen]


class Sage(nn.Module):
    """Two layers, written for one type; `to_hetero` makes them layers of all relations."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 32), SAGEConv((-1, -1), NUM_CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        scores: Tensor = self.second(self.first(x, edge_index).relu(), edge_index)
        return scores


def generated_graph(num_nodes: int, seed: int = 0) -> HeteroData:
    """Return papers and authors of four kinds, two to five authors and up to four citations per paper, and noise."""
    generator = torch.Generator().manual_seed(seed)
    sizes = {"paper": num_nodes * 3 // 5, "author": num_nodes - num_nodes * 3 // 5}
    kinds = {name: torch.randint(NUM_CLASSES, (size,), generator=generator) for name, size in sizes.items()}
    data = HeteroData()
    for name, width in WIDTHS.items():
        data[name].x = torch.randn(sizes[name], width, generator=generator)
        data[name].x[:, :NUM_CLASSES] += 1.5 * one_hot(kinds[name], NUM_CLASSES)
    data["paper"].y = kinds["paper"]
    data["paper"].train_mask = torch.rand(sizes["paper"], generator=generator) < 0.2

    def partners(source: str, number: int) -> Tensor:
        """Return edges into papers, four of five from nodes of their own kind."""
        receivers = torch.arange(sizes["paper"]).repeat_interleave(number)
        by_kind, counts = kinds[source].argsort(stable=True), torch.bincount(kinds[source], minlength=NUM_CLASSES)
        kind = kinds["paper"][receivers]
        within = (torch.rand(receivers.numel(), generator=generator) * counts[kind]).long()
        own = by_kind[within + (counts.cumsum(0) - counts)[kind]]
        anybody = torch.randint(sizes[source], receivers.shape, generator=generator)
        picked = torch.where(torch.rand(receivers.numel(), generator=generator) < 0.8, own, anybody)
        edges: Tensor = torch.unique(torch.stack([picked, receivers]), dim=1)
        return edges

    data[WRITES].edge_index = partners("author", 5)
    data[WRITTEN_BY].edge_index = data[WRITES].edge_index.flip(0)
    cites = partners("paper", 4)
    data[CITES].edge_index = cites[:, cites[0] != cites[1]]
    return data


def made_model(data: HeteroData) -> nn.Module:
    """Return the model, with a token per node type: `certify` finds it by its name."""
    model: nn.Module = to_hetero(Sage(), data.metadata())
    with torch.no_grad():
        model({name: data[name].x[:1] for name in WIDTHS}, dict.fromkeys(data.edge_types, torch.zeros(2, 1).long()))
    model.ablation_token = nn.ParameterDict({name: torch.zeros(width) for name, width in WIDTHS.items()})
    return model


def train_in_batches(model: Any, data: HeteroData, *, epochs: int, batch_size: int = 512, seed: int = 0) -> None:
    """Train as one trains with `NeighborLoader`; the one line more is ``batch = intercept(batch)``."""
    torch.manual_seed(seed)
    sampler = None if HAS_SAMPLER else TypedInNeighborSampler(data, NUM_NEIGHBORS, seed)
    loader = NeighborLoader(
        data,
        NUM_NEIGHBORS,
        ("paper", data["paper"].train_mask),
        batch_size=batch_size,
        shuffle=True,
        neighbor_sampler=sampler,
    )
    intercept = graycert.RandomInterception(
        p_delete={WRITES: 0.1, WRITTEN_BY: 0.1, CITES: 0.05},
        p_ablate={"paper": 0.2, "author": 0.6},
        token=model.ablation_token,
        seed=seed,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model.train()
    for _ in range(epochs):
        for batch in loader:
            batch = intercept(batch)
            scores = model(batch.x_dict, batch.edge_index_dict)["paper"][: batch["paper"].batch_size]
            loss = cross_entropy(scores, batch["paper"].y[: batch["paper"].batch_size])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    model.eval()


@dataclass(frozen=True)
class Outcome:
    """What came out.

    Args:
        certificates: Of all papers.
        train_seconds: Processor time of the training.
        certify_seconds: Processor time of the certification.
    """

    certificates: graycert.Certificates
    train_seconds: float
    certify_seconds: float


def run(data: HeteroData, *, epochs: int, draws: graycert.Draws) -> Outcome:
    """Train a model and certify every paper of the graph, which is never cut into batches for that."""
    torch.manual_seed(0)
    model = made_model(data)
    started = time.process_time()
    train_in_batches(model, data, epochs=epochs)
    trained = time.process_time()
    certificates = graycert.certify(
        model,
        data,
        smoothing=graycert.InterceptionSmoothing(
            p_delete={WRITES: 0.31, WRITTEN_BY: 0.31, CITES: 0.1}, p_ablate={"paper": 0.3, "author": 0.794}
        ),
        threat=graycert.NodeFeatureThreat(eligible_types=("author",)),
        draws=draws,
    )
    return Outcome(certificates, trained - started, time.process_time() - trained)


def main() -> None:
    """Read the arguments, run the model, and print a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=5)
    arguments = parser.parse_args()
    data = generated_graph(arguments.nodes)
    sampler = "pyg-lib or torch-sparse" if HAS_SAMPLER else "TypedInNeighborSampler"
    print(f"{data.num_nodes:,} nodes, {data.num_edges:,} edges; NeighborLoader samples with {sampler}")
    out = run(data, epochs=arguments.epochs, draws=graycert.Draws(num_selection=200, num_estimation=1_000))
    found = out.certificates
    right = torch.from_numpy(found.prediction.copy()) == data["paper"].y
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    shares = float(right.double().mean()), float((found.radius >= 1).mean())
    print(
        f"to_hetero(GraphSAGE), hostile authors: accuracy of the smoothed classifier {shares[0]:.1%}, certified at "
        f"radius 1 {shares[1]:.1%}, mean radius {float(found.radius.clip(0).mean()):.2f}; processor time "
        f"{out.train_seconds:.0f} s to train, {out.certify_seconds:.0f} s to certify, peak memory {peak:.1f} GiB; "
        f"{found.setup.engine}"
    )


if __name__ == "__main__":
    main()
