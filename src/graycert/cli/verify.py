"""`graycert verify`: a run directory, checked again."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from graycert.cli.conditions import Conditions
from graycert.cli.console import Console
from graycert.errors import InvalidFileError


def verify(
    run: Path,
    /,
    *,
    graph: str | None = None,
    nodes: str | None = None,
    data_root: str | None = None,
    redraw: Annotated[bool, Parameter(negative=())] = False,
    fail_under: Annotated[list[str] | None, Parameter(negative=())] = None,
    junit: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False,
) -> int:
    """Recompute every certificate of a run from its votes and its graph; exit 0 only if all agree, 1 if any differs.

    Args:
        run: Run directory.
        graph: Where the graph is now, if it is not where the run says.
        nodes: Where its node table is now.
        data_root: Folder with graph files; else GRAYCERT_DATA.
        redraw: Draw all votes again too, with the model in the run directory. Takes as long as certifying.
        fail_under: Condition that the run has to meet, too, such as correct@2=0.6, see `graycert certify`.
        junit: File for the verdicts on conditions as JUnit XML, replaced if it exists; not written if anything differs.
        json: Print one JSON object instead of text.
        quiet: No remarks on standard error.
    """
    from graycert.certificates import Certificates

    console = Console(as_json=json, quiet=quiet)
    conditions = Conditions.of(fail_under, junit)
    certificates = Certificates.load(run)
    from graycert.runs.verify import rebuild_graph
    from graycert.runs.verify import verify as verify_run

    data = rebuild_graph(certificates.setup, source=graph, nodes=nodes, data_root=data_root)
    conditions.check(certificates.setup, data)
    model = _model(run) if redraw else None
    if redraw:
        console.say("drawing all votes again")
    found = verify_run(run, data=data, model=model)
    checks = [{"name": check.name, "passed": check.passed, "detail": check.detail} for check in found.checks]
    record = {"command": "verify", "run": str(run), "passed": found.passed, "checks": checks}
    judgement = conditions.judge(certificates, suite=f"graycert verify {run}", wanted=found.passed)
    text = "\n".join([str(found), *judgement.lines])
    console.result(text, {**record, "not_redone": list(found.not_redone), **judgement.record})
    found.require()
    return judgement.tell()


def _model(run: Path) -> Any:
    from graycert.models import load_model

    weights = run / "model.safetensors"
    if not weights.is_file():
        raise InvalidFileError(
            f"`--redraw` needs {weights}, which is missing. With a model of your own call graycert.verify(run, "
            "model=...)."
        )
    return load_model(weights)
