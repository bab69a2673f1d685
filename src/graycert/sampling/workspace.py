"""Where the compiled engine works: what all draws of some targets share, and the tile of one chunk of draws."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from graycert._types import Float32Array, IntArray
from graycert.sampling.kernels.coins import CoinKeys, EdgeCoins, thresholds_of
from graycert.sampling.kernels.draws import Draw, Field, Senders
from graycert.sampling.kernels.tiles import Output, Steps, pack_steps
from graycert.sampling.kernels.votes import Ballot
from graycert.sampling.layered_field import InEdges, LayeredField, layered_field
from graycert.sampling.layers import (
    Layer,
    Scratch,
    arguments_of,
    constants_of,
    kernels_of,
    make_scratch,
    room_for_lanes,
)
from graycert.sampling.operations import NormalisedSum, SoftMedoid
from graycert.sampling.placed_smoothing import AnySmoothing
from graycert.sampling.streams import CoinStream

Spread = Callable[[Callable[[slice], None], Iterable[slice]], Iterator[None]]
"""`map`, or that of a pool of threads."""

Keep = Callable[[slice, Float32Array], None]
"""What keeps the scores of some targets, (num_targets, num_classes, lanes), before they are overwritten."""

SCORES_AT_ONCE = 2**19  # bytes of scores of one block of targets that are kept
_COUNTED_AT_ONCE = 2**14  # bytes of scores of a few targets, which stay in the nearest cache until they are counted
_WORK_PER_RANGE = 2**14  # nodes and edges that a thread takes at a time


class Coins(NamedTuple):
    """What throws node and edge coins of one stream."""

    node: CoinKeys
    edge: EdgeCoins


@dataclass(frozen=True, eq=False)
class Part:
    """Some targets with their field, and all that no draw changes; threads share it.

    Args:
        layers: What the model does.
        graph: The graph.
        field: The field of the targets.
        messages: The same, as kernels read it.
        table: Projected rows of its nodes, float32 (n + 1, width); the last row is the token's.
        constants: Per layer what its kernel reads besides.
        steps: Per layer what follows its aggregation.
    """

    layers: tuple[Layer, ...]
    graph: InEdges
    field: LayeredField
    messages: Field
    table: Float32Array
    constants: tuple[tuple[Any, ...], ...]
    steps: tuple[Steps, ...]

    @classmethod
    def of(cls, layers: tuple[Layer, ...], graph: InEdges, table: Float32Array, targets: IntArray) -> "Part":
        """Collect what the targets depend on.

        Raises:
            UnknownModelError: If a kernel would be inexact, or too large, on these rows.
        """
        field = layered_field(graph, targets, num_layers=len(layers))
        messages = Field(field.indptr, field.sources, field.nodes.size, field.weights)
        token = table.shape[0] - 1
        whole = field.keeps_order and field.nodes.size == token
        rows = table if whole else np.ascontiguousarray(table[np.append(field.nodes, token)])
        constants = tuple(
            constants_of(layer, index, messages, rows, num_receivers=int(field.sizes[index + 1]))
            for index, layer in enumerate(layers)
        )
        steps = tuple(pack_steps(layer.steps) for layer in layers)
        return cls(layers, graph, field, messages, rows, constants, steps)

    @property
    def num_targets(self) -> int:
        """How many targets the part has."""
        return int(self.field.sizes[-1])

    @cached_property
    def senders(self) -> Senders:
        """The graph, as kernels read it."""
        return Senders(self.graph.indptr, self.graph.sources, self.graph.names, self.graph.num_named)

    @cached_property
    def normalises(self) -> bool:
        """Whether in-degrees of all nodes matter, for which all edges are drawn."""
        return needs_degrees(self.layers)

    @property
    def num_edges(self) -> int:
        """How many edges are drawn."""
        return self.field.num_edges if self.normalises else int(self.field.sources.size)

    @property
    def num_receivers(self) -> int:
        """Into how many nodes they are."""
        return int(self.field.nodes.size if self.normalises else self.field.sizes[1])

    def coins(self, stream: CoinStream, smoothing: AnySmoothing) -> Coins:
        """Return what throws the coins of its nodes and edges."""
        receivers = self.field.nodes[: self.num_receivers]
        thresholds = thresholds_of(smoothing.p_delete, self.num_edges, lambda: self.graph.edge_ids(receivers))
        return Coins(
            CoinKeys.of(stream, "node", self.graph.names[self.field.nodes].astype(np.int64), smoothing.p_ablate),
            EdgeCoins(stream.key("edge", "sample"), stream.key("edge", "id"), thresholds),
        )

    def ranges(self, num_nodes: int, *, most: int | None = None) -> list[slice]:
        """Cut the first nodes into ranges of about as many nodes and in-edges, of at most ``most`` nodes."""
        work = self.field.indptr[: num_nodes + 1] + np.arange(num_nodes + 1)
        cuts, low = [0], 0
        while low < num_nodes:
            high = max(low + 1, int(np.searchsorted(work, work[low] + _WORK_PER_RANGE, side="right")) - 1)
            low = min(high, num_nodes, low + (most or num_nodes))
            cuts.append(low)
        return [slice(low, high) for low, high in pairwise(cuts)]


class Tile:
    """Room for one chunk of ``lanes`` draws: coins, hidden rows of all nodes, scores of a few targets."""

    def __init__(self, part: Part, *, lanes: int, num_threads: int) -> None:
        layers, sizes = part.layers, part.field.sizes
        self.part, self.lanes, self.num_threads = part, lanes, num_threads
        n = part.field.nodes.size
        self.draw = Draw(
            survives=np.empty((part.num_edges, lanes), dtype=np.uint8),
            shown=np.empty((n, lanes), dtype=np.uint8),
            scale=np.empty((n if part.normalises else 0, lanes), dtype=np.float32),
        )
        self._hidden = [
            room_for_lanes(int(size), layer.width_out, lanes)
            for layer, size in zip(layers[:-1], sizes[1:-1], strict=True)
        ]
        self._block = targets_at_once(layers[-1].width_out, part.num_targets, lanes=lanes)
        self._node_ranges = part.ranges(n) if num_threads > 1 else [slice(0, n)]
        self._ranges = [part.ranges(int(size)) if num_threads > 1 else [slice(0, int(size))] for size in sizes[1:-1]]
        self._counted = part.ranges(part.num_targets) if num_threads > 1 else [slice(0, part.num_targets)]
        self._kept = part.ranges(part.num_targets, most=self._block)
        self._at_once = max(1, min(self._block, _COUNTED_AT_ONCE // (4 * layers[-1].width_out * lanes)))
        degree = part.field.largest_in_degree
        self._scratch: SimpleQueue[tuple[list[Scratch], Float32Array]] = SimpleQueue()
        for _ in range(num_threads):
            of_layers = [make_scratch(layer, index, degree, lanes=lanes) for index, layer in enumerate(layers)]
            scores = room_for_lanes(self._block, layers[-1].width_out, lanes)
            self._scratch.put((of_layers, scores))
        self._draw, *self._kernels, self._counting = kernels_of(layers, lanes=lanes)

    def count(self, first_sample: int, coins: Coins, ballot: Ballot, *, spread: Spread = map) -> None:
        """Draw a chunk once, compute every hidden row once, then scores and votes of a few targets after another.

        Args:
            first_sample: Number of the first sample, a multiple of ``lanes``.
            coins: From `Part.coins`.
            ballot: Where votes are counted, a row per target of the part.
            spread: Spreads ranges of nodes over threads.
        """
        self._compute_hidden(first_sample, coins, spread)
        for _ in spread(partial(self._count, ballot), self._counted):
            pass

    def scores(self, first_sample: int, coins: Coins, keep: Keep) -> None:
        """Do the same, but keep the scores, which is slower.

        Args:
            first_sample: Number of the first sample, a multiple of ``lanes``.
            coins: From `Part.coins`.
            keep: Called with each block of targets, as rows of the part, and their scores without skip connection.
        """
        self._compute_hidden(first_sample, coins, map)
        for targets in self._kept:
            with self._borrowed(-1, targets.start) as (before, output, after):
                rows = output.rows[: targets.stop - targets.start]
                self._kernels[-1](*before, output._replace(rows=rows), *after)
                keep(targets, rows)

    def _compute_hidden(self, first_sample: int, coins: Coins, spread: Spread) -> None:
        for _ in spread(partial(self._throw, first_sample, coins), self._node_ranges):
            pass
        for index, ranges in enumerate(self._ranges):
            for _ in spread(partial(self._compute, index), ranges):
                pass

    def _throw(self, first_sample: int, coins: Coins, nodes: slice) -> None:
        """Throw the coins of some nodes and of the edges into them."""
        indptr = self.part.field.indptr
        low, high = (min(int(indptr[node]), self.part.num_edges) for node in (nodes.start, nodes.stop))
        of_nodes, of_edges = coins.node.within(nodes), coins.edge.within(slice(low, high))
        result = Draw(self.draw.survives[low:high], self.draw.shown[nodes], self.draw.scale[nodes])
        into = indptr[nodes.start : nodes.stop + 1] - low
        receivers = self.part.field.nodes[nodes][: max(0, self.part.num_receivers - nodes.start)]
        weights = self.part.field.weights[low:high]
        self._draw(first_sample, *of_nodes, *of_edges, receivers, self.part.senders, into, weights, result)

    def _compute(self, index: int, nodes: slice) -> None:
        """Compute the rows that a layer before the last leaves of some nodes."""
        with self._borrowed(index, nodes.start) as (before, output, after):
            self._kernels[index](*before, output._replace(rows=self._hidden[index][nodes]), *after)

    def _count(self, ballot: Ballot, targets: slice) -> None:
        """Compute the scores of some targets, and count their votes."""
        with self._borrowed(-1, targets.start) as (before, output, after):
            self._counting(before, output, after, self._at_once, ballot.of(targets))

    @contextmanager
    def _borrowed(self, index: int, first: int) -> Iterator[tuple[tuple[Any, ...], Output, tuple[Any, ...]]]:
        """Lend scratch space for a layer and nodes from ``first`` on, with the arguments around it."""
        part, index = self.part, index % len(self.part.layers)
        borrowed = self._scratch.get()
        try:
            scratch, scores = borrowed[0][index], borrowed[1]
            output = Output(part.steps[index], *scratch[:5], scores, first)
            table = self._hidden[index - 1] if index else part.table
            before, after = arguments_of(
                part.layers[index], index, part.messages, table, part.constants[index], self.draw, scratch
            )
            yield before, output, after
        finally:
            self._scratch.put(borrowed)


def needs_degrees(layers: Iterable[Layer]) -> bool:
    """Return whether a layer weighs by in-degrees of senders."""
    return any(isinstance(layer.aggregation, NormalisedSum | SoftMedoid) for layer in layers)


def targets_at_once(num_classes: int, num_targets: int, *, lanes: int) -> int:
    """Return how many targets are computed before their scores are counted."""
    return max(1, min(num_targets, SCORES_AT_ONCE // (4 * num_classes * lanes)))
