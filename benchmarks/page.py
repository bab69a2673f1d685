"""Write docs/performance.md and its plots from the records of the other scripts; the same records, the same page.

Usage: python benchmarks/page.py [--results benchmarks/results] [--out docs/performance.md]
"""

import argparse
import json
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from targets_page import draw_targets, targets_section

Record = dict[str, Any]
Results = dict[str, list[Record]]

SCRIPTS = ("machine", "sampling", "growth", "cold_start", "certify", "foreign_models", "training", "bounds", "arrivals")
NAMES = {"gcn": "GCN", "gat": "GAT", "gatv2": "GATv2", "sma": "SMA"}
ENGINES = {"compiled": "compiled engine", "torch": "plain engine"}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # Okabe and Ito (2008)
MARKERS = "osD^"
WIDTH = 160  # of the lines of the page
CERTIFICATE = 4_000  # samples: 1,000 + 3,000


def main() -> None:
    """Read the records, write page and plots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--out", type=Path, default=Path("docs/performance.md"))
    options = parser.parse_args()
    results = load(options.results)
    plots = options.out.with_suffix("")
    plots.mkdir(parents=True, exist_ok=True)
    save(draw_sampling(results["growth"]), plots / "sampling.svg")
    save(draw_bounds(results["bounds"]), plots / "bounds.svg")
    if results["targets"]:
        save(draw_targets(results["targets"], curves), plots / "targets.svg")
    options.out.write_text(page(results, plots.name), encoding="utf-8")
    print(f"Wrote {options.out} and {plots}/*.svg")


def load(folder: Path) -> Results:
    """Return the records of every script; only those of large graphs may be missing."""
    results: Results = {"large": [], "targets": []}
    for name in (*SCRIPTS, *results):
        file = folder / f"{name}.json"
        if file.exists():
            stored = json.loads(file.read_text(encoding="utf-8"))
            results[name] = stored["rows"] if isinstance(stored, dict) else stored
        elif name in SCRIPTS:
            raise SystemExit(f"{file} is missing. Run `make bench`, or `python benchmarks/{name}.py --json {file}`.")
    return results


# The page.


def page(results: Results, plots: str) -> str:
    """Return the page."""
    sections = (
        introduction(results["machine"][0], results["sampling"]),
        sampling(results["sampling"]),
        certificate(results),
        threads(results["sampling"]),
        growth(results["growth"], plots),
        targets_section(results["targets"], markdown, plots),
        large(results["large"]),
        whole_certificates(results["certify"]),
        foreign_models(results["foreign_models"]),
        training(results["training"]),
        bounds(results["bounds"], plots),
        arrivals(results["arrivals"]),
        floor(results),
        BUSY_MACHINES,
    )
    paragraphs = "\n\n".join(section.strip() for section in sections if section).split("\n\n")
    return "\n\n".join(each if each[0] in "#|!" else flow(each) for each in paragraphs) + "\n"


def flow(paragraph: str) -> str:
    """Break lines anew."""
    return textwrap.fill(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False)


def introduction(machine: Record, records: list[Record]) -> str:
    """Say what was measured, how, and where."""
    first = records[0]
    load = "quiet" if machine["load"] < 0.5 else "other programs were using the cores, so times are too long"
    return f"""
# Performance

Written by `make bench` (`benchmarks/page.py`); the numbers are from one run. Unless a line says otherwise:
{first["graph"]}, {first["targets"]} targets, two layers, hidden width 64 (GAT, GATv2: 8 heads of 8), p_d = 0.31, p_a
= 0.794, one thread. What is compared alternates in one process, warmed up; times of comparisons are medians of the
rounds, times of growth are the best. Read ratios rather than times: they depend less on the machine.

**Machine.** {machine["processor"]}, {machine["cores"]} cores, {machine["memory_gib"]:.0f} GiB, {machine["system"]};
Python {machine["python"]}, torch {machine["torch"]} (CPU), PyTorch Geometric {machine["torch_geometric"]}, Numba
{machine["numba"]}, NumPy {machine["numpy"]}, SciPy {machine["scipy"]}. Load average at the start:
{machine["load"]:.1f} ({load}).
"""


def sampling(records: list[Record]) -> str:
    """Compare the engines with the textbook loop."""
    found = of("engines", records)
    table = markdown(
        ["model", "textbook loop", "plain engine", "ratio", "compiled engine", "ratio", "samples per second"],
        (
            [
                model_name(record),
                f"{record['textbook_ms']:.1f} ms",
                f"{record['torch_ms']:.2f} ms",
                f"{digits(record['torch_ratio'])} ×",
                f"{record['compiled_ms']:.3f} ms",
                f"**{digits(record['compiled_ratio'])} ×**",
                f"{record['compiled_samples_per_second']:,.0f}",
            ]
            for record in found
        ),
    )
    differing = sum(record[f"{engine}_differing"] for record in found for engine in ENGINES)
    compared = sum(2 * record["compared_votes"] for record in found)
    weights = ", ".join(f"{each['model']} {each['ratio']:.2f} ×" for each in of("weights", records))
    return f"""
