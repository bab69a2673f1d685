"""Compute experiments, draw their figures, and hold the numbers against the paper."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from graycert._files import write_atomically
from graycert._versions import versions
from graycert.errors import GraycertError, InvalidFileError
from graycert.reproduction.catalogue import catalogue
from graycert.reproduction.experiment import Experiment, Kind, Scale
from graycert.reproduction.job import silent
from graycert.reproduction.lab import Lab
from graycert.reproduction.page import write_page
from graycert.reproduction.pool import run_jobs
from graycert.reproduction.record import Record, compare, read_record
from graycert.reproduction.style import paper_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graycert.problem import Execution

FIGURES = ("figure.pdf", "figure.png")
PAGE = "reproduction.md"

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of an experiment.

    Args:
        experiment: Which.
        record: Its numbers, or None if it was not done.
        problem: Why not, or what of it failed; empty if all went well.
        folder: Where its files are, or None.
    """

    experiment: Experiment
    record: Record | None = None
    problem: str = ""
    folder: Path | None = None


def reproduce(
    experiments: Sequence[Experiment],
    folder: Path,
    *,
    scale: Scale = "small",
    data_root: str | None = None,
    execution: "Execution | None" = None,
    progress: bool = False,
    say: Say | None = None,
) -> list[Outcome]:
    """Do experiments, going on where an earlier call was interrupted.

    Results of single computations and trained models are kept in ``folder/lab``, shared by all experiments and scales;
    of each experiment ``folder/SCALE/ID`` gets figure.pdf, figure.png, a CSV file for each table and record.json, and
    ``folder/SCALE`` gets reproduction.md, which compares all that were ever done there with the paper.

    Args:
        experiments: See `graycert.reproduction.catalogue.chosen`.
        folder: Where everything is written.
        scale: "small", or the "paper"'s full size.
        data_root: Folder with graph files; None takes GRAYCERT_DATA.
        execution: Who works: this process if it is left out, ``Execution(backend="processes")``, or a Dask cluster.
            Numbers are the same.
        progress: Show progress on standard error if it is a terminal.
        say: Told what is going on.

    Returns:
        What became of each experiment, in order. One that lacks a graph, or fails, does not stop the others.
    """
    say = say or silent
    with paper_style():  # is matplotlib there? Better told now than after the computations
        pass
    lab = Lab(Path(folder) / "lab", data_root=data_root)
    outcomes: dict[str, Outcome] = {}
    kinds: dict[str, Kind] = {}
    for each in experiments:
        kind = each.at_scale(scale)
        problem = _missing_graph(kind, lab)
        if problem:
            outcomes[each.id] = Outcome(experiment=each, problem=problem)
            say(f"{each.id} is left out: {problem}")
        else:
            kinds[each.id] = kind
    ready = [each for each in experiments if each.id in kinds]
    failed = run_jobs(
        [job for each in ready for job in kinds[each.id].jobs()],
        lab.folder,
        data_root=data_root,
        execution=execution,
        progress=progress,
        say=say,
    )
    for swept in (False, True):  # what needs no sweep is drawn before the sweeps, which take longest
        now = [each for each in ready if bool(kinds[each.id].sweeps()) == swept]
        if swept and now:
            _sweep([kinds[each.id] for each in now], lab, execution=execution, progress=progress, say=say)
        for each in now:
            problems = [failed[job] for job in kinds[each.id].jobs() if job in failed]
            outcomes[each.id] = _finish(each, kinds[each.id], lab, Path(folder) / scale, scale, problems)
            say(_in_words(outcomes[each.id]))
    write_page(read_all(Path(folder) / scale), Path(folder) / scale / PAGE)
    return [outcomes[each.id] for each in experiments]


def _missing_graph(kind: Kind, lab: Lab) -> str:
    """Return why a graph cannot be loaded, or nothing."""
    for name in kind.graphs:
        try:
            lab.graph(name)
        except GraycertError as error:
            return str(error)
    return ""


def _sweep(kinds: Sequence[Kind], lab: Lab, *, execution: "Execution | None", progress: bool, say: Say) -> None:
    from graycert.reproduction.smoothing_sweep import run_smoothing_sweeps

    sweeps = list(dict.fromkeys(sweep for kind in kinds for sweep in kind.sweeps()))
    run_smoothing_sweeps(sweeps, lab, execution=execution, progress=progress, say=say)


def _finish(
    experiment: Experiment, kind: Kind, lab: Lab, folder: Path, scale: Scale, problems: Sequence[str]
) -> Outcome:
    """Make tables, figure and record, if nothing failed."""
    if problems:
        return Outcome(experiment=experiment, problem=f"{len(problems)} computations failed, e.g. {problems[0]}")
    try:
        return _write(experiment, kind, lab, folder, scale)
    except Exception as failure:  # whatever it is, the other figures are drawn
        return Outcome(experiment=experiment, problem=f"{type(failure).__name__}: {failure}")


def _write(experiment: Experiment, kind: Kind, lab: Lab, folder: Path, scale: Scale) -> Outcome:
    tables = kind.tables(lab.results)
    measures = {name: float(value) for name, value in kind.measures(tables).items()}
    with paper_style():
        figure = kind.draw(tables)
        place = folder / experiment.id
        for name in FIGURES:
            write_atomically(place / name, partial(_save, figure))
    for name, table in tables.items():
        write_atomically(place / f"{name}.csv", partial(table.to_csv, index=False))
    record = Record(
        id=experiment.id,
        title=experiment.title,
        source=experiment.source,
        description=experiment.description,
        scale=scale,
        reduction=experiment.small.reduction if experiment.small is not None and scale == "small" else "",
        remark=experiment.remark,
        settings=kind.model_dump(mode="json"),
        measures={name: value for name, value in measures.items() if abs(value) < float("inf")},
        comparisons=compare(experiment, measures, scale),
        tables=tuple(f"{name}.csv" for name in tables),
        core_seconds=_core_seconds(kind, lab),
        versions=versions(),
    )
    record.write(place)
    return Outcome(experiment=experiment, record=record, folder=place)


def _save(figure: "Figure", path: Path) -> None:
    without_time = {"CreationDate": None} if path.suffix == ".pdf" else {"Software": None}
    figure.savefig(path, metadata=without_time)  # the same numbers give the same bytes


def _core_seconds(kind: Kind, lab: Lab) -> float:
    """Return the time of all results that the experiment rests on; trained models count where they were first used."""
    jobs = [*kind.jobs(), *(job for sweep in kind.sweeps() for job in sweep.jobs())]
    return sum(float(lab.results[job]["seconds"]) for job in dict.fromkeys(jobs) if job in lab.results)


def read_all(folder: Path) -> list[Record]:
    """Return the records of all experiments that were ever done in ``folder``, in the order of the catalogue."""
    known = list(catalogue())
    found = []
    for place in sorted(folder.glob("*/record.json")):
        try:
            found.append(read_record(place.parent))
        except InvalidFileError:  # of an earlier release: it has to be done again
            continue
    return sorted(found, key=lambda each: (known.index(each.id) if each.id in known else len(known), each.id))


def _in_words(outcome: Outcome) -> str:
    name = outcome.experiment.id
    if outcome.record is None:
        return f"{name} failed: {outcome.problem}"
    verdicts = [each.verdict for each in outcome.record.comparisons if each.verdict != "not checked"]
    agreed = f", {verdicts.count('agrees')} of {len(verdicts)} checked claims agree" if verdicts else ""
    return f"{name} done{agreed}: {outcome.folder}"
