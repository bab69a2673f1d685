"""Which process a trial belongs to, and whether that process still lives."""

import os
import socket
from functools import cache
from typing import Any

import psutil  # type: ignore[import-untyped]

_CLOCK = 2.0  # seconds by which the start time of one process may seem to move when the clock of the machine is set


@cache
def this_process() -> dict[str, Any]:
    """Return host, process id and start time of this process, as a journal keeps them."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "started": psutil.Process().create_time()}


def lives(owner: dict[str, Any]) -> bool:
    """Return whether a process lives on this machine.

    A process id alone may have been given to another process since. A process of another machine counts as dead: only
    one parent drives a sweep, so its workers are over there by themselves, and what they still tell is not taken.
    """
    if owner["host"] != socket.gethostname():
        return False
    try:
        process = psutil.Process(owner["pid"])
        same: bool = abs(process.create_time() - owner["started"]) < _CLOCK
        return same and process.status() != psutil.STATUS_ZOMBIE  # dead, but nobody has asked for its exit status
    except psutil.Error:
        return False
