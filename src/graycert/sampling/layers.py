"""From recognised operations to layers that run: an aggregation's kernel and the row-wise steps that follow it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graycert._compilation import with_constants
from graycert._types import Float32Array
from graycert.sampling.kernels import draws, gat, gatv2, gcn, soft_medoid, sums, tiles, votes
from graycert.sampling.kernels.draws import Draw, Field
from graycert.sampling.kernels.products import AHEAD
from graycert.sampling.kernels.tiles import RowwiseStep
from graycert.sampling.layered_field import InEdges
from graycert.sampling.operations import (
    Affine,
    Aggregation,
    Attention,
    Linear,
    NormalisedSum,
    Operation,
    PlainSum,
    RowwiseOperation,
    SoftMedoid,
    UnknownModelError,
)

_ACTIVATIONS = {"relu": tiles.RELU, "elu": tiles.ELU, "leaky_relu": tiles.LEAKY_RELU}
_WIDEST_SCORES = 40.0  # e^40 times _LARGEST_VALUE is far from the ends of float32
_LARGEST_VALUE = 1e15
_MOST_DISTANCES = 64 * 2**20
_SMALLEST_DEGREE = 0.5  # of weighted degrees: 1 without negative weights, which would cancel and magnify rounding
_LINE = 64  # bytes
SCORED_AT_ONCE = 2**14


@dataclass(frozen=True, eq=False)
class Layer:
    """One aggregation and what follows until the next.

    Args:
        aggregation: Which.
        chain: Row-wise operations that follow, in order.
        width_in: Columns of a row that the aggregation reads.
    """

    aggregation: Aggregation
    chain: tuple[RowwiseOperation, ...]
    width_in: int

    @property
    def width_aggregated(self) -> int:
        """Columns that leave the aggregation."""
        match self.aggregation:
            case Attention(channels=channels, mean=mean):
                return channels * (1 if mean else self.aggregation.heads)
            case PlainSum(width=width):
                return width
        return self.width_in

    @cached_property
    def steps(self) -> tuple[RowwiseStep, ...]:
        """The chain as steps: affine map, activation, linear map."""
        return tuple(_steps(self.chain, self.width_aggregated))

    @property
    def width_out(self) -> int:
        """Columns of the result."""
        return self.steps[-1].width_out

    @property
    def widest(self) -> int:
        """Columns of the widest row on the way."""
        heads = self.aggregation.heads if isinstance(self.aggregation, Attention) else 1
        columns = self.width_aggregated * (heads if isinstance(self.aggregation, Attention) else 1)
        return max(columns, self.width_in, *(max(step.scale.size, step.width_out) for step in self.steps))


def _steps(chain: Sequence[RowwiseOperation], width: int) -> list[RowwiseStep]:
    ones, zeros = _ones(width), _zeros(width)
    steps: list[RowwiseStep] = []
    scale, shift, activation, slope = ones, zeros, tiles.IDENTITY, 1.0
    pending = True
    for operation in chain:
        if isinstance(operation, Linear):
            steps.append(RowwiseStep(scale, shift, activation, slope, operation.weight, operation.bias))
            width = operation.weight.shape[0]
            scale, shift, activation, slope, pending = _ones(width), _zeros(width), tiles.IDENTITY, 1.0, False
        elif isinstance(operation, Affine) and activation == tiles.IDENTITY:
            scale, shift, pending = scale * operation.scale, shift * operation.scale + operation.shift, True
        else:
            if activation != tiles.IDENTITY:
                steps.append(RowwiseStep(scale, shift, activation, slope))
                scale, shift, activation, slope = _ones(width), _zeros(width), tiles.IDENTITY, 1.0
            if isinstance(operation, Affine):
                scale, shift = operation.scale, operation.shift
            else:
                activation, slope = _ACTIVATIONS[operation.kind], operation.slope
            pending = True
    if pending:
        steps.append(RowwiseStep(scale, shift, activation, slope))
    return steps


def _ones(width: int) -> Float32Array:
    return np.ones(width, dtype=np.float32)


def _zeros(width: int) -> Float32Array:
    return np.zeros(width, dtype=np.float32)


def split_layers(operations: Sequence[Operation]) -> tuple[list[RowwiseOperation], list[Layer]]:
    """Return the row-wise operations before the first aggregation, and the layers."""
    start: list[RowwiseOperation] = []
    groups: list[tuple[Aggregation, list[RowwiseOperation]]] = []
    for operation in operations:
        if isinstance(operation, RowwiseOperation):
            (groups[-1][1] if groups else start).append(operation)
        else:
            groups.append((operation, []))
    width = next(operation.weight.shape[0] for operation in reversed(start) if isinstance(operation, Linear))
    layers = []
    for index, (aggregation, chain) in enumerate(groups):
        if index + 1 < len(groups):
            chain = _with_scores(chain, groups[index + 1][0])
        layers.append(Layer(aggregation, tuple(chain), width))
        width = layers[-1].width_out
    return start, layers


def _with_scores(chain: list[RowwiseOperation], following: Aggregation) -> list[RowwiseOperation]:
    """Let the linear map before a GATConv compute its scores too: they are linear in the values."""
    if not isinstance(following, Attention) or following.sender is None or following.receiver is None:
        return chain
    projection = chain[-1]
    assert isinstance(projection, Linear)
    weight = projection.weight.astype(np.float64).reshape(following.heads, following.channels, -1)
    bias = projection.bias.astype(np.float64).reshape(following.heads, following.channels)
    extra = [np.einsum("hc,hcw->hw", attention, weight) for attention in (following.sender, following.receiver)]
    shifts = [(attention * bias).sum(axis=1) for attention in (following.sender, following.receiver)]
    return [
        *chain[:-1],
        Linear(
            np.concatenate([projection.weight, *extra]).astype(np.float32),
            np.concatenate([projection.bias, *shifts]).astype(np.float32),
        ),
    ]


def project(start: Sequence[RowwiseOperation], x: Tensor) -> Float32Array:
    """Apply the row-wise operations before the first aggregation to every row of x."""
    rows = x
    for operation in start:
        if isinstance(operation, Linear):
            rows = torch.addmm(torch.from_numpy(operation.bias), rows, torch.from_numpy(operation.weight).T)
        elif isinstance(operation, Affine):
            rows = rows * torch.from_numpy(operation.scale) + torch.from_numpy(operation.shift)
        elif operation.kind == "relu":
            rows = rows.relu()
        elif operation.kind == "elu":
            rows = torch.nn.functional.elu(rows, operation.slope)
        else:
            rows = torch.nn.functional.leaky_relu(rows, operation.slope)
    return np.ascontiguousarray(rows.numpy())


def check_magnitudes(tables: Sequence[Float32Array], layers: Sequence[Layer], graph: InEdges) -> None:
    """A message that does not arrive has weight zero, which needs finite rows: bound all values in advance.

    Args:
        tables: Projected rows of the first layer, of all nodes and of the token.
        layers: What follows.
        graph: In-edges.

    Raises:
        UnknownModelError: If a value on the way could leave the range in which float32 sums are safe.
    """
    bound, in_degree = max(_safe(_largest(table)) for table in tables), graph.largest_in_degree
    heaviest, total, lightest = 1.0, float(in_degree), 1.0
    if graph.weights is not None:
        heaviest, total, lightest = _extremes(graph.weights, graph.indptr)
    for layer in layers:
        match layer.aggregation:
            case PlainSum(mean=mean, own_factor=factor, weighted=True):
                bound *= (heaviest if mean else total) + abs(factor)
            case PlainSum(mean=mean, own_factor=factor):
                bound *= (1 if mean else in_degree) + abs(factor)
            case NormalisedSum(weighted=True):
                if lightest < _SMALLEST_DEGREE:
                    raise UnknownModelError(f"is given weights that leave a node a degree of {lightest:.2g}")
                bound *= (total + 1) / lightest
            case NormalisedSum() | SoftMedoid():
                bound *= in_degree + 1
            case Attention(both=both) if both is not None:
                _safe(2 * bound * float(np.abs(both, dtype=np.float64).sum(axis=1).max()))  # its scores
        for step in layer.steps:
            bound = _safe(_largest(step.scale) * bound + _largest(step.shift)) * max(1.0, abs(step.slope))
            if step.weight is not None and step.bias is not None:
                rows = np.abs(step.weight, dtype=np.float64).sum(axis=1)
                bound = _safe(float(rows.max(initial=0.0)) * bound + _largest(step.bias))


def _extremes(weights: Float32Array, indptr: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return the largest |weight|, the largest sum of them into a node, and the smallest degree that a draw can leave.

    A degree counts the node's own loop, of weight 1; the smallest is left where only negative weights survive.
    """
    receivers = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    total = np.bincount(receivers, weights=np.abs(weights))
    negative = np.bincount(receivers, weights=np.minimum(weights, 0))
    return _largest(weights), float(total.max(initial=0.0)), 1.0 + float(negative.min(initial=0.0))


