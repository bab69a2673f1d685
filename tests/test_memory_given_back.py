"""Freed memory goes back to the system before the next phase needs more."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
from graycert._memory import give_back

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

blocks = [bytearray(b"x") * 100_000 for _ in range(3_000)]
last = blocks[-1]
del blocks
before = resident()
give_back()
print((before - resident()) >> 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs an allocator that can be told to")
def test_freed_memory_is_given_back():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 200


def test_nothing_happens_where_the_library_cannot(monkeypatch):
    from graycert import _memory

    class Library:
        def __init__(self, name):
            pass

    monkeypatch.setattr(_memory.ctypes, "CDLL", Library)
    _memory.give_back()
