"""The options that make a run again: what is stored of them in its config.toml, and what is read from there."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graycert._parameters import Parameters
from graycert.cli.configs import CertifyConfig
from graycert.cli.declared import as_options, options_of
from graycert.cli.places import whole
from graycert.draws import DRAWS, UntilDecided
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.smoothing import SMOOTHINGS
from graycert.threats import THREATS

WHERE = {
    *("out", "overwrite", "brief", "data_root", "fail_under", "junit"),
    *("block_size", "backend", "workers", "scheduler"),
}
"""Options that say where files are, who works, or what is asked of the result, and nothing about what is done."""

_PARTS: Mapping[str, Mapping[str, type[Parameters]]] = {"smoothing": SMOOTHINGS, "threat": THREATS, "draws": DRAWS}
_CERTIFICATE = ("rule", "bound", "alpha", "simultaneous", "max_radius", "seed", "num_layers")
_NEVER_STORED = {"model": "which model was certified", "targets": "by which option its targets were named"}


def complete_options(config: CertifyConfig, parts: tuple[Parameters | None, ...], **others: Any) -> dict[str, Any]:
    """Return every option that repeats a run, with what was taken where none was given, and whole paths.

    Args:
        config: The options as they were given.
        parts: Smoothing, threat and draws.
        others: What was taken for further options.
    """
    options = config.model_dump(exclude=WHERE)
    for part in parts:
        options |= as_options(part)
    options |= others
    files = {"graph", "nodes", "model", "weights", "targets"}
    files |= {
        name
        for part in parts
        if part is not None
        for name, field in options_of(type(part)).items()
        if field.metadata["option"] == "nodes"
    }
    return {name: whole(value) if name in files else value for name, value in options.items() if value is not None}


def options_of_run(file: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that repeat a run: those stored in it, else what its sections say.

    Args:
        file: The config.toml of a run.
        given: What flags say, which may be what the file cannot say.

    Raises:
        InvalidFileError: If it is damaged.
        InvalidParameterError: If something of a run made in Python has no option, and no flag says it.
    """
    from graycert.setup_file import read_config

    document = read_config(file)
    stored = document["provenance"].get("options")
    if stored is None:
        return _from_sections(file, document, given)
    if not isinstance(stored, Mapping):
        raise InvalidFileError(f"{file}: `provenance.options` must be a section, got {stored!r}. Certify again.")
    return dict(stored)


def _from_sections(file: Path, document: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: document["certificate"][name] for name in _CERTIFICATE if name in document["certificate"]}
    missing = dict(_NEVER_STORED)
    for part, kinds in _PARTS.items():
        if part not in document:
            continue
        values = dict(document[part])
        kind = kinds.get(values.pop("name", ""))
        if kind is None:
            raise InvalidFileError(
                f"{file}: section `{part}` must have a `name` of {', '.join(kinds)}, got "
                f"{document[part].get('name')!r}."
            )
        if part == "draws":
            options["until_decided"] = kind is UntilDecided
        else:
            options[part] = kind.name
        declared = options_of(kind)
        unsaid = {each.name: each.default for each in dataclasses.fields(kind) if each.name not in declared}
        for name, value in values.items():
            if name in unsaid and value == unsaid[name]:  # nothing that an option would have to say
                continue
            per = declared[name].metadata["per"] if name in declared else ""
            if name not in declared or (per and value == f"per {per}"):
                missing[name] = f"`{name}` of its {part}, which is an array"
            else:
                options[name] = value
    graph = document["provenance"].get("graph")
    graph = graph if isinstance(graph, Mapping) else {}
    if "source" in graph:
        options |= {"graph": graph["source"], **graph.get("options", {})}
        options |= {"nodes": graph["nodes"]} if "nodes" in graph else {}
    else:
        missing["graph"] = "where its graph is"
    left = {name: what for name, what in missing.items() if name not in given}
    if left:
        flags = ", ".join(f"`--{name.replace('_', '-')}`" for name in left)
        raise InvalidParameterError(
            f"{file} is of a run made in Python and does not say {'; '.join(left.values())}. Give {flags} besides."
        )
    return options
