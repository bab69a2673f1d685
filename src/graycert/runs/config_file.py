"""config.toml: every parameter of a run as text; probabilities of single edges and nodes are in votes.npz."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from graycert.errors import InvalidFileError
from graycert.smoothing.interception.parameters import InterceptionSmoothing

if TYPE_CHECKING:
    from graycert.certificates import NodeCertificates

FORMAT_VERSION = 2
SINGLE_PROBABILITIES = {"p_delete": "per edge", "p_ablate": "per node"}  # what config.toml says if arrays are stored

# section -> keys; every key must be there, and no other (only `class_names` may be missing)
_SECTIONS = {
    "smoothing": ("p_delete", "p_ablate"),
    "threat": ("min_distance", "has_trusted_nodes"),
    "certificate": (
        "rule",
        "alpha",
        "simultaneous",
        "method",
        "engine",
        "num_layers",
        "seed",
        "num_selection",
        "num_estimation",
        "max_radius",
    ),
    "graph": ("fingerprint", "num_nodes", "num_edges"),
}
_OPTIONAL = {"certificate": ("class_names",)}
_END = {"complete": True}  # the last section: a file that was cut short may still be TOML, but lacks it


def config_text(certificates: "NodeCertificates") -> str:
    """Return the content of config.toml."""
    c = certificates
    certificate: dict[str, Any] = {
        "rule": c.rule,
        "alpha": c.alpha,
        "simultaneous": c.simultaneous,
        "method": c.method,
        "engine": c.engine,
        "num_layers": c.num_layers,
        "seed": c.seed,
        "num_selection": c.num_selection,
        "num_estimation": c.num_estimation,
        "max_radius": c.max_radius,
    }
    if c.class_names is not None:
        certificate["class_names"] = list(c.class_names)
    document = {
        "format_version": FORMAT_VERSION,
        "smoothing": {
            name: where if name in smoothing_arrays(c.smoothing) else getattr(c.smoothing, name)
            for name, where in SINGLE_PROBABILITIES.items()
        },
        "threat": {
            "min_distance": c.threat.min_distance,
            "has_trusted_nodes": c.threat.trusted is not None,  # which ones: votes.npz
        },
        "certificate": certificate,
        "graph": {
            "fingerprint": c.graph_fingerprint,
            "num_nodes": c.num_nodes,
            "num_edges": c.num_edges,
        },
        "provenance": dict(c.provenance),
        "file": _END,
    }
    return tomli_w.dumps(document)


def smoothing_arrays(smoothing: InterceptionSmoothing) -> dict[str, NDArray[np.float64]]:
    """Return the probabilities that are arrays, by name."""
    values = {name: getattr(smoothing, name) for name in SINGLE_PROBABILITIES}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def stored_smoothing(path: Path, section: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> InterceptionSmoothing:
    """Return the smoothing of a run from its section of config.toml and the arrays stored beside.

    Raises:
        InvalidFileError: If an array is stored exactly where config.toml does not say so.
        InvalidParameterError: If a probability is impossible.
    """
    for name, where in SINGLE_PROBABILITIES.items():
        if (section[name] == where) is not (name in arrays):
            raise InvalidFileError(
                f"{path} must say `{name} = {where!r}` if and only if votes.npz holds `{name}`. They come from "
                "different runs."
            )
    return InterceptionSmoothing(**{name: arrays.get(name, section[name]) for name in SINGLE_PROBABILITIES})


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
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidFileError(f"{path} cannot be read as TOML ({error}). Certify again, or restore it.") from error
    check_version(path, document.pop("format_version", None))
    if document.pop("file", None) != _END:
        raise InvalidFileError(
            f"{path} must end with the section [file] and `complete = true`, so its end is missing. Certify again, or "
            "restore it."
        )
    expected = {*_SECTIONS, "provenance"}
    if set(document) != expected:
        raise InvalidFileError(f"{path} must have the sections {_listed(expected)}, got {_listed(document)}.")
    for section, keys in _SECTIONS.items():
        _check_keys(path, section, document[section], required=keys, optional=_OPTIONAL.get(section, ()))
    if not isinstance(document["provenance"], dict):
        raise InvalidFileError(f"{path}: `provenance` must be a section, got {document['provenance']!r}.")
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
    path: Path, section: str, values: object, *, required: tuple[str, ...], optional: tuple[str, ...]
) -> None:
    if not isinstance(values, dict):
        raise InvalidFileError(f"{path}: `{section}` must be a section, got {values!r}.")
    missing, unknown = set(required) - set(values), set(values) - {*required, *optional}
    if missing or unknown:
        raise InvalidFileError(
            f"{path}: section `{section}` must have the keys {_listed(required)}; "
            f"missing: {_listed(missing) or 'none'}, unknown: {_listed(unknown) or 'none'}."
        )


def _listed(names: object) -> str:
    return ", ".join(sorted(map(str, names)))  # type: ignore[call-overload]
