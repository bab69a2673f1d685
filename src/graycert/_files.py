"""Files that are there as a whole or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_atomically(file: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary file beside ``file``, then give it its name; makes the folder.

    A reader sees the old file or the new one, never a part, whatever is killed when.

    Raises:
        OSError: If the place cannot be written to; nothing is left behind.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=file.suffix, dir=file.parent)
    os.close(descriptor)
    working = Path(name)
    try:
        write(working)
        working.chmod(0o644)  # mkstemp keeps it private
        with working.open("rb") as written:
            os.fsync(written.fileno())  # the name must not reach the disk before the contents
        working.replace(file)
    finally:
        working.unlink(missing_ok=True)
