"""Where commands read and write: how paths are told and shown, and files written as a whole or not at all."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from graycert._files import is_no_room, write_atomically
from graycert.errors import InvalidFileError, WriteError


def default_run(command: str, graph: str) -> Path:
    """Return runs/COMMAND-GRAPH-TIME, a name that is not taken."""
    name = re.sub(r"[^\w-]+", "_", Path(graph).name.split(".")[0]) or "graph"
    base = f"{command}-{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder = Path("runs") / base
    number = 2
    while folder.exists() or _lock(folder).exists() or folder.with_name(f"{folder.name}.unfinished").exists():
        folder = Path("runs") / f"{base}-{number}"
        number += 1
    return folder


@contextmanager
def claimed(place: Path) -> Iterator[None]:
    """Keep other commands from writing to the same place while this one works for it.

    Raises:
        InvalidFileError: If another one does.
    """
    from filelock import FileLock, Timeout

    lock = _lock(place)
    made = [folder for folder in lock.parents if not folder.exists()]
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(lock, timeout=0):
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)  # while it is held
    except Timeout:
        raise InvalidFileError(
            f"`--out` must be free, got {place}, which another command is about to write. Wait for it, or choose "
            "another place; a killed command leaves nothing to clear away."
        ) from None
    finally:
        with suppress(OSError):  # what was made for nothing
            for folder in made:
                folder.rmdir()


def _lock(place: Path) -> Path:
    return place.parent / f".{place.name}.lock"


def shown(place: Path) -> str:
    """Return how a place is named to the user: from the working folder, if it lies within."""
    return str(place.relative_to(Path.cwd())) if place.is_relative_to(Path.cwd()) else str(place)


def whole(text: str) -> str:
    """Return a name as it is and the path of a file as an absolute one, which holds in any working folder."""
    path = Path(text).expanduser()
    return str(path.resolve()) if path.suffix and path.is_file() else text


def check_file(path: str | Path, *, overwrite: bool, suffixes: tuple[str, ...], flag: str = "out") -> Path:
    """Return the absolute path of a file that may be written, named by an option.

    Raises:
        InvalidFileError: If its name ends otherwise, it exists, or its folder cannot be written to.
    """
    file = Path(path).expanduser().resolve()
    if file.suffix.lower() not in suffixes:
        raise InvalidFileError(f"`--{flag}` must end in {' or '.join(suffixes)}, got {file.name!r}.")
    if file.exists() and (not overwrite or not file.is_file()):
        raise InvalidFileError(
            f"`--{flag}` must be a new file, got {file}, which exists. Choose another, or pass --overwrite."
        )
    from graycert.runs.store import can_write

    existing = next(folder for folder in file.parents if folder.exists())
    if not can_write(existing):
        raise InvalidFileError(f"`--{flag}` must be writable, got {file}, but {existing} is no folder to write to.")
    return file


def write_file(file: Path, write: Callable[[Path], None], *, flag: str = "out") -> None:
    """Let ``write`` fill a temporary file beside ``file``, then give it its name.

    Raises:
        InvalidFileError: If the place cannot be written to.
    """
    try:
        write_atomically(file, write)
    except OSError as error:
        if is_no_room(error):
            raise WriteError(f"{file} cannot be written ({error.strerror or error}). Make room.") from error
        raise InvalidFileError(f"`--{flag}` must be writable, got {file} ({error.strerror or error}).") from error
