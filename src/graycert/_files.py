"""Files that are there as a whole or not at all."""

import errno
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
    working = Path(name)
    try:
        os.close(descriptor)
        write(working)
        working.chmod(0o644)  # mkstemp keeps it private
        with working.open("rb") as written:
            os.fsync(written.fileno())  # the name must not reach the disk before the contents
        working.replace(file)
    finally:
        working.unlink(missing_ok=True)


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def is_no_room(error: BaseException | None) -> bool:
    """Whether something failed because the disk is full, a quota is used up, or the device fails."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            return True
        error = error.__cause__ or error.__context__
    return False