## Samples

The textbook loop runs one full-graph PyTorch Geometric forward pass per sample on masked features, two with skip
connection, without gradients. The plain engine takes any model: it evaluates the receptive field of the targets, many
samples per pass, applies the first linear map once where it is row-wise, and the skip branch once. The compiled
engine knows these architectures, GraphConv, SAGE and GIN
([why it is built as it is](decisions/005-compiled-engine.md)). All use the same masks;
{differing} of {compared:,} compared votes differ (near-ties may).

{table}

SMA costs most: its soft medoid weighs every pair of in-neighbours of a node.

With edge weights a sample of the compiled engine takes as long as without, by processor time: {weights}.
"""


def certificate(results: Results) -> str:
    """Add up a certificate from a cold process."""
    commands = {record["command"][0]: record for record in results["cold_start"]}
    cold, phases = commands["certify"], commands["certify"]["phases"]
    engines = next(each for each in of("engines", results["sampling"]) if each["model"] == "gat" and each["skip"])
    paths = next(each for each in of("ratio", results["bounds"]) if each["layers"] == 2)
    compiling = of("compile", results["sampling"])[0]["seconds"]
    enumeration = paths["enumeration_seconds"] * engines["targets"] / paths["targets"]
    textbook_samples = CERTIFICATE * engines["textbook_ms"] / 1e3
    plain_samples = CERTIFICATE * engines["torch_ms"] / 1e3
    besides = cold["wall"] - phases["sampling"]
    textbook = textbook_samples + enumeration + besides - phases["bounds"]
    rows = [
        ["textbook loop, paths enumerated", textbook_samples, enumeration, textbook],
        ["plain engine", plain_samples, phases["bounds"], besides + plain_samples],
        ["compiled engine", phases["sampling"], phases["bounds"], cold["wall"]],
    ]
    table = markdown(
        ["samples drawn by", "sampling", "bounds", "whole command", "ratio"],
        ([row[0], *(f"{value:.2f} s" for value in row[1:]), f"{digits(textbook / row[3])} ×"] for row in rows),
    )
    phase_table = markdown(
        ["phase", "seconds"], ([name, f"{value:.3f}"] for name, value in {"imports": cold["imports"], **phases}.items())
    )
    command_table = markdown(
        ["command", "whole", "of which imports"],
        (
            [f"`graycert {name}`", f"{each['wall']:.2f} s", f"{each['imports']:.2f} s"]
            for name, each in commands.items()
        ),
    )
    return f"""
## A certificate, everything counted

`graycert certify` with a trained GAT with skip connection and 1,000 + 3,000 samples, from a cold process with
compiled kernels on disk: starting Python, imports, graph, audit, projection, bounds, samples, report. The last row is
measured on one processor: besides its samples it takes {besides:.1f} s. In the others, its sampling is replaced by
4,000 times the time of a sample, in the first also its bounds by the time of enumeration.

{table}

The first run ever also compiles the kernels of its model: {compiling:.0f} s for a GAT, once per machine and kind of
model; it says so.

{phase_table}

Other commands load only what they need:

{command_table}
"""


def threads(records: list[Record]) -> str:
    """Compare two threads with one."""
    found = of("threads", records)
    table = markdown(
        ["model", "engine", "one thread", "two threads", "ratio"],
        (
            [
                model_name(record),
                ENGINES[record["engine"]],
                f"{record['one_ms']:.3f} ms",
                f"{record['two_ms']:.3f} ms",
                f"{record['ratio']:.2f} ×",
            ]
            for record in found
        ),
    )
    busiest = max(record["load"] for record in found)
    remark = "" if busiest < 1.8 else f" Other programs were running: the load average was up to {busiest:.1f}."
    return f"""
## Threads

`torch.set_num_threads` governs both engines. Threads of the compiled engine work on different samples; votes do not
depend on their number.{remark}

