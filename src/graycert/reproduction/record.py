"""What one run of an experiment found: its numbers beside the claims of the paper."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from graycert._files import write_atomically
from graycert.errors import InvalidFileError
from graycert.reproduction.experiment import Experiment, Scale
from graycert.reproduction.settings import Settings

FORMAT_VERSION = 1
RECORD = "record.json"
Verdict = Literal["agrees", "differs", "not checked"]


class Comparison(Settings):
    """A claim of the paper, and what was measured.

    Args:
        text: The claim.
        measure: Name of the number.
        value: The number; None if it could not be measured.
        limits: What agrees, in words.
        verdict: Whether the number supports the claim; "not checked" where the scale cannot.
        remark: What to know about it.
    """

    text: str
    measure: str
    value: float | None
    limits: str
    verdict: Verdict
    remark: str = ""


class Record(Settings):
    """The result of an experiment at a scale.

    Args:
        id: Of the experiment.
        title: Of the figure.
        source: What it is in the paper.
        description: What is shown.
        scale: "paper" or "small".
        reduction: What is less than in the paper; empty where nothing is.
        remark: What differs from the paper at every scale.
        settings: Of the kind, as computed.
        measures: All measured numbers by name; those that are not finite are left out.
        comparisons: With the claims.
        tables: Names of the tables' files; the first is the main one.
        core_seconds: Time that all computations took together when they were done.
        versions: Of graycert, Python and the libraries.
    """

    format_version: int = FORMAT_VERSION
    id: str
    title: str
    source: str
    description: str
    scale: Scale
    reduction: str
    remark: str
    settings: dict[str, Any]
    measures: dict[str, float]
    comparisons: tuple[Comparison, ...]
    tables: tuple[str, ...]
    core_seconds: float
    versions: dict[str, str]

    def write(self, folder: Path) -> None:
        """Write record.json into ``folder``."""
        text = json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False)
        write_atomically(folder / RECORD, lambda path: path.write_text(text + "\n", encoding="utf-8"))


def read_record(folder: Path) -> Record:
    """Read the record of an experiment.

    Raises:
        InvalidFileError: If it is missing, damaged or of another format.
    """
    file = folder / RECORD
    try:
        return Record.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise InvalidFileError(f"{file} cannot be read ({error}). Run `graycert reproduce` again.") from error


def compare(experiment: Experiment, measures: Mapping[str, float], scale: Scale) -> tuple[Comparison, ...]:
    """Hold the measured numbers against the claims of an experiment."""
    found = []
    for claim in experiment.claims:
        value = measures.get(claim.measure)
        finite = None if value is None or value != value or abs(value) == float("inf") else float(value)
        verdict: Verdict = "not checked"
        if scale in claim.scales and finite is not None:
            verdict = "agrees" if claim.agrees(finite) else "differs"
        found.append(
            Comparison(
                text=claim.text,
                measure=claim.measure,
                value=finite,
                limits=_limits(claim.at_least, claim.at_most),
                verdict=verdict,
                remark=claim.remark,
            )
        )
    return tuple(found)


def _limits(low: float | None, high: float | None) -> str:
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"{low:g} to {high:g}"
