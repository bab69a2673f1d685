"""Votes of a block that is not finished, kept now and then while they are drawn: a block may take hours.

Draws are numbered, and votes are sums over them. A stage is a multiple of the draws that an engine evaluates together,
so that it makes no difference, bit by bit, in how many stages they are drawn.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graycert._archives import DAMAGED, read_archive, write_archive
from graycert._files import is_no_room, write_atomically
from graycert._types import IntArray
from graycert.problem import Problem
from graycert.sampling.engine import Engine, Progress
from graycert.sampling.streams import Purpose

FEWEST = 32
"""Draws of a stage at least."""

_BATCHES = "batches"
_LITTLE = 0.3  # seconds that keeping votes may take: where it takes n times as long, it is done n times as seldom


@dataclass(frozen=True, kw_only=True)
class VotesSoFar:
    """Where the votes of a block are kept.

    Args:
        folder: The folder of the unfinished certification. Where a worker does not see it, nothing is kept.
        run: Names all that decides the results.
        block: Number of the block.
        every: About as many seconds of drawing are lost at most, more where keeping takes long.
    """

    folder: Path
    run: str
    block: int = 0
    every: float = 30.0

    @property
    def file(self) -> Path:
        """The file, which is there while the block is drawn."""
        return self.folder / f"votes-{self.block:05d}.npz"

    def of(self, block: int) -> "VotesSoFar":
        """Return where those of another block are kept."""
        return dataclasses.replace(self, block=block)

    def read(self, *, num_targets: int, num_classes: int) -> tuple[dict[str, int], dict[str, IntArray]]:
        """Return how many draws or batches are kept, and their votes, by name; of a damaged file nothing."""
        try:
            record, arrays = read_archive(self.file)
            if (record["run"], record["block"]) == (self.run, self.block) and all(
                (each.shape[0], each.shape[-1]) == (num_targets, num_classes) for each in arrays.values()
            ):
                return record["done"], arrays
        except DAMAGED:
            pass
        return {}, {}

    def keep(self, done: Mapping[str, int], arrays: Mapping[str, IntArray]) -> None:
        """Write them as a whole or not at all; where there is no room, what is finished will say so."""
        if self.folder.is_dir():
            with suppress(OSError):
                write_archive(self.file, {"run": self.run, "block": self.block, "done": dict(done)}, arrays)

    def replaced_by(self, write: Callable[[], None]) -> None:
        """Write the block, where the disk is full in their place, and remove them.

        Raises:
            OSError: If it cannot be written; they are still there.
        """
        try:
            write()
        except OSError as error:
            if not (is_no_room(error) and self.file.is_file()):
                raise
            votes = self.file.read_bytes()
            self.drop()
            try:
                write()
            except OSError:
                with suppress(OSError):
                    write_atomically(self.file, lambda file: file.write_bytes(votes))
                raise
        self.drop()

    def drop(self) -> None:
        """Remove the file, once the block is kept as a whole."""
        with suppress(OSError):
            self.file.unlink(missing_ok=True)


class Stages:
    """Draws votes of a problem's targets, and keeps them now and then where there is a place for them.

    Args:
        engine: What draws.
        problem: Whose ``votes_so_far`` says where.
        progress: Called with the number of further draws that are done.
    """

    def __init__(self, engine: Engine, problem: Problem, progress: Progress) -> None:
        self._engine, self._problem, self._progress = engine, problem, progress
        self._place: VotesSoFar | None = problem.votes_so_far
        self._done: dict[str, int] = {}
        self._votes: dict[str, IntArray] = {}
        self._next = 0.0
        if self._place is not None:
            self._next = time.monotonic() + self._place.every
            self._done, self._votes = self._place.read(num_targets=problem.targets.size, num_classes=engine.num_classes)
        batches = self._votes.pop(_BATCHES, None)
        self._batches: list[IntArray] = [] if batches is None else list(np.moveaxis(batches, 1, 0))
        if self._done and problem.execution.say is not None:
            kept = ", ".join(f"{number:,} of {name}" for name, number in self._done.items())
            problem.execution.say(f"It goes on with the votes that are kept: {kept}.")

    def votes(self, purpose: Purpose, *, num_samples: int) -> IntArray:
        """Return votes per target and class, as `Engine.votes` does."""
        draw, place, name, seed = self._engine.votes, self._place, purpose.value, self._problem.setup.seed
        at_once = self._engine.draws_at_once
        if place is None or at_once is None:
            return draw(seed, purpose, num_samples=num_samples, progress=self._progress)
        votes: IntArray = np.zeros((self._problem.targets.size, self._engine.num_classes), dtype=np.int64)
        votes, done = self._votes.get(name, votes), self._done.get(name, 0)
        size = fewest = at_once * -(-FEWEST // at_once)
        self._progress(done)
        while done < num_samples:
            number, started = min(size, num_samples - done), time.monotonic()
            votes = votes + draw(seed, purpose, num_samples=number, first_sample=done, progress=self._progress)
            done += number
            self._votes[name], self._done[name] = votes, done
            self._keep_now_and_then()
            took = max(time.monotonic() - started, 1e-9)
            size = max(fewest, min(2 * size, int(number * place.every / 2 / took) // fewest * fewest))
        return votes

    def batch(self, number: int, draw: Callable[[], IntArray]) -> IntArray:
        """Return the votes of batch ``number``, of all targets, as ``draw`` does where they are not kept."""
        if number == len(self._batches):
            self._batches.append(draw())
            self._done[_BATCHES] = len(self._batches)
            self._keep_now_and_then()
        return self._batches[number]

    def _keep_now_and_then(self) -> None:
        if self._place is None or time.monotonic() < self._next:
            return
        started = time.monotonic()
        batches = {_BATCHES: np.stack(self._batches, axis=1)} if self._batches else {}
        self._place.keep(self._done, {**self._votes, **batches})
        ended = time.monotonic()
        self._next = ended + self._place.every * max(1.0, (ended - started) / _LITTLE)
