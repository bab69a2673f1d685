"""How much memory a forward pass takes, measured."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of the tensors that operations return, from when they appear until they are freed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now: int = 0
        self.peak: int = 0
        self.known: set[int] = set()

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        existing = {storage._cdata for storage in _storages((args, kwargs))}
        out = func(*args, **(kwargs or {}))
        for storage in _storages(out):
            if storage._cdata not in existing | self.known:
                self.known.add(storage._cdata)
                self.now += storage.nbytes()
                self.peak = max(self.peak, self.now)
                weakref.finalize(storage, self._freed, storage._cdata, storage.nbytes())
        return out

    def _freed(self, identity: int, size: int) -> None:
        self.known.discard(identity)
        self.now -= size


def _storages(values: Any) -> list[Any]:
    """Return the storages of all dense tensors among nested ``values``."""
    tensors = [value for value in tree_leaves(values) if isinstance(value, Tensor)]
    return [value.untyped_storage() for value in tensors if value.layout == torch.strided]


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the most bytes that tensors made by ``run`` hold at one time, on any device."""
    with _LiveBytes() as counter:
        run()
    return int(counter.peak)
