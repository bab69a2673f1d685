"""Which models the compiled engine knows: a chain of convolutions and row-wise operations, found by inspection.

Types are compared exactly, and every option that would change the arithmetic is looked at. A foreign module is traced
symbolically (torch.fx), which fails where its forward pass depends on values or shapes. Whatever is left unclear is a
reason to evaluate the model with PyTorch instead; it is never guessed.
"""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINConv, MessagePassing, SAGEConv
from torch_geometric.nn.aggr import MeanAggregation, SumAggregation
from torch_geometric.nn.dense.linear import Linear as PyGLinear
from torch_geometric.nn.norm import BatchNorm as PyGBatchNorm

from graycert._types import Float32Array
from graycert.models import InterceptionGNN
from graycert.models.calling import AdaptedClassifier
from graycert.models.edge_inputs import GivenEdgeInputs
from graycert.models.gat import GATLayer
from graycert.models.gatv2 import GATv2Layer
from graycert.models.gcn import GCNLayer
from graycert.models.outside_state import OutsideState
from graycert.models.private_copy import give_copies
from graycert.models.sma import SoftMedoidLayer
from graycert.sampling.operations import (
    Activation,
    Affine,
    Aggregation,
    Attention,
    Linear,
    NormalisedSum,
    Operation,
    PlainSum,
    SoftMedoid,
    UnknownModelError,
)


def recognise(model: nn.Module) -> list[Operation]:
    """Return what the model does to the rows of x, in order.

    The model must be in evaluation mode.

    Raises:
        UnknownModelError: If anything about it is not known for certain.
    """
    if isinstance(model, GivenEdgeInputs):
        raise UnknownModelError("is given values per edge")
    for module in model.modules():
        _check_untouched(module)
    for parameter in model.parameters():
        if parameter.dtype != torch.float32 or parameter.device.type != "cpu":
            raise UnknownModelError(f"has parameters of type {parameter.dtype} on {parameter.device}")
    if type(model) is InterceptionGNN:
        operations = list(_of_interception_gnn(model))
    else:
        operations = _of_adapted(model) if type(model) is AdaptedClassifier else _traced_apart(model)
    if not any(isinstance(operation, Aggregation) for operation in operations):
        raise UnknownModelError("has no convolution")
    return operations


def _of_adapted(model: AdaptedClassifier) -> list[Operation]:
    """Follow what is adapted; a single logit z becomes (0, z) by a linear map."""
    plain = model.call is None and model.part is None and not isinstance(model.model, nn.ModuleList)
    operations = recognise(model.model) if plain else _traced_apart(_Returned(model))
    if model.word == "logit":
        operations.append(Linear(np.array([[0], [1]], dtype=np.float32), np.zeros(2, dtype=np.float32)))
    return operations


class _Returned(nn.Module):
    """What an adapted model returns, with a signature that can be traced."""

    def __init__(self, adapted: AdaptedClassifier) -> None:
        super().__init__()
        self.adapted = adapted

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.adapted.returned(x, edge_index)


def _traced_apart(model: nn.Module) -> list[Operation]:
    """Trace a copy: what forward stores would be symbols, in the module and outside it."""
    outside = OutsideState(model)
    try:
        return list(_traced(copy.deepcopy(model), graph=True))
    finally:
        outside.restore()


def _check_untouched(module: nn.Module) -> None:
    """Hooks and replaced methods can do anything."""
    for name, value in vars(module).items():
        if callable(value) and callable(getattr(type(module), name, None)):
            raise UnknownModelError(f"replaces `{name}` of {type(module).__name__}")
        if name == "_forward_pre_hooks" and all(hook is give_copies for hook in value.values()):
            continue  # that of a private copy
        if name.endswith("_hooks") and "state_dict" not in name and value:
            raise UnknownModelError(f"has hooks on {type(module).__name__}")


def _of_interception_gnn(model: InterceptionGNN) -> Iterator[Operation]:
    if type(model.feature_dropout) is not nn.Dropout:
        raise UnknownModelError(f"has a {type(model.feature_dropout).__name__} before its layers")
    for index, layer in enumerate(model.layers):
        if index:
            yield _function_activation(model.activation, (), {})
        if type(layer) is GCNLayer:
            _check_taken_out(layer.conv.lin)
            yield from _gcn(layer.conv, layer.linear)
        elif type(layer) is GATLayer:
            _check_taken_out(layer.conv.lin)
            yield from _gat(layer.conv, layer.linear)
        elif type(layer) is GATv2Layer:
            _check_taken_out(layer.conv.lin_l, layer.conv.lin_r)
            yield from _gatv2(layer.conv, layer.sender, layer.receiver)
        elif type(layer) is SoftMedoidLayer:
            yield _linear(layer.linear)
            yield SoftMedoid(limit=int(layer.num_neighbors), temperature=float(layer.temperature))
            yield _shift(layer.bias)
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


