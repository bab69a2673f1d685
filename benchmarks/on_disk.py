"""Graphs on disk, of the size of ogbn-products and beyond: bounds of all nodes, certificates, and peaks of memory.

`make` writes edges (Parquet), float16 features and labels (.npy) of a graph whose degrees fall as a power of the rank;
`bounds` and `certify` load them as anyone would and say what each phase took, in seconds and in memory of its own
(anonymous: what is mapped from files can be given up). A GCN with random weights is certified.
Usage: python benchmarks/on_disk.py make FOLDER --nodes 2449029 --edges 61860000 --power 0.5 --offset 5.3 --classes 47
       python benchmarks/on_disk.py bounds FOLDER
       python benchmarks/on_disk.py certify FOLDER --targets 100000 --memory 4 [--keep RUNFOLDER]
"""

import argparse
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

import graycert
from graycert._phases import Phases
from scale import SMOOTHING, THREAT

_AT_ONCE = 2**22  # edges
_SECONDS = 0.02  # between looks at the memory


def make(
    folder: Path, *, num_nodes: int, num_edges: int, power: float, offset: float, num_features: int, num_classes: int
) -> None:
    """Write a graph of about so many undirected edges; merged ones are not made up for."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    weights = (np.arange(num_nodes) + offset) ** -power
    bounds = np.cumsum(weights) / weights.sum()
    shuffled = random.permutation(num_nodes).astype(np.int32)
    pairs = []
    for start in range(0, num_edges, _AT_ONCE):
        drawn = np.searchsorted(bounds, random.random((2, min(_AT_ONCE, num_edges - start))))
        ends = shuffled[np.minimum(drawn, num_nodes - 1)].astype(np.int64)
        low, high = ends.min(axis=0), ends.max(axis=0)
        pairs.append(low[low < high] * num_nodes + high[low < high])
    edges = np.concatenate(pairs)
    del pairs
    edges.sort()
    edges = edges[np.concatenate([[True], edges[1:] != edges[:-1]])]
    schema = pa.schema([("source", pa.int32()), ("target", pa.int32())])
    with pq.ParquetWriter(folder / "edges.parquet", schema) as writer:
        for start in range(0, edges.size, _AT_ONCE):
            source, target = np.divmod(edges[start : start + _AT_ONCE], num_nodes)
            writer.write_table(pa.table({"source": source.astype(np.int32), "target": target.astype(np.int32)}))
    labels = random.integers(num_classes, size=num_nodes)
    np.save(folder / "labels.npy", labels)
    centres = random.normal(size=(num_classes, num_features)).astype(np.float32)
    shape = (num_nodes, num_features)
    features = np.lib.format.open_memmap(folder / "features.npy", mode="w+", dtype=np.float16, shape=shape)
    for start in range(0, num_nodes, 2**16):
        rows = slice(start, start + 2**16)
        noise = random.standard_normal(features[rows].shape, dtype=np.float32)
        features[rows] = centres[labels[rows]] + 2 * noise
    print(f"{num_nodes:,} nodes, {edges.size:,} undirected edges in {folder}")


def loaded(folder: Path) -> Any:
    """Load a graph that `make` wrote."""
    return graycert.load_graph(
        folder / "edges.parquet", nodes=folder / "features.npy", label=str(folder / "labels.npy"), undirected=True
    )


class Watch:
    """Seconds and the peak of anonymous memory by phase, the innermost that runs."""

    def __init__(self) -> None:
        self.peaks: dict[str, float] = {}
        self._phase = "beside"
        self._stop = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look at the memory now and then."""
        call, watch = Phases.__call__, self

        @contextmanager
        def noting(phases: Phases, name: str) -> Iterator[None]:
            before, watch._phase = watch._phase, name
            try:
                with call(phases, name):
                    yield
            finally:
                watch._phase = before

        Phases.__call__ = noting  # type: ignore[method-assign,assignment]
        looking = threading.Thread(target=self._look, daemon=True)
        looking.start()
        try:
            yield
        finally:
            self._stop.set()
            looking.join()
            Phases.__call__ = call  # type: ignore[method-assign]

    def _look(self) -> None:
        while not self._stop.wait(_SECONDS):
            self.peaks[self._phase] = max(self.peaks.get(self._phase, 0.0), memory_mib("RssAnon"))

    def in_words(self) -> str:
        """Return the peaks, and that of all memory with what is mapped."""
        found = ", ".join(f"{phase} {peak:,.0f}" for phase, peak in self.peaks.items())
        return f"peak of anonymous memory by phase, MiB: {found}; with mapped files: {memory_mib('VmHWM'):,.0f}"


