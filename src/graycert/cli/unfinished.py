"""The folder beside a run that is not finished: its options, its model and the blocks that are done."""

import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graycert._files import is_no_room, write_atomically
from graycert.cli import console
from graycert.cli.places import shown
from graycert.errors import GraycertError, InvalidFileError, InvalidParameterError, WriteError

_NOT_COMPARED = {"memory", "batch_size"}
"""Options that results do not depend on, besides those that no run stores."""

_PATIENCE = 0.8  # seconds for an orderly end


def place_of(out: Path) -> Path:
    """Return where a run is kept until it is finished."""
    return out.with_name(f"{out.name}.unfinished")


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A run on its way.

    Args:
        out: Where it will be.
        folder: Where it is now.
    """

    out: Path
    folder: Path

    @property
    def num_blocks(self) -> int:
        """Number of finished blocks."""
        return sum(1 for _ in self.folder.glob("block-*.npz"))

    def trained(self, train: Callable[[], tuple[Any, dict[str, Any]]]) -> tuple[Any, dict[str, Any]]:
        """Return the trained model and the record of its training: those that are kept, else trained now, and kept."""
        from graycert.models import load_model, save_model

        weights = self.folder / "model.safetensors"
        if weights.with_suffix(".json").exists():
            notes = json.loads(weights.with_suffix(".json").read_text(encoding="utf-8")).get("notes", {})
            return load_model(weights), notes.get("training", {})
        module, record = train()
        save_model(module, weights, notes={"training": record})
        return module, record

    def told(self) -> str:
        """Say what is kept, and how to go on."""
        kept = [f"{self.num_blocks:,} finished blocks"] if self.num_blocks else []
        kept += ["votes of an unfinished block"] if any(self.folder.glob("votes-*.npz")) else []
        kept += ["the trained model"] if (self.folder / "model.json").exists() else []
        if not kept:
            return ""
        everything = " and ".join(filter(None, [", ".join(kept[:-1]), kept[-1]]))
        return f"Kept in {shown(self.folder)}: {everything}. The same command with --out {shown(self.out)} goes on."


@contextmanager
def unfinished(out: Path, options: Mapping[str, Any], *, overwrite: bool) -> Iterator[Unfinished]:
    """Open the folder of a run that is to be made, or goes on; it is gone when the run is there.

    What is worth to go on with stays after an interruption and where a disk is full; a set-up that is refused leaves
    nothing behind.

    Args:
        out: Folder of the run, which the caller has claimed.
        options: All options that decide what is certified.
        overwrite: Drop what another command has left here.

    Raises:
        InvalidParameterError: If the folder holds a run with other options, which are named.
        InvalidFileError: If it is damaged, or cannot be written to.
        WriteError: If there is no room.
    """
    run = Unfinished(out=out, folder=place_of(out))
    options = {name: value for name, value in options.items() if name not in _NOT_COMPARED}
    options = json.loads(json.dumps(options, default=str))
    file = run.folder / "options.json"
    before = _read(file)
    if before is not None and before != options and overwrite:
        shutil.rmtree(run.folder)
        before = None
    if before is None:
        text = json.dumps(options, indent=1, sort_keys=True) + "\n"
        try:
            write_atomically(file, lambda written: written.write_text(text, encoding="utf-8"))
        except OSError as error:
            kind = WriteError if is_no_room(error) else InvalidFileError
            raise kind(f"`--out`: {run.folder} cannot be written to ({error.strerror or error}).") from error
    elif before != options:
        _refuse(run, before, options)
    try:
        with _promptly(run):
            yield run
    except BaseException as error:
        _leave(run, error, fresh=before is None)
        raise
    _remove(run.folder)


def _remove(folder: Path) -> None:
    """Take the folder's name away first, so that a part of it is never taken for an unfinished run."""
    with suppress(OSError):
        aside = folder.with_name(f".{folder.name}.done")
        folder.replace(aside)
        shutil.rmtree(aside, ignore_errors=True)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("no object")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidFileError(f"{file} is damaged ({error}). Delete its folder, and start anew.") from error
    return found


def _refuse(run: Unfinished, before: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    names = sorted(name for name in {*before, *options} if before.get(name) != options.get(name))
    told = ", ".join(f"{name} ({before.get(name)} there, {options.get(name)} here)" for name in names)
    raise InvalidParameterError(
        f"`--out` must be that of the same command, got {shown(run.out)}, whose unfinished run in {shown(run.folder)} "
        f"has other options: {told}. Give the same ones to go on, another --out, or --overwrite to drop what is there."
    )


def _leave(run: Unfinished, error: BaseException, *, fresh: bool) -> None:
    """Keep what is worth to go on with, and say so."""
    refused = isinstance(error, GraycertError) and error.exit_status in (2, 3)
    if fresh and (refused or not run.told()):
        shutil.rmtree(run.folder, ignore_errors=True)
    elif run.told():
        error.add_note(run.told())


@contextmanager
def _promptly(run: Unfinished) -> Iterator[None]:
    """Leave within a second of Ctrl-C or SIGTERM, although compiled code may hear of it much later.

    That loses nothing: files are there as a whole or not at all, and workers leave with their parent.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone hears signals
        yield
        return
    heard, ends = socket.socketpair()
    ends.setblocking(False)
    over = threading.Event()

    def wait() -> None:
        for number in iter(lambda: heard.recv(1), b""):
            if number[0] in (signal.SIGINT, signal.SIGTERM) and not over.wait(_PATIENCE):
                console.error(f"interrupted. {run.told() or 'Nothing was finished yet.'}")
                os._exit(128 + number[0])

    watch = threading.Thread(target=wait, daemon=True)
    before = signal.set_wakeup_fd(ends.fileno(), warn_on_full_buffer=False)
    watch.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        ends.close()
        watch.join()
        heard.close()
