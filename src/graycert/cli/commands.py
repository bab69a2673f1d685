"""All commands, in the groups in which the help shows them, each with examples."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graycert.cli.bounds import bounds_command
from graycert.cli.certify import certify_command
from graycert.cli.compare import compare
from graycert.cli.datasets import datasets
from graycert.cli.explain import explain
from graycert.cli.inspect import inspect
from graycert.cli.report import report
from graycert.cli.reproduce import reproduce
from graycert.cli.sweep import sweep
from graycert.cli.train import train
from graycert.cli.tune import tune_command
from graycert.cli.verify import verify

CERTIFY, READ, CHECK, PLAN, STUDY = (
    "Certify your model",
    "Read a run",
    "Check a run",
    "Plan",
    "Study",
)
"""Headings of the help, in its order."""


@dataclass(frozen=True)
class Command:
    """A command with its place in the help.

    Attributes:
        function: What runs; its name is the command's.
        heading: Under which it is listed.
        examples: Command lines that work, the simplest first.
    """

    function: Callable[..., Any]
    heading: str
    examples: tuple[str, ...]

    @property
    def name(self) -> str:
        """How it is called."""
        return self.function.__name__.removesuffix("_command")


def every_command() -> tuple[Command, ...]:
    """Return all commands, with the options of all smoothings and threats that there are now."""
    return (
        Command(
            certify_command(),
            CERTIFY,
            (
                "graycert certify",
                "graycert certify --graph edges.csv --nodes nodes.csv --undirected",
                "graycert certify --graph data.pt --model nets:Net --weights w.safetensors",
                'graycert certify --out runs/mine --fail-under "correct@1=0.6"',
            ),
        ),
        Command(
            train,
            CERTIFY,
            (
                "graycert train --graph cora_ml --out model.safetensors",
                "graycert train --model gcn --train-p-delete 0.01 --train-p-ablate 0.6",
            ),
        ),
        Command(tune_command(), CERTIFY, ("graycert tune", 'graycert tune --want "accuracy=0.75"')),
        Command(
            inspect,
            READ,
            ("graycert inspect runs/mine", "graycert inspect runs/mine --targets account-17"),
        ),
        Command(
            report,
            READ,
            (
                "graycert report runs/mine",
                "graycert report runs/mine --for decision",
                "graycert report runs/mine runs/other",
            ),
        ),
        Command(compare, READ, ("graycert compare runs/mine runs/other --out changes.csv",)),
        Command(
            verify,
            CHECK,
            (
                "graycert verify runs/mine",
                "graycert verify runs/mine --graph moved/edges.csv --redraw",
                'graycert verify runs/mine --fail-under "correct@2=0.6" --junit verdicts.xml',
            ),
        ),
        Command(explain, CHECK, ("graycert explain", "graycert explain message-leak")),
        Command(
            bounds_command(),
            PLAN,
            (
                "graycert bounds",
                "graycert bounds --p-delete 0.5 --p-ablate 0.9 --out bounds.csv",
                "graycert bounds --grid all --radius 3 --heatmap grid.png",
            ),
        ),
        Command(datasets, PLAN, ("graycert datasets",)),
        Command(
            reproduce,
            STUDY,
            ("graycert reproduce --list", "graycert reproduce fig-3a", "graycert reproduce all --scale paper"),
        ),
        Command(sweep, STUDY, ("graycert sweep --graph cora_ml --budget 30min --out runs/sweep",)),
    )
