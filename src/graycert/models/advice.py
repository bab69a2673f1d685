"""The line to write for a model that is called in another way: what is advised has been tried, and works."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from graycert.errors import InvalidParameterError
from graycert.models.calling import AdaptedClassifier
from graycert.models.private_copy import private_copy, undisturbed

_CALLS = (None, "data", "adj_t", "EdgeIndex")


def line_for_output(out: Any, num_nodes: int, *, call: str = "") -> str | None:
    """Return "Write: " and the line that makes scores of what a model returned, None if there is none.

    Args:
        out: What the model returned.
        num_nodes: Number of nodes.
        call: Text of the argument that says how the model is called, if it has to be said.

    Example:
        >>> line_for_output((torch.zeros(3, 2), None), 3)
        'Write: model = graycert.as_node_classifier(model, output=0)'
    """
    said = _output_of(out, num_nodes)
    if said is None:
        return None
    arguments = ["model", *([f"call={call}"] if call else []), *([f"output={said}"] if said else [])]
    unsure = 'One number per node, all in [0, 1], is taken for the probability of class 1; else it is output="logit". '
    return (
        f"{unsure if 'probabilities' in said else ''}Write: model = graycert.as_node_classifier({', '.join(arguments)})"
    )


def line_for(model: nn.Module, x: Tensor, edge_index: Tensor) -> str | None:
    """Return "Write: " and the line after which ``model(x, edge_index)`` gives scores, None if no way is found.

    Args:
        model: The model; a copy is called.
        x: Features, shape (num_nodes, num_features).
        edge_index: Edges.
    """
    with undisturbed(), torch.inference_mode():
        for adapted, call in _ways(private_copy(model).eval()):
            line = _line_of(adapted, call, x, edge_index)
            if line is not None:
                return line if "," in line else None  # as it is, it gives scores: it failed for another reason
    return None


def line_for_scores(model: nn.Module, x: Tensor, edge_index: Tensor) -> str | None:
    """Return "Write: " and the line that makes scores of what ``model(x, edge_index)`` gives, None if there is none."""
    with undisturbed(), torch.inference_mode():
        return _line_of(AdaptedClassifier(private_copy(model).eval(), None, None, "logits"), "", x, edge_index)


def _line_of(adapted: AdaptedClassifier, call: str, x: Tensor, edge_index: Tensor) -> str | None:
    """Return the line for one way to call a model; what stays in [0, 1] for huge features too is a probability."""
    line = None
    for factor in (1, 1e4, -1e4):
        try:
            out = adapted.returned(factor * x, edge_index.clone())
        except Exception:  # whatever it raises: it is called in another way
            return line
        found = line_for_output(out, x.size(0), call=call)
        line = line or found
        if found is None or "probabilities" not in found:
            return found or line
    return line


def refuse_other_call(model: Any, x: Tensor, edge_index: Tensor) -> None:
    """Say how to call a model that failed, if a way is found.

    Raises:
        InvalidParameterError: With the line to write.
    """
    line = line_for(model, x, edge_index) if isinstance(model, nn.Module) and edge_index.size(0) == 2 else None
    if line is not None:
        raise InvalidParameterError(
            f"`model` must be callable as model(x, edge_index), but it is called in another way. {line}"
        )


def refuse_featureless(model: Any, data: Any) -> None:
    """Say how the embedding of a model for a graph without features becomes the features.

    Raises:
        InvalidParameterError: With the lines to write.
    """
    if not isinstance(model, nn.Module) or not isinstance(data, Data) or data.get("x") is not None:
        return
    num_nodes = data.get("num_nodes") if data.get("y") is None else data.y.size(0)
    tables = [name for name, module in model.named_modules() if isinstance(module, nn.Embedding)]
    fitting = [name for name in tables if model.get_submodule(name).num_embeddings == num_nodes]
    if len(tables) == len(fitting) == 1:
        raise InvalidParameterError(
            "`data.x` must hold the node features, got none: the certificate is about features that hostile nodes "
            f"choose. The rows of `model.{fitting[0]}` are what this model knows of each node; to certify against "
            f"nodes that choose theirs, write: data.x = model.{fitting[0]}.weight.detach().clone(); "
            'model = graycert.as_node_classifier(model, call="embedding")'
        )


def _ways(model: nn.Module) -> Iterator[tuple[AdaptedClassifier, str]]:
    """Yield ways to call a model, and the text of the argument that says so."""
    for call in _CALLS:
        yield AdaptedClassifier(model, call, None, "logits"), f'"{call}"' if call else ""
    if not any(isinstance(module, MessagePassing) for module in model.modules()):
        yield AdaptedClassifier(model, _on_rows, None, "logits"), "lambda model, x, edge_index: model(x)"
    children = [name for name, _ in model.named_children() if name.isidentifier()]
    if len(children) in (1, 2):  # a wrapper whose forward computes something else, or an encoder and a head
        text = f"model.{children[0]}(x, edge_index)"
        for name in children[1:]:
            text = f"model.{name}({text})"
        yield AdaptedClassifier(model, _chain(children), None, "logits"), f"lambda model, x, edge_index: {text}"


def _on_rows(model: Any, x: Tensor, edge_index: Tensor) -> Any:
    del edge_index
    return model(x)


def _chain(names: list[str]) -> Callable[[Any, Tensor, Tensor], Any]:
    def call(model: Any, x: Tensor, edge_index: Tensor) -> Any:
        out = getattr(model, names[0])(x, edge_index)
        for name in names[1:]:
            out = getattr(model, name)(out)
        return out

    return call


def _output_of(out: Any, num_nodes: int) -> str | None:
    """Return the text of `output`, empty for the default, None where no part of the output is a score."""
    if isinstance(out, Tensor):
        word = _word_for(out, num_nodes)
        return None if word is None else f'"{word}"' if word != "logits" else ""
    parts: list[tuple[int | str, Any]]
    if isinstance(out, tuple | list):
        parts = list(enumerate(out))
    elif isinstance(out, dict):
        parts = [(key, value) for key, value in out.items() if isinstance(key, int | str)]
    else:
        return None
    parts = [(part, value) for part, value in parts if _word_for(value, num_nodes) is not None]
    tables = [(value.size(1), number, part) for number, (part, value) in enumerate(parts) if value.dim() == 2]
    wide = [each for each in tables if each[0] > 1]
    if wide:  # beside the scores there may be embeddings, which have more columns
        return repr(min(wide)[-1])
    return f'({parts[0][0]!r}, "{_word_for(parts[0][1], num_nodes)}")' if parts else None


def _word_for(out: Any, num_nodes: int) -> str | None:
    if not isinstance(out, Tensor) or not out.is_floating_point() or out.dim() not in (1, 2):
        return None
    if out.dim() == 2 and out.size(0) == num_nodes and out.size(1) > 1:
        return "logits"
    if out.size(0) != num_nodes:
        return None
    return "logit" if bool(((out < 0) | (out > 1)).any()) else "probabilities"
