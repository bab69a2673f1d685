"""A function that trains, for who tries settings in other processes, which import this module."""

import copy
from pathlib import Path

from torch import nn

import graycert
from support.certified_groups import trained_model


class Trained:
    """Returns a model that depends on the smoothing, and counts in a file how often it was asked.

    Args:
        log: The file.
    """

    def __init__(self, log: Path) -> None:
        self.log = log

    def __call__(self, smoothing: graycert.InterceptionSmoothing) -> nn.Module:
        with self.log.open("a") as file:
            file.write(f"{smoothing.p_ablate}\n")
        model = copy.deepcopy(trained_model())
        for values in model.parameters():
            values.data *= 1 + float(smoothing.p_ablate)
        return model
