"""The part of docs/performance.md about the number of targets, from the records of `targets.py`."""

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

Record = dict[str, Any]
Curves = Callable[..., None]

_SERIES = (("engine_ms", "compiled engine"), ("textbook_ms", "textbook loop"))


def targets_section(records: list[Record], table: Callable[..., str], plots: str) -> str:
    """Report time against targets, if it was measured.

    Args:
        records: Of `targets.py`.
        table: Makes a table of a header and rows of cells.
        plots: Folder of plots.
    """
    if not records:
        return ""
    rows = [
        [
            record["graph"],
            f"{record['targets']:,}" + (" (all)" if record["targets"] == record["nodes"] else ""),
            f"{record['engine_ms']:.3g} ms",
            f"{record['textbook_ms']:,.4g} ms",
            f"**{record['ratio']:,.0f} ×**",
            f"{record['ns_per_node_and_edge']:.2g} ns",
            f"{record['planned_mib']:,.0f} MiB",
        ]
        for record in records
    ]
    named = any(record["graph"].startswith("generated") for record in records)
    generated = ' "generated" has as many nodes and edges as ogbn-arxiv (`benchmarks/hub_graph.py`).' if named else ""
    loads = [record["load"] for record in records]
    header = ["graph", "targets", "compiled engine", "textbook loop", "ratio", "per node and edge", "planned"]
    return f"""
## Many targets

Milliseconds of processor time per draw of a GCN on one thread, both side by side in one process. The textbook loop runs
a full-graph forward pass per draw, however many targets there are; the engine computes their field. The load average
was {min(loads):.0f} to {max(loads):.0f} on two cores, which shared caches make felt: read ratios.{generated}

{table(header, rows)}

![Time of a draw against the number of targets, engine and textbook loop]({plots}/targets.svg)
"""


def draw_targets(records: list[Record], curves: Curves) -> Figure:
    """Plot time of a draw over the number of targets, a plot per graph.

    Args:
        records: Of `targets.py`.
        curves: Draws a curve per label into axes.
    """
    graphs = list(dict.fromkeys(record["graph"] for record in records))
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    places: list[Axes] = list(figure.subplots(1, len(graphs), squeeze=False).flat)
    for axes, name in zip(places, graphs, strict=True):
        found = [
            {"targets": record["targets"], "ms": record[column], "of": label}
            for record in records
            if record["graph"] == name
            for column, label in _SERIES
        ]
        curves(axes, found, "targets", "ms", lambda record: record["of"], proportional=False)
        axes.set(title=name, xlabel="targets", ylabel="ms per draw")
    return figure
