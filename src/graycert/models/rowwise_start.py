"""Find the linear maps that a model applies to its input first, and take them out.

Ablated nodes all share one row, so a sampler that knows the first linear maps projects the distinct rows once and
never again. GCNConv, GATConv, GATv2Conv, TransformerConv and an initial nn.Linear start this way, whatever follows;
SAGEConv, GINConv and GraphConv propagate first and do not.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torch_geometric.nn.dense import Linear

from graycert.models.private_copy import give_copies
from graycert.models.protocol import starts_rowwise
from graycert.models.watcher import Watcher

_LINEAR = (nn.Linear, Linear)


class SplitModel(nn.Module):
    """A model whose first linear maps are taken out: ``propagate(project(x), edge_index)`` is its forward pass.

    Args:
        linears: The maps that the model applies to its input and to nothing else.
        rest: The model with columns of the concatenated projections in their places.
    """

    def __init__(self, linears: list[nn.Module], rest: nn.Module) -> None:
        super().__init__()
        self.linears = nn.ModuleList(linears)
        self.rest = rest

    def project(self, x: Tensor) -> Tensor:
        """Return all projections side by side, shape (num_nodes, width)."""
        return torch.cat([linear(x) for linear in self.linears], dim=1)

    def propagate(self, hidden: Tensor, edge_index: Tensor) -> Tensor:
        """Run everything after the first linear maps."""
        return torch.as_tensor(self.rest(hidden, edge_index))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores, shape (num_nodes, num_classes)."""
        return self.propagate(self.project(x), edge_index)


class _Columns(nn.Module):
    """Stands where a linear map stood."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__()
        self.low, self.high = low, high

    def forward(self, projections: Tensor) -> Tensor:
        return projections[:, self.low : self.high]


class _Readers(Watcher):
    """Finds who reads ``x``: linear modules that are called with it, and everything else."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.x = x
        self.linears: list[nn.Module] = []
        self.inside: nn.Module | None = None
        self.others = False

    def watch(self, module: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Note that a linear module is called."""
        value = arguments[0] if len(arguments) == 1 and not keywords else None
        if isinstance(value, Tensor) and self._is_x(value) and value.shape == self.x.shape:
            if module not in self.linears:
                self.linears.append(module)
            self.inside = module
        elif module in self.linears:
            self.others = True  # the same weights act on something else as well

    def leave(self, *_: Any) -> None:
        """Note that the call of a linear module is over."""
        self.inside = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        if self.inside is None and not func.is_view:
            reads = (self._is_x(value) for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor))
            self.others = self.others or any(reads)
        return func(*args, **(kwargs or {}))

    def _is_x(self, value: Tensor) -> bool:
        if value.layout != torch.strided:
            return False
        return value.untyped_storage().data_ptr() == self.x.untyped_storage().data_ptr()


def rowwise_start(model: nn.Module, x: Tensor, edge_index: Tensor, scores: Tensor) -> nn.Module | None:
    """Return a model with ``project`` and ``propagate`` that computes what ``model`` computes, or None.

    A model that offers both is taken at its word after a check. In any other, the linear modules that read ``x`` are
    taken out of a copy, provided that in one pass nothing else read it; the copy must then agree with the model on
    the graph, on other features and on other edges. ``scores`` is ``model(x, edge_index)``.
    """
    if starts_rowwise(model, x, edge_index, scores):
        return model
    try:
        split = _split(model, x, edge_index)
        if split is not None and _agree(split, model, x, edge_index):
            return split
    except Exception:  # cannot be copied, or needs what was taken out: whatever it raises, it is evaluated as a whole
        return None
    return None


def _split(model: nn.Module, x: Tensor, edge_index: Tensor) -> SplitModel | None:
    rest = copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})
    for module in rest.modules():  # a model may be wrapped
        for key, hook in list(module._forward_pre_hooks.items()):
            if hook is give_copies:  # it would hide who reads x; whoever evaluates the rest gives it rows of its own
                del module._forward_pre_hooks[key]
                module._forward_pre_hooks_with_kwargs.pop(key, None)
    x, edge_index = x.clone(), edge_index.clone()
    readers = _Readers(x)
    handles = []
    for module in rest.modules():
        if type(module) in _LINEAR and not module._forward_hooks and not module._forward_pre_hooks:
            handles.append(module.register_forward_pre_hook(readers.watch, with_kwargs=True))
            handles.append(module.register_forward_hook(readers.leave))
    try:
        with readers:
            rest(x, edge_index)
    finally:
        for handle in handles:
            handle.remove()
    if readers.others or not readers.linears:
        return None
    high = 0
    columns = {}
    for linear in readers.linears:
        low, high = high, high + int(linear.weight.size(0))  # type: ignore[operator]
        columns[linear] = _Columns(low, high)
    if rest in columns:
        return None
    for parent in list(rest.modules()):
        for name, child in parent._modules.items():
            if child in columns:
                parent._modules[name] = columns[child]
    return SplitModel(readers.linears, rest).eval()


def _agree(split: SplitModel, model: nn.Module, x: Tensor, edge_index: Tensor) -> bool:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)
    few = edge_index[:, torch.rand(edge_index.size(1), generator=generator).to(x.device) < 0.5]
    other = torch.randint(x.size(0), (2, edge_index.size(1)), generator=generator).to(x.device)
    other = torch.cat([other, edge_index[2:]])[:, other[0] != other[1]]
    for features, edges in ((x, edge_index), (noise, few), (noise.flip(0), other)):
        theirs, ours = model(features, edges), split(features, edges)
        scale = float(theirs.abs().amax())
        if ours.shape != theirs.shape or not torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * scale):
            return False
    return True
