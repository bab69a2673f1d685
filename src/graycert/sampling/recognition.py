"""Which models the compiled engine knows: a chain of convolutions and row-wise operations, found by inspection.

Types are compared exactly, and every option that would change the arithmetic is looked at. A foreign module is traced
symbolically (torch.fx), which fails where its forward pass depends on values or shapes. Whatever is left unclear is a
reason to evaluate the model with PyTorch instead; it is never guessed.
"""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINConv, GraphConv, MessagePassing, SAGEConv
from torch_geometric.nn.aggr import SumAggregation
from torch_geometric.nn.dense.linear import Linear as PyGLinear
from torch_geometric.nn.norm import BatchNorm as PyGBatchNorm

from graycert.models import InterceptionGNN
from graycert.models.calling import AdaptedClassifier
from graycert.models.edge_inputs import GivenEdgeInputs
from graycert.models.gat import GATLayer
from graycert.models.gatv2 import GATv2Layer
from graycert.models.gcn import GCNLayer
from graycert.models.outside_state import OutsideState
from graycert.models.sma import SoftMedoidLayer
from graycert.sampling.known_layers import (
    batch_norm_of,
    check_conv,
    check_untouched,
    gat_of,
    gatv2_of,
    gcn_of,
    graph_conv_of,
    linear_of,
    sage_of,
    shift_of,
)
from graycert.sampling.operations import (
    Activation,
    Affine,
    Aggregation,
    Linear,
    NormalisedSum,
    Operation,
    PlainSum,
    SoftMedoid,
    UnknownModelError,
)


def is_recognised(model: nn.Module) -> bool:
    """Return whether a model in evaluation mode is a chain of well-known layers."""
    try:
        recognise(model)
    except UnknownModelError:
        return False
    return True


def recognise(model: nn.Module) -> list[Operation]:
    """Return what the model does to the rows of x, in order.

    The model must be in evaluation mode.

    Raises:
        UnknownModelError: If anything about it is not known for certain.
    """
    for module in model.modules():
        check_untouched(module)
    for parameter in model.parameters():
        if parameter.dtype != torch.float32 or parameter.device.type != "cpu":
            raise UnknownModelError(f"has parameters of type {parameter.dtype} on {parameter.device}")
    if type(model) is GivenEdgeInputs:
        operations = _of_weighted(model)
    elif type(model) is InterceptionGNN:
        operations = list(_of_interception_gnn(model))
    elif type(model) is AdaptedClassifier:
        operations = _of_adapted(model)
    else:
        try:
            kinds = {each.kind for each in inspect.signature(model.forward).parameters.values()}
        except (TypeError, ValueError) as error:  # compiled code, as of TorchScript
            raise UnknownModelError("has a forward pass without a signature") from error
        any_number = bool(kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})  # fx unpacks none
        operations = _traced_apart(_Returned(model) if any_number else model)
    if not any(isinstance(operation, Aggregation) for operation in operations):
        raise UnknownModelError("has no convolution")
    return operations


def _of_adapted(model: AdaptedClassifier) -> list[Operation]:
    """Follow what is adapted; a single logit z becomes (0, z) by a linear map."""
    plain = model.call is None and model.part is None and not isinstance(model.model, nn.ModuleList)
    return _per_class(recognise(model.model) if plain else _traced_apart(_Returned(model)), model.word)


def _of_weighted(model: GivenEdgeInputs) -> list[Operation]:
    """Follow a model that is given one value per edge, which its convolutions may take for a weight."""
    names = tuple(model.inputs.values)
    if len(names) > 1:
        raise UnknownModelError(f"is given several values per edge ({', '.join(names)})")
    inner = model.model
    operations = _traced_apart(_Returned(inner, names[0]), num_inputs=3)
    return _per_class(operations, inner.word) if type(inner) is AdaptedClassifier else operations


def _per_class(operations: list[Operation], word: str) -> list[Operation]:
    two = Linear(np.array([[0], [1]], dtype=np.float32), np.zeros(2, dtype=np.float32))
    return [*operations, two] if word == "logit" else operations


class _Returned(nn.Module):
    """What a model returns that may be adapted, and given a value per edge, with a signature that can be traced."""

    def __init__(self, model: nn.Module, name: str | None = None) -> None:
        super().__init__()
        self.model, self.name = model, name

    def forward(self, x: Tensor, edge_index: Tensor, values: Tensor | None = None) -> Any:
        called: Any = self.model.returned if type(self.model) is AdaptedClassifier else self.model
        return called(x, edge_index, **({} if self.name is None else {self.name: values}))


