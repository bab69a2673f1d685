"""Models with another signature than ``forward(x, edge_index)``, as node classifiers that can be audited and smoothed.

What is adapted is part of the adapter: it is copied, hashed, traced, moved and put into evaluation mode with it.
"""

import dis
import functools
import inspect
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData

from graycert._validation import check_choice
from graycert.errors import InvalidParameterError
from graycert.models.protocol import has_skip

Word = Literal["logits", "logit", "probabilities"]
Output = Word | int | str | tuple[int | str, Word]
Call = Callable[..., Any]

OUTPUTS: tuple[Word, ...] = ("logits", "logit", "probabilities")
_PASSED_ON = ("ablation_token", "skip", "skip_logits")


def as_node_classifier(
    model: nn.Module | Sequence[nn.Module] | Mapping[str, nn.Module],
    call: str | Call | None = None,
    output: Output = "logits",
) -> "AdaptedClassifier":
    r"""Return a model as one that is called ``forward(x, edge_index, **edge_inputs)`` and gives a score per class.

    A model with one logit z gets the scores (0, z), one with one probability p gets (1 - p, p): class 1 is predicted
    for z > 0, class 0 for z < 0, and z = 0 exactly is a vote for no class (`graycert.sampling.scores.voted_class`).

    Guarantee:
        What is certified is the model that this returns. It has no state of its own, and goes through `audit_model` as
        any other. Its ``ablation_token``, ``skip`` and ``skip_logits`` are those of ``model``.

    Args:
        model: The module; or several, e.g. an encoder and a head: the first gets features and edges, each other one
            what the one before it returned. Names (a dict) are for ``call``.
        call: How it is called. None: ``model(x, edge_index, **edge_inputs)``. "data": ``model(data)`` with ``data.x``,
            ``data.edge_index`` and edge inputs. "adj_t": ``model(x, adj_t)`` with PyTorch's sparse matrix of the
            edges, row = target, whose values are the edge input "edge_weight". "EdgeIndex": ``model(x, edge_index)``
            with PyTorch Geometric's class, sorted by target. "embedding": the rows of its one ``nn.Embedding`` are
            ``x``, and it is called ``model(edge_index)`` or ``model(nodes, edge_index)``. Or a function
            ``call(model, x, edge_index, **edge_inputs)``, which calls no module but its first argument.
        output: What the call returns: "logits" or "probabilities", one column per class; "logit" or "probabilities"
            of class 1 alone, shape (num_nodes,) or (num_nodes, 1). An index or key names the part of a tuple, list or
            mapping that holds logits; ``(index, "logit")`` says both.

    Returns:
        A ``torch.nn.Module`` that holds the model, not a copy, as ``.model``.

    Raises:
        InvalidParameterError: If an argument is none of these, or ``call`` uses modules that are no part of ``model``.

    Example:
        >>> head = nn.Linear(3, 1)
        >>> model = as_node_classifier(head, call=lambda model, x, edge_index: model(x), output="logit")
        >>> tuple(model(torch.ones(4, 3), torch.empty(2, 0, dtype=torch.long)).shape)
        (4, 2)
    """
    held = _module_of(model)
    if isinstance(call, str):
        check_choice("call", call, tuple(_CALLS))
    elif call is None and isinstance(held, nn.ModuleDict):
        raise InvalidParameterError(
            "`call` must say how modules with names are called, got None. Pass e.g. "
            "call=lambda model, x, edge_index: model['head'](model['encoder'](x, edge_index))."
        )
    elif call is not None and not isinstance(call, types.FunctionType):
        raise InvalidParameterError(
            f"`call` must be None, a plain function or one of {', '.join(_CALLS)}, got {type(call).__name__}, whose "
            "state nobody could look through. Write call=lambda model, x, edge_index: ..."
        )
    elif call is not None:
        _refuse_other_modules(call)
    part, word = _part_and_word(output)
    if word == "probabilities" and has_skip(held):
        raise InvalidParameterError(
            '`output` must be "logits" or "logit" for a model with a skip connection, got "probabilities", to which '
            "nothing can be added. Let forward return logits."
        )
    return AdaptedClassifier(held, call, part, word)


