"""Memory that was freed and is kept by the allocator, given back to the system."""

import ctypes
from contextlib import suppress


def give_back() -> None:
    """Give freed memory back, where the allocator of the C library can be told to; nothing happens elsewhere.

    Many arrays of some megabytes leave holes that the next phase has no use for: its own arrays are larger.
    """
    with suppress(AttributeError, OSError, TypeError):  # no such function, or no such library
        ctypes.CDLL(None).malloc_trim(0)