def _traced_apart(model: nn.Module, *, num_inputs: int = 2) -> list[Operation]:
    """Trace a copy: what forward stores would be symbols, in the module and outside it."""
    outside = OutsideState(model)
    try:
        return list(_traced(copy.deepcopy(model), num_inputs=num_inputs))
    finally:
        outside.restore()


def _of_interception_gnn(model: InterceptionGNN) -> Iterator[Operation]:
    if type(model.feature_dropout) is not nn.Dropout:
        raise UnknownModelError(f"has a {type(model.feature_dropout).__name__} before its layers")
    for index, layer in enumerate(model.layers):
        if index:
            yield _function_activation(model.activation, (), {})
        if type(layer) is GCNLayer:
            _check_taken_out(layer.conv.lin)
            yield from gcn_of(layer.conv, layer.linear)
        elif type(layer) is GATLayer:
            _check_taken_out(layer.conv.lin)
            yield from gat_of(layer.conv, layer.linear)
        elif type(layer) is GATv2Layer:
            _check_taken_out(layer.conv.lin_l, layer.conv.lin_r)
            yield from gatv2_of(layer.conv, layer.sender, layer.receiver)
        elif type(layer) is SoftMedoidLayer:
            yield linear_of(layer.linear)
            yield SoftMedoid(limit=int(layer.num_neighbors), temperature=float(layer.temperature))
            yield shift_of(layer.bias)
        else:
            raise UnknownModelError(f"has a layer of type {type(layer).__name__}")


