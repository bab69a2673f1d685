"""The compiled engine: votes of known models on the CPU, for what the arithmetic costs."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graycert._types import Float32Array, IntArray
from graycert._validation import check_integer
from graycert.sampling.kernels import draws
from graycert.sampling.kernels.coins import CoinKeys
from graycert.sampling.kernels.draws import LANES, Draw, Field
from graycert.sampling.kernels.votes import count_votes
from graycert.sampling.layered_field import InEdges, layered_field
from graycert.sampling.layers import Layer, arguments_of, check_magnitudes, kernel_of, project, split_layers
from graycert.sampling.operations import NormalisedSum, Operation, PlainSum, SoftMedoid, UnknownModelError
from graycert.sampling.placed_smoothing import AnySmoothing
from graycert.sampling.scores import prediction_type
from graycert.sampling.streams import CoinStream, Purpose

Progress = Callable[[int], None]

_MEMORY_BUDGET = 256 * 2**20  # bytes per thread; targets beyond are done in turn


@dataclass(frozen=True, eq=False)
class CompiledEngine:
    """Draws votes for fixed model, graph, targets and smoothing, `LANES` samples at a time.

    The first linear map is applied once to the n + 1 distinct rows that a draw can show. A sample then works on the
    receptive field of the targets, layer by layer: layer l only computes nodes within k - l hops. Memory does not
    grow with the number of samples.

    Args:
        layers: What the model does.
        graph: In-edges of the whole graph.
        table: Projected rows, float32 (num_nodes + 1, width); the last row is the token's.
        targets: Distinct nodes, int64 (num_targets,).
        skip_logits: What the skip connection adds, float32 (num_targets, num_classes).
        smoothing: p_d and p_a: uniform, or placed on the graph.
        name: Which evaluation this is, for people.
    """

    layers: tuple[Layer, ...]
    graph: InEdges
    table: Float32Array
    targets: IntArray
    skip_logits: Float32Array
    smoothing: AnySmoothing
    name: str
    _idle: "list[_Workspace]" = field(default_factory=list, repr=False)

    @property
    def num_classes(self) -> int:
        """Number C of classes."""
        return int(self.skip_logits.shape[1])

    def restricted(self, wanted: NDArray[np.bool_]) -> "CompiledEngine":
        """Return the engine for some of its targets, bool (num_targets,), with the same votes for these."""
        return replace(self, targets=self.targets[wanted], skip_logits=self.skip_logits[wanted], _idle=[])

    def votes(
        self,
        seed: int,
        purpose: Purpose,
        *,
        num_samples: int,
        first_sample: int = 0,
        progress: Progress | None = None,
    ) -> IntArray:
        """Return votes per target and class; see `VotingEngine.votes`."""
        votes, _ = self.votes_and_near_ties(
            seed, purpose, num_samples=num_samples, first_sample=first_sample, progress=progress
        )
        return votes

    def votes_and_near_ties(
        self,
        seed: int,
        purpose: Purpose,
        *,
        num_samples: int,
        first_sample: int = 0,
        progress: Progress | None = None,
    ) -> tuple[IntArray, IntArray]:
        """Return votes (num_targets, num_classes), and how many votes of each target are near-ties, (num_targets,).

        Only a near-tie (`kernels.votes.NEAR_TIE`) can differ from the vote of another engine. As many threads are used
        as torch uses (`torch.set_num_threads`); the result does not depend on it.
        """
        tally = self._draw(seed, purpose, num_samples, first_sample, progress, keep=False)
        return tally.votes, tally.near_ties

    def predictions(
        self,
        seed: int,
        purpose: Purpose,
        *,
        num_samples: int,
        first_sample: int = 0,
        progress: Progress | None = None,
    ) -> NDArray[np.signedinteger]:
        """Return the class of every vote, (num_targets, num_samples); see `VotingEngine.predictions`."""
        return self._draw(seed, purpose, num_samples, first_sample, progress, keep=True).predictions

    def _draw(
        self, seed: int, purpose: Purpose, num_samples: int, first_sample: int, progress: Progress | None, *, keep: bool
    ) -> "_Tally":
        check_integer("num_samples", num_samples, at_least=1)
        tally = _Tally(self.skip_logits.shape, range(first_sample, first_sample + num_samples), progress, keep=keep)
        parts = self._parts()
        num_threads = min(torch.get_num_threads(), -(-num_samples // LANES))
        for rows in parts:
            tally.start(len(parts))

            def work(rows: slice = rows) -> None:
                with self._workspace(rows) as workspace:
                    coins = workspace.coins(CoinStream(seed, purpose), self.smoothing)
                    tally.count(rows, self.skip_logits[rows], lambda first: workspace.run(first, *coins))

            if num_threads == 1:
                work()
                continue
            with ThreadPoolExecutor(num_threads) as pool, tally.stopping():
                for future in [pool.submit(work) for _ in range(num_threads)]:
                    future.result()
        return tally

    def logits(self, seed: int, purpose: Purpose, samples: Tensor) -> Tensor:
        """Return class scores of the given samples, shape (num_samples, num_targets, num_classes)."""
        numbers = samples.numpy()
        chunks = numbers - numbers % LANES
        found = np.empty((numbers.size, *self.skip_logits.shape), dtype=np.float32)
        for rows in self._parts():
            with self._workspace(rows) as workspace:
                coins = workspace.coins(CoinStream(seed, purpose), self.smoothing)
                for first in np.unique(chunks):
                    scores = workspace.run(int(first), *coins)
                    for place in np.flatnonzero(chunks == first):
                        found[place, rows] = scores[:, :, numbers[place] - first]
        return torch.from_numpy(found + self.skip_logits)

    def kernels(self) -> tuple[Callable[..., None], ...]:
        """Return all kernels that this engine needs."""
        return (draws.draw, count_votes, *(kernel_of(layer, index) for index, layer in enumerate(self.layers)))

    @contextmanager
    def _workspace(self, rows: slice) -> "Iterator[_Workspace]":
        """Lend a workspace for a range of targets; no two threads share one."""
        idle = self._idle if rows == slice(0, self.targets.size) else []  # parts of the targets are not kept
        try:
            workspace = idle.pop()
        except IndexError:
            workspace = _Workspace(self, self.targets[rows])
        yield workspace
        idle.append(workspace)

    def _parts(self) -> list[slice]:
        """Return ranges of targets whose workspaces fit the memory budget."""
        parts, open_ranges = [], [(0, self.targets.size)]
        while open_ranges:
            low, high = open_ranges.pop()
            if high - low > 1 and _workspace_bytes(self, self.targets[low:high]) > _MEMORY_BUDGET:
                middle = (low + high) // 2
                open_ranges += [(middle, high), (low, middle)]
            else:
                parts.append(slice(low, high))
        return parts


class _Workspace:
    """What one thread works in: the field of some targets, and room for one chunk."""

    def __init__(self, engine: CompiledEngine, targets: IntArray) -> None:
        layers = engine.layers
        self.part = layered_field(engine.graph, targets, num_layers=len(layers))
        part, n = self.part, self.part.nodes.size
        normalises = any(isinstance(layer.aggregation, NormalisedSum | SoftMedoid) for layer in layers)
        messages = Field(part.indptr, part.sources.astype(np.int32), n)
        self.num_edges = int(part.edge_ids.size if normalises else part.sources.size)
        self.draw = Draw(
            survives=np.empty((self.num_edges, LANES), dtype=np.uint8),
            shown=np.empty((n, LANES), dtype=np.uint8),
            scale=np.empty((n if normalises else 0, LANES), dtype=np.float32),
        )
        rows = np.ascontiguousarray(engine.table[np.append(part.nodes, engine.table.shape[0] - 1)])
        self.calls: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        for index, layer in enumerate(layers):
            out = np.empty((int(part.sizes[index + 1]), layer.width_out, LANES), dtype=np.float32)
            arguments = arguments_of(layer, index, part, messages, rows, self.draw, out)
            self.calls.append((kernel_of(layer, index), arguments))
            rows = out
        self.scores = rows

    def coins(self, stream: CoinStream, smoothing: AnySmoothing) -> tuple[CoinKeys, CoinKeys]:
        """Return the keys of node and edge coins."""
        return (
            CoinKeys.of(stream, "node", self.part.nodes, smoothing.p_ablate),
            CoinKeys.of(stream, "edge", self.part.edge_ids[: self.num_edges], smoothing.p_delete),
        )

    def run(self, first_sample: int, node_coins: CoinKeys, edge_coins: CoinKeys) -> Float32Array:
        """Return the scores of one chunk, without skip connection, (num_targets, num_classes, LANES); overwritten."""
        draws.draw(first_sample, *node_coins, *edge_coins, self.part.indptr, self.draw)
        for kernel, arguments in self.calls:
            kernel(*arguments)
        return self.scores


class _Tally:
    """Counts votes of many threads; which thread counts which chunk makes no difference."""

    def __init__(self, shape: tuple[int, ...], samples: range, progress: Progress | None, *, keep: bool) -> None:
        self.predictions = np.empty((shape[0], len(samples) if keep else 0), dtype=prediction_type(shape[1]))
        self.votes = np.zeros(shape, dtype=np.int64)
        self.near_ties = np.zeros(shape[0], dtype=np.int64)
        self._samples, self._progress = samples, progress
        self._lock = threading.Lock()
        self._done, self._reported, self._num_parts = 0, 0, 1
        self._chunks: Iterator[int] = iter(())

    def start(self, num_parts: int) -> None:
        """Begin with the first chunk, for one of ``num_parts`` groups of targets."""
        first = self._samples.start
        self._chunks, self._num_parts = iter(range(first - first % LANES, self._samples.stop, LANES)), num_parts

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Leave no chunk to threads that still run if an exception, such as Ctrl-C, ends the wait for them."""
        try:
            yield
        except BaseException:
            with self._lock:
                self._chunks = iter(())
            raise

    def count(self, rows: slice, skip: Float32Array, run: Callable[[int], Float32Array]) -> None:
        """Run chunks until there are none left."""
        votes, near_ties = np.zeros_like(self.votes[rows]), np.zeros_like(self.near_ties[rows])
        while True:
            with self._lock:
                first = next(self._chunks, None)
            if first is None:
                break
            low, high = max(self._samples.start - first, 0), min(self._samples.stop - first, LANES)
            place = first + low - self._samples.start
            kept = self.predictions[rows, place : place + high - low]
            count_votes(run(first), skip, low, high, votes, near_ties, kept)
            self._report(high - low)
        with self._lock:
            self.votes[rows] += votes
            self.near_ties[rows] += near_ties

    def _report(self, num_samples: int) -> None:
        if self._progress is None:
            return
        with self._lock:
            self._done += num_samples
            fresh = self._done // self._num_parts - self._reported
            self._reported += fresh
            self._progress(fresh)


