"""Folders in which named graphs are looked for, and the one into which they are downloaded."""

import os
from pathlib import Path

from graycert.errors import InvalidFileError

ENVIRONMENT_VARIABLE = "GRAYCERT_DATA"


def cache_folder() -> Path:
    """Return the folder for downloads when no data root is set."""
    return Path.home() / ".cache" / "graycert"


def explicit_root(data_root: str | os.PathLike[str] | None) -> Path | None:
    """Return the data root that was passed or else set as GRAYCERT_DATA; None if neither.

    Raises:
        InvalidFileError: If that is not an existing folder.
    """
    given, name = data_root, "data_root"
    if given is None:
        given, name = os.environ.get(ENVIRONMENT_VARIABLE) or None, ENVIRONMENT_VARIABLE
    if given is None:
        return None
    root = Path(given).expanduser()
    if not root.is_dir():
        raise InvalidFileError(
            f"`{name}` must be an existing folder, got '{root}'. Create it, or leave `{name}` out to use "
            f"{cache_folder()}."
        )
    return root


def search_folders(data_root: str | os.PathLike[str] | None) -> tuple[Path, ...]:
    """Return the folders to look in, in order: the data root if there is one, then the cache folder."""
    root = explicit_root(data_root)
    return (cache_folder(),) if root is None else (root, cache_folder())
