"""Votes under sparse smoothing: every draw flips attributes all over the graph, the structure stays."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.utils import sort_edge_index

from graycert._types import NO_CLASS, IntArray
from graycert._validation import check_integer
from graycert.errors import UnsoundSetupError
from graycert.models import InterceptionGNN
from graycert.models.interception_gnn import MessagePassingLayer
from graycert.sampling import CoinStream, Purpose, evaluation_mode
from graycert.sampling.engine import Progress
from graycert.sampling.scores import equal_scores, voted_class
from graycert.sampling.voting import check_scores
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.smoothing.sparse.draws import AttributeDraws
from graycert.training.drawn_field import DrawnField, FieldSampler

_UNTOUCHED = InterceptionSmoothing(p_delete=0.0, p_ablate=0.0)


@dataclass(frozen=True, eq=False)
class SparseSmoothingEngine:
    """Draws votes under sparse smoothing for fixed model, graph and targets, one sample per forward pass.

    Args:
        model: What is evaluated, in evaluation mode.
        x: Attributes, 0 or 1, shape (num_nodes, num_features).
        nodes: Nodes whose attributes are drawn: those that ``evaluate`` reads, int64 (num_drawn,).
        evaluate: Maps the sparse rows of ``nodes`` to the scores of the targets, (num_targets, num_classes).
        p_plus: Probability of setting a 0 to 1.
        p_minus: Probability of setting a 1 to 0.
        num_targets: Number of targets.
        num_classes: Number C of classes.
        name: Which evaluation this is, for people.
    """

    model: nn.Module
    x: Tensor
    nodes: Tensor
    evaluate: Callable[[Tensor], Tensor]
    p_plus: float
    p_minus: float
    num_targets: int
    num_classes: int
    name: str

    @property
    def draws_at_once(self) -> int:
        """One sample is evaluated after another."""
        return 1

    def votes(
        self,
        seed: int,
        purpose: Purpose,
        *,
        num_samples: int,
        first_sample: int = 0,
        progress: Progress | None = None,
    ) -> IntArray:
        """Return votes per target and class, int64 (num_targets, num_classes).

        Sample numbers ``first_sample ... first_sample + num_samples - 1`` of the stream are drawn. What a row lacks to
        ``num_samples`` are votes for no class (`graycert.sampling.scores`).
        """
        check_integer("num_samples", num_samples, at_least=1)
        votes = torch.zeros(self.num_targets, self.num_classes, dtype=torch.long)
        rows = torch.arange(self.num_targets)
        for scores in self.scores(seed, purpose, range(first_sample, first_sample + num_samples)):
            winner = voted_class(scores).cpu()
            singled_out = winner != NO_CLASS
            votes[rows[singled_out], winner[singled_out]] += 1
            if progress is not None:
                progress(1)
        return votes.numpy()

    def scores(self, seed: int, purpose: Purpose, samples: range) -> Iterator[Tensor]:
        """Yield the class scores of the targets in each sample, shape (num_targets, num_classes)."""
        draws = AttributeDraws.of(
            self.x, self.nodes, p_plus=self.p_plus, p_minus=self.p_minus, stream=CoinStream(seed, purpose)
        )
        with torch.inference_mode(), evaluation_mode(self.model):
            for sample in samples:
                yield self.evaluate(draws.draw(sample))


def build_sparse_smoothing_engine(
    model: nn.Module, data: Any, targets: NDArray[np.int64], *, p_plus: float, p_minus: float
) -> SparseSmoothingEngine:
    """Prepare draws under sparse smoothing.

    A model from `build_model` is evaluated on the receptive fields of the targets, layer by layer on those nodes alone
    whose result is used, from sparse rows. Nothing is assumed of any other model but that it is a function of its
    arguments: one draw is one pass over the whole graph with dense features. Neither is ever shown clean attributes.

    Args:
        model: ``forward(x, edge_index)`` -> (num_nodes, num_classes).
        data: Graph with binary ``x`` and with ``edge_index``.
        targets: Distinct nodes to vote on, shape (num_targets,).
        p_plus: Probability of setting a 0 to 1, in [0, 1].
        p_minus: Probability of setting a 1 to 0, in [0, 1].

    Raises:
        InvalidParameterError: If an attribute is neither 0 nor 1, or the model's output has the wrong shape.
        UnsoundSetupError: ``not-deterministic`` if what the model computes changes with earlier calls.
    """
    places = torch.tensor(targets)  # a copy: results hand out read-only arrays
    where = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    evaluate: _OnFields | _OnWholeGraph
    if isinstance(model, InterceptionGNN) and where.type == "cpu":
        evaluate = _OnFields.of(model, data, places)
        nodes = evaluate.field.nodes
    else:
        edge_index = sort_edge_index(data.edge_index.cpu(), sort_by_row=False)
        evaluate = _OnWholeGraph(model, edge_index.to(where), places)
        nodes = torch.arange(data.num_nodes)
    engine = SparseSmoothingEngine(
        model=model,
        x=data.x,
        nodes=nodes,
        evaluate=evaluate,
        p_plus=p_plus,
        p_minus=p_minus,
        num_targets=targets.size,
        num_classes=0,
        name="torch, receptive fields" if isinstance(evaluate, _OnFields) else "torch, whole graph",
    )
    first, _ = engine.scores(0, Purpose.AUDIT, range(2))
    again = next(engine.scores(0, Purpose.AUDIT, range(1)))
    rounding = 0.0 if where.type == "cpu" else 1e-5 * float(first.nan_to_num(0.0, 0.0, 0.0).abs().max())
    if not equal_scores(first, again, tolerance=rounding):
        raise UnsoundSetupError(
            "not-deterministic",
            "`model` must be a function of x and edge_index in evaluation mode, but the same input gave two outputs. "
            "Look for dropout that ignores self.training, and for features kept from earlier calls.",
        )
    return replace(engine, num_classes=first.size(1))


@dataclass(frozen=True, eq=False)
class _OnFields:
    """Evaluates our own models on the receptive fields: what a layer computes is a prefix of the field's nodes."""

    model: InterceptionGNN
    field: DrawnField

    @classmethod
    def of(cls, model: InterceptionGNN, data: Any, targets: Tensor) -> "_OnFields":
        sampler = FieldSampler(
            data.edge_index,
            targets,
            num_nodes=int(data.num_nodes),
            num_layers=model.num_layers,
            smoothing=_UNTOUCHED,
            stream=CoinStream(0, Purpose.AUDIT),  # no coin can delete or ablate
        )
        return cls(model, sampler.draw(range(1)))

    def __call__(self, rows: Tensor) -> Tensor:
        model, field = self.model, self.field
        hidden = model.first_layer.project(rows)
        for index, module in enumerate(model.layers):
            layer, hops = cast("MessagePassingLayer", module), model.num_layers - 1 - index
            if index:
                hidden = layer.project(model.activation(hidden))
            edges, degrees = field.edge_index[:, : field.edges_within[hops]], field.in_degree[: hidden.size(0)]
            hidden = layer.aggregate_first(hidden, edges, degrees, field.copies_within[hops])
        return hidden


@dataclass(frozen=True, eq=False)
class _OnWholeGraph:
    """Evaluates any model as its authors call it."""

    model: nn.Module
    edge_index: Tensor
    targets: Tensor

    def __call__(self, rows: Tensor) -> Tensor:
        x = rows.to_dense().to(self.edge_index.device)
        return check_scores(self.model(x, self.edge_index), num_nodes=x.size(0), x=x, finite=False)[self.targets]
