"""What a sweep is, and its settings on disk."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from graycert._files import write_atomically
from graycert._validation import check_choice
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.pool import keep
from graycert.reproduction.results import Arrays
from graycert.reproduction.sweep.budget import Budget
from graycert.reproduction.sweep.design import Design

SETTINGS = "sweep.toml"
FORMAT_VERSION = 2
OWN_COLUMNS = ("index", "seconds", "error", "traceback")


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Many trials of one experiment: each is a job, whose result the lab keeps.

    Args:
        directory: Folder of the sweep; made at the first run.
        name: Name of the sweep, e.g. "cora_ml-gat".
        lab: Keeps the results.
        job: Returns what a trial computes, given the value of each parameter.
        numbers: Returns the objective values, finite, and any further numbers, by name, given a trial's result.
        tidy: Called with each job whose result is kept, perhaps again, e.g. to remove what only it needed.
        directions: "maximize" or "minimize" for each objective value, by name; at least one.
        design: Where trials lie.
        budget: When to end; may differ when the sweep goes on.
        settings: What else the results depend on, as TOML values. Kept in sweep.toml; must be the same when the sweep
            goes on.

    Raises:
        InvalidParameterError: If an argument is outside its domain.
    """

    directory: str | Path
    name: str
    lab: Lab
    job: Callable[[Mapping[str, float]], Job]
    numbers: Callable[[Arrays], Mapping[str, float]]
    tidy: Callable[[Job], object] = keep
    directions: Mapping[str, str]
    design: Design
    budget: Budget
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "directory", Path(self.directory).expanduser().absolute())
        if not self.name:
            raise InvalidParameterError("`name` must not be empty. Name the sweep, e.g. after graph and model.")
        if not self.directions:
            raise InvalidParameterError("`directions` must name at least one objective value, got none.")
        for name, direction in self.directions.items():
            check_choice(f"directions[{name!r}]", direction, ("maximize", "minimize"))
        names = [*OWN_COLUMNS, *self.design.ranges, *self.directions]
        for name in names:
            if names.count(name) > 1:
                raise InvalidParameterError(f"`{name}` must name one column of the table, got it twice. Rename one.")

    @property
    def folder(self) -> Path:
        """The directory as an absolute path."""
        return Path(self.directory)


def keep_settings(sweep: Sweep) -> None:
    """Write sweep.toml, or compare with the one that is there.

    Raises:
        InvalidParameterError: If the sweep in the directory differs in more than its budget; the message names in what.
        InvalidFileError: If the file is there but cannot be read.
    """
    file = sweep.folder / SETTINGS
    document = _document(sweep)
    if file.exists():
        try:
            there = _flat(tomllib.loads(file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidFileError(f"{file} cannot be read as TOML ({error}). Restore it.") from error
        here = _flat(document)
        differing = sorted(key for key in there.keys() | here.keys() if there.get(key) != here.get(key))
        if not differing:
            return
        named = [key for key in differing if not key.startswith("budget.")]
        if named:
            listed = ", ".join(f"{key} ({there.get(key)!r} there, {here.get(key)!r} here)" for key in named)
            raise InvalidParameterError(
                f"`directory` must hold the same sweep, but {file} differs in {listed}. "
                "Use the settings of the first run, or another folder."
            )
    remove_rests(file)
    write_atomically(file, lambda path: path.write_text(tomli_w.dumps(document), encoding="utf-8"))


def remove_rests(file: Path) -> None:
    """Remove what a process has left that was killed while it wrote a file; only one may write to it."""
    for rest in file.parent.glob(f".{file.name}.*"):
        rest.unlink()


def _document(sweep: Sweep) -> dict[str, Any]:
    """Return the content of sweep.toml as reading it gives it back; lists keep the order of names, which matters."""
    design = sweep.design
    chosen = {name: value for name, value in vars(design).items() if name != "ranges"}
    ranges = [{"name": name, "low": low, "high": high} for name, (low, high) in design.ranges.items()]
    document = {
        "format_version": FORMAT_VERSION,
        "name": sweep.name,
        "job": f"{sweep.job.__module__}.{getattr(sweep.job, '__qualname__', type(sweep.job).__qualname__)}",
        "directions": [[name, direction] for name, direction in sweep.directions.items()],
        "design": {"kind": design.kind, **chosen, "ranges": ranges},
        "settings": dict(sweep.settings),
        "budget": {name: value for name, value in vars(sweep.budget).items() if value is not None},
    }
    try:
        return tomllib.loads(tomli_w.dumps(document))
    except TypeError as error:
        raise InvalidParameterError(
            f"`settings` must hold only values that TOML has, got {dict(sweep.settings)!r} ({error}). "
            "Pass text, numbers, truth values, lists and tables; leave out what is None."
        ) from error


def _flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return all values by dotted key."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
