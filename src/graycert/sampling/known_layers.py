"""Layers that the compiled engine knows, read one by one: what each does to the rows that it is given.

Types are compared exactly, and every option that would change the arithmetic is looked at.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GraphConv, SAGEConv
from torch_geometric.nn.aggr import MeanAggregation, SumAggregation
from torch_geometric.nn.dense.linear import Linear as PyGLinear

from graycert._types import Float32Array
from graycert.models.private_copy import give_copies
from graycert.sampling.operations import (
    Affine,
    Attention,
    Linear,
    NormalisedSum,
    Operation,
    PlainSum,
    UnknownModelError,
)


def check_untouched(module: nn.Module) -> None:
    """Hooks and replaced methods can do anything."""
    for name, value in vars(module).items():
        if callable(value) and callable(getattr(type(module), name, None)):
            raise UnknownModelError(f"replaces `{name}` of {type(module).__name__}")
        if name == "_forward_pre_hooks" and all(hook is give_copies for hook in value.values()):
            continue  # that of a private copy
        if name.endswith("_hooks") and "state_dict" not in name and value:
            raise UnknownModelError(f"has hooks on {type(module).__name__}")


def _array(values: Tensor) -> Float32Array:
    return np.ascontiguousarray(values.detach().numpy(), dtype=np.float32)


def linear_of(module: Any) -> Linear:
    """Read a linear map, of torch or of PyTorch Geometric."""
    if type(module) not in (nn.Linear, PyGLinear) or not isinstance(module.weight, Tensor) or module.weight.dim() != 2:
        raise UnknownModelError(f"has a linear map of type {type(module).__name__}")
    check_untouched(module)
    weight = _array(module.weight)
    bias = np.zeros(weight.shape[0], dtype=np.float32) if module.bias is None else _array(module.bias)
    return Linear(weight, bias)


def shift_of(bias: Tensor | None, width: int | None = None) -> Affine:
    """Return what adds a bias, of ``width`` zeros if there is none."""
    shift = np.zeros(width or 0, dtype=np.float32) if bias is None else _array(bias)
    return Affine(np.ones(shift.size, dtype=np.float32), shift)


def batch_norm_of(module: Any) -> Iterator[Operation]:
    """Read a batch norm, which adds and multiplies by what it saw in training."""
    if module.running_mean is None or module.running_var is None:
        raise UnknownModelError("normalises by the statistics of the graph at hand")
    scale = torch.rsqrt(module.running_var.double() + module.eps)
    if module.weight is not None:
        scale = scale * module.weight.double()
    shift = -module.running_mean.double() * scale
    if module.bias is not None:
        shift = shift + module.bias.double()
    yield Affine(_array(scale.float()), _array(shift.float()))


def check_conv(conv: Any, kind: type, **options: Any) -> None:
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


def gcn_of(conv: Any, linear: Any = None) -> Iterator[Operation]:
    """Read a GCNConv; ``linear`` is applied before it where it holds no linear map of its own."""
    check_conv(conv, GCNConv, improved=False, cached=False, add_self_loops=True, normalize=True)
    if type(conv.aggr_module) is not SumAggregation:
        raise UnknownModelError(f"has a GCNConv that aggregates by {conv.aggr}")
    projection = linear_of(conv.lin if linear is None else linear)
    yield projection
    yield NormalisedSum()
    yield shift_of(conv.bias, projection.weight.shape[0])


def _attention_options(conv: Any, kind: type) -> dict[str, Any]:
    check_conv(conv, kind, add_self_loops=True, edge_dim=None, residual=False)
    if type(conv.aggr_module) is not SumAggregation:
        raise UnknownModelError(f"has a {type(conv).__name__} that aggregates by {conv.aggr}")
    slope = float(conv.negative_slope)
    if not 0.0 <= slope <= 1.0:
        raise UnknownModelError(f"has a {type(conv).__name__} with negative_slope={slope}")
    return {"channels": int(conv.out_channels), "slope": slope, "mean": not conv.concat}


def _after_attention(conv: Any) -> Affine:
    return shift_of(conv.bias, int(conv.out_channels) * (int(conv.heads) if conv.concat else 1))


def gat_of(conv: Any, linear: Any = None) -> Iterator[Operation]:
    """Read a GATConv; see `gcn_of`."""
    options = _attention_options(conv, GATConv)
    if linear is None:
        linear = getattr(conv, "lin", None)
    if linear is None or getattr(conv, "lin_src", None) is not None:
        raise UnknownModelError("has a GATConv for two kinds of nodes")
    yield linear_of(linear)
    yield Attention(**options, sender=_array(conv.att_src)[0], receiver=_array(conv.att_dst)[0])
    yield _after_attention(conv)


def gatv2_of(conv: Any, sender: Any = None, receiver: Any = None) -> Iterator[Operation]:
    """Read a GATv2Conv; see `gcn_of`."""
    options = _attention_options(conv, GATv2Conv)
    left, right = (
        linear_of(conv.lin_l if sender is None else sender),
        linear_of(conv.lin_r if receiver is None else receiver),
    )
    if left.weight.shape != right.weight.shape:
        raise UnknownModelError("has a GATv2Conv for two kinds of nodes")
    yield Linear(np.concatenate([left.weight, right.weight]), np.concatenate([left.bias, right.bias]))
    yield Attention(**options, both=_array(conv.att)[0])
    yield _after_attention(conv)


def sage_of(conv: Any) -> Iterator[Operation]:
    """Read a SAGEConv."""
    check_conv(conv, SAGEConv, normalize=False, project=False)
    yield from _of_two_maps(conv, conv.lin_l, conv.lin_r if conv.root_weight else None, "SAGE")


def graph_conv_of(conv: Any) -> Iterator[Operation]:
    """Read a GraphConv: a SAGEConv whose messages may have weights."""
    check_conv(conv, GraphConv)
    yield from _of_two_maps(conv, conv.lin_rel, conv.lin_root, "GraphConv")


def _of_two_maps(conv: Any, of_neighbors: Any, of_itself: Any, label: str) -> Iterator[Operation]:
    name = type(conv).__name__
    if type(conv.aggr_module) not in (MeanAggregation, SumAggregation):
        raise UnknownModelError(f"has a {name} that aggregates by {conv.aggr}")
    neighbors = linear_of(of_neighbors)
    own = np.zeros_like(neighbors.weight) if of_itself is None else linear_of(of_itself).weight
    width = neighbors.weight.shape[0]
    if own.shape != neighbors.weight.shape or (of_itself is not None and of_itself.bias is not None):
        raise UnknownModelError(f"has a {name} for two kinds of nodes")
    yield Linear(np.concatenate([neighbors.weight, own]), np.zeros(2 * width, dtype=np.float32))
    yield PlainSum(label, width=width, mean=type(conv.aggr_module) is MeanAggregation, own_factor=1.0)
    yield Affine(np.ones(width, dtype=np.float32), neighbors.bias)
