"""Settings from a TOML file: the keys are the flags in snake_case; flags win over the file."""

import difflib
import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from graycert.cli.configs import Config
from graycert.errors import InvalidFileError, InvalidParameterError

ConfigT = TypeVar("ConfigT", bound=Config)


def resolve(flags: ConfigT, path: str | None) -> ConfigT:
    """Return the settings: defaults, then those of the file, then those given as flags.

    Args:
        flags: Settings in which exactly the given flags count as set.
        path: The file of `--config`, or None.

    Raises:
        InvalidFileError: If the file is missing or no TOML.
        InvalidParameterError: If it has an unknown key or a value of the wrong type.
    """
    if path is None:
        return flags
    file = Path(path).expanduser()
    kind = type(flags)
    read = _validated(kind, file)
    given = {name: getattr(flags, name) for name in flags.model_fields_set}
    from_file = {name: getattr(read, name) for name in read.model_fields_set}
    return kind.model_validate({**from_file, **given})


def _validated(kind: type[ConfigT], file: Path) -> ConfigT:
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidFileError(
            f"`--config` must name a readable file, got {file} ({error.strerror or error}). Check the path."
        ) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidFileError(f"{file} must be TOML: {error}. Write lines like `p_delete = 0.31`.") from error
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
    name = first["loc"][0] if first["loc"] else "value"
    rule = first["msg"].removeprefix("Input should be ").partition(",")[0]
    return f"`{name}` must be {rule}, got {first['input']!r}. See `graycert --help`."