def _largest(values: Float32Array) -> float:
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def _safe(bound: float) -> float:
    if not bound < _LARGEST_VALUE:
        raise UnknownModelError(f"could reach values of {bound:.0e}, beyond what float32 sums hold safely")
    return bound


def kernels_of(layers: Sequence[Layer], *, lanes: int) -> list[Callable[..., None]]:
    """Return what draws a chunk, the kernel of each layer, and that of the last which also counts votes.

    All of them are for ``lanes`` samples side by side.
    """
    weighs = any(isinstance(layer.aggregation, NormalisedSum) and layer.aggregation.weighted for layer in layers)
    of_layers = [
        _specialised(_kernel_of(layer, n), lanes, layer.aggregation.weighted) for n, layer in enumerate(layers)
    ]
    counting = with_constants(votes.layer_then_votes, LAYER=of_layers[-1], LANES=lanes)
    return [_specialised(draws.draw, lanes, weighs), *of_layers, counting]


def _specialised(kernel: Callable[..., None], lanes: int, weighted: bool) -> Callable[..., None]:
    constants = {"LANES": lanes, "WEIGHTED": True} if weighted else {"LANES": lanes}
    made: Callable[..., None] = with_constants(kernel, **constants)
    return made


def _kernel_of(layer: Layer, index: int) -> Callable[..., None]:
    """Return the kernel of a layer; the first one sees rows that are the same in all samples."""
    match layer.aggregation:
        case NormalisedSum():
            return gcn.later_layer if index else gcn.first_layer
        case PlainSum():
            return sums.later_layer if index else sums.first_layer
        case SoftMedoid():
            return soft_medoid.later_layer if index else soft_medoid.first_layer
        case Attention(both=None):
            return gat.later_layer if index else gat.first_layer
        case Attention():
            return gatv2.later_layer if index else gat.first_layer


