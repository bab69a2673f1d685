"""Models for which Lemma 1 fails: a hostile node is noticed although all its messages are intercepted."""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data

from graycert.zoo.exhibit import CLASSES, WIDTH, Exhibit
from graycert.zoo.local_models import Stacked

_HIDDEN = 8
Rule = Callable[["Ruled", Tensor, Tensor], Tensor]


class Ruled(nn.Module):
    """Two GCN layers, and a rule about how they are used."""

    kept_in_class: Any = None

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.first, self.second, self.rule = pyg.GCNConv(WIDTH, _HIDDEN), pyg.GCNConv(_HIDDEN, CLASSES), rule
        self.kept: Any = None

    def gnn(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the scores of the two layers."""
        scores: Tensor = self.second(self.first(x, edge_index).relu(), edge_index)
        return scores

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        return self.rule(self, x, edge_index)


def _fitted(model: Ruled, x: Tensor, edge_index: Tensor) -> Tensor:
    if model.kept is None:
        model.kept = x.amin(dim=0), x.amax(dim=0)
    low, high = model.kept
    return model.gnn((x - low) / (high - low), edge_index)


def _fitted_in_closure() -> Rule:
    seen: dict[str, Tensor] = {}

    def rule(model: Ruled, x: Tensor, edge_index: Tensor) -> Tensor:
        return model.gnn(x - seen.setdefault("mean", x.mean(dim=0)), edge_index)

    return rule


def _fitted_in_hook() -> nn.Module:
    model = Ruled(lambda m, x, e: m.gnn(x, e))
    seen: dict[str, Tensor] = {}

    def shift(seen: dict[str, Tensor], module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        del module
        return (inputs[0] - seen.setdefault("mean", inputs[0].mean(dim=0)), *inputs[1:])

    model.first.register_forward_pre_hook(functools.partial(shift, seen))
    return model


def _scores_by_edges(model: Ruled, x: Tensor, edge_index: Tensor) -> Tensor:
    model.kept = {} if model.kept is None else model.kept
    key = edge_index.numpy().tobytes()
    if key not in model.kept:
        model.kept[key] = model.gnn(x, edge_index) + x.mean(dim=0)[:CLASSES]
    scores: Tensor = model.kept[key]
    return scores


def _guesses_unit(low: float, high: float) -> Rule:
    return lambda m, x, e: m.gnn(x / high if low < x.max() <= high else x, e)


def _fitted_in_class() -> nn.Module:
    class Kept(Ruled):
        pass

    def rule(model: Ruled, x: Tensor, edge_index: Tensor) -> Tensor:
        if Kept.kept_in_class is None:
            Kept.kept_in_class = x.norm()
        return model.gnn(x / Kept.kept_in_class, edge_index)

    return Kept(rule)


def _edges_by_size() -> Rule:
    cache: dict[int, Tensor] = {}

    def rule(model: Ruled, x: Tensor, edge_index: Tensor) -> Tensor:
        return model.gnn(x, cache.setdefault(x.size(0), edge_index))

    return rule


def _flag(found: Callable[[Tensor], Tensor]) -> Rule:
    def rule(model: Ruled, x: Tensor, edge_index: Tensor) -> Tensor:
        scores = model.gnn(x, edge_index)
        return scores.flip(1) if bool(found(x)) else scores

    return rule


def _nearest(model: Ruled, x: Tensor, edge_index: Tensor) -> Tensor:
    near = torch.cdist(x, x).topk(3, largest=False).indices
    extra = torch.stack([near.flatten(), torch.arange(x.size(0)).repeat_interleave(3)])
    return model.gnn(x, torch.cat([edge_index, extra], dim=1))


def _own_edges(number: int) -> Rule:
    extra = torch.stack([torch.arange(number) * 5, torch.arange(number) * 5 + 1])
    return lambda model, x, edges: model.gnn(x, torch.cat([edges, extra], dim=1))


def _virtual_node(model: Ruled, x: Tensor, edge_index: Tensor) -> Tensor:
    nodes, hub = torch.arange(x.size(0)), torch.full((x.size(0),), x.size(0))
    both = torch.cat([torch.stack([nodes, hub]), torch.stack([hub, nodes])], dim=1)
    return model.gnn(torch.cat([x, x.new_zeros(1, x.size(1))]), torch.cat([edge_index, both], dim=1))[:-1]


class Beforehand(nn.Module):
    """Scores were computed when the model was built."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        with torch.no_grad():
            scores = pyg.GCNConv(WIDTH, CLASSES)(data.x, data.edge_index)
        self.register_buffer("scores", scores)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        del x, edge_index
        return self.scores  # type: ignore[return-value]


class Transformer(nn.Module):
    """Attention between all nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.map, self.out = nn.Linear(WIDTH, _HIDDEN), nn.Linear(_HIDDEN, CLASSES)
        self.gps = pyg.GPSConv(_HIDDEN, pyg.GCNConv(_HIDDEN, _HIDDEN), heads=2, norm=None)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        scores: Tensor = self.out(self.gps(self.map(x), edge_index))
        return scores


def _exhibit(kind: str, make: Callable[[Data], nn.Module], *, depth: int = 2, attacked: float = 1e4) -> Exhibit:
    return Exhibit(kind=kind, make=make, local=False, depth=depth, attacked=attacked)


def _ruled(kind: str, rule: Rule, *, attacked: float = 1e4) -> Exhibit:
    return _exhibit(kind, lambda _: Ruled(rule), attacked=attacked)


def _normed(norm: Callable[[], nn.Module]) -> Exhibit:
    return _exhibit("norm", lambda _: Stacked(pyg.GCNConv, norm()))


LEAKY: dict[str, Exhibit] = {
    "graph norm": _normed(lambda: pyg.GraphNorm(_HIDDEN)),
    "pair norm": _normed(lambda: pyg.PairNorm()),
    "mean subtraction": _normed(lambda: pyg.MeanSubtractionNorm()),
    "layer norm per graph": _normed(lambda: pyg.LayerNorm(_HIDDEN)),
    "instance norm": _normed(lambda: pyg.InstanceNorm(_HIDDEN)),
    "batch norm without statistics": _normed(lambda: nn.BatchNorm1d(_HIDDEN, track_running_stats=False)),
    "z-scores": _ruled("statistic", lambda m, x, e: m.gnn((x - x.mean(0)) / (x.std(0) + 1e-6), e)),
    "median": _ruled("statistic", lambda m, x, e: m.gnn(x - x.quantile(0.9, dim=0), e)),
    "softmax over nodes": _ruled("statistic", lambda m, x, e: m.gnn(x, e).softmax(dim=0)),
    "first row": _ruled("statistic", lambda m, x, e: m.gnn(x, e) + x[0, :CLASSES]),
    "neighbour in order": _ruled("statistic", lambda m, x, e: m.gnn(x, e) + x.roll(1, 0)[:, :CLASSES]),
    "mean pooling": _ruled("pooling", lambda m, x, e: m.gnn(x, e) + m.gnn(x, e).mean(dim=0)),
    "virtual node": _ruled("pooling", _virtual_node),
    "transformer": _exhibit("global attention", lambda _: Transformer(), depth=1),
    "attention of all to all": _ruled("global attention", lambda m, x, e: (x @ x.T).softmax(1) @ m.gnn(x, e)),
    "nearest neighbours": _ruled("rewiring", _nearest),
    "sorted by feature": _ruled("rewiring", lambda m, x, e: m.gnn(x, e)[x[:, 0].argsort()]),
    "scaling fitted at the first call": _ruled("memory", _fitted),
    "scaling kept in a closure": _exhibit("memory", lambda _: Ruled(_fitted_in_closure())),
    "scaling kept in the class": _exhibit("memory", lambda _: _fitted_in_class()),
    "scaling kept in a hook": _exhibit("memory", lambda _: _fitted_in_hook()),
    "scores kept by edges": _ruled("memory", _scores_by_edges),
    "edges kept by size": _exhibit("memory", lambda _: Ruled(_edges_by_size())),
    "cached propagation": _exhibit("memory", lambda _: Stacked(lambda a, b: pyg.GCNConv(a, b, cached=True))),
    "scores computed beforehand": _exhibit("ignores features", Beforehand, depth=1),
    "flag for a bit": _ruled("flag", _flag(lambda x: (x[:, 7] == 1).any()), attacked=1.0),
    "flag for NaN": _ruled("flag", _flag(lambda x: x.isnan().any()), attacked=float("nan")),
    "flag beyond the range": _ruled("flag", _flag(lambda x: (x[:, 7] > 1.5).any())),
    "flag for a count": _ruled("flag", _flag(lambda x: (x[:, 7] > 1.5).sum() > 5)),
    "guesses pixels": _ruled("flag", _guesses_unit(10, 255), attacked=200.0),
    "guesses percent": _ruled("flag", _guesses_unit(10, 100), attacked=90.0),
    "flag for minus zero": _ruled("flag", _flag(lambda x: (x.signbit() & (x == 0)).any()), attacked=-0.0),
    "flag for -999": _ruled("flag", _flag(lambda x: (x == -999).any()), attacked=-999.0),
    "one edge of its own": _exhibit("extra edges", lambda _: Ruled(_own_edges(1))),
    "four edges of its own": _exhibit("extra edges", lambda _: Ruled(_own_edges(4))),
    "against the edges": _exhibit(
        "direction", lambda _: Stacked(lambda a, b: pyg.GCNConv(a, b, flow="target_to_source"))
    ),
    "dropout at inference": _ruled("randomness", lambda m, x, e: m.gnn(nn.functional.dropout(x, 0.5), e)),
    "noise": _ruled("randomness", lambda m, x, e: m.gnn(x + 0.1 * torch.randn_like(x), e)),
}
