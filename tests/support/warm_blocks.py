"""Loaded by the process that test processes are forked from: whatever a certification loads is there by then."""

from contextlib import suppress

import torch

from support.block_processes import certified

torch.set_num_threads(1)  # threads do not survive a fork
certified()
with suppress(ImportError):
    import distributed  # noqa: F401
