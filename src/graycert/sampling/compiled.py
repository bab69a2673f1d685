"""The compiled engine: votes of known models on the CPU, for what the arithmetic costs."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graycert._types import Float32Array, IntArray
from graycert._validation import check_integer
from graycert.sampling.drawing_plan import LANES, Cut, DrawingPlan, plan_drawing
from graycert.sampling.kernels.draws import WIDEST
from graycert.sampling.layered_field import InEdges
from graycert.sampling.layers import Layer, check_magnitudes, kernels_of, project, room_for_lanes, split_layers
from graycert.sampling.memory import default_budget
from graycert.sampling.operations import NormalisedSum, Operation, PlainSum, SoftMedoid, UnknownModelError
from graycert.sampling.placed_smoothing import AnySmoothing
from graycert.sampling.streams import CoinStream, Purpose
from graycert.sampling.tally import Counts, Progress, Tally
from graycert.sampling.workspace import Coins, Part, Tile

_WORTH_PARTS = 32  # tiles that take many times as long as making parts does


class _Made:
    """What an engine has made so far: plans by threads and budget, what all targets share, and idle tiles for them."""

    def __init__(self) -> None:
        self.plans: dict[tuple[int, int | None], DrawingPlan] = {}
        self.whole: Part | None = None
        self.tiles: list[Tile] = []


@dataclass(frozen=True, eq=False)
class CompiledEngine:
    """Draws votes for fixed model, graph, targets and smoothing, many samples side by side.

    The first linear map is applied once to the n + 1 distinct rows that a draw can show. A sample then works on the
    receptive field of the targets, layer by layer: layer l only computes nodes within k - l hops. Memory does not
    grow with the number of samples, and is planned (`graycert.sampling.drawing_plan`).

    Args:
        layers: What the model does.
        graph: In-edges of all that the targets depend on, in its own order.
        table: Projected rows of the field's nodes, float32 (num_nodes + 1, width); the last row is the token's.
        targets: Distinct nodes, numbered as ``graph``, int64 (num_targets,).
        skip_logits: What the skip connection adds, float32 (num_targets, num_classes).
        smoothing: p_d and p_a: uniform, or placed on the graph.
        name: Which evaluation this is, for people.
        memory: Bytes that drawing may take; None for a part of what the machine has free.
        lanes: How many draws may lie side by side, widest first.
    """

    layers: tuple[Layer, ...]
    graph: InEdges
    table: Float32Array
    targets: IntArray
    skip_logits: Float32Array
    smoothing: AnySmoothing
    name: str
    memory: int | None = None
    lanes: Sequence[int] = LANES
    _made: _Made = field(default_factory=_Made, repr=False)

    @property
    def num_classes(self) -> int:
        """Number C of classes."""
        return int(self.skip_logits.shape[1])

    @property
    def draws_at_once(self) -> int:
        """Draws of the widest tile; scores are the same in every tile.

        Where targets are computed in several parts, many times as many: every call makes these parts anew.
        """
        return WIDEST * (1 if len(self.plan.cuts) == 1 else _WORTH_PARTS)

    def restricted(self, wanted: NDArray[np.bool_]) -> "CompiledEngine":
        """Return the engine for some of its targets, bool (num_targets,), with the same votes for these."""
        return replace(self, targets=self.targets[wanted], skip_logits=self.skip_logits[wanted], _made=_Made())

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
    ) -> Tally:
        check_integer("num_samples", num_samples, at_least=1)
        samples = range(first_sample, first_sample + num_samples)
        tally, plan = Tally(self.skip_logits, samples, progress, keep=keep), self.plan
        for cut in plan.cuts:
            tally.start(len(plan.cuts), lanes=cut.lanes)
            part = self._part(cut)
            coins = part.coins(CoinStream(seed, purpose), self.smoothing)
            if cut.shared:
                self._draw_together(tally, part, cut, coins)
            else:
                self._draw_apart(tally, part, cut, coins)
        return tally

    def _draw_together(self, tally: Tally, part: Part, cut: Cut, coins: Coins) -> None:
        """Let all threads work on one tile after another."""
        counts, num_threads = tally.shared_counts(cut.rows), self.plan.num_threads
        with self._tile(part, cut) as tile, ThreadPoolExecutor(num_threads) as pool:
            for first in tally.chunks():
                tile.count(first, coins, tally.ballot(first, cut.rows, counts), spread=pool.map)

    def _draw_apart(self, tally: Tally, part: Part, cut: Cut, coins: Coins) -> None:
        """Let each thread work on a tile of its own."""

        def count_in(counts: Counts) -> None:
            with self._tile(part, cut) as tile:
                for first in tally.chunks():
                    tile.count(first, coins, tally.ballot(first, cut.rows, counts))

        def work() -> None:
            counts = tally.own_counts(cut.rows)
            count_in(counts)
            tally.add(cut.rows, counts)

        num_threads = min(self.plan.num_threads, tally.num_chunks)
        if num_threads == 1:
            count_in(tally.shared_counts(cut.rows))
            return
        with ThreadPoolExecutor(num_threads) as pool, tally.stopping():
            for future in [pool.submit(work) for _ in range(num_threads)]:
                future.result()

    def logits(self, seed: int, purpose: Purpose, samples: Tensor) -> Tensor:
        """Return class scores of the given samples, shape (num_samples, num_targets, num_classes)."""
        numbers = samples.numpy()
        found = np.empty((numbers.size, *self.skip_logits.shape), dtype=np.float32)
        for cut in self.plan.cuts:
            part = self._part(cut)
            coins = part.coins(CoinStream(seed, purpose), self.smoothing)
            chunks = numbers - numbers % cut.lanes
            with self._tile(part, cut) as tile:
                for first in np.unique(chunks).tolist():
                    places = np.flatnonzero(chunks == first)
                    keep = partial(_keep, found[:, cut.rows], places, numbers[places] - first)
                    tile.scores(first, coins, keep)
        found += self.skip_logits
        return torch.from_numpy(found)

    @property
    def plan(self) -> DrawingPlan:
        """What is computed together by as many threads as torch uses."""
        num_threads = torch.get_num_threads()
        asked = num_threads, self.memory
        if asked not in self._made.plans:
            self._made.plans[asked] = plan_drawing(
                self.graph,
                self.layers,
                self.targets,
                table_width=self.table.shape[1],
                num_threads=num_threads,
                budget=self.memory or default_budget(),
                fixed_bytes=self._fixed_bytes(),
                lanes=self.lanes,
            )
        return self._made.plans[asked]

    def _fixed_bytes(self) -> int:
        graph = self.graph
        arrays = [graph.indptr, graph.sources, graph.names, graph.weights, self.table, self.targets]
        if self.skip_logits.any():  # zeros that are only read take no memory
            arrays.append(self.skip_logits)
        coins = ((self.smoothing.p_delete, self.graph.sources), (self.smoothing.p_ablate, self.graph.indptr))
        thresholds = sum(8 * each.size for probability, each in coins if not isinstance(probability, float))
        return thresholds + sum(each.nbytes for each in arrays if each is not None)

    def kernels(self) -> tuple[Callable[..., None], ...]:
        """Return all kernels that this engine needs."""
        widths = {cut.lanes for cut in self.plan.cuts}
        return tuple(kernel for width in widths for kernel in kernels_of(self.layers, lanes=width))

    def prepare(self) -> None:
        """Plan, and compute all that no draw changes, which is kept.

        Raises:
            UnknownModelError: If a kernel would be inexact, or too large, on these rows.
        """
        for cut in self.plan.cuts:
            self._part(cut)

    def _part(self, cut: Cut) -> Part:
        """Return what draws of some targets share; that of all targets is kept."""
        if cut.rows != slice(0, self.targets.size):
            return Part.of(self.layers, self.graph, self.table, self.targets[cut.rows])
        if self._made.whole is None:
            self._made.whole = Part.of(self.layers, self.graph, self.table, self.targets)
        return self._made.whole

    @contextmanager
    def _tile(self, part: Part, cut: Cut) -> Iterator[Tile]:
        """Lend a tile; no two threads share one unless it is meant for all of them."""
        idle = self._made.tiles if part is self._made.whole else []  # those of cuts are not kept
        num_threads = self.plan.num_threads if cut.shared else 1
        try:
            tile = next(each for each in idle if (each.lanes, each.num_threads) == (cut.lanes, num_threads))
            idle.remove(tile)
        except (StopIteration, ValueError):  # none, or another thread was faster
            idle[:] = [each for each in idle if each.lanes == cut.lanes]
            tile = Tile(part, lanes=cut.lanes, num_threads=num_threads)
        yield tile
        idle.append(tile)


def _keep(found: Float32Array, places: IntArray, lanes: IntArray, block: slice, scores: Float32Array) -> None:
    """Copy the scores of some targets, of some lanes, to their places."""
    for place, lane in zip(places, lanes, strict=True):
        found[place, block] = scores[:, :, lane]


def build_compiled_engine(
    operations: Sequence[Operation],
    x: Tensor,
    token: Tensor,
    edge_index: Tensor,
    targets: IntArray,
    *,
    smoothing: AnySmoothing,
    skip_logits: Tensor | None,
    edge_weights: Float32Array | None = None,
    memory: int | None = None,
    lanes: Sequence[int] = LANES,
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
        edge_weights: Weight per edge, float32 (num_edges,); None where no convolution takes weights.
        memory: See `CompiledEngine`.
        lanes: See `CompiledEngine`.

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
    _check_weights(layers, edges, edge_weights)
    graph = InEdges.of(edges, num_nodes=num_nodes, self_loops=sums == {True}, weights=edge_weights)
    rows, last = project(start, x), project(start, token.unsqueeze(0).contiguous())
    check_magnitudes((rows, last), layers, graph)
    graph, nodes = graph.renumbered(np.asarray(targets, dtype=np.int64), num_layers=len(layers))
    table = _rows_of(rows, nodes, last)
    skip: Any = np.zeros((targets.size, layers[-1].width_out), dtype=np.float32)
    kinds = (layer.aggregation for layer in layers)
    names = " + ".join(f"weighted {kind.label}" if kind.weighted else kind.label for kind in kinds)
    return CompiledEngine(
        layers=tuple(layers),
        graph=graph,
        table=table,
        targets=np.arange(targets.size),
        skip_logits=skip if skip_logits is None else np.ascontiguousarray(skip_logits.numpy(), dtype=np.float32),
        smoothing=smoothing,
        name=f"compiled kernels ({names})",
        memory=memory,
        lanes=lanes,
    )


def _rows_of(rows: Float32Array, nodes: IntArray, last: Float32Array) -> Float32Array:
    """Return the rows of some nodes, and one after them, for no more than they take."""
    table = room_for_lanes(nodes.size + 1, rows.shape[1])
    np.take(rows, nodes, axis=0, out=table[:-1], mode="clip")  # "raise" would take them twice
    table[-1] = last
    return table


def _check_weights(layers: Sequence[Layer], edges: IntArray, weights: Float32Array | None) -> None:
    """Degrees are of one kind in all layers, and the loop that GCN gives every node has weight 1 in every draw."""
    normalised = {
        layer.aggregation.weighted for layer in layers if isinstance(layer.aggregation, NormalisedSum | SoftMedoid)
    }
    if len(normalised) == 2:
        raise UnknownModelError("normalises by weighted degrees in one layer, and not in another")
    if weights is not None and True in normalised and bool((weights[edges[0] == edges[1]] != 1).any()):
        raise UnknownModelError("is given weights of self-loops other than 1")
