"""A kind of experiment that takes no time: squares of numbers."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pandas as pd

from graycert.reproduction.experiment import Kind
from graycert.reproduction.job import Job
from graycert.reproduction.style import new_figure

DEFINITION = """
id = "squares"
title = "Squares"
source = "nowhere"
description = "Numbers and their squares."
kind = "squares"
[settings]
numbers = [1, 2, 3]
[small]
reduction = "two numbers instead of three."
[small.settings]
numbers = [1, 2]
[[claims]]
text = "squares grow"
measure = "largest"
at_least = 2
[[claims]]
text = "squares are small | always"
measure = "largest"
at_most = 1
remark = "They are not."
[[claims]]
text = "cubes are larger"
measure = "cube"
at_least = 1
[[claims]]
text = "nine is reached"
measure = "largest"
at_least = 9
scales = ["paper"]
"""


class SquareJob(Job):
    """Squares a number; 13 brings bad luck."""

    job: ClassVar[str] = "square"
    number: int
    counted_in: str = ""

    @property
    def graphs(self):
        return ()

    def run(self, lab):
        if self.counted_in:
            with Path(self.counted_in).open("a") as file:
                file.write(f"{self.number}\n")
        if self.number == 13:
            raise ValueError("thirteen")
        return {"square": self.number**2}


class SlowJob(SquareJob):
    """Takes a moment."""

    job: ClassVar[str] = "slow"

    def run(self, lab):
        time.sleep(0.3)
        return super().run(lab)


class PlaceJob(SquareJob):
    """Tells where it was done."""

    job: ClassVar[str] = "place"

    def run(self, lab):
        time.sleep(0.02)
        return {"process": os.getpid(), "lab": id(lab), "threads": int(os.environ["OMP_NUM_THREADS"])}


class Squares(Kind):
    """Draws them."""

    kind: ClassVar[str] = "squares"
    numbers: tuple[int, ...]
    graph: str = ""
    broken: bool = False
    swept: bool = False

    @property
    def graphs(self):
        return (self.graph,) if self.graph else ()

    def jobs(self):
        return [SquareJob(number=number) for number in self.numbers]

    def sweeps(self):
        return [SimpleNamespace(graphs=())] if self.swept else []

    def tables(self, results):
        squares = [int(results[job]["square"]) for job in self.jobs()]
        return {"squares": pd.DataFrame({"number": self.numbers, "square": squares})}

    def measures(self, tables):
        return {"largest": tables["squares"]["square"].max(), "share": float("nan")}

    def draw(self, tables):
        if self.broken:
            raise RuntimeError("no ink")
        figure, axes = new_figure()
        axes[0, 0].plot(tables["squares"]["number"], tables["squares"]["square"])
        return figure
