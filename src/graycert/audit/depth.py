"""The longest chain of propagation in one forward pass: how often a message can move along an edge."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves
from torch_geometric.nn import MessagePassing

from graycert.models import InterceptionGNN
from graycert.models.sma import SoftMedoidLayer
from graycert.models.watcher import Watcher


def count_propagation_steps(model: nn.Module, x: Tensor, edge_index: Tensor) -> tuple[int, Tensor]:
    """Count the longest chain of propagation steps of one forward pass; returns its result, too.

    Every tensor carries the number of steps behind it. What an operation returns has the largest number of what it
    is given; a propagation of a PyTorch Geometric layer adds one. So a layer that propagates K times (TAGConv, SGConv,
    APPNP, ...) counts K, a layer called twice counts twice, and parallel branches (RGCN's relations, ensembles) count
    once. Memory is followed, not tensors: what is written into a part of a tensor counts for all of it, and what comes
    out of sight (numbers taken out of tensors, values made elsewhere) counts as much as anything before it. Both give
    too many steps at worst. graycert's own models, one of which moves messages without PyTorch Geometric's layers,
    know their number.
    """
    known = [x, edge_index, *model.parameters(), *model.buffers()]
    for module in model.modules():
        known += [value for value in vars(module).values() if isinstance(value, Tensor)]
    depths = _Depths(known)
    with _watched(model, depths), depths:
        scores = model(x, edge_index)
    counted = depths.of(scores) if isinstance(scores, Tensor) else depths.most
    return max(counted, model.num_layers) if isinstance(model, InterceptionGNN) else counted, scores


class _Depths(Watcher):
    """Knows the steps behind every piece of memory."""

    def __init__(self, known: list[Tensor]) -> None:
        super().__init__()
        self._steps: dict[Any, int] = {}
        self._held: list[Any] = []  # keeps addresses from being used again
        self.most = self._escaped = 0
        for value in known:
            self._set(value, 0)

    def of(self, value: Tensor) -> int:
        """Return the steps behind a tensor; of unknown origin: all that there were."""
        return max((self._steps.get(key, self.most) for key in _keys(value)), default=0)

    def raise_to(self, value: Any, steps: int) -> None:
        """Note that there are at least so many steps behind the tensors in ``value``."""
        self.most = max(self.most, steps)
        for each in tree_leaves(value):
            if isinstance(each, Tensor):
                self._set(each, max(steps, self._steps.get(_keys(each)[0], 0)))

    def _set(self, value: Tensor, steps: int) -> None:
        for key, held in zip(_keys(value), _holders(value), strict=True):
            if key not in self._steps:
                self._held.append(held)
            self._steps[key] = steps

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        inputs = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
        steps = max((self.of(value) for value in inputs), default=0)
        out = func(*args, **(kwargs or {}))
        outputs = [value for value in tree_leaves(out) if isinstance(value, Tensor)]
        if inputs and not outputs:
            self._escaped = max(self._escaped, steps)
        steps = max(steps, self._escaped)
        self.raise_to(outputs, steps)
        if func._schema.is_mutable:
            written = zip(func._schema.arguments, args, strict=False)
            named = ((each, (kwargs or {}).get(each.name)) for each in func._schema.arguments)
            for argument, value in [*written, *named]:
                if argument.alias_info is not None and argument.alias_info.is_write:
                    self.raise_to(value, steps)
        return out


def _is_plain(value: Tensor) -> bool:
    return value.layout == torch.strided and not value.is_quantized


def _keys(value: Tensor) -> list[Any]:
    """Return what identifies the memory of a tensor."""
    return [value.untyped_storage()._cdata] if _is_plain(value) else [("sparse", id(value))]


def _holders(value: Tensor) -> list[Any]:
    return [StorageWeakRef(value.untyped_storage())] if _is_plain(value) else [value]  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def _watched(model: nn.Module, depths: _Depths) -> Iterator[None]:
    """Let every propagation of a copy of a model add a step to what it returns."""

    def after(_: Any, inputs: Any, out: Any) -> None:
        given = [depths.of(each) for each in tree_leaves(inputs) if isinstance(each, Tensor)]
        made = [depths.of(each) for each in tree_leaves(out) if isinstance(each, Tensor)]
        depths.raise_to(out, 1 + max(given + made, default=0))

    handles, replaced = [], []
    for module in model.modules():
        if isinstance(module, MessagePassing):
            handles.append(module.register_propagate_forward_hook(after))
        elif isinstance(module, SoftMedoidLayer):  # moves messages by itself
            replaced.append(module)
            module.aggregate = _counting(module.aggregate, after)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for module in replaced:
            del module.aggregate


def _counting(aggregate: Any, after: Any) -> Any:
    def aggregated(*inputs: Any) -> Any:
        out = aggregate(*inputs)
        after(None, inputs, out)
        return out

    return aggregated
