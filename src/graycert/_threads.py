"""How many threads compiled code may use: as many as torch uses, which need not be loaded to say so."""

import os
import sys


def num_threads() -> int:
    """Return what torch was told (`torch.set_num_threads`) or has found, or what OMP_NUM_THREADS or the machine says.

    Results do not depend on it.
    """
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    said = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(said) if said.isdecimal() and int(said) else _usable()


def _usable() -> int:
    """Return how many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