class Scratch(NamedTuple):
    """What one thread needs besides results, for receivers one after another.

    Args:
        tile: float32 (widest row, lanes).
        spare: The same.
        weights: A weight per in-edge and head in hand, with room to spare, float32 (rows, lanes).
        senders: A node per in-edge, with room to spare, int32.
        lanes: A few rows for sums, float32 (heads in hand + 4, lanes).
        costs: The same as ``weights`` for a soft medoid, else of no rows.
        order: int64, room to sort in-edges, for a soft medoid.
    """

    tile: Float32Array
    spare: Float32Array
    weights: Float32Array
    senders: NDArray[np.int32]
    lanes: Float32Array
    costs: Float32Array
    order: NDArray[np.int64]


def room_for_lanes(*shape: int) -> Float32Array:
    """Return an array that begins where a line of the cache does: a vector across two lines takes twice as long."""
    num_bytes = 4 * prod(shape)
    room = np.empty(num_bytes + _LINE, dtype=np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + num_bytes].view(np.float32).reshape(shape)


def heads_in_hand(layer: Layer, index: int) -> int:
    """Return for how many heads at once the kernel of a layer weighs in-edges."""
    return layer.aggregation.heads if index == 0 and isinstance(layer.aggregation, Attention) else 1


def scratch_shape(layer: Layer, index: int, largest_in_degree: int) -> tuple[int, int, int]:
    """Return the rows of ``tile``, of ``weights`` and of ``costs`` that a layer needs in a `Scratch`."""
    rows = heads_in_hand(layer, index) * (largest_in_degree + 4)
    return layer.widest, rows, rows if isinstance(layer.aggregation, SoftMedoid) else 0


def make_scratch(layer: Layer, index: int, largest_in_degree: int, *, lanes: int) -> Scratch:
    """Return scratch space for a layer."""
    widest, rows, costs = scratch_shape(layer, index, largest_in_degree)
    return Scratch(
        tile=room_for_lanes(widest, lanes),
        spare=room_for_lanes(widest, lanes),
        weights=room_for_lanes(rows, lanes),
        senders=np.empty(largest_in_degree + 2 + AHEAD, dtype=np.int32),
        lanes=room_for_lanes(heads_in_hand(layer, index) + 4, lanes),
        costs=room_for_lanes(costs, lanes),
        order=np.empty(largest_in_degree + 1 if costs else 0, dtype=np.int64),
    )


def constants_of(layer: Layer, index: int, field: Field, table: Float32Array, *, num_receivers: int) -> tuple[Any, ...]:
    """Return what the kernel of a layer reads and no draw changes, besides the field.

    Args:
        layer: What to run.
        index: 0 for the first layer.
        field: The field, as kernels read it.
        table: First layer: projected rows (n + 1, width), the token's last. Not read of later ones.
        num_receivers: How many nodes the layer computes.

    Raises:
        UnknownModelError: If the kernel would be inexact, or too large, on these rows.
    """
    match layer.aggregation:
        case SoftMedoid() if index == 0:
            return _distances(field, table, num_receivers=num_receivers)
        case Attention(channels=channels) as attention if index == 0:
            values = np.ascontiguousarray(table[:, : attention.heads * channels])
            return (values, *_attention_weights(attention, field, table, num_receivers=num_receivers))
    return ()


