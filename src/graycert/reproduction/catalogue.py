"""The experiments that there are, read from the TOML files of this package or from the user's."""

import difflib
import tomllib
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.reproduction.experiment import SCALES, Experiment, Kind
from graycert.reproduction.formula import formula_kind

KINDS = {
    "collective-curves": "graycert.reproduction.kinds.collective_curves:CollectiveCurves",
    "curves": "graycert.reproduction.kinds.curves:Curves",
    "derandomization": "graycert.reproduction.kinds.derandomization:Derandomization",
    "naive-baseline": "graycert.reproduction.kinds.naive_baseline:NaiveBaseline",
    "pareto": "graycert.reproduction.kinds.pareto:ParetoFronts",
    "sample-efficiency": "graycert.reproduction.kinds.sample_efficiency:SampleEfficiency",
    "smoothing-heatmap": "graycert.reproduction.kinds.smoothing_heatmap:SmoothingHeatmap",
}
"""Where each kind is; imported when used."""

FORMULAS = {
    "bottleneck": "graycert.reproduction.formulas.bottleneck",
    "radius-limit": "graycert.reproduction.formulas.ablation_limit",
    "shared-edges": "graycert.reproduction.formulas.shared_edges",
    "single-source-heatmap": "graycert.reproduction.formulas.single_source",
}
"""Kinds that are formulas, and where their functions are."""


@cache
def catalogue() -> dict[str, Experiment]:
    """Return all experiments of the package by name, in the order of the paper."""
    folder = files("graycert.reproduction").joinpath("definitions")
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".toml")}
    found = [parse(text, name) for name, text in texts.items()]
    return {each.id: each for each in sorted(found, key=lambda each: _place(each.id))}


def chosen(names: tuple[str, ...]) -> list[Experiment]:
    """Return the experiments that are named: "all", a name, the start of several ("fig-3"), or a TOML file.

    Raises:
        InvalidParameterError: If nothing has the name.
        InvalidFileError: If the file is missing or wrong.
    """
    found: dict[str, Experiment] = {}
    for name in names:
        for each in _named(name):
            found[each.id] = each
    return list(found.values())


def parse(text: str, place: str) -> Experiment:
    """Return the experiment that a TOML text describes, its settings checked at both scales.

    Raises:
        InvalidFileError: If it is no TOML, or a key or value is wrong; names ``place``.
    """
    try:
        experiment = Experiment.model_validate(tomllib.loads(text))
        for scale in SCALES:
            experiment.at_scale(scale)
    except tomllib.TOMLDecodeError as error:
        raise InvalidFileError(f"{place} must be TOML: {error}.") from error
    except ValidationError as error:
        raise InvalidFileError(f"{place}: {_first_problem(error)}") from error
    except InvalidParameterError as error:
        raise InvalidFileError(f"{place}: {error}") from error
    return experiment


def kind_of(experiment: Experiment, settings: dict[str, Any]) -> Kind:
    """Return the kind of an experiment with these settings.

    Raises:
        InvalidParameterError: If the kind is unknown or the settings are wrong.
    """
    if experiment.kind in FORMULAS:
        kind: type[Kind] = formula_kind(experiment.kind, FORMULAS[experiment.kind])
    elif experiment.kind in KINDS:
        module, _, name = KINDS[experiment.kind].partition(":")
        kind = getattr(import_module(module), name)
    else:
        known = ", ".join(sorted({*KINDS, *FORMULAS}))
        raise InvalidParameterError(f"`kind` must be one of {known}, got {experiment.kind!r}.")
    try:
        return kind.model_validate(settings)
    except ValidationError as error:
        raise InvalidParameterError(f"`settings` of {experiment.id}: {_first_problem(error)}") from error


def _named(name: str) -> list[Experiment]:
    known = catalogue()
    if name == "all":
        return list(known.values())
    if name in known:
        return [known[name]]
    if name.endswith(".toml"):
        try:
            return [parse(Path(name).read_text(encoding="utf-8"), name)]
        except OSError as error:
            raise InvalidFileError(f"{name} cannot be read ({error.strerror or error}). Check the path.") from error
    parts = [each for key, each in known.items() if key.startswith(name) and not key[len(name) :][:1].isdigit()]
    if parts:
        return parts
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else "`graycert reproduce --list` shows all."
    raise InvalidParameterError(f"`experiments` must be known, got {name!r}. {hint}")


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the file"
    return f"`{where}` is wrong ({first['msg'][0].lower()}{first['msg'][1:]}), got {first['input']!r}."


def _place(name: str) -> tuple[int, int, str]:
    """Figures by number, then tables, then what is beyond the paper."""
    kind, _, rest = name.partition("-")
    digits = "".join(character for character in rest if character.isdigit())
    return {"fig": 0, "table": 1}.get(kind, 2), int(digits or 0), name
