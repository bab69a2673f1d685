"""The model as it was trained, without smoothing: its classes on the graph as it is, and on the graph without edges."""

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from graycert._types import IntArray
from graycert.models.edge_inputs import sorted_edges, with_edge_inputs
from graycert.sampling.engines import scores_by_layers
from graycert.sampling.messages import messages_in_parts
from graycert.sampling.recognition import is_recognised
from graycert.sampling.scores import voted_class
from graycert.sampling.voting import evaluation_mode, skip_logits_of
from graycert.sampling.whole_pass import takes_much


def without_smoothing(
    model: nn.Module,
    data: Any,
    targets: IntArray,
    *,
    edge_inputs: Sequence[str] | None,
    device: torch.device | None,
    alone: bool,
) -> dict[str, IntArray]:
    """Return the classes of the targets by one pass of the model over the graph, and by one over its nodes alone.

    Nothing is certified of them: they say what the smoothed classifier is to be compared with.

    Args:
        model: The model.
        data: The graph.
        targets: Node indices, shape (num_targets,).
        edge_inputs: Names of values per edge that the model is given.
        device: Where to compute; default where the model's parameters are.
        alone: Whether to evaluate the graph without edges, too. A model that cannot be is left out.

    Returns:
        ``prediction_as_trained``, and ``prediction_without_messages`` if asked for: int64, shape (num_targets,), -1
        where scores single out no class.
    """
    found = {}
    for name, messages in (("prediction_as_trained", True), ("prediction_without_messages", False)):
        if not (messages or alone):
            continue
        try:
            scores = scores_without_smoothing(
                model, data, targets, edge_inputs=edge_inputs, device=device, messages=messages
            )
        except Exception:  # whatever a model raises that was never meant for a graph without edges
            if messages:
                raise
            continue
        classes: IntArray = voted_class(scores).numpy()
        found[name] = classes
    return found


def scores_without_smoothing(
    model: nn.Module,
    data: Any,
    targets: IntArray,
    *,
    edge_inputs: Sequence[str] | None,
    device: torch.device | None = None,
    messages: bool = True,
) -> Tensor:
    """Return the scores of the targets by one pass of the model over the graph, with its edges or without any.

    A model that is known for certain is evaluated layer by layer where a pass would take much (`takes_much`): the
    same scores, up to rounding and a number per node.

    Args:
        model: The model. With messages the scores are what ``forward`` returns, as for whoever calls it; without, what
            its skip connection shows of a target is added, as `FeaturesOnly` does.
        data: The graph.
        targets: Node indices, shape (num_targets,).
        edge_inputs: Names of values per edge that the model is given.
        device: Where to compute; default where the model's parameters are.
        messages: Whether there are edges.

    Returns:
        Shape (num_targets, num_classes), on the CPU.
    """
    where = device or next((each.device for each in model.parameters()), torch.device("cpu"))
    in_parts = where.type == "cpu" and takes_much(model, data.x, num_edges=data.edge_index.size(1))
    given, edges = with_edge_inputs(model, data, edge_inputs, in_order=not in_parts)
    nodes = torch.tensor(targets, device=where)
    with torch.inference_mode(), evaluation_mode(given), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same as in the passes before
        given.to(where)
        edges, found = edges if messages else edges[:, :0], None
        if in_parts:
            found = scores_by_layers(given, data, edges, targets)
        if found is None:
            x, edges = data.x.to(where), sorted_edges(edges) if in_parts else edges
            with messages_in_parts(given) if is_recognised(given) else nullcontext():
                found = given(x, edges.to(where))[nodes]
        shown = None if messages else skip_logits_of(given, data.x.to(where), nodes)
        return (found if shown is None else found + shown).cpu()