{table}
"""


def growth(records: list[Record], plots: str) -> str:
    """Show the growth of time and memory."""
    graphs = of("graph", records)
    names = list(dict.fromkeys(record["graph"] for record in graphs))
    rows = []
    for name in names:
        per_model = {record["model"]: record for record in graphs if record["graph"] == name}
        sizes = per_model["gcn"]
        times = [per_model[model]["ms"] for model in ("gcn", "gat")]
        per_part = [1e6 * value / (sizes["nodes"] + sizes["edges"]) for value in times]
        rows.append(
            [name, f"{sizes['nodes']:,}", f"{sizes['edges']:,}"]
            + [f"{value:.2f} ms" for value in times]
            + [f"{value:.0f} ns" for value in per_part]
        )
    graph_table = markdown(
        [
            "graph, all nodes are targets",
            "nodes",
            "edges",
            "GCN",
            "GAT",
            "GCN per node and edge",
            "GAT per node and edge",
        ],
        rows,
    )
    memory_table = markdown(
        ["engine", "samples", "time", "peak of the process", "of which before sampling"],
        (
            [
                ENGINES[record["engine"]],
                f"{record['samples']:,}",
                f"{record['seconds']:.2f} s",
                f"{record['peak_mib']:.0f} MiB",
                f"{record['before_mib']:.0f} MiB",
            ]
            for record in of("memory", records)
        ),
    )
    return f"""
## Growth

![Time of sampling against samples, edges, targets, layers and width, in log-log plots]({plots}/sampling.svg)

Dashed: proportional growth. In the plots of edges and of graphs all nodes are targets. Time is proportional to
samples. With all nodes as targets it is nearly linear in nodes and edges together: thinning the edges leaves the nodes.
Targets share their fields, so time grows slower than their number. A layer more reaches farther, until the field is
the whole graph; from there each costs the same.

{graph_table}

wordnet30_synsets costs more per node and edge. Its 45 classes (the others have 3 to 8) make the rows that the last
layer sends wide, and those of all nodes outgrow the caches ([what is split, and what is
not](decisions/011-splitting.md)).

**Memory** does not grow with the number of samples: a chunk of 32 samples (plain engine: as many as fit a budget) is
voted on and overwritten. GAT with skip connection:

{memory_table}
"""


def large(records: list[Record]) -> str:
    """Report the large run if there was one."""
    if not records:
        return ""
    run = records[0]
    return f"""
## A large graph

