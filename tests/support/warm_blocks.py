"""Loaded by the process that test processes are forked from: whatever a certification loads is there by then."""

import torch

from support.block_processes import certified

torch.set_num_threads(1)  # threads do not survive a fork
certified()
