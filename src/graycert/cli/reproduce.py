"""`graycert reproduce`: the figures and tables of the paper, each with one command."""

import textwrap
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from graycert.cli.configs import WorkersConfig
from graycert.cli.console import Console, table
from graycert.cli.declared import workers_of

_NO_NEGATIVE = Parameter(negative=())
_OUT = "runs/reproduce"
_WIDTH = 110
_WORKERS = WorkersConfig()


def reproduce(
    *experiments: str,
    list_: Annotated[bool, Parameter(name="--list", negative=())] = False,
    scale: Literal["small", "paper"] = "small",
    out: str = _OUT,
    options: Annotated[WorkersConfig, Parameter(name="*")] = _WORKERS,
    data_root: str | None = None,
    check: Annotated[bool, _NO_NEGATIVE] = False,
    json: Annotated[bool, _NO_NEGATIVE] = False,
    quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False,
) -> int:
    """Compute figures and tables of the paper: figure, numbers behind it, and how they compare with the paper.

    Interrupt it whenever you like: the same command goes on where it was.

    Args:
        experiments: Names, e.g. fig-3a or fig-3 (all its parts), all, or a TOML file of your own. None: list them.
        list_: Show all experiments, their setting, expected cost, and whether their graphs are at hand.
        scale: small leaves out what the experiment says; paper is the full size.
        out: Folder for figures, tables, trained models and single results.
        options: Who computes.
        data_root: Folder with graph files; else GRAYCERT_DATA.
        check: Exit with status 1 if a claim of the paper does not agree.
        json: Print one JSON object instead of text.
        quiet: No progress and no remarks on standard error.
    """
    console = Console(as_json=json, quiet=quiet)
    if list_ or not experiments:
        return _list(console, experiments, data_root)
    from graycert.reproduction.catalogue import chosen
    from graycert.reproduction.reproduce import PAGE
    from graycert.reproduction.reproduce import reproduce as do

    outcomes = do(
        chosen(experiments),
        Path(out).expanduser(),
        scale=scale,
        data_root=data_root,
        execution=workers_of(options),
        progress=console.progress,
        say=console.say,
    )
    record = {
        "command": "reproduce",
        "scale": scale,
        "experiments": [
            {
                "id": each.experiment.id,
                "problem": each.problem,
                "folder": None if each.folder is None else str(each.folder),
                "record": None if each.record is None else each.record.model_dump(mode="json"),
            }
            for each in outcomes
        ],
    }
    console.result(_text(outcomes, Path(out) / scale / PAGE), record)
    comparisons = [claim for each in outcomes if each.record is not None for claim in each.record.comparisons]
    differs = check and any(claim.verdict == "differs" for claim in comparisons)
    return 1 if differs or any(each.problem for each in outcomes) else 0


def _text(outcomes: list[Any], page: Path) -> str:
    rows, notes = [], []
    for each in outcomes:
        name = each.experiment.id
        if each.record is None:
            notes.append(f"{name}: not done. {each.problem}")
            continue
        if each.record.reduction:
            notes.append(f"{name}: less than in the paper. {each.record.reduction}")
        notes += [f"{name}: {claim.remark}" for claim in each.record.comparisons if claim.verdict == "differs"]
        rows += [
            (name, claim.text, "" if claim.value is None else f"{claim.value:.3g}", claim.limits, claim.verdict)
            for claim in each.record.comparisons
        ]
    parts = [table(("experiment", "claim", "measured", "agrees if", "verdict"), rows, left=2)] if rows else []
    parts += ["\n".join(notes)] if notes else []
    folders = [str(each.folder) for each in outcomes if each.folder is not None]
    parts.append("\n".join(["Written to", *(f"  {folder}" for folder in folders), f"  {page}"]))
    return "\n\n".join(parts)


def _list(console: Console, names: tuple[str, ...], data_root: str | None) -> int:
    from graycert.data.catalogue import describe_datasets
    from graycert.reproduction.catalogue import chosen
    from graycert.reproduction.experiment import SCALES

    at_hand = {row.name for row in describe_datasets(data_root) if row.available in ("embedded", "generated", "file")}
    rows: list[tuple[str, ...]] = []
    records: list[dict[str, Any]] = []
    for each in chosen(names or ("all",)):
        missing = {scale: sorted(set(each.at_scale(scale).graphs) - at_hand) for scale in SCALES}
        cost = {scale: each.minutes.get(scale) for scale in SCALES}
        rows.append((each.id, each.title, each.source, *(_cost(cost[scale], missing[scale]) for scale in SCALES[::-1])))
        records.append(
            {
                "id": each.id,
                "title": each.title,
                "source": each.source,
                "description": each.description,
                "minutes": cost,
                "missing_graphs": missing,
                "reduction": each.small and each.small.reduction,
            }
        )
    lines = [
        table(("name", "what", "in the paper", "small", "paper"), rows, left=3),
        "",
        "Minutes on two cores (measured; paper scale: estimated), after results that experiments share are there, and "
        "graphs that are missing. `graycert reproduce NAME` computes at small scale, --scale paper at full size.",
    ]
    for record in records:
        lines += ["", f"{record['id']}: {record['title']} ({record['source']})"]
        lines += _indented(str(record["description"]))
        if record["reduction"]:
            lines += _indented(f"At small scale: {record['reduction']}")
        for scale, missing in record["missing_graphs"].items():
            lines += [f"  At {scale} scale not at hand: {', '.join(missing)} (graycert datasets)"] if missing else []
    console.result("\n".join(lines), {"command": "reproduce", "list": records})
    return 0


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _cost(minutes: float | None, missing: list[str]) -> str:
    if missing:
        return f"needs {', '.join(missing)}"
    if minutes is None:
        return "?"
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
