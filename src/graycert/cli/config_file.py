"""Settings from a TOML file: the keys are the options in snake_case; flags win over the file."""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from graycert.cli.configs import CertifyConfig, Config
from graycert.cli.declared import SHORT_FORMS, without_replaced
from graycert.errors import InvalidFileError, InvalidParameterError

ConfigT = TypeVar("ConfigT", bound=Config)

_LONG_FORMS = {short: name for name, short in SHORT_FORMS.items()}


def resolve(flags: ConfigT, path: str | None) -> ConfigT:
    """Return the settings: defaults, then those of the file, then those given as flags.

    Args:
        flags: Settings in which exactly the given flags count as set.
        path: The file of `--config`, or None. For `graycert certify` it may be the config.toml of a run.

    Raises:
        InvalidFileError: If the file is missing or no TOML.
        InvalidParameterError: If it has an unknown key or a value of the wrong type.
    """
    if path is None:
        return flags
    file = Path(path).expanduser()
    kind = type(flags)
    given = {name: getattr(flags, name) for name in flags.model_fields_set}
    values = _read(file)
    of_run = "format_version" in values
    if of_run:
        values = _repeated(file, kind, given)
    read = _validated(kind, file, values)
    from_file = {name: getattr(read, name) for name in read.model_fields_set}
    if of_run:
        from_file = without_replaced(from_file, given)
    return kind.model_validate({**from_file, **given})


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidFileError(
            f"`--config` must name a readable file, got {file} ({error.strerror or error}). Check the path."
        ) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidFileError(f"{file} must be TOML: {error}. Write lines like `p_delete = 0.31`.") from error


def _repeated(file: Path, kind: type[Config], given: Mapping[str, Any]) -> dict[str, Any]:
    if not issubclass(kind, CertifyConfig):
        raise InvalidParameterError(
            f"`--config` must name a file of options, got {file}, which is that of a run. Only `graycert certify` "
            "repeats runs."
        )
    from graycert.cli.repetition import options_of_run

    return options_of_run(file, given)


def _validated(kind: type[ConfigT], file: Path, values: Mapping[str, Any]) -> ConfigT:
    values = {_LONG_FORMS.get(key, key): value for key, value in values.items()}
    for key in values:
        if key not in kind.model_fields:
            close = difflib.get_close_matches(key.replace("-", "_"), kind.model_fields, n=1)
            hint = f"Did you mean `{close[0]}`?" if close else f"Known keys: {', '.join(kind.model_fields)}."
            raise InvalidParameterError(f"{file}: unknown key `{key}`. {hint}")
    try:
        return kind.model_validate(values, strict=True)
    except ValidationError as error:
        raise InvalidParameterError(f"{file}: {type_problem(error)}") from error


def type_problem(error: ValidationError) -> str:
    """Return the first problem as one sentence that names the key, the rule and the value."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "value_error":  # of settings themselves, which name what it is about
        return f"{str(first['ctx']['error']).removesuffix('.')}. See `graycert --help`."
    name = first["loc"][0] if first["loc"] else "value"
    limits = {key: f"{limit:g}" if isinstance(limit, float) else limit for key, limit in first.get("ctx", {}).items()}
    rule = _RULES.get(first["type"], "usable").format(**limits)
    return f"`{name}` must be {rule}, got {first['input']!r}. See `graycert --help`."


_RULES = {
    "literal_error": "one of {expected}",
    "greater_than": "greater than {gt}",
    "greater_than_equal": "greater than or equal to {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "less than or equal to {le}",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
}
"""What each kind of problem that pydantic finds is called."""
