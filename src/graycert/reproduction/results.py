"""Results of jobs in a folder: one file per job, named by its key, there as a whole or not at all."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._files import write_atomically
from graycert.errors import InvalidFileError
from graycert.reproduction.job import Job

Arrays = dict[str, NDArray[Any]]


class Results:
    """The stored results of jobs.

    Args:
        folder: Where they lie; made when the first is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __contains__(self, job: Job) -> bool:
        """Whether the job was done."""
        return self._file(job).is_file()

    def __getitem__(self, job: Job) -> Arrays:
        """Return the arrays of a job that was done.

        Raises:
            KeyError: If it was not done.
            InvalidFileError: If its file is damaged.
        """
        file = self._file(job)
        if not file.is_file():
            raise KeyError(job)
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise InvalidFileError(f"{file} is damaged ({error}). Delete it: it is computed again.") from error

    def write(self, job: Job, arrays: dict[str, Any]) -> None:
        """Store the result of a job; values become arrays of numbers or text.

        Raises:
            TypeError: If a value is neither.
        """
        values: dict[str, Any] = {name: np.asarray(value) for name, value in arrays.items()}
        for name, value in values.items():
            if value.dtype == np.object_:  # would need pickle
                raise TypeError(f"{job.job}: {name!r} must be an array of numbers or text, got objects")

        def save(path: Path) -> None:
            with path.open("wb") as file:
                np.savez_compressed(file, **values)

        write_atomically(self._file(job), save)

    def _file(self, job: Job) -> Path:
        return self.folder / job.job / f"{job.key}.npz"