def _traced(module: nn.Module, *, graph: bool) -> Iterator[Operation]:
    """Follow ``x`` from operation to operation; ``graph`` tells whether there are edges."""
    name = type(module).__name__
    try:
        required, optional = _arguments(module, 2 if graph else 1)
        traced = _Tracer().trace(module, concrete_args=optional)
    except Exception as error:  # torch.fx raises many kinds, and so may a foreign forward pass
        raise UnknownModelError(f"has a forward pass that cannot be traced ({name}: {error})") from error
    inputs = [node for node in traced.nodes if node.op == "placeholder" and node.target in required]
    nodes = _beyond_defaults(traced.nodes, inputs)
    if not inputs:
        raise UnknownModelError(f"takes no features ({name})")
    current: fx.Node = inputs[0]
    edges = inputs[1] if len(inputs) == 2 else None
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
            yield from _of_module(layer, node, edges)
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


def _of_module(layer: nn.Module, node: fx.Node, edges: fx.Node | None) -> Iterator[Operation]:
    if isinstance(layer, MessagePassing):
        others = [value for value in node.args[2:] if value is not None]
        others += [value for key, value in node.kwargs.items() if key != "edge_index" and value is not None]
        given = node.args[1] if len(node.args) > 1 else node.kwargs.get("edge_index")
        if edges is None or given is not edges or others:
            raise UnknownModelError(f"calls {type(layer).__name__} with more than features and edges")
    elif len(node.args) > 1 or any(value is not None for value in node.kwargs.values()):
        raise UnknownModelError(f"calls {type(layer).__name__} with more than one input")
    reader = _MODULES.get(type(layer))
    if reader is None:
        raise UnknownModelError(f"has a layer of type {type(layer).__name__}")
    yield from reader(layer)


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


def _array(values: Tensor) -> Float32Array:
    return np.ascontiguousarray(values.detach().numpy(), dtype=np.float32)


def _linear(module: Any) -> Linear:
    if type(module) not in (nn.Linear, PyGLinear) or not isinstance(module.weight, Tensor) or module.weight.dim() != 2:
        raise UnknownModelError(f"has a linear map of type {type(module).__name__}")
    _check_untouched(module)
    weight = _array(module.weight)
    bias = np.zeros(weight.shape[0], dtype=np.float32) if module.bias is None else _array(module.bias)
    return Linear(weight, bias)


def _shift(bias: Tensor | None, width: int | None = None) -> Affine:
    shift = np.zeros(width or 0, dtype=np.float32) if bias is None else _array(bias)
    return Affine(np.ones(shift.size, dtype=np.float32), shift)


def _batch_norm(module: Any) -> Iterator[Operation]:
    if module.running_mean is None or module.running_var is None:
        raise UnknownModelError("normalises by the statistics of the graph at hand")
    scale = torch.rsqrt(module.running_var.double() + module.eps)
    if module.weight is not None:
        scale = scale * module.weight.double()
    shift = -module.running_mean.double() * scale
    if module.bias is not None:
        shift = shift + module.bias.double()
    yield Affine(_array(scale.float()), _array(shift.float()))


def _check_conv(conv: Any, kind: type, **options: Any) -> None:
    """Type and every option that changes the arithmetic must be those that the kernels are written for."""
    if type(conv) is not kind:
        raise UnknownModelError(f"has a layer of type {type(conv).__name__}")
    expected = {"flow": "source_to_target", "node_dim": 0, **options}
    for name, wanted in expected.items():
        value = getattr(conv, name, wanted)
        if name == "node_dim":
            if value not in (0, -2):
                raise UnknownModelError(f"has a {type(conv).__name__} with {name}={value}")
        elif value is not wanted and value != wanted:
            raise UnknownModelError(f"has a {type(conv).__name__} with {name}={value}")
    if getattr(conv, "explain", None) or getattr(conv, "_explain", None) or getattr(conv, "decomposed_layers", 1) != 1:
        raise UnknownModelError(f"has a {type(conv).__name__} that is explained or decomposed")


