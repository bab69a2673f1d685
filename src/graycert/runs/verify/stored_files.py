"""The files of a run that people read, or that hold its model, beside what they should say."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from graycert.certificates import Certificates
from graycert.errors import InvalidFileError
from graycert.runs.page import render_report
from graycert.runs.verify.findings import VerificationCheck
from graycert.runs.view import report_view
from graycert.runs.words import summary_record

_WEIGHTS = "model.safetensors"


def compare_summary(folder: Path, recomputed: Certificates) -> VerificationCheck:
    """Compare summary.json, key by key."""
    record = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    record.pop("format_version", None)
    expected = json.loads(json.dumps(summary_record(recomputed)))
    for key in sorted({*record, *expected}):
        if record.get(key) != expected.get(key):
            detail = f"`{key}`: stored {_short(record.get(key))}, recomputed {_short(expected.get(key))}"
            return VerificationCheck(name="summary.json", passed=False, detail=detail)
    return VerificationCheck(name="summary.json", passed=True, detail="says what the recomputed certificates say")


def compare_report(
    folder: Path, stored: Certificates, recomputed: Certificates, not_redone: list[str]
) -> Iterator[VerificationCheck]:
    """Compare report.html; a page of another version is added to ``not_redone``."""
    from graycert import __version__

    versions = stored.setup.provenance.get("versions")
    made_by = versions.get("graycert") if isinstance(versions, dict) else None
    if made_by not in (None, __version__):
        not_redone.append(f"report.html, which graycert {made_by} wrote (this is {__version__}): trust the other files")
        return
    page = (folder / "report.html").read_text(encoding="utf-8")
    expected = render_report(report_view(recomputed))
    same = page == expected
    detail = (
        "shows the recomputed certificates"
        if same
        else "it is not what the recomputed certificates give; write it again with `graycert report`"
    )
    yield VerificationCheck(name="report.html", passed=same, detail=detail)


def stored_hash(stored: Certificates) -> object:
    """Return the hash of the model's weights that a run stores, or None."""
    model = stored.setup.provenance.get("model")
    return model.get("weights_sha256") if isinstance(model, Mapping) else None


def compare_weights(folder: Path, stored: Certificates, not_redone: list[str]) -> Iterator[VerificationCheck]:
    """Compare the hash of the stored model; one that is not there is added to ``not_redone``."""
    expected = stored_hash(stored)
    path = folder / _WEIGHTS
    if expected is None:
        return
    if not path.is_file():
        not_redone.append(f"the model: {_WEIGHTS} is not in the folder, only its hash {expected} in config.toml")
        return
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InvalidFileError(f"{path} cannot be read ({error.strerror}).") from error
    same = found == expected
    detail = "is the model that voted" if same else f"its hash is {found}, but the run was made with {expected}"
    yield VerificationCheck(name=_WEIGHTS, passed=same, detail=detail)


def _short(value: object, limit: int = 160) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
