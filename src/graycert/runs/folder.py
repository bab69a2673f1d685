"""Folders that are there as a whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from graycert._files import is_no_room
from graycert.errors import InvalidFileError, WriteError


def write_folder(target: Path, write: Callable[[Path], object], *, what: str) -> Path:
    """Let ``write`` fill a temporary folder beside ``target``, and rename it when it is complete.

    An earlier folder is moved aside first and deleted last: between the two renames the name is free for an
    instant, but it never belongs to a mixture, and a crash leaves the complete earlier folder beside it.

    Args:
        target: Absolute path of a new or empty folder, or of one that may be replaced; parents are made.
        write: Called with the temporary folder.
        what: What is written, in a word.

    Returns:
        The path.

    Raises:
        InvalidFileError: If it cannot be written.
        WriteError: If there is no room.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        working = Path(tempfile.mkdtemp(prefix=f".{target.name}.writing-", dir=target.parent))
        try:
            write(working)
            for file in working.iterdir():
                _flush(file)
            working.chmod(0o755)  # mkdtemp keeps it private
            _replace(working, target)
        finally:
            shutil.rmtree(working, ignore_errors=True)
    except OSError as error:
        if is_no_room(error):
            raise WriteError(
                f"{target} cannot be written ({error.strerror or error}). Nothing of this {what} is there; an earlier "
                f"{what} is as it was. Make room, or choose another folder."
            ) from error
        raise InvalidFileError(
            f"`directory` must be writable, got {target} ({error.strerror or error}). Choose another folder."
        ) from error
    return target


def _flush(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # the rename must not reach the disk before the contents
    finally:
        os.close(descriptor)


def _replace(working: Path, target: Path) -> None:
    if not target.exists() or not any(target.iterdir()):
        working.replace(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.replaced-", dir=target.parent))
    target.replace(aside)
    try:
        working.replace(target)
    except OSError:
        aside.replace(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
