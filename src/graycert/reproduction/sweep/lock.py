"""The lock of a journal: one of the operating system, which a killed process gives back."""

from pathlib import Path
from types import TracebackType

from filelock import FileLock


class JournalLock:
    """Optuna's lock of a journal file, on a lock of the operating system; may be taken again by its holder.

    Optuna's own locks are files that outlive a killed process. And where a process is killed while it writes, half a
    line remains, to which the next line would be added; so whoever takes the lock cuts such a rest off.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._lock = FileLock(journal.with_name(f"{journal.name}.lock"))

    def acquire(self) -> bool:
        """Wait for the lock."""
        had_it = self._lock.is_locked
        self._lock.acquire(poll_interval=0.005)
        if not had_it:
            _cut_rest(self._journal)
        return True

    def release(self) -> None:
        """Give the lock back, once for each time it was taken."""
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def _cut_rest(journal: Path) -> None:
    """Cut off a last line without an end."""
    if not journal.is_file() or journal.stat().st_size == 0:
        return
    with journal.open("r+b") as file:
        file.seek(-1, 2)
        if file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
