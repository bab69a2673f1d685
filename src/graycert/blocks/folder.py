"""The folder of an unfinished certification: what was asked for, the model, and a file per finished block.

settings.json           what decides the results, and how targets are cut: another call is refused by what differs
config.toml, asked.npz  the set-up as a run stores it, the targets and other arrays, so that it can be resumed
model.safetensors/json  the model, where graycert built it
options.json            the options of the command line, where it was one that asked
block-00000.npz         arrays of a finished block by their declared names, and a checksum over all that is in it
votes-00000.npz         votes so far of a block that is being drawn
lock                    of the operating system, held by who works here: a killed one gives it back
"""

import hashlib
import inspect
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from graycert._archives import DAMAGED, digest, read_archive, write_archive
from graycert._files import is_no_room, write_atomically
from graycert._versions import versions
from graycert.blocks.ordering import ORDER
from graycert.blocks.work import Outcome
from graycert.errors import InvalidFileError, InvalidParameterError, WriteError
from graycert.problem import Problem, Say
from graycert.setup import Setup
from graycert.setup_file import config_text, settings_of, stored_arrays
from graycert.smoothing.votes_so_far import VotesSoFar

SETTINGS, CONFIG, ASKED, MODEL, LOCK = "settings.json", "config.toml", "asked.npz", "model.safetensors", "lock"
OPTIONS = "options.json"
SIZE = "block_size"
_PLAIN = (bool, int, float, str, NoneType)
_FOUND = ("engine", "num_classes", "class_names", "max_radius", "memory_budget", "memory_planned")


class BlockFolder:
    """Finished blocks of one certification.

    Args:
        folder: The folder, locked.
        settings: What decides the results.
        size: Targets per block.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], size: int) -> None:
        self.folder, self.size = folder, size
        self._run = hashlib.sha256(json.dumps({**settings, SIZE: size}, sort_keys=True).encode()).hexdigest()
        self.votes_so_far = VotesSoFar(folder=folder, run=self._run)

    def keep(self, number: int, outcome: Outcome) -> None:
        """Write a block as a whole or not at all.

        Raises:
            WriteError: If there is no room.
            InvalidFileError: If it cannot be written.
        """
        found = {name: getattr(outcome.setup, name) for name in _FOUND}
        record = {"run": self._run, "block": number, "setup": found, "seconds": dict(outcome.seconds)}
        with writing(self.folder):
            self.votes_so_far.of(number).replaced_by(lambda: write_archive(self._file(number), record, outcome.arrays))

    def holds_votes(self) -> bool:
        """Return whether votes of a block that is not finished are kept."""
        return any(self.folder.glob("votes-*.npz"))

    def get(self, number: int, setup: Setup, *, say: Say | None) -> Outcome | None:
        """Return a finished block; None if there is none. A damaged file, or one of another block, is removed."""
        file = self._file(number)
        try:
            record, arrays = read_archive(file)
            if (record["run"], record["block"]) != (self._run, number):
                raise ValueError("it is not what was written under this name")
        except FileNotFoundError:
            return None
        except DAMAGED as error:
            file.unlink(missing_ok=True)
            if say is not None:
                say(f"{file} is damaged ({error}): this block is computed again")
            return None
        self.votes_so_far.of(number).drop()  # a process may be killed just after it has kept a block
        return Outcome(setup=setup.replace(**record["setup"]), arrays=arrays, seconds=record["seconds"])

    def _file(self, number: int) -> Path:
        return self.folder / f"block-{number:05d}.npz"


@contextmanager
def opened(problem: Problem, place: str | Path, *, size: int) -> Iterator[BlockFolder]:
    """Lock the folder of a certification and compare its settings; a new one is made.

    Args:
        problem: What is asked, prepared.
        place: The folder.
        size: Targets per block, where nothing is kept yet.

    Raises:
        InvalidFileError: If another process works there, or it is not such a folder, or cannot be written to.
        InvalidParameterError: If it holds blocks of another call; the differing settings are named.
        WriteError: If there is no room.
    """
    folder = Path(place).expanduser().resolve()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise InvalidFileError(
                f"`folder` must be free, got {folder}, in which another process certifies. Wait for it or end it; a "
                "killed one leaves nothing to clear away."
            ) from None
    try:
        settings = _settings(problem)
        known = _read(folder)
        if known is None:
            with writing(folder):
                _start(folder, problem, {**settings, SIZE: size})
        else:
            _refuse_others(folder, known, settings, asked=None if problem.execution.block_size is None else size)
            size = int(known[SIZE])
        for left in folder.glob(".*"):  # what a killed process was about to write, or had sent to its workers
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
        yield BlockFolder(folder, settings, size)
    finally:
        lock.release()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say what is kept where something cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        if is_no_room(error):
            raise WriteError(
                f"{folder} cannot be written to ({reason}). Finished blocks are kept; make room, and the same call "
                "goes on with the others."
            ) from error
        raise InvalidFileError(
            f"`folder` must be one that can be written to, got {folder} ({reason}). Choose another one."
        ) from error


def _settings(problem: Problem) -> dict[str, Any]:
    """Return what decides the results, by name."""
    return {
        **settings_of(problem.setup),
        **{f"array.{name}": digest(array) for name, array in _asked(problem).items()},
        "model": _digest_of_model(problem.model),
        "block_order": ORDER,
        "execution.engine": problem.execution.engine,
        "execution.device": str(problem.execution.device or "cpu"),
        **{f"version.{name}": version for name, version in versions().items()},
    }


def _asked(problem: Problem) -> dict[str, NDArray[Any]]:
    """Return the arrays among what is asked for."""
    asked = {"targets": problem.targets, **stored_arrays(problem.setup)}
    if problem.ablation_token is not None:
        asked["ablation_token"] = problem.ablation_token.detach().cpu().numpy()
    return asked


def _digest_of_model(model: Any) -> str:
    """Return class and hash of a model: of its tensors, its plain attributes, and the source of its classes."""
    from graycert.models import weights_sha256

    kind, said = f"{type(model).__module__}.{type(model).__qualname__}", hashlib.sha256()
    for name, module in model.named_modules():
        plain = {key: value for key, value in sorted(vars(module).items()) if isinstance(value, _PLAIN)}
        plain.pop("training", None)  # models are evaluated in evaluation mode, whatever mode they come in
        said.update(f"{name} {type(module).__qualname__} {plain!r}\n{_source(type(module))}".encode())
    try:
        return f"{kind} {weights_sha256(model)} {said.hexdigest()}"
    except (AttributeError, TypeError, ValueError):  # a module may keep anything beside its tensors
        return f"{kind} {said.hexdigest()}"


def _source(kind: type) -> str:
    """Return the source of a class, or the code of its methods where there is none, as in a notebook."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        functions = [each for _, each in sorted(vars(kind).items()) if inspect.isfunction(each)]
        return repr([each.__code__.co_code for each in functions])


