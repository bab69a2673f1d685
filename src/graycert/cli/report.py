"""`graycert report`: the page of a run, written again."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graycert.cli.console import Console
from graycert.cli.places import check_file, write_file


def report(
    run: Path,
    /,
    *,
    out: str | None = None,
    overwrite: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Write the page of a run directory again: one HTML file that asks for nothing else.

    Args:
        run: Run directory.
        out: Page to write. Default: report.html in the run directory, which is replaced.
        overwrite: Replace an existing page elsewhere.
        json: Print one JSON object instead of text.
    """
    from graycert.runs.page import render_report
    from graycert.runs.store import load_run
    from graycert.runs.view import report_view

    own = out is None
    page = check_file(
        run / "report.html" if out is None else out, overwrite=overwrite or own, suffixes=(".html", ".htm")
    )
    text = render_report(report_view(load_run(run, need_report=False)))
    write_file(page, lambda path: _write(path, text))
    Console(as_json=json).result(f"Written: {page}", {"command": "report", "files": [str(page)]})
    return 0


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
