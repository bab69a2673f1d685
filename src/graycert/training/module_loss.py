"""The training objective of any module: a pass over the graph that a draw leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from graycert.data import SplitPart
from graycert.errors import GraycertError, InvalidParameterError
from graycert.graph.values_per_edge import argument_and_attribute
from graycert.models.advice import refuse_other_call
from graycert.models.calling import AdaptedClassifier
from graycert.models.private_copy import one_line, private_copy, undisturbed
from graycert.sampling.interception import InterceptionSampler, ablate
from graycert.sampling.streams import CoinStream
from graycert.sampling.voting import check_scores, skip_logits_of
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.training.objective import Objective


@dataclass(frozen=True)
class WholeDraws:
    """Some draws from φ on a whole graph.

    Args:
        kept: Which edges survive, bool (num_samples, num_edges).
        ablated: Which nodes are ablated, bool (num_samples, num_nodes).
        labels: Label per target of all draws, int64 (num_samples * num_targets,).
    """

    kept: Tensor
    ablated: Tensor
    labels: Tensor


class ModuleLoss(Objective[WholeDraws]):
    """Cross entropy of any smoothed module on the nodes of one part of a split.

    Args:
        model: ``forward(x, edge_index, **edge_inputs)`` -> scores (num_nodes, num_classes); where its parameters are.
        part: Graph and nodes.
        smoothing: p_d and p_a.
        stream: Where the coins come from.
        edge_inputs: Names of values per edge of the graph that the model is given.
    """

    def __init__(
        self,
        model: nn.Module,
        part: SplitPart,
        smoothing: InterceptionSmoothing,
        stream: CoinStream,
        edge_inputs: Sequence[str] = (),
    ) -> None:
        where, data = place_of(model), part.data
        self.model = model
        self._x, self._edges = data.x.detach().to(where), data.edge_index.to(where)
        self._inputs = {name: value.to(where) for name, value in values_per_edge(data, edge_inputs).items()}
        self._nodes, self._labels = part.nodes.to(where), data.y.to(where)[part.nodes.to(where)]
        self._sampler = InterceptionSampler.of_graph(smoothing, stream, self._edges, num_nodes=self._x.size(0))

    def batch(self, samples: range, *, drop: float = 0.0) -> WholeDraws:
        """Draw the given sample numbers; what is dropped of features is the model's own affair."""
        if drop:
            raise ValueError("a module drops features itself")
        draw = self._sampler.draw(torch.tensor(list(samples), device=self._edges.device))
        return WholeDraws(draw.kept, draw.ablated, self._labels.repeat(len(samples)))

    def scores(self, batch: WholeDraws) -> Tensor:
        """Return class scores; of a model that returns probabilities their logarithms."""
        token = token_of(self.model, self._x)
        found = []
        for kept, ablated in zip(batch.kept, batch.ablated, strict=True):
            inputs = {name: values[kept] for name, values in self._inputs.items()}
            out = self.model(ablate(self._x, token, ablated), self._edges[:, kept], **inputs)[self._nodes]
            skip = skip_logits_of(self.model, self._x, self._nodes)
            found.append(out if skip is None else out + skip)
        scores = torch.cat(found)
        if isinstance(self.model, AdaptedClassifier) and self.model.word == "probabilities":
            return scores.clamp(min=torch.finfo(scores.dtype).tiny).log()
        return scores


def place_of(model: nn.Module) -> torch.device:
    """Return where a model's parameters are."""
    return next((values.device for values in model.parameters()), torch.device("cpu"))


def token_of(model: Any, x: Tensor) -> Tensor:
    """Return the features of an ablated node: the model's own token, with its gradient, else zeros.

    Raises:
        InvalidParameterError: If it does not have a number per feature.
    """
    token = getattr(model, "ablation_token", None)
    if token is None:
        return x.new_zeros(x.size(1))
    if not isinstance(token, Tensor) or token.shape != (x.size(1),):
        raise InvalidParameterError(
            f"`model.ablation_token` must be a tensor of {x.size(1)} numbers, one per feature, got "
            f"{tuple(token.shape) if isinstance(token, Tensor) else type(token).__name__}."
        )
    return token


def values_per_edge(data: Any, names: Sequence[str]) -> Mapping[str, Tensor]:
    """Return values per edge of a graph by name.

    Raises:
        InvalidParameterError: If one has no row per edge.
    """
    num_edges = int(data.edge_index.size(1))
    pairs = [argument_and_attribute(name) for name in names]
    for _, name in pairs:
        value = data.get(name)
        if not isinstance(value, Tensor) or value.dim() < 1 or value.size(0) != num_edges:
            found = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else "none"
            raise InvalidParameterError(
                f"`edge_inputs` must name tensors of the graph with a row for each of its {num_edges} edges, got "
                f"{name!r} with {found}."
            )
    return {argument: data[name] for argument, name in pairs}


def num_classes_of(model: nn.Module, part: SplitPart, edge_inputs: Sequence[str]) -> int:
    """Return the number of classes that a module tells apart, which is called once, on the training graph.

    Raises:
        InvalidParameterError: If it does not give scores, with the line to write where one is known.
    """
    x, edges = part.data.x.detach().cpu(), part.data.edge_index.cpu()
    inputs = {name: value.cpu() for name, value in values_per_edge(part.data, edge_inputs).items()}
    with undisturbed(), torch.inference_mode():
        called = private_copy(model).cpu().eval()
        try:
            out = called(x, edges, **inputs)
        except GraycertError:
            raise
        except Exception as error:
            if not inputs:
                refuse_other_call(model, x, edges)
            raise InvalidParameterError(
                f"`model` must accept model(x, edge_index{''.join(f', {name}=...' for name in inputs)}), got "
                f"{one_line(error)}. Say how it is called with graycert.as_node_classifier."
            ) from error
        num_classes = check_scores(out, num_nodes=x.size(0), x=x, called=None if inputs else (called, edges)).size(1)
    largest = int(part.data.y.max())
    if largest >= num_classes:
        raise InvalidParameterError(
            f"`model` must have an output for each class, got {num_classes} outputs and label {largest}."
        )
    return num_classes