def _read(folder: Path) -> dict[str, Any] | None:
    file = folder / SETTINGS
    if not file.exists():
        expected = {CONFIG, ASKED, MODEL, "model.json", OPTIONS, LOCK}
        names = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
        foreign = [name for name in names if name not in expected]
        if foreign:
            raise InvalidFileError(
                f"`folder` must be new, empty or that of an unfinished certification, got {folder}, which holds "
                f"{foreign[0]}. Choose another one."
            )
        return None
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(known, dict) or not isinstance(known[SIZE], int) or known[SIZE] < 1:
            raise ValueError("not the settings of a certification")
    except (OSError, ValueError, KeyError, RecursionError) as error:
        raise InvalidFileError(f"{file} is damaged ({error}). Delete the folder, and start anew.") from error
    return known


def _start(folder: Path, problem: Problem, settings: Mapping[str, Any]) -> None:
    """Write all that a later call needs; the settings last, which make it the folder of this certification."""
    from graycert.models.weights import OwnModel, save_model

    asked: dict[str, Any] = _asked(problem)
    config = config_text(problem.setup, {})
    write_atomically(folder / CONFIG, lambda file: file.write_text(config, encoding="utf-8"))
    write_atomically(folder / ASKED, lambda file: np.savez(file, **asked))
    if isinstance(problem.model, OwnModel) and not (folder / MODEL).exists():
        save_model(problem.model, folder / MODEL)
    text = json.dumps(settings, indent=1, sort_keys=True) + "\n"
    write_atomically(folder / SETTINGS, lambda file: file.write_text(text, encoding="utf-8"))


def _refuse_others(folder: Path, known: Mapping[str, Any], settings: Mapping[str, Any], *, asked: int | None) -> None:
    expected = {**settings, SIZE: known[SIZE] if asked is None else asked}
    names = sorted(name for name in {*known, *expected} if known.get(name) != expected.get(name))
    if names:
        told = ", ".join(
            f"{name} ({_short(known.get(name))} there, {_short(expected.get(name))} here)" for name in names
        )
        raise InvalidParameterError(
            f"`folder` must be that of the same certification, got {folder}, where these settings differ: {told}. Give "
            "the same ones, or another folder."
        )


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:20]}..."
