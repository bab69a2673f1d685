"""`graycert report`: the page of a run, of one decision, or of two runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from graycert._called import Called
from graycert.cli.console import Console, about
from graycert.cli.places import check_file, write_file
from graycert.errors import InvalidParameterError

if TYPE_CHECKING:
    from graycert.certificates import Certificates

Audience = Literal["everybody", "decision"]


def report(
    run: Path,
    other: Path | None = None,
    /,
    *,
    audience: Annotated[Audience, Parameter(name="--for")] = "everybody",
    call: Annotated[list[str] | None, Parameter(negative=())] = None,
    graph: str | None = None,
    nodes: str | None = None,
    data_root: str | None = None,
    out: str | None = None,
    overwrite: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Write the page of a run directory again, one page for a decision, or one that compares two runs.

    Each is one HTML file that asks for nothing else.

    Args:
        run: Run directory.
        other: Another run directory, to draw what became of each target from the first to this one.
        audience: "decision" writes one page of sentences for who decides, instead of the page to work with.
        call: What readers call nodes, such as account,accounts; or edge=payment,payments,
            prediction=decision,decisions, features=entries, structure="who pays whom". May be repeated. Needs --out or
            --for decision, because a run's own page is compared by `graycert verify`; `graycert certify` has the option
            for that page, too.
        graph: The graph of the run, to draw who can reach each target where the run holds no drawings: a file, a name,
            or "stored" for where the run says that it is. Without --out what is drawn is kept in the run's votes.npz.
        nodes: Its node table.
        data_root: Folder with graph files; else GRAYCERT_DATA.
        out: Page to write. Default: report.html in the run directory, which is replaced; RUN-decision.html or
            RUN-and-OTHER.html beside the run.
        overwrite: Replace an existing page elsewhere.
        json: Print one JSON object instead of text.
    """
    if other is not None and audience != "everybody":
        raise InvalidParameterError(
            f"`--for` must be left out for a page of two runs, got {audience!r}. Write a page for each run."
        )
    with about("call"):
        called = None if call is None else Called.of(call)
    if called is not None and (other is not None or (out is None and audience == "everybody")):
        raise InvalidParameterError(
            f"`--call` must come with --out or --for decision, and with one run, got {', '.join(call or ())}. The "
            "page in the run's folder is compared by `graycert verify`; write one elsewhere."
        )
    own = out is None and other is None and audience == "everybody"
    if graph is not None and (other is not None or audience != "everybody"):
        raise InvalidParameterError(
            f"`--graph` must be left out where nothing is drawn of single nodes, got {graph!r}. It is for the page of "
            "one run."
        )
    place = None if graph is None else (None if graph == "stored" else graph, nodes, data_root)
    page = check_file(_place(run, other, audience) if out is None else out, overwrite=overwrite or own, suffixes=HTML)
    text = _page(run, other, audience, called, place, keep=own)
    write_file(page, lambda path: _write(path, text))
    Console(as_json=json).result(f"Written: {page}", {"command": "report", "files": [str(page)]})
    return 0


HTML = (".html", ".htm")


def _place(run: Path, other: Path | None, audience: Audience) -> Path:
    """Return where a page is written if nobody says."""
    folder = run.expanduser().resolve()
    if other is not None:
        return folder.parent / f"{folder.name}-and-{other.expanduser().resolve().name}.html"
    return folder / "report.html" if audience == "everybody" else folder.parent / f"{folder.name}-decision.html"


Place = tuple[str | None, str | None, str | None]
"""Where a graph, its node table and the folder of graph files are."""


def _page(
    run: Path, other: Path | None, audience: Audience, called: Called | None, place: Place | None, *, keep: bool
) -> str:
    from graycert.runs.page import render_document, render_report
    from graycert.runs.store import load_run

    certificates = load_run(run, need_report=False)
    if place is not None:
        certificates = _drawn(certificates, run, place, keep=keep)
    if other is not None:
        from graycert.runs.comparison_page import comparison_page

        names = (run.expanduser().resolve().name, other.expanduser().resolve().name)
        return render_document(comparison_page(certificates, load_run(other, need_report=False), names=names))
    if audience == "decision":
        from graycert.runs.decision import decision

        return render_document(decision(certificates, called=called))
    from graycert.runs.view import report_view

    return render_report(report_view(certificates, called=called))


def _drawn(certificates: "Certificates", run: Path, place: Place, *, keep: bool) -> "Certificates":
    """Return the run with drawings from its graph, which are kept in it."""
    from graycert.runs.drawn_later import keep_drawings, with_drawings
    from graycert.runs.verify import rebuild_graph

    source, nodes, data_root = place
    data = rebuild_graph(certificates.setup, source=source, nodes=nodes, data_root=data_root)
    drawn = with_drawings(certificates, data)
    if keep:
        keep_drawings(drawn, run.expanduser())
    return drawn


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
