"""Figures that are formulas, as a kind of experiment: their settings are the parameters of a function."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import create_model

from graycert.reproduction.experiment import Kind
from graycert.reproduction.job import Job

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from graycert.reproduction.results import Results


class Formula(Kind):
    """A figure without computations worth storing; `formula_kind` makes the subclasses.

    Attributes:
        module: Has the functions ``tables``, ``measures`` and ``draw``.
    """

    module: ClassVar[ModuleType]

    def jobs(self) -> list[Job]:
        """Return nothing: formulas take no time worth storing."""
        return []

    def tables(self, results: "Results") -> "dict[str, pd.DataFrame]":
        """Return the numbers behind the figure."""
        del results
        found: dict[str, pd.DataFrame] = self.module.tables(**dict(self))
        return found

    def measures(self, tables: "Mapping[str, pd.DataFrame]") -> dict[str, float]:
        """Return the numbers that claims of the paper are compared with."""
        found: dict[str, float] = self.module.measures(tables)
        return found

    def draw(self, tables: "Mapping[str, pd.DataFrame]") -> "Figure":
        """Draw the figure from the tables alone."""
        figure: Figure = self.module.draw(tables)
        return figure


@cache
def formula_kind(kind: str, module: str) -> type[Formula]:
    """Return the kind whose settings are the parameters of the module's ``tables``, checked as these are annotated.

    Args:
        kind: Its name in TOML files.
        module: Where the functions are, e.g. "graycert.reproduction.formulas.bottleneck".
    """
    imported = import_module(module)
    parameters = signature(imported.tables).parameters.values()
    fields: dict[str, Any] = {each.name: (each.annotation, each.default) for each in parameters}
    made = create_model(kind, __base__=Formula, **fields)
    made.kind, made.module = kind, imported
    return made
