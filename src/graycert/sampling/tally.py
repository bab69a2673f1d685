"""Counting the votes of many threads; which thread counts which chunk makes no difference."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from graycert._types import Float32Array, IntArray
from graycert.sampling.kernels.votes import Ballot
from graycert.sampling.scores import prediction_type

Progress = Callable[[int], None]


class Counts(NamedTuple):
    """Where votes of some targets are counted: votes (num_targets, num_classes), near-ties (num_targets,)."""

    votes: IntArray
    near_ties: IntArray


class Tally:
    """Votes, near-ties and, if asked for, the class of every vote.

    Args:
        skip_logits: What the skip connection adds, float32 (num_targets, num_classes).
        samples: Numbers of the samples that count.
        progress: Called with the number of further samples that are done.
        keep: Whether to keep the class of every vote.
    """

    def __init__(self, skip_logits: Float32Array, samples: range, progress: Progress | None, *, keep: bool) -> None:
        num_targets, num_classes = skip_logits.shape
        self.predictions = np.empty((num_targets, len(samples) if keep else 0), dtype=prediction_type(num_classes))
        self.votes = np.zeros((num_targets, num_classes), dtype=np.int64)
        self.near_ties = np.zeros(num_targets, dtype=np.int64)
        self._skip, self._samples, self._progress = skip_logits, samples, progress
        self._lock = threading.Lock()
        self._done, self._reported, self._num_parts, self._lanes = 0, 0, 1, 1
        self._chunks: Iterator[int] = iter(())

    def start(self, num_parts: int, *, lanes: int) -> None:
        """Begin with the first chunk of ``lanes`` samples, for one of ``num_parts`` groups of targets."""
        first = self._samples.start
        self._chunks = iter(range(first - first % lanes, self._samples.stop, lanes))
        self._num_parts, self._lanes = num_parts, lanes

    @property
    def num_chunks(self) -> int:
        """How many chunks hold the samples."""
        return -(-self._samples.stop // self._lanes) - self._samples.start // self._lanes

    def chunks(self) -> Iterator[int]:
        """Yield first samples of chunks that no other thread has, until there are none left."""
        while True:
            with self._lock:
                first = next(self._chunks, None)
            if first is None:
                return
            yield first
            low, high = self._counted(first)
            self._report(high - low)

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Leave no chunk to threads that still run if an exception, such as Ctrl-C, ends the wait for them."""
        try:
            yield
        except BaseException:
            with self._lock:
                self._chunks = iter(())
            raise

    def ballot(self, first: int, rows: slice, counts: Counts) -> Ballot:
        """Return where votes of the ``rows`` are counted, of the chunk that begins with sample ``first``."""
        low, high = self._counted(first)
        place = first + low - self._samples.start
        kept = self.predictions[rows, place : place + high - low]
        return Ballot(self._skip[rows], low, high, counts.votes, counts.near_ties, kept)

    def own_counts(self, rows: slice) -> Counts:
        """Return zeros for a thread to count in."""
        return Counts(np.zeros_like(self.votes[rows]), np.zeros_like(self.near_ties[rows]))

    def shared_counts(self, rows: slice) -> Counts:
        """Return the result itself, for threads that never count the same targets at once."""
        return Counts(self.votes[rows], self.near_ties[rows])

    def add(self, rows: slice, counts: Counts) -> None:
        """Add what a thread has counted."""
        with self._lock:
            self.votes[rows] += counts.votes
            self.near_ties[rows] += counts.near_ties

    def _counted(self, first: int) -> tuple[int, int]:
        """Return which lanes of a chunk are among the samples."""
        return max(self._samples.start - first, 0), min(self._samples.stop - first, self._lanes)

    def _report(self, num_samples: int) -> None:
        if self._progress is None:
            return
        with self._lock:
            self._done += num_samples
            fresh = self._done // self._num_parts - self._reported
            self._reported += fresh
            self._progress(fresh)
