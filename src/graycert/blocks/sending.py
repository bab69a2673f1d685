"""How a problem gets to workers: once to each, large arrays memory-mapped where they see the same files."""

import io
import socket
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from cloudpickle import Pickler, loads
from torch import Tensor

from graycert._phases import Phases
from graycert._versions import versions
from graycert.blocks.same_versions import refuse_other_versions
from graycert.errors import InvalidParameterError
from graycert.models.private_copy import private_copy
from graycert.problem import Problem

_LARGE = 2**18  # bytes, from which an array is a file of its own


class Sent(ABC):
    """A problem as workers get it."""

    def problem(self) -> Problem:
        """Return the problem, with a model of its own, since models remember what they are called with."""
        held = self.held()
        return replace(held, model=private_copy(held.model))

    @abstractmethod
    def held(self) -> Problem:
        """Return the problem; a process that asks again gets the same one."""


@dataclass(frozen=True, eq=False)
class Here(Sent):
    """A problem of this process."""

    asked: Problem

    def held(self) -> Problem:
        """Return it."""
        return self.asked


@dataclass(frozen=True)
class InFiles(Sent):
    """A problem in a folder that the workers see, too; it lives as long as they work."""

    folder: str

    def held(self) -> Problem:
        """Return it, its large arrays mapped into memory."""
        return _read(self.folder)


@dataclass(frozen=True)
class InBytes(Sent):
    """A problem that is sent as a whole, to machines of which some may come later.

    Args:
        content: The problem, pickled.
        versions: Of the process that sends it, names and numbers.
    """

    content: bytes
    versions: tuple[tuple[str, str], ...]

    def held(self) -> Problem:
        """Return it.

        Raises:
            InvalidParameterError: If this machine has other versions.
        """
        return _unpacked(self)


@contextmanager
def in_files(problem: Problem) -> Iterator[InFiles]:
    """Write a problem for the workers of this call, and remove it when they are done.

    Raises:
        InvalidParameterError: If the model cannot be sent.
    """
    place = problem.execution.folder  # where the next start clears away what a killed one left
    with tempfile.TemporaryDirectory(prefix=".sent-", dir=place, ignore_cleanup_errors=True) as folder:
        with (Path(folder) / "problem").open("wb") as file:
            _dump(problem, _Pickler(file, Path(folder)))
        yield InFiles(folder)


def in_bytes(problem: Problem) -> InBytes:
    """Return a problem as bytes.

    Raises:
        InvalidParameterError: If the model cannot be sent.
    """
    buffer = io.BytesIO()
    _dump(problem, Pickler(buffer))
    return InBytes(buffer.getvalue(), tuple(versions().items()))


def _dump(problem: Problem, pickler: Any) -> None:
    execution = replace(problem.execution, say=_silent, progress=False, folder=None)
    try:
        pickler.dump(replace(problem, audit=None, phases=Phases(), execution=execution))
    except Exception as error:
        raise InvalidParameterError(
            f'`backend` must be "threads" for this model, which cannot be sent to another process '
            f"({type(error).__name__}: {error}). Leave it out."
        ) from error


@lru_cache(maxsize=1)
def _read(folder: str) -> Problem:
    problem: Problem = loads((Path(folder) / "problem").read_bytes())
    return problem


@lru_cache(maxsize=1)
def _unpacked(sent: InBytes) -> Problem:
    refuse_other_versions({socket.gethostname(): versions()}, dict(sent.versions))
    problem: Problem = loads(sent.content)
    return problem


class _Pickler(Pickler):  # type: ignore[misc]
    """Writes large arrays and tensors as files of their own."""

    def __init__(self, file: BinaryIO, folder: Path) -> None:
        super().__init__(file)
        self._folder, self._kept = folder, list[Any]()

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is np.ndarray and obj.dtype.kind != "O" and obj.nbytes >= _LARGE:
            return _mapped, (self._written(obj),)
        plain = type(obj) is Tensor and obj.layout == torch.strided and obj.device.type == "cpu"
        if plain and not obj.requires_grad and obj.dtype != torch.bfloat16 and obj.nbytes >= _LARGE:
            return _mapped_tensor, (self._written(obj.numpy()),)
        return super().reducer_override(obj)

    def _written(self, array: Any) -> str:
        file = self._folder / f"{len(self._kept)}.npy"
        self._kept.append(array)  # whose identity must not be another's before the end
        np.save(file, array)
        return str(file)


def _mapped(file: str) -> Any:
    """Return an array whose pages all processes share; what one of them changes is its own."""
    return np.load(file, mmap_mode="c", allow_pickle=False)


def _mapped_tensor(file: str) -> Tensor:
    return torch.from_numpy(np.asarray(_mapped(file)))


def _silent(message: str) -> None:
    """Say nothing: the one who asks for the blocks speaks."""
    del message
