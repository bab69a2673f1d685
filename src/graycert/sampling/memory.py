"""How much memory the machine has free, and how much a forward pass takes, measured."""

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from graycert.models.watcher import Watcher

_SHARE = 4  # of what is free, a quarter is taken
_CONTAINER = Path("/sys/fs/cgroup")


def default_budget() -> int:
    """Return the bytes that drawing may take where nobody says: a quarter of what machine and container have free."""
    free = int(psutil.virtual_memory().available)
    try:
        limit, used = ((_CONTAINER / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        free = min(free, int(limit) - int(used))
    except (OSError, ValueError):  # not in a container, or "max": no limit
        pass
    return max(1, free // _SHARE)


class _LiveBytes(Watcher):
    """Counts the bytes of the tensors that operations return, from when they appear until they are freed."""

    def __init__(self) -> None:
        super().__init__()
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