class AdaptedClassifier(nn.Module):
    """What `as_node_classifier` returns.

    Args:
        model: What is adapted.
        call: How it is called.
        part: Index or key of what is taken of its output, None for all.
        word: What that is.
    """

    def __init__(self, model: nn.Module, call: str | Call | None, part: int | str | None, word: Word) -> None:
        super().__init__()
        self.model, self.call, self.part, self.word = model, call, part, word
        if call == "embedding":
            self.table, self.nodes_first = _embedding_of(model)

    def forward(self, x: Tensor, edge_index: Tensor, **edge_inputs: Tensor) -> Tensor:
        """Return class scores, shape (num_nodes, num_classes)."""
        scores: Tensor = per_class(self.returned(x, edge_index, **edge_inputs), x.size(0), self.word)
        return scores

    def returned(self, x: Tensor, edge_index: Tensor, **edge_inputs: Tensor) -> Any:
        """Return what the model returns, or the part of it that is asked for."""
        if self.call is None:
            out = _plainly(self, x, edge_index, edge_inputs)
        elif isinstance(self.call, str):
            out = _CALLS[self.call](self, x, edge_index, edge_inputs)
        else:
            out = self.call(self.model, x, edge_index, **edge_inputs)
        if self.part is None and isinstance(out, Mapping) and self.word in out:
            return out[self.word]
        return out if self.part is None else _taken(out, self.part)

    def __getattr__(self, name: str) -> Any:
        """Return what the model says of its token and skip connection, where the adapter does not say it."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name not in _PASSED_ON:
                raise
        found = getattr(super().__getattr__("model"), name)
        return (lambda x: per_class(found(x), x.size(0), self.word)) if name == "skip_logits" else found


def per_class(out: Any, num_nodes: int, word: Word) -> Any:
    """Return one column of scores per class; what is no tensor is left to who checks scores.

    Raises:
        InvalidParameterError: If there is to be one number per node, and there is not.
    """
    if word == "logits" or not isinstance(out, Tensor) or (word == "probabilities" and _is_wide(out, num_nodes)):
        return out
    if out.numel() != num_nodes:
        raise InvalidParameterError(
            f'`output` must say what the model returns, got "{word}" for values of shape {tuple(out.shape)} of '
            f'{num_nodes} nodes. Leave it at "logits" for a column per class; an index names a part of a tuple.'
        )
    one = out.reshape(-1)
    return torch.stack([1 - one if word == "probabilities" else torch.zeros_like(one), one], dim=1)


def _is_wide(out: Tensor, num_nodes: int) -> bool:
    return out.dim() == 2 and out.size(0) == num_nodes and out.size(1) > 1


def _taken(out: Any, part: int | str) -> Any:
    if isinstance(out, Tensor):
        raise InvalidParameterError(
            f"`output` must be a word for a model that returns a tensor, got {part!r}, which names a part of a tuple "
            'or mapping. Leave it at "logits".'
        )
    try:
        return out[part]
    except (LookupError, TypeError) as error:
        raise InvalidParameterError(
            f"`output` must name a part of what the model returns, a {type(out).__name__}, got {part!r} "
            f"({type(error).__name__}: {error})."
        ) from error


def _part_and_word(output: Any) -> tuple[int | str | None, Word]:
    part, word = output if isinstance(output, tuple) and len(output) == 2 else (None, output)
    if part is None and word not in OUTPUTS:
        part, word = word, "logits"
    if word not in OUTPUTS or isinstance(part, bool) or not isinstance(part, int | str | None):
        raise InvalidParameterError(
            f"`output` must be {', '.join(OUTPUTS)}, the index or key of a part, or (index, word), got {output!r}."
        )
    return part, word


def _module_of(model: Any) -> nn.Module:
    if isinstance(model, nn.Module):
        return model
    several = list(model.values()) if isinstance(model, Mapping) else list(model) if isinstance(model, Sequence) else []
    if not several or not all(isinstance(each, nn.Module) for each in several):
        raise InvalidParameterError(
            f"`model` must be a torch.nn.Module, or several in a tuple or dict, got {type(model).__name__}. Of a "
            "function pass the modules that it calls, and itself as `call`."
        )
    return nn.ModuleDict(dict(model)) if isinstance(model, Mapping) else nn.ModuleList(several)


def _plainly(adapter: AdaptedClassifier, x: Tensor, edge_index: Tensor, edge_inputs: dict[str, Tensor]) -> Any:
    if not isinstance(adapter.model, nn.ModuleList):
        return adapter.model(x, edge_index, **edge_inputs)
    first, *others = adapter.model
    out = first(x, edge_index, **edge_inputs)
    for module in others:
        out = module(out)
    return out


def _on_data(adapter: AdaptedClassifier, x: Any, edge_index: Any, edge_inputs: dict[str, Any]) -> Any:
    made = _hetero_data if isinstance(x, Mapping) else _plain_data
    return adapter.model(made(x, edge_index, edge_inputs))


def _plain_data(x: Tensor, edge_index: Tensor, edge_inputs: dict[str, Tensor]) -> Data:
    return Data(x=x, edge_index=edge_index, **edge_inputs)


def _hetero_data(x_dict: Any, edge_index_dict: Any, edge_inputs: dict[str, Any]) -> HeteroData:
    data = HeteroData({name: {"x": rows} for name, rows in x_dict.items()})
    for relation, edges in edge_index_dict.items():
        data[relation].edge_index = edges
    for name, values_dict in edge_inputs.items():
        for relation, values in values_dict.items():
            data[relation][name] = values
    return data


def _on_sparse_matrix(adapter: AdaptedClassifier, x: Tensor, edge_index: Tensor, edge_inputs: dict[str, Tensor]) -> Any:
    others = dict(edge_inputs)
    values = others.pop("edge_weight", None)
    if values is None:
        values = torch.ones(edge_index.size(1), dtype=x.dtype, device=x.device)
    order = torch.argsort(edge_index[1] * x.size(0) + edge_index[0])
    ends = torch.bincount(edge_index[1], minlength=x.size(0)).cumsum(0)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Sparse (CSR tensor support is in beta|invariant checks are implicitly)"
        )
        matrix = torch.sparse_csr_tensor(
            torch.cat([ends.new_zeros(1), ends]),
            edge_index[0, order],
            values[order],
            (x.size(0), x.size(0)),
            check_invariants=False,
        )
        return adapter.model(x, matrix, **{name: each[order] for name, each in others.items()})


def _on_edge_index(adapter: AdaptedClassifier, x: Tensor, edge_index: Tensor, edge_inputs: dict[str, Tensor]) -> Any:
    order = edge_index[1].argsort(stable=True)
    edges = EdgeIndex(edge_index[:, order], sparse_size=(x.size(0), x.size(0)), sort_order="col")
    return adapter.model(x, edges, **{name: values[order] for name, values in edge_inputs.items()})


def _on_embedding(adapter: AdaptedClassifier, x: Tensor, edge_index: Tensor, edge_inputs: dict[str, Tensor]) -> Any:
    nodes = (torch.arange(x.size(0), device=x.device),) if adapter.nodes_first else ()
    rows = {adapter.table: x}
    return torch.func.functional_call(adapter.model, rows, (*nodes, edge_index), edge_inputs, strict=False)


_CALLS: dict[str, Callable[[AdaptedClassifier, Tensor, Tensor, dict[str, Tensor]], Any]] = {
    "data": _on_data,
    "adj_t": _on_sparse_matrix,
    "EdgeIndex": _on_edge_index,
    "embedding": _on_embedding,
}


def _embedding_of(model: nn.Module) -> tuple[str, bool]:
    """Return the name of the weights of the one embedding table, and whether forward takes nodes before edges."""
    found = [name for name, module in model.named_modules() if isinstance(module, nn.Embedding)]
    if len(found) != 1:
        raise InvalidParameterError(
            f'`call` must not be "embedding" for a model with {len(found)} modules of type nn.Embedding. Pass a '
            "function that uses `x` in the place of the table."
        )
    given = inspect.signature(model.forward).parameters.values()
    needed = [each for each in given if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
    return f"{found[0]}.weight".removeprefix("."), len(needed) > 1


def _refuse_other_modules(call: types.FunctionType) -> None:
    """Refuse a function that holds modules: they would not be copied, moved or put into evaluation mode."""
    found = next(_modules_named_in(call, set()), None)
    if found is not None:
        raise InvalidParameterError(
            f"`call` must call no module but its first argument, got a function that uses `{found}`, which would not "
            "be copied with the model. Pass it in: as_node_classifier((model, other), call=lambda models, x, "
            "edge_index: ...), and use the argument."
        )


def _modules_named_in(call: types.FunctionType, seen: set[int]) -> Iterator[str]:
    """Yield names of modules that a function reaches by closure, global or default, or by functions beside it."""
    if id(call) in seen:
        return
    seen.add(id(call))
    for name, value in _values_named_in(call):
        yield from _modules_in(name, value, call, seen)


def _modules_in(name: str, value: Any, call: types.FunctionType, seen: set[int]) -> Iterator[str]:
    """Yield names of modules that a value is, holds, is bound to, or has as attributes that the function names."""
    if isinstance(value, nn.Module):
        yield name
    elif isinstance(value, types.FunctionType):
        if value.__module__ == call.__module__:
            yield from _modules_named_in(value, seen)
    elif isinstance(value, types.MethodType):
        yield from _modules_in(f"{name}.__self__", value.__self__, call, seen)
        yield from _modules_in(name, value.__func__, call, seen)
    elif isinstance(value, functools.partial):
        for part in (value.func, *value.args, *value.keywords.values()):
            yield from _modules_in(name, part, call, seen)
    elif isinstance(value, dict | list | tuple | set):
        if id(value) not in seen:
            seen.add(id(value))
            for each in value.values() if isinstance(value, dict) else value:
                yield from _modules_in(name, each, call, seen)
    elif not isinstance(value, type | types.ModuleType | Tensor) and id(value) not in seen:
        seen.add(id(value))
        held = getattr(value, "__dict__", {})
        for attribute in _attributes_of(call.__code__) & set(held):
            yield from _modules_in(f"{name}.{attribute}", held[attribute], call, seen)


def _attributes_of(code: types.CodeType) -> set[str]:
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return set(code.co_names).union(*(_attributes_of(each) for each in inner))


def _values_named_in(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not yet filled
            continue
    yield from ((f"default {number}", value) for number, value in enumerate(function.__defaults__ or ()))
    yield from (function.__kwdefaults__ or {}).items()
    yield from ((name, function.__globals__.get(name)) for name in _globals_of(function.__code__))


def _globals_of(code: types.CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(step.argval)
        elif isinstance(step.argval, types.CodeType):
            yield from _globals_of(step.argval)