def _check_taken_out(*linears: nn.Module) -> None:
    """The maps that graycert's layers apply in `project` must not act in the convolution once more."""
    if any(type(linear) is not nn.Identity for linear in linears):
        raise UnknownModelError("applies the linear map of a layer twice")


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Look into containers, stop at layers."""
        return type(m) in _MODULES or isinstance(m, MessagePassing) or super().is_leaf_module(m, module_qualified_name)


def _traced(module: nn.Module, *, num_inputs: int) -> Iterator[Operation]:
    """Follow ``x`` from operation to operation; it is the first input, edges the second, weights the third."""
    name, graph = type(module).__name__, num_inputs > 1
    try:
        required, optional = _arguments(module, num_inputs)
        traced = _Tracer().trace(module, concrete_args=optional)
    except Exception as error:  # torch.fx raises many kinds, and so may a foreign forward pass
        raise UnknownModelError(f"has a forward pass that cannot be traced ({name}: {error})") from error
    inputs = [node for node in traced.nodes if node.op == "placeholder" and node.target in required]
    nodes = _beyond_defaults(traced.nodes, inputs)
    if not inputs:
        raise UnknownModelError(f"takes no features ({name})")
    current: fx.Node = inputs[0]
    edges, weights = ([*inputs[1:], None, None])[:2]
    normalised = False  # by a log-softmax, or brought into another shape
    for node in nodes:
        if node.op == "placeholder":
            continue
        if node.op == "output":
            if node.args[0] is not current:
                raise UnknownModelError(f"returns something else than its last layer ({name})")
            return
        if normalised or not node.args or node.args[0] is not current or len(current.users) != 1:
            raise UnknownModelError(f"is not a chain of layers ({name}, at {node.name})")
        if node.op == "call_module":
            layer = module.get_submodule(str(node.target))
            yield from _of_module(layer, node, edges, weights)
        elif node.op in ("call_function", "call_method") and _is_log_softmax(node):
            normalised = graph  # it adds one number to all scores of a node; nothing may follow
            if not graph:
                raise UnknownModelError(f"has a log-softmax inside ({name})")
        elif node.op in ("call_function", "call_method") and _is_squeeze(node) and graph:
            normalised = True  # of a single score per node; nothing may follow
        elif node.op in ("call_function", "call_method"):
            yield from _of_function(node)
        else:
            raise UnknownModelError(f"reads {node.target} ({name})")
        current = node
    raise UnknownModelError(f"returns nothing ({name})")


def _arguments(module: nn.Module, num_inputs: int) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the inputs of ``forward``, and the values of its other arguments when they are left out."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    others = [p for p in parameters[num_inputs:] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [p.name for p in parameters[:num_inputs]], {p.name: p.default for p in others}


def _beyond_defaults(nodes: Iterable[fx.Node], inputs: Sequence[fx.Node]) -> list[fx.Node]:
    """Leave out arguments with default values, and checks (torch.fx adds them) that they have those values."""
    kept: list[fx.Node] = []
    left_out: set[fx.Node] = set()
    for node in nodes:
        read = set(node.all_input_nodes)
        if (node.op == "placeholder" and node not in inputs) or (read and read <= left_out):
            left_out.add(node)
        else:
            kept.append(node)
    return kept


def _of_module(layer: nn.Module, node: fx.Node, edges: fx.Node | None, weights: fx.Node | None) -> Iterator[Operation]:
    weighted = False
    if isinstance(layer, MessagePassing):
        names = list(inspect.signature(type(layer).forward).parameters)[1:]
        given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        others = {
            key: value for key, value in given.items() if value is not None and key not in (names[0], "edge_index")
        }
        weighted = weights is not None and type(layer) in _TAKES_WEIGHTS and others == {"edge_weight": weights}
        if edges is None or given.get("edge_index") is not edges or (others and not weighted):
            raise UnknownModelError(f"calls {type(layer).__name__} with more than features and edges")
    elif len(node.args) > 1 or any(value is not None for value in node.kwargs.values()):
        raise UnknownModelError(f"calls {type(layer).__name__} with more than one input")
    reader = _MODULES.get(type(layer))
    if reader is None:
        raise UnknownModelError(f"has a layer of type {type(layer).__name__}")
    for operation in reader(layer):
        if weighted and isinstance(operation, NormalisedSum | PlainSum):
            operation = replace(operation, weighted=True)
        yield operation


def _is_log_softmax(node: fx.Node) -> bool:
    if node.target not in (torch.log_softmax, nn.functional.log_softmax, "log_softmax"):
        return False
    dim = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
    return dim in (1, -1)


def _is_squeeze(node: fx.Node) -> bool:
    dim = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
    return node.target in (torch.squeeze, "squeeze") and dim in (1, -1)


def _of_function(node: fx.Node) -> Iterator[Operation]:
    if node.target is nn.functional.dropout:
        training = node.kwargs.get("training", node.args[2] if len(node.args) > 2 else True)
        if training is not False:
            raise UnknownModelError("drops out in evaluation mode too")
        return
    yield _function_activation(node.target, node.args[1:], node.kwargs)


def _function_activation(function: Any, args: Sequence[Any], kwargs: Any) -> Activation:
    options = {name: value for name, value in kwargs.items() if name != "inplace"}
    if function in (torch.relu, nn.functional.relu, "relu", "relu_") and not options:
        return Activation("relu")
    if function is nn.functional.elu and set(options) <= {"alpha"} and len(args) <= 1:
        return Activation("elu", float(options.get("alpha", args[0] if args else 1.0)))
    if function is nn.functional.leaky_relu and set(options) <= {"negative_slope"} and len(args) <= 1:
        return Activation("leaky_relu", float(options.get("negative_slope", args[0] if args else 0.01)))
    raise UnknownModelError(f"uses {getattr(function, '__name__', function)}")


def _gin(conv: Any) -> Iterator[Operation]:
    """The first linear map of the MLP goes before the sum, which it commutes with; its bias comes after."""
    check_conv(conv, GINConv)
    if type(conv.aggr_module) is not SumAggregation:
        raise UnknownModelError(f"has a GINConv that aggregates by {conv.aggr}")
    inside = list(_rowwise(conv.nn))
    first, rest = inside[0] if inside else None, inside[1:]
    if not isinstance(first, Linear):
        raise UnknownModelError("has a GINConv whose network does not start with a linear map")
    width = first.weight.shape[0]
    yield Linear(first.weight, np.zeros(width, dtype=np.float32))
    yield PlainSum("GIN", width=width, mean=False, own_factor=1.0 + float(conv.eps))
    yield Affine(np.ones(width, dtype=np.float32), first.bias)
    yield from rest


def _rowwise(module: nn.Module) -> Iterator[Operation]:
    """Return the operations of a module that has no edges."""
    reader = _MODULES.get(type(module))
    if reader is not None and not isinstance(module, MessagePassing):
        yield from reader(module)
    else:
        yield from _traced(module, num_inputs=1)


_TAKES_WEIGHTS = (GCNConv, GraphConv)
_MODULES: dict[type, Callable[[Any], Iterator[Operation]]] = {
    GCNConv: gcn_of,
    GATConv: gat_of,
    GATv2Conv: gatv2_of,
    SAGEConv: sage_of,
    GraphConv: graph_conv_of,
    GINConv: _gin,
    nn.Linear: lambda module: iter([linear_of(module)]),
    PyGLinear: lambda module: iter([linear_of(module)]),
    nn.ReLU: lambda _: iter([Activation("relu")]),
    nn.ELU: lambda module: iter([Activation("elu", float(module.alpha))]),
    nn.LeakyReLU: lambda module: iter([Activation("leaky_relu", float(module.negative_slope))]),
    nn.Dropout: lambda _: iter(()),
    nn.Identity: lambda _: iter(()),
    nn.BatchNorm1d: batch_norm_of,
    PyGBatchNorm: lambda module: batch_norm_of(module.module),
}
