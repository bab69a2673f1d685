"""Certify block by block: what is done is kept, and goes on from there."""

import dataclasses
from contextlib import AbstractContextManager, closing, nullcontext

from graycert._progress import progress_bar
from graycert.blocks.crews import Crew, hired
from graycert.blocks.cutting import block_size
from graycert.blocks.folder import BlockFolder, opened
from graycert.blocks.joining import joined
from graycert.blocks.ordering import better_order
from graycert.blocks.work import Outcome
from graycert.blocks.workers import finished
from graycert.errors import InvalidParameterError
from graycert.problem import Problem
from graycert.sampling.memory import default_budget
from graycert.smoothing.open_votes import refuse_open_results


def certified_in_blocks(problem: Problem) -> Outcome:
    """Certify the targets of a prepared problem in blocks, some of them at once.

    Each block is a function of the problem and its targets alone; so an outcome does not depend on how often the work
    was interrupted, nor on what does it.

    Raises:
        InvalidFileError: If ``execution.folder`` is in use, or cannot be written to.
        InvalidParameterError: If it is that of another call.
        WriteError: If there is no room; finished blocks are kept.
        GraycertError: If workers are killed again and again.
        KeyboardInterrupt: After an interruption, with a note that says what is kept.
    """
    asked, setup = problem.execution, problem.setup
    if setup.max_radius is None and not setup.smoothing.examines_all_radii:
        raise InvalidParameterError(
            "`max_radius` must be a number where targets are certified in blocks, got None: how far to look depends on "
            "all targets. Pass one, such as 20."
        )
    memory = default_budget() if asked.memory is None else asked.memory
    with problem.phases("draws"), hired(asked) as crew:
        share = None if asked.memory is None else max(1, memory // crew.workers)
        problem = dataclasses.replace(problem, execution=dataclasses.replace(asked, memory=share))
        size = block_size(problem, workers=crew.workers, memory=memory, elsewhere=crew.elsewhere)
        with _folder(problem, size) as folder:
            size = size if folder is None else folder.size
            starts = enumerate(range(0, problem.targets.size, size))
            blocks = {number: slice(start, start + size) for number, start in starts}
            order = better_order(problem, size)
            place = None if folder is None else folder.votes_so_far
            in_order = dataclasses.replace(problem, targets=problem.targets[order], votes_so_far=place)
            done = {} if folder is None else _kept(folder, problem, blocks)
            _work(in_order, blocks, done, folder, crew)
    outcome = joined([done[number] for number in blocks], order)
    refuse_open_results(problem, outcome.arrays)
    return outcome


def _work(
    problem: Problem, blocks: dict[int, slice], done: dict[int, Outcome], folder: BlockFolder | None, crew: Crew
) -> None:
    """Do what is not done yet."""
    say, total = problem.execution.say, problem.targets.size
    left = {number: rows for number, rows in blocks.items() if number not in done}
    if say is not None and folder is not None and len(blocks) > 1:
        before = f"; {len(done):,} of them are done already" if done else ""
        before += "; votes of further ones are kept" if folder.holds_votes() else ""
        say(f"{len(blocks):,} blocks of at most {folder.size:,} targets, kept in {folder.folder}{before}")
    shown = problem.execution.progress and len(blocks) > 1
    if len(blocks) > 1:
        problem = dataclasses.replace(
            problem, execution=dataclasses.replace(problem.execution, progress=False, say=_silent)
        )
    try:
        with (
            progress_bar("certifying", total=total, unit="targets", shown=shown) as advance,
            closing(finished(problem, left, crew)) as results,
        ):
            advance(total - sum(_size(rows, total) for rows in left.values()))
            for number, outcome in results:
                if folder is not None:
                    folder.keep(number, outcome)
                done[number] = outcome
                advance(_size(blocks[number], total), f"{len(done):,} of {len(blocks):,} blocks")
    except KeyboardInterrupt as interruption:
        if folder is not None:
            drawn = ", and votes of further ones" if folder.holds_votes() else ""
            kept = f"{len(done):,} of {len(blocks):,} blocks{drawn} are kept in {folder.folder}"
            interruption.add_note(f"{kept}: the same call goes on from there.")
        raise


def _size(rows: slice, total: int) -> int:
    return len(range(*rows.indices(total)))


def _folder(problem: Problem, size: int) -> AbstractContextManager[BlockFolder | None]:
    place = problem.execution.folder
    return nullcontext() if place is None else opened(problem, place, size=size)


def _kept(folder: BlockFolder, problem: Problem, blocks: dict[int, slice]) -> dict[int, Outcome]:
    found = {number: folder.get(number, problem.setup, say=problem.execution.say) for number in blocks}
    return {number: outcome for number, outcome in found.items() if outcome is not None}


def _silent(message: str) -> None:
    """Say nothing: what would be said of each block is no news."""
    del message
