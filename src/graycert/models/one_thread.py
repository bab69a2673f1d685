"""One thread, so that sums are in the same order, and their last bits the same, whoever computes them."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch and the kernels use one thread: several may split a sum, and where depends on how many they are."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
