"""How drawing fits a memory budget: narrower tiles of draws first, targets cut only where their fields are apart.

All targets share one field, so that a draw computes each hidden row once, however many targets, classes and hubs there
are. Halving the targets would halve nothing where hubs make every field the whole graph: each half computes the
graph's hidden rows anew. Halving the draws that lie side by side halves memory and repeats no arithmetic.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graycert._types import IntArray
from graycert.sampling.kernels.draws import WIDEST
from graycert.sampling.layered_field import InEdges, LayeredField, layered_field
from graycert.sampling.layers import SCORED_AT_ONCE, Layer, scratch_shape
from graycert.sampling.operations import Attention, SoftMedoid
from graycert.sampling.workspace import needs_degrees, targets_at_once

LANES = (WIDEST, WIDEST // 2, WIDEST // 4, WIDEST // 8)
_SHARED_FROM = 32 * 2**20  # bytes of a tile above which all threads work on one: it outgrows their own caches anyway
_APART, _NEARLY_APART = 1.05, 1.5  # work of all parts over that of the whole
_SMALLEST = 8  # a part takes at least that share of what lies in memory throughout


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Targets that are computed together.

    Args:
        rows: Which.
        lanes: Draws side by side.
        shared: Whether all threads work on one tile, rather than each on its own.
        num_bytes: What their field, tiles and scratch space take.
    """

    rows: slice
    lanes: int
    shared: bool
    num_bytes: int


@dataclass(frozen=True, kw_only=True)
class DrawingPlan:
    """What is computed together, planned once per engine and number of threads.

    Args:
        cuts: One after another, they are all targets.
        budget: Bytes that were to be kept to.
        fixed_bytes: What lies in memory throughout: graph and projected rows. Votes are results, and counted there.
        num_threads: Threads that it is for.
    """

    cuts: tuple[Cut, ...]
    budget: int
    fixed_bytes: int
    num_threads: int

    @property
    def num_bytes(self) -> int:
        """Planned peak; more than the budget only where neither narrow tiles nor cuts would help."""
        return self.fixed_bytes + max(cut.num_bytes for cut in self.cuts)

    @property
    def evaluations(self) -> int:
        """How often fields are computed for `WIDEST` draws: chunks times cuts."""
        return sum(WIDEST // cut.lanes for cut in self.cuts)


def plan_drawing(
    graph: InEdges,
    layers: Sequence[Layer],
    targets: IntArray,
    *,
    table_width: int,
    num_threads: int,
    budget: int,
    fixed_bytes: int,
    lanes: Sequence[int] = LANES,
) -> DrawingPlan:
    """Plan what is computed together.

    Targets are cut where that repeats next to no work, or some if even the narrowest tile is too large; never into
    parts that are smaller than what lies in memory throughout.

    Args:
        graph: In-edges of all that the targets depend on.
        layers: What the model does.
        targets: Distinct nodes.
        table_width: Width of projected rows.
        num_threads: How many threads draw.
        budget: Bytes to keep to.
        fixed_bytes: See `DrawingPlan`.
        lanes: Widths of tiles to choose from, widest first.
    """

    def field_of(rows: slice) -> LayeredField:
        return layered_field(graph, targets[rows], num_layers=len(layers))

    def cut(rows: slice, field: LayeredField, width: int) -> Cut:
        one = tile_bytes(layers, field, lanes=width)
        shared = num_threads > 1 and one > _SHARED_FROM
        scratch = num_threads * scratch_bytes(layers, field, lanes=width)
        drawing = scratch + one * (1 if shared else num_threads)
        made, making = part_bytes(layers, field, table_width=table_width, num_rows=graph.indptr.size - 1)
        return Cut(rows=rows, lanes=width, shared=shared, num_bytes=made + max(drawing, making))

    cuts: list[Cut] = []
    whole = slice(0, targets.size)
    left = [(whole, field_of(whole), 1.0)]
    while left:
        rows, field, repeats = left.pop()
        choices = [cut(rows, field, width) for width in lanes]
        fitting = next((each for each in choices if fixed_bytes + each.num_bytes <= budget), None)
        best = fitting or choices[-1]
        if best is not choices[0] and rows.stop - rows.start > 1 and best.num_bytes > fixed_bytes // _SMALLEST:
            middle = (rows.start + rows.stop) // 2
            halves = [(half, field_of(half)) for half in (slice(rows.start, middle), slice(middle, rows.stop))]
            repeated = repeats * sum(_work(half) for _, half in halves) / _work(field)
            if repeated <= (_NEARLY_APART if fitting is None else _APART):
                left += [(half, its_field, repeated) for half, its_field in halves[::-1]]
                continue
        cuts.append(best)
    return DrawingPlan(cuts=tuple(cuts), budget=budget, fixed_bytes=fixed_bytes, num_threads=num_threads)


def _work(field: LayeredField) -> int:
    """Return how many nodes and messages are computed."""
    return int(field.sizes[1]) + int(field.sources.size)


def tile_bytes(layers: Sequence[Layer], field: LayeredField, *, lanes: int) -> int:
    """Return what a tile takes: coins of all edges and nodes, and hidden rows."""
    n, degrees = field.nodes.size, needs_degrees(layers)
    edges = field.num_edges if degrees else field.sources.size
    hidden = sum(int(size) * layer.width_out for size, layer in zip(field.sizes[1:-1], layers[:-1], strict=True))
    return int(lanes * (edges + n + 4 * n * degrees + 4 * hidden))


def scratch_bytes(layers: Sequence[Layer], field: LayeredField, *, lanes: int) -> int:
    """Return what a thread takes besides: scores of a block of targets, rows and weights in hand."""
    rows, classes = 0, layers[-1].width_out
    for index, layer in enumerate(layers):
        widest, weights, costs = scratch_shape(layer, index, field.largest_in_degree)
        rows += 2 * widest + weights + costs
    return 4 * lanes * (rows + classes * targets_at_once(classes, int(field.sizes[-1]), lanes=lanes))


def part_bytes(layers: Sequence[Layer], field: LayeredField, *, table_width: int, num_rows: int) -> tuple[int, int]:
    """Return what a field takes with all that no draw changes, and what is needed besides to make it.

    Of a graph that is numbered as the field is neither edges are copied nor, if it has no further nodes, the
    ``num_rows`` projected rows.
    """
    n, messages = field.nodes.size, field.sources.size
    taken = 24 * n  # nodes, where their in-edges begin, keys of their coins
    if not field.keeps_order:
        taken += 4 * messages + field.weights.nbytes
    if not field.keeps_order or n < num_rows:
        taken += 4 * (n + 1) * table_width
    receivers, making = int(field.sizes[1]), 0
    match layers[0].aggregation:
        case Attention(channels=channels) as attention:
            per_head = 2 * messages + 3 * receivers + (n + 1) * channels
            taken += 4 * attention.heads * per_head
            scores = 8 * attention.heads * (4 * min(SCORED_AT_ONCE, messages) + 2 * n)
            making += max(16 * (n + 1) * table_width, scores)
        case SoftMedoid():
            sizes = np.diff(field.indptr[: receivers + 1]) + 2
            taken += 4 * int((sizes**2).sum())
    return int(taken), int(making)
