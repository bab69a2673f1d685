"""A small file that says what a graph is: a path, its node table, and the options of `load_graph`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from graycert._files import write_atomically
from graycert.data.preparation import STEPS
from graycert.data.tables.options import TABLE_OPTIONS
from graycert.errors import InvalidFileError

SUFFIX = ".toml"
_KEYS = ("graph", "nodes", *TABLE_OPTIONS, *STEPS)


def is_description(source: object) -> bool:
    """Say whether the name of a file is that of a description."""
    return isinstance(source, str | Path) and str(source).lower().endswith(SUFFIX)


def write_description(file: Path, *, graph: str, nodes: str | None, options: Mapping[str, Any]) -> None:
    """Write what a graph is; names of files are kept as they are.

    Raises:
        OSError: If the place cannot be written to.
    """
    content = {"graph": graph, **({} if nodes is None else {"nodes": nodes}), **options}
    write_atomically(file, lambda path: path.write_text(tomli_w.dumps(content), encoding="utf-8"))


def read_description(file: Path) -> dict[str, Any]:
    """Return the arguments of `load_graph` that a file holds; files are named from the folder of the description.

    Raises:
        InvalidFileError: If it is missing or damaged, or has other keys.
    """
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidFileError(f"'{file}' must be a TOML file that says what a graph is, got {reason}.") from error
    unknown = sorted(set(content) - set(_KEYS))
    if unknown or not isinstance(content.get("graph"), str):
        raise InvalidFileError(
            f"'{file}' must have the key graph, and may have {', '.join(_KEYS[1:])}; got "
            f"{', '.join(unknown) or 'no text for graph'}."
        )
    if is_description(content["graph"]):
        raise InvalidFileError(f"'{file}' must name a graph, got another description, {content['graph']!r}.")
    for name in ("graph", "nodes"):
        if isinstance(content.get(name), str) and (file.parent / Path(content[name]).expanduser()).is_file():
            content[name] = str((file.parent / Path(content[name]).expanduser()).resolve())
    return content
