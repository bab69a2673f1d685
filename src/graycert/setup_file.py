"""config.toml: the whole set-up of a run as text; arrays among it are in votes.npz."""

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w
from numpy.typing import NDArray

from graycert._parameters import Parameters
from graycert.draws import DRAWS
from graycert.errors import InvalidFileError, InvalidParameterError, UnsoundSetupError
from graycert.setup import Setup
from graycert.smoothing import SMOOTHINGS
from graycert.threats import THREATS

FORMAT_VERSION = 4

PARTS: dict[str, Mapping[str, type[Parameters]]] = {"smoothing": SMOOTHINGS, "threat": THREATS, "draws": DRAWS}
"""Sections that hold the parameters of one of several classes, and its name."""

_GRAPH = {
    "graph_fingerprint": "fingerprint",
    "edges_fingerprint": "edges_fingerprint",
    "num_nodes": "num_nodes",
    "num_edges": "num_edges",
}
_CERTIFICATE = tuple(
    field.name for field in dataclasses.fields(Setup) if field.name not in {*PARTS, *_GRAPH, "provenance"}
)
_OPTIONAL = {field.name for field in dataclasses.fields(Setup) if "None" in str(field.type)}  # left out where None
_SEVERAL = {field.name for field in dataclasses.fields(Setup) if "tuple" in str(field.type)}
_END = {"complete": True}  # the last section: a file that was cut short may still be TOML, but lacks it


def config_text(setup: Setup, seconds: Mapping[str, float]) -> str:
    """Return the content of config.toml: the set-up, and the wall time of each phase."""
    document: dict[str, Any] = {"format_version": FORMAT_VERSION}
    for part in PARTS:
        chosen = getattr(setup, part)
        if chosen is not None:
            document[part] = {"name": chosen.name, **chosen.stored()[0]}
    document["certificate"] = {
        name: list(value) if isinstance(value, tuple) else value
        for name in _CERTIFICATE
        if (value := getattr(setup, name)) is not None
    }
    document["graph"] = {key: getattr(setup, name) for name, key in _GRAPH.items()}
    document["provenance"] = dict(setup.provenance)
    document["seconds"] = dict(seconds)
    document["file"] = _END
    return tomli_w.dumps(document)


def settings_of(setup: Setup) -> dict[str, Any]:
    """Return what a set-up says of what is to be certified, by names such as ``smoothing.p_delete``; no arrays."""
    document = tomllib.loads(config_text(setup, {}))
    sections = (*PARTS, "certificate", "graph")
    return {f"{part}.{name}": value for part in sections for name, value in document.get(part, {}).items()}


def stored_arrays(setup: Setup) -> dict[str, NDArray[Any]]:
    """Return the arrays of the set-up, named as in ``threat.trusted``."""
    return {
        f"{part}.{name}": array
        for part in PARTS
        if getattr(setup, part) is not None
        for name, array in getattr(setup, part).stored()[1].items()
    }


def stored_setup(path: Path, document: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Setup:
    """Return the set-up of a run.

    Args:
        path: config.toml, for messages.
        document: From `read_config`.
        arrays: Arrays of votes.npz with a dot in their name.

    Raises:
        InvalidFileError: If a part is not known or holds impossible values.
    """
    parts = {part: _restored(path, part, document, arrays) for part in PARTS}
    certificate = dict(document["certificate"])
    for name in _SEVERAL & certificate.keys():
        certificate[name] = tuple(certificate[name])
    graph = {name: document["graph"][key] for name, key in _GRAPH.items()}
    absent = dict.fromkeys(_OPTIONAL & set(_CERTIFICATE))
    try:
        return Setup(**{**absent, **certificate}, **graph, **parts, provenance=document["provenance"])
    except (InvalidParameterError, UnsoundSetupError) as error:
        raise InvalidFileError(f"{path} holds an impossible value: {error}") from error


def _restored(path: Path, part: str, document: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    if part not in document:
        return None
    values = dict(document[part])
    kind = PARTS[part].get(values.pop("name", None))
    if kind is None:
        raise InvalidFileError(
            f"{path}: section `{part}` must have a `name` of {', '.join(PARTS[part])}, got "
            f"{document[part].get('name')!r}."
        )
    own = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{part}.")}
    try:
        return kind.restored(values, own)
    except (InvalidParameterError, TypeError) as error:
        raise InvalidFileError(f"{path} or votes.npz, section `{part}`: {error}") from error


def read_config(path: Path) -> dict[str, Any]:
    """Read config.toml: the sections as plain dictionaries.

    Raises:
        InvalidFileError: If the file is missing, cut short, no TOML, of another version, or its keys are not the
            known ones.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidFileError(
            f"{path} is missing, so this is no graycert run directory. Give the folder that `graycert certify` wrote."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidFileError(f"{path} cannot be read as TOML ({error}). Certify again, or restore it.") from error
    check_version(path, document.pop("format_version", None))
    if document.pop("file", None) != _END:
        raise InvalidFileError(
            f"{path} must end with the section [file] and `complete = true`, so its end is missing. Certify again, or "
            "restore it."
        )
    required, optional = {"smoothing", "threat", "certificate", "graph", "provenance"}, {"draws", "seconds"}
    if not required <= set(document) <= required | optional:
        raise InvalidFileError(f"{path} must have the sections {_listed(required)}, got {_listed(document)}.")
    for section, value in document.items():
        if not isinstance(value, dict):
            raise InvalidFileError(f"{path}: `{section}` must be a section, got {value!r}.")
    _check_keys(path, "certificate", document["certificate"], known=_CERTIFICATE, optional=_OPTIONAL)
    _check_keys(path, "graph", document["graph"], known=tuple(_GRAPH.values()), optional=set())
    return document


def check_version(path: Path, found: object) -> None:
    """Refuse a file that another version of the format, or another program, has written.

    Raises:
        InvalidFileError: If ``found`` is not this version.
    """
    if found is None:
        raise InvalidFileError(f"{path} has no format version, so graycert did not write it. Is it the right file?")
    if found != FORMAT_VERSION or isinstance(found, bool):
        raise InvalidFileError(
            f"{path} must have format version {FORMAT_VERSION}, got {found!r}. "
            "Read it with the graycert version named in its provenance, or certify again."
        )


def _check_keys(
    path: Path, section: str, values: dict[str, Any], *, known: tuple[str, ...], optional: set[str]
) -> None:
    missing, unknown = set(known) - set(values) - optional, set(values) - set(known)
    if missing or unknown:
        raise InvalidFileError(
            f"{path}: section `{section}` must have the keys {_listed(known)}; "
            f"missing: {_listed(missing) or 'none'}, unknown: {_listed(unknown) or 'none'}."
        )


def _listed(names: Any) -> str:
    return ", ".join(sorted(map(str, names)))
