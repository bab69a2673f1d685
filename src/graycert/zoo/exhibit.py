"""A model with the right verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

WIDTH, CLASSES = 8, 3
ATTRIBUTES, RELATIONS = 3, 3
AUTHOR_WIDTH = 5
TYPED_RELATIONS = (
    ("author", "writes", "paper"),
    ("author", "reviews", "paper"),
    ("paper", "written_by", "author"),
    ("paper", "cites", "paper"),
)


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A small model, and whether Lemma 1 (message interception) holds for it.

    Args:
        kind: What it is an example of.
        make: Builds the model for a graph with 8 features and 3 classes.
        local: Whether intercepted messages cannot change a prediction.
        depth: Number k of propagation steps; of a leaky model: what its layers suggest.
        counted: Whether the steps can be counted; else ``depth`` must be passed as ``num_layers``.
        attacked: For a leaky model, the value that hostile nodes take in an attack that works.
        edge_inputs: Names of the values per edge that ``forward`` takes, see `with_values`.
        typed: Whether it is a model of the graph with node types that `with_types` makes.
    """

    kind: str
    make: Callable[[Data], nn.Module]
    local: bool
    depth: int
    counted: bool = True
    attacked: float = 1e4
    edge_inputs: tuple[str, ...] = ()
    typed: bool = False

    def graph(self, data: Data) -> Any:
        """Return a graph with the values per edge, or the node types, that the model is given."""
        if self.typed:
            return with_types(data)
        return with_values(data) if self.edge_inputs else data


def zoo_graph(*, num_nodes: int = 60, seed: int = 0, directed: bool = False) -> Data:
    """Return a graph to show the zoo on: three classes, linked within; one node without edges.

    Args:
        num_nodes: Number of nodes.
        seed: Seeds edges and features.
        directed: Whether edges have one direction.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(num_nodes) % CLASSES
    pairs = torch.randint(num_nodes // CLASSES, (2, 2 * num_nodes), generator=generator) * CLASSES
    pairs = pairs + torch.randint(CLASSES, (1, 2 * num_nodes), generator=generator)
    pairs = pairs[:, (pairs[0] != pairs[1]) & (pairs < num_nodes - 1).all(dim=0)]
    edges = torch.unique(pairs if directed else torch.cat([pairs, pairs.flip(0)], dim=1), dim=1)
    x = torch.nn.functional.one_hot(labels, WIDTH) + 0.3 * torch.randn(num_nodes, WIDTH, generator=generator)
    return Data(x=x, edge_index=edges[:, edges[1].argsort(stable=True)], y=labels)


def with_values(data: Data, *, seed: int = 0) -> Data:
    """Return a graph with ``edge_weight``, ``edge_attr`` and ``edge_type``, which have nothing to do with features."""
    generator = torch.Generator().manual_seed(seed)
    valued, size = data.clone(), data.edge_index.size(1)
    valued.edge_weight = 0.2 + torch.rand(size, generator=generator)
    valued.edge_attr = torch.rand(size, ATTRIBUTES, generator=generator)
    valued.edge_type = torch.randint(RELATIONS, (size,), generator=generator)
    return valued


def with_types(data: Data) -> HeteroData:
    """Return a graph of papers and authors: nodes of both types, their edges by relation, features of two widths.

    Of edges from authors to papers every third is in two relations; authors know no authors.
    """
    typed, is_paper = HeteroData(), _papers(data)
    place = torch.where(is_paper, is_paper.cumsum(0), (~is_paper).cumsum(0)) - 1
    typed["paper"].x, typed["paper"].y = data.x[is_paper], data.y[is_paper]
    typed["author"].x = data.x[~is_paper, :AUTHOR_WIDTH]
    for relation in TYPED_RELATIONS:
        source, receiver = (is_paper == (end == "paper") for end in (relation[0], relation[2]))
        columns = data.edge_index[:, source[data.edge_index[0]] & receiver[data.edge_index[1]]]
        typed[relation].edge_index = place[columns[:, ::3] if relation[1] == "reviews" else columns]
    return typed


def _papers(data: Data) -> Tensor:
    return torch.arange(int(data.num_nodes or 0)) // CLASSES % 2 == 0


def attack_works(exhibit: Exhibit, data: Data) -> bool:
    """Attack a leaky model: one hostile node in five, every message intercepted; does another node's output change?

    The attacker acts before the model sees anything: the model is built and called on the attacked graph first, then on
    a draw in which every edge is deleted. The same is done without an attack, with the same weights.

    Args:
        exhibit: What to attack.
        data: The graph.
    """
    hostile = torch.arange(int(data.num_nodes or 0)) % 5 == 0
    attacked = data.x.clone()
    attacked[hostile] = exhibit.attacked
    before, after = (_drawn(exhibit, data, x) for x in (data.x, attacked))
    same = (before == after) | (before.isnan() & after.isnan())
    return not bool(same[~hostile].all())


def _drawn(exhibit: Exhibit, data: Data, x: Tensor) -> Tensor:
    nothing = torch.empty(2, 0, dtype=torch.long)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model: Any = exhibit.make(Data(x=x, edge_index=data.edge_index, y=data.y)).eval()
        if exhibit.typed:
            return _papers_drawn(model, data, x)
        values = {name: exhibit.graph(data)[name] for name in exhibit.edge_inputs}
        model(x.clone(), data.edge_index, **values)
        scores: Tensor = model(x.clone(), nothing, **{name: each[:0] for name, each in values.items()})
    return scores


def _papers_drawn(model: Any, data: Data, x: Tensor) -> Tensor:
    typed = with_types(Data(x=x, edge_index=data.edge_index, y=data.y))
    model(typed.x_dict, typed.edge_index_dict)
    found = model(typed.x_dict, {relation: edges[:, :0] for relation, edges in typed.edge_index_dict.items()})
    found = found["paper"] if isinstance(found, dict) else found
    scores: Tensor = found.new_zeros(x.size(0), found.size(1))
    scores[_papers(data)] = found
    return scores