def memory_mib(name: str) -> float:
    """Return a line of /proc/self/status in MiB."""
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0]) / 2**10


def bounds(data: Any, nodes: NDArray[np.int64]) -> None:
    """Bound Δ for some nodes by Theorem 3, radii up to 20."""
    started = time.perf_counter()
    found = graycert.delta_bounds(
        data,
        nodes,
        smoothing=SMOOTHING,
        threat=THREAT,
        num_layers=2,
        max_radius=20,
        bound="multiplicative",
        num_threads=torch.get_num_threads(),
    )
    entries, seconds = int(found.receptive_field_size.sum()), time.perf_counter() - started
    print(f"bounds of {nodes.size:,} nodes, {entries:,} entries of fields: {seconds:,.1f} s", flush=True)


def certify(data: Any, *, targets: NDArray[np.int64], memory: float, num_draws: int, keep: Path | None) -> None:
    """Certify some nodes by Theorem 3, radii up to 20."""
    model = graycert.build_model("gcn", data, skip=False, seed=0).eval()
    started, processor = time.perf_counter(), time.process_time()
    execution = graycert.Execution(memory=int(memory * 2**30), progress=False, folder=keep, say=print)
    found = graycert.certify(
        model,
        data,
        targets=targets,
        smoothing=SMOOTHING,
        threat=THREAT,
        draws=graycert.Draws(num_selection=num_draws, num_estimation=2 * num_draws),
        bound="multiplicative",
        max_radius=20,
        seed=0,
        execution=execution,
    )
    seconds = ", ".join(f"{name} {value:,.1f}" for name, value in found.seconds.items())
    print(
        f"{targets.size:,} targets, {3 * num_draws} draws, {found.setup.engine}, planned "
        f"{(found.setup.memory_planned or 0) / 2**20:,.0f} MiB: {time.perf_counter() - started:,.1f} s, "
        f"{time.process_time() - processor:,.1f} s of processor ({seconds}); "
        f"{int(found.receptive_field_size.sum()):,} entries of fields",
        flush=True,
    )


def main() -> None:
    """Do one of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("make", "bounds", "certify"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=735_000)
    parser.add_argument("--edges", type=int, default=5_078_850, help="undirected")
    parser.add_argument("--power", type=float, default=0.75)
    parser.add_argument("--offset", type=float, default=7.5)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--classes", type=int, default=40)
    parser.add_argument("--targets", type=int, help="as many random ones; default all nodes")
    parser.add_argument("--memory", type=float, default=1.0, help="budget of drawing in GiB")
    parser.add_argument("--draws", type=int, default=100, help="of selection; twice as many of estimation")
    parser.add_argument("--keep", type=Path, help="folder for finished blocks, to go on from")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(asked.threads)
    if asked.what == "make":
        make(
            asked.folder,
            num_nodes=asked.nodes,
            num_edges=asked.edges,
            power=asked.power,
            offset=asked.offset,
            num_features=asked.features,
            num_classes=asked.classes,
        )
        return
    started = time.perf_counter()
    data = loaded(asked.folder)
    print(
        f"{data.num_nodes:,} nodes, {data.num_edges:,} directed edges, loaded in {time.perf_counter() - started:,.1f} s"
    )
    watch = Watch()
    with watch.running():
        nodes = np.sort(np.random.default_rng(1).permutation(data.num_nodes)[: asked.targets])
        if asked.what == "bounds":
            bounds(data, nodes)
        else:
            certify(data, targets=nodes, memory=asked.memory, num_draws=asked.draws, keep=asked.keep)
    print(watch.in_words())


if __name__ == "__main__":
    main()
