"""A worker process: runs the trials it is told to, one after the other, until its parent is gone."""

import math
import numbers
import signal
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Literal

from graycert.errors import InvalidParameterError
from graycert.reproduction.sweep.definition import OWN_COLUMNS, Sweep
from graycert.reproduction.sweep.journal import Claim, Journal


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the parent tells a worker: run one trial.

    Attributes:
        sweep: Position of the sweep.
        limit: Run only a trial below this index.
    """

    sweep: int
    limit: int | None


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a worker tells its parent.

    Attributes:
        outcome: "ready" (just started), "finished", "failed", "taken" (the trial was given to another process
            meanwhile) or "nothing" (no trial was free).
        index: Index of the trial.
        results: What the objective returned.
        reason: Why it failed.
    """

    outcome: Literal["ready", "finished", "failed", "taken", "nothing"]
    index: int = -1
    results: Mapping[str, float] | None = None
    reason: str = ""


def work(connection: "Connection[Report, Order | None]", sweeps: Sequence[Sweep]) -> None:
    """Do what the parent orders; return when it says so, or, between two trials, when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption means
    opened: dict[int, Journal] = {}
    report = Report(outcome="ready")
    while True:
        try:
            connection.send(report)
            order = connection.recv()
        except (EOFError, OSError):
            return
        if order is None:
            return
        sweep = sweeps[order.sweep]
        if order.sweep not in opened:
            opened = {order.sweep: open_journal(sweep)}
        report = _run_one(sweep, opened[order.sweep], limit=order.limit)


def open_journal(sweep: Sweep) -> Journal:
    """Open the journal of a sweep for writing."""
    return Journal(sweep.folder, name=sweep.name, directions=sweep.directions, design=sweep.design)


def _run_one(sweep: Sweep, journal: Journal, *, limit: int | None) -> Report:
    claim = journal.claim(limit=limit)
    if claim is None:
        return Report(outcome="nothing")
    started = time.perf_counter()
    try:
        results = check_results(sweep, sweep.objective(dict(claim.params)))
    except Exception as error:  # whatever it is, it is kept and told, and the other trials go on
        return _failed(journal, claim, error)
    kept = journal.finish(claim, results, seconds=time.perf_counter() - started)
    return Report(outcome="finished" if kept else "taken", index=claim.index, results=results)


def _failed(journal: Journal, claim: Claim, error: Exception) -> Report:
    reason = {"type": type(error).__name__, "message": str(error), "traceback": traceback.format_exc()}
    kept = journal.fail(claim, reason)
    return Report(
        outcome="failed" if kept else "taken", index=claim.index, reason=f"{reason['type']}: {reason['message']}"
    )


def check_results(sweep: Sweep, results: Mapping[str, object]) -> dict[str, float]:
    """Return what an objective returned as floats, objective values first.

    Raises:
        InvalidParameterError: If an objective value is missing or not finite, a further number is infinite, something
            is no number, or a name is that of another column.
    """
    missing = [name for name in sweep.directions if name not in results]
    taken = [name for name in results if name in OWN_COLUMNS or name in sweep.design.ranges]
    if missing or taken:
        raise InvalidParameterError(
            f"`objective` must return {', '.join(sweep.directions)} and no column of the table again, got "
            f"{', '.join(results) or 'nothing'}. Missing: {', '.join(missing) or 'none'}; "
            f"taken: {', '.join(taken) or 'none'}."
        )
    checked = {}
    for name in (*sweep.directions, *(name for name in results if name not in sweep.directions)):
        value = results[name]
        number = float(value) if isinstance(value, numbers.Real) else math.inf
        if math.isinf(number) or (name in sweep.directions and math.isnan(number)):
            raise InvalidParameterError(f"`objective` must return finite numbers, got {name} = {value!r}.")
        checked[name] = number
    return checked