def _gcn(conv: Any, linear: Any = None) -> Iterator[Operation]:
    _check_conv(conv, GCNConv, improved=False, cached=False, add_self_loops=True, normalize=True)
    if type(conv.aggr_module) is not SumAggregation:
        raise UnknownModelError(f"has a GCNConv that aggregates by {conv.aggr}")
    projection = _linear(conv.lin if linear is None else linear)
    yield projection
    yield NormalisedSum()
    yield _shift(conv.bias, projection.weight.shape[0])


def _attention_options(conv: Any, kind: type) -> dict[str, Any]:
    _check_conv(conv, kind, add_self_loops=True, edge_dim=None, residual=False)
    if type(conv.aggr_module) is not SumAggregation:
        raise UnknownModelError(f"has a {type(conv).__name__} that aggregates by {conv.aggr}")
    slope = float(conv.negative_slope)
    if not 0.0 <= slope <= 1.0:
        raise UnknownModelError(f"has a {type(conv).__name__} with negative_slope={slope}")
    return {"channels": int(conv.out_channels), "slope": slope, "mean": not conv.concat}


def _after_attention(conv: Any) -> Affine:
    return _shift(conv.bias, int(conv.out_channels) * (int(conv.heads) if conv.concat else 1))


def _gat(conv: Any, linear: Any = None) -> Iterator[Operation]:
    options = _attention_options(conv, GATConv)
    if linear is None:
        linear = getattr(conv, "lin", None)
    if linear is None or getattr(conv, "lin_src", None) is not None:
        raise UnknownModelError("has a GATConv for two kinds of nodes")
    yield _linear(linear)
    yield Attention(**options, sender=_array(conv.att_src)[0], receiver=_array(conv.att_dst)[0])
    yield _after_attention(conv)


def _gatv2(conv: Any, sender: Any = None, receiver: Any = None) -> Iterator[Operation]:
    options = _attention_options(conv, GATv2Conv)
    left, right = (
        _linear(conv.lin_l if sender is None else sender),
        _linear(conv.lin_r if receiver is None else receiver),
    )
    if left.weight.shape != right.weight.shape:
        raise UnknownModelError("has a GATv2Conv for two kinds of nodes")
    yield Linear(np.concatenate([left.weight, right.weight]), np.concatenate([left.bias, right.bias]))
    yield Attention(**options, both=_array(conv.att)[0])
    yield _after_attention(conv)


def _sage(conv: Any) -> Iterator[Operation]:
    _check_conv(conv, SAGEConv, normalize=False, project=False)
    if type(conv.aggr_module) not in (MeanAggregation, SumAggregation):
        raise UnknownModelError(f"has a SAGEConv that aggregates by {conv.aggr}")
    neighbors = _linear(conv.lin_l)
    own = _linear(conv.lin_r).weight if conv.root_weight else np.zeros_like(neighbors.weight)
    width = neighbors.weight.shape[0]
    if own.shape != neighbors.weight.shape or (conv.root_weight and conv.lin_r.bias is not None):
        raise UnknownModelError("has a SAGEConv for two kinds of nodes")
    yield Linear(np.concatenate([neighbors.weight, own]), np.zeros(2 * width, dtype=np.float32))
    yield PlainSum("SAGE", width=width, mean=type(conv.aggr_module) is MeanAggregation, own_factor=1.0)
    yield Affine(np.ones(width, dtype=np.float32), neighbors.bias)


def _gin(conv: Any) -> Iterator[Operation]:
    """The first linear map of the MLP goes before the sum, which it commutes with; its bias comes after."""
    _check_conv(conv, GINConv)
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
        yield from _traced(module, graph=False)


_MODULES: dict[type, Callable[[Any], Iterator[Operation]]] = {
    GCNConv: _gcn,
    GATConv: _gat,
    GATv2Conv: _gatv2,
    SAGEConv: _sage,
    GINConv: _gin,
    nn.Linear: lambda module: iter([_linear(module)]),
    PyGLinear: lambda module: iter([_linear(module)]),
    nn.ReLU: lambda _: iter([Activation("relu")]),
    nn.ELU: lambda module: iter([Activation("elu", float(module.alpha))]),
    nn.LeakyReLU: lambda module: iter([Activation("leaky_relu", float(module.negative_slope))]),
    nn.Dropout: lambda _: iter(()),
    nn.Identity: lambda _: iter(()),
    nn.BatchNorm1d: _batch_norm,
    PyGBatchNorm: lambda module: _batch_norm(module.module),
}
