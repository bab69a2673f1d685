"""`graycert inspect`: who matters in a run, and single targets in words."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from graycert.cli.console import Console
from graycert.errors import GraycertError

if TYPE_CHECKING:
    from graycert.certificates import Certificates


def inspect(
    run: Path,
    /,
    *,
    targets: Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())] = None,
    top: int = 10,
    graph: str | None = None,
    nodes: str | None = None,
    data_root: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False,
) -> int:
    """Say which nodes limit the most targets of a run, and what trusting them would gain; or explain single targets.

    Args:
        run: Run directory.
        targets: Targets to explain: their names, or indices where nodes have none.
        top: How many nodes to protect are named.
        graph: Where the graph is now, if it is not where the run says. Gains need it.
        nodes: Where its node table is now.
        data_root: Folder with graph files; else GRAYCERT_DATA.
        json: Print one JSON object instead of text.
        quiet: No remarks on standard error.
    """
    from graycert.certificates import Certificates

    console = Console(as_json=json, quiet=quiet)
    certificates = Certificates.load(run)
    if targets:
        texts = {name: certificates.explain(name) for name in targets}
        record: dict[str, Any] = {"command": "inspect", "run": str(run), "targets": texts}
        console.result("\n\n".join(texts.values()), record)
        return 0
    data = _graph(certificates, console, source=graph, nodes=nodes, data_root=data_root)
    found = certificates.protect_first(data, top=top)
    record = {
        "command": "inspect",
        "run": str(run),
        "protect_first": [vars(each) for each in found.nodes],
        "gains": [vars(each) for each in found.gains],
    }
    console.result(str(found), record)
    return 0


def _graph(certificates: "Certificates", console: Console, **moved: str | None) -> Any:
    """Return the graph of a run, or None where it is not at hand and nobody said where it is."""
    from graycert.certification import refuse_another_graph
    from graycert.runs.verify import rebuild_graph

    try:
        data = rebuild_graph(certificates.setup, **moved)
        refuse_another_graph(certificates, data)
    except GraycertError as error:
        if moved["source"] is not None or moved["nodes"] is not None:
            raise
        console.warn(f"what trusting these nodes would gain is not said, because the graph is not at hand: {error}")
        return None
    return data