All {run["nodes"]:,} nodes of {run["graph"]} ({run["edges"]:,} directed edges, 1,000 features), {NAMES[run["model"]]}
with skip connection, bounds and {run["samples"] // 2:,} + {run["samples"] // 2:,} samples, `graycert certify` from
start to written run, {run["threads"]} threads: **{run["seconds"]:.0f} s, peak {run["peak_mib"] / 1024:.1f} GiB**. The
target is 10 minutes and 4 GiB. (`make bench-large`)
"""


def whole_certificates(records: list[Record]) -> str:
    """Compare whole calls of certify with forward passes alone."""
    table = markdown(
        ["model", "4,000 forward passes", "certify", "ratio", "of it the audit"],
        (
            [
                record["model"],
                f"{record['forwards_s']:.0f} s",
                f"{record['certify_s']:.2f} s",
                f"{digits(record['ratio'])} ×",
                f"{record['phases']['audit']:.2f} s",
            ]
            for record in records
        ),
    )
    return f"""
## Whole certificates

A call of `certify` with everything but imports (checks, audit, bounds, choice of the engine, 1,000 + 3,000 samples,
conclusion) for {records[0]["targets"]} targets of {records[0]["graph"]}, against 4,000 forward passes of PyTorch
Geometric's model on the whole graph, each with the features and edges that its coins leave. Flipping
them is not counted.

{table}
"""


def foreign_models(records: list[Record]) -> str:
    """Compare the plain engine on models without kernels."""
    table = markdown(
        ["model", "textbook loop", "plain engine", "ratio"],
        (
            [
                record["model"].replace("*", "").strip(),
                f"{record['textbook_ms']:.1f} ms",
                f"{record['engine_ms']:.2f} ms",
                f"{digits(record['ratio'])} ×",
            ]
            for record in sorted(records, key=lambda each: "*" in each["model"])
            if record["model"].split()[0] not in NAMES
        ),
    )
    others = [record["model"].replace("*", "").strip() for record in records if "*" in record["model"]]
    return f"""
## Other models

Models of PyTorch Geometric that have no compiled kernels, on the plain engine. In {enumerated(others)} the first
operation is not row-wise: every sample needs its own wide product.

{table}
"""


def training(records: list[Record]) -> str:
    """Compare training epochs."""
    table = markdown(
        ["model", "dense epoch", "graycert", "ratio"],
        (
            [
                model_name(record),
                f"{record['textbook_ms']:.0f} ms",
                f"{record['graycert_ms']:.1f} ms",
                f"{digits(record['ratio'])} ×",
            ]
            for record in records
        ),
    )
    return f"""
## Training

Milliseconds per epoch with validation. The dense epoch masks the full features and runs one full-graph pass each for
training and validation (two with skip connection). `graycert.train` multiplies sparse features, computes what the
loss can see, and shares the skip branch.

{table}
"""


def bounds(records: list[Record], plots: str) -> str:
    """Compare path counting with enumeration."""
    table = markdown(
        ["layers", "graycert", "enumeration", "ratio"],
        (
            [
                str(record["layers"]),
                f"{record['seconds']:.3f} s",
                f"{record['enumeration_seconds']:,.0f} s",
                f"{digits(record['ratio'])} ×",
            ]
            for record in of("ratio", records)
        ),
    )
    ratio = of("ratio", records)[0]
    hub = max(of("hub", records), key=lambda record: (record["targets"], -record["layers"]))
    return f"""
## Bounds

Path counts and Theorem 3 for all {ratio["targets"]:,} nodes of {ratio["graph"]}, against enumeration of simple paths
with networkx (timed on a few targets, extrapolated):

{table}

![Time and memory of bounds against pairs of a target and a node that reaches it]({plots}/bounds.svg)

Time is proportional to the pairs of a target and a node that reaches it; memory is that of one block of targets.
Where every node reaches every other through a hub of degree {hub["nodes"] - 1:,} ({hub["pairs"]:,} pairs), bounds for
all nodes and {hub["layers"]} layers take {hub["seconds"]:.1f} s and {hub["peak_mib"]:.0f} MiB.
"""


def arrivals(records: list[Record]) -> str:
    """State the cost of arrival records."""
    table = markdown(
        ["layers", "targets", "seconds", "records", "bytes per sample and target"],
        (
            [
                str(record["num_layers"]),
                f"{record['num_targets']:,}",
                f"{record['seconds']:.3f}",
                f"{record['bytes'] / 2**20:.0f} MiB",
                f"{record['bytes_per_record']:.1f}",
            ]
            for record in records
            if record["share"] == 1
        ),
    )
    return f"""
## Arrival records

Which eligible nodes' messages arrived, for all of {records[0]["num_samples"]:,} samples ([what they are](arrivals.md)):

{table}
"""


def floor(results: Results) -> str:
    """Set the compiled engine against what a sample cannot do without."""
    found = {record["model"]: record for record in of("floor", results["sampling"])}
    gat, times = found["gat"], of("engines", results["sampling"])
    speed = results["machine"][0]["multiply_adds_per_second"]
    rows = []
    for model, counted in found.items():
        measured = next(each["compiled_ms"] for each in times if each["model"] == model and each["skip"])
        least = 1e3 * counted["multiply_adds"] / speed
        rows.append(
            [
                NAMES[model],
                f"{counted['coins']:,}",
                f"{counted['multiply_adds'] / 1e6:.2f} M",
                f"{counted['exponentials']:,}",
                f"{counted['bytes'] / 1e3:,.0f} kB",
                f"{least:.3f} ms",
                f"{measured:.3f} ms",
            ]
        )
    table = markdown(
        ["model", "coins", "multiply-adds", "exponentials", "bytes", "multiply-adds alone", "measured"],
        rows,
    )
    return f"""
## The floor

What a sample needs once the projection is done. {gat["targets"]} targets have a field of {gat["nodes"]:,} nodes, of
which {gat["hidden_nodes"]:,} have a hidden state that matters: {gat["first_messages"]:,} messages of width
{gat["width"]} into them, one linear map each to {gat["classes"]} classes, {gat["second_messages"]:,} messages into
the targets. All messages count, also those that a draw removes: doing all of them side by side is faster than looking
for those that arrive. Exponentials are those of ELU and of the second layer's attention; the first layer's depend on
two rows and not on the draw, so they are computed once. Bytes: each coin written and read, the projected rows read
once for {gat["lanes"]} samples, scores written once and read by each message; hidden states stay in the cache.
"Multiply-adds alone" is their time at the speed of a large matrix product on one thread ({speed / 1e9:.0f} billion a
second).

{table}
"""


BUSY_MACHINES = """
## Busy machines

OpenMP threads that spin while they wait stall each other when other programs use the cores: with two threads and two
other busy processes, a draw of the plain engine on WordNet nouns once took 85 ms instead of 14 ms and a training
epoch 1,015 ms instead of 25 ms. The command line therefore sets `OMP_WAIT_POLICY=PASSIVE` unless it is set, and so
does `make bench`; in Python, set it before torch is imported, or use `torch.set_num_threads(1)`. Threads of the
compiled engine do not spin.
"""


def of(what: str, records: Iterable[Record]) -> list[Record]:
    """Return the records of one kind."""
    return [record for record in records if record["what"] == what]


def model_name(record: Record) -> str:
    """Return the name of a model."""
    return NAMES[record["model"]] + (" + skip" if record["skip"] else "")


def digits(value: float) -> str:
    """Return a ratio with as many digits as it deserves."""
    return f"{value:.1f}" if value < 20 else f"{value:,.0f}"


def enumerated(names: Sequence[str]) -> str:
    """Join names."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def markdown(header: list[str], rows: Iterable[list[str]]) -> str:
    """Return a table whose numbers are aligned to the right."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


# The plots.


def draw_sampling(records: list[Record]) -> Figure:
    """Plot the growth of the time of sampling."""
    figure = Figure(figsize=(8, 9.6), layout="constrained")
    grid = figure.subplots(3, 2)
    for axes, (what, label) in zip(
        grid.flat[:5],
        (
            ("samples", "samples"),
            ("targets", "targets"),
            ("edges", "directed edges"),
            ("layers", "layers"),
            ("width", "hidden width"),
        ),
        strict=True,
    ):
        found = of(what, records)
        if what == "samples":
            curves(axes, found, what, "seconds", lambda record: ENGINES[record["engine"]] + ", GAT")
            axes.set_ylabel("seconds")
        else:
            curves(axes, found, what, "ms", lambda record: NAMES[record["model"]])
            axes.set_ylabel("ms per sample")
        axes.set_xlabel(label)
        if what == "layers":
            axes.set_xticks([1, 2, 3, 4])
            axes.minorticks_off()
    graphs = [record | {"size": record["nodes"] + record["edges"]} for record in of("graph", records)]
    axes = grid.flat[5]
    curves(axes, graphs, "size", "ms", lambda record: NAMES[record["model"]], line="none")
    axes.set(xlabel="nodes + directed edges of a graph", ylabel="ms per sample")
    return figure


def draw_bounds(records: list[Record]) -> Figure:
    """Plot time and memory of bounds over pairs of target and reachable node."""
    kinds = {"layers": "1 to 4 layers", "targets": "some targets", "edges": "some edges", "hub": "a hub"}
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    found = [record for what in kinds for record in of(what, records)]
    for axes, (column, label) in zip(
        figure.subplots(1, 2), (("seconds", "seconds"), ("peak_mib", "MiB, beside what was there")), strict=True
    ):
        curves(
            axes,
            found,
            "pairs",
            column,
            lambda record: kinds[record["what"]],
            line="none",
            proportional=column == "seconds",
        )
        axes.set(xlabel="pairs (target, node that reaches it)", ylabel=label)
    return figure


def tick(value: float, _: int) -> str:
    """Return the label of a tick: 0.01, 10, 1,000, 1 M."""
    if value >= 1e5:
        return f"{value / 1e6:g} M"
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def curves(
    axes: Axes,
    records: list[Record],
    x: str,
    y: str,
    label: Callable[[Record], str],
    *,
    line: str = "-",
    proportional: bool = True,
) -> None:
    """Draw one curve per label in a log-log plot, and a line of proportional growth below the highest point."""
    for index, name in enumerate(dict.fromkeys(map(label, records))):
        points = sorted((record[x], record[y]) for record in records if label(record) == name)
        style: dict[str, Any] = {"color": COLOURS[index], "marker": MARKERS[index], "linestyle": line, "markersize": 5}
        axes.plot(*zip(*points, strict=True), label=name, **style)
    axes.set(xscale="log", yscale="log")
    for axis, column in ((axes.xaxis, x), (axes.yaxis, y)):
        low, high = min(record[column] for record in records), max(record[column] for record in records)
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 50 * low else (1,), numticks=12))
        axis.set_major_formatter(FuncFormatter(tick))
        axis.set_minor_formatter(NullFormatter())
    top = max(record[y] for record in records)
    axes.set_ylim(min(record[y] for record in records) / 1.6, top * 1.6)
    if proportional:
        low, high = min(record[x] for record in records), max(record[x] for record in records)
        axes.plot([low, high], [top * low / high, top], color="0.5", linestyle="--", linewidth=1, zorder=0)
    axes.grid(which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)


def save(figure: Figure, file: Path) -> None:
    """Write a plot, the same bytes for the same numbers."""
    with mpl.rc_context({"svg.hashsalt": file.stem, "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure.savefig(file, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
