"""Seeing every operation that a model runs, without loading PyTorch's compiler for it."""

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class Watcher(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode whose ``__torch_dispatch__`` sees every operation.

    From PyTorch 2.9 on such modes load the compiler, seconds, to keep it away from what they do themselves. Nothing is
    compiled here, and PyTorch has a switch for that.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)  # type: ignore[no-untyped-call]

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