def _workspace_bytes(engine: CompiledEngine, targets: IntArray) -> int:
    """Return about how much memory a workspace for ``targets`` takes."""
    part = layered_field(engine.graph, targets, num_layers=len(engine.layers))
    floats = sum(int(size) * layer.width_out for size, layer in zip(part.sizes[1:], engine.layers, strict=True))
    widest = max(layer.widest for layer in engine.layers)
    per_lane = part.edge_ids.size + 5 * part.nodes.size + 4 * floats + 8 * widest + 16 * part.largest_in_degree
    return int(LANES * per_lane + 4 * part.nodes.size * engine.table.shape[1] + 64 * part.edge_ids.size)


def build_compiled_engine(
    operations: Sequence[Operation],
    x: Tensor,
    token: Tensor,
    edge_index: Tensor,
    targets: IntArray,
    *,
    smoothing: AnySmoothing,
    skip_logits: Tensor | None,
) -> CompiledEngine:
    """Return the engine of a recognised model.

    Args:
        operations: From `recognise`.
        x: Features, float32 (num_nodes, num_features).
        token: Features of an ablated node, (num_features,).
        edge_index: int64 (2, num_edges).
        targets: Distinct nodes, (num_targets,).
        smoothing: p_d and p_a: uniform, or placed on the graph.
        skip_logits: What the skip connection adds, (num_targets, num_classes), or None.

    Raises:
        UnknownModelError: If the kernels would not do exactly what the model does.
    """
    if x.dtype != torch.float32 or x.is_sparse or x.layout != torch.strided:
        raise UnknownModelError(f"gets features of type {x.dtype} ({x.layout})")
    num_nodes = x.size(0)
    edges = edge_index.numpy()
    start, layers = split_layers(operations)
    sums = {isinstance(layer.aggregation, PlainSum) for layer in layers}
    if len(sums) == 2 and bool((edges[0] == edges[1]).any()):
        raise UnknownModelError("mixes convolutions that add self-loops with others, on a graph that has self-loops")
    graph = InEdges.of(edges, num_nodes=num_nodes, self_loops=sums == {True})
    table = np.concatenate([project(start, x), project(start, token.unsqueeze(0).contiguous())])
    check_magnitudes(table, layers, largest_in_degree=int(np.diff(graph.indptr).max(initial=0)))
    skip: Any = torch.zeros(targets.size, layers[-1].width_out) if skip_logits is None else skip_logits
    names = " + ".join(layer.aggregation.label for layer in layers)
    return CompiledEngine(
        layers=tuple(layers),
        graph=graph,
        table=table,
        targets=np.array(targets, dtype=np.int64),
        skip_logits=np.ascontiguousarray(skip.numpy(), dtype=np.float32),
        smoothing=smoothing,
        name=f"compiled kernels ({names})",
    )