def arguments_of(
    layer: Layer,
    index: int,
    field: Field,
    table: Float32Array,
    constants: tuple[Any, ...],
    draw: Draw,
    scratch: Scratch,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return what the kernel of a layer is called with before its `Output`, and after it.

    Args:
        layer: What to run.
        index: 0 for the first layer.
        field: The field, as kernels read it.
        table: First layer: projected rows (n + 1, width), the token's last. Later: what the layer before leaves,
            (num_nodes, width, lanes).
        constants: From `constants_of`.
        draw: The draws of a chunk.
        scratch: From `make_scratch`.
    """
    match layer.aggregation:
        case NormalisedSum():
            return (field, draw, table), ()
        case PlainSum(width=width, mean=mean, own_factor=factor):
            return (field, draw, table, width, mean, np.float32(factor)), ()
        case SoftMedoid(limit=limit, temperature=temperature):
            numbers = (limit, np.float32(temperature))
            return (field, draw, table, *constants, *numbers), (scratch.costs, scratch.order)
        case Attention(mean=mean) as attention if index == 0:
            return (field, draw, *constants, attention.heads, mean), ()
        case Attention(channels=channels, mean=mean, both=both, slope=slope):
            shape = (layer.aggregation.heads, channels) if both is None else (both,)
            return (field, draw, table, *shape, np.float32(slope), mean), ()


def _distances(field: Field, table: Float32Array, *, num_receivers: int) -> tuple[NDArray[np.int64], Float32Array]:
    indptr = field.indptr[: num_receivers + 1]
    sizes = (np.diff(indptr) + 2) ** 2
    if sizes.sum() > _MOST_DISTANCES:
        raise UnknownModelError(f"would need {sizes.sum():,} distances between in-neighbours in memory")
    offsets = np.cumsum(sizes) - sizes
    distances = np.empty(int(sizes.sum()), dtype=np.float32)
    soft_medoid.pair_distances(indptr, field.sources, table, offsets, distances)
    return offsets, distances


def _attention_weights(
    attention: Attention, field: Field, table: Float32Array, *, num_receivers: int
) -> tuple[Float32Array, Float32Array]:
    """Return exp(score - score of the token) of every message that may arrive; see `kernels.gat.first_layer`.

    Attention does not change if all scores of a receiver are shifted. The shift must not come from a message that may
    not arrive, as the largest score would: through rounding, a node that is cut off would change the result.
    """
    indptr = field.indptr[: num_receivers + 1]
    edges = np.empty((int(indptr[-1]), 2, attention.heads), dtype=np.float32)
    nodes = np.empty((num_receivers, 3, attention.heads), dtype=np.float32)
    score, spread, low = _score_function(attention, table), 0.0, 0
    while low < num_receivers:  # some megabytes at a time, or one receiver
        high = max(low + 1, int(np.searchsorted(indptr, indptr[low] + SCORED_AT_ONCE, side="right")) - 1)
        into = slice(int(indptr[low]), int(indptr[high]))
        own = np.arange(low, high)
        receivers = np.repeat(own, np.diff(indptr[low : high + 1]))
        token, ablated = np.full(own.size, field.token), np.full(receivers.size, field.token)
        of_edges = np.stack([score(field.sources[into], seen) for seen in (ablated, receivers)], axis=1)
        of_nodes = np.stack([score(token, token), score(token, own), score(own, own)], axis=1)
        reference = of_nodes[:, :2].copy()
        of_edges -= reference[receivers - low]
        of_nodes -= reference[:, [0, 1, 1]]
        spread = max(spread, *(float(np.abs(each).max(initial=0.0)) for each in (of_edges, of_nodes)))
        if not spread <= _WIDEST_SCORES:
            raise UnknownModelError(f"has attention scores that differ by {spread:.0f}, more than {_WIDEST_SCORES:.0f}")
        edges[into], nodes[low:high] = np.exp(of_edges), np.exp(of_nodes)
        low = high
    return edges, nodes


def _score_function(attention: Attention, table: Float32Array) -> Callable[..., NDArray[np.float64]]:
    heads, channels, slope = attention.heads, attention.channels, attention.slope
    rows = table.astype(np.float64).reshape(table.shape[0], -1, channels)

    def leaky(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(values, slope * values)

    if attention.sender is not None and attention.receiver is not None:
        senders = (rows[:, :heads] * attention.sender).sum(axis=2)
        receivers = (rows[:, :heads] * attention.receiver).sum(axis=2)
        return lambda sources, targets: leaky(senders[sources] + receivers[targets])

    both = np.asarray(attention.both)

    def score(sources: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.float64]:
        found = np.empty((sources.size, heads))
        for low in range(0, sources.size, 2**14):  # a few megabytes at a time
            part = slice(low, low + 2**14)
            pairs = leaky(rows[sources[part], :heads] + rows[targets[part], heads:])
            found[part] = (pairs * both).sum(axis=2)
        return found

    return score
