"""What happens to one node's row between two aggregations, for all lanes: affine map, activation, linear map.

A tile is a row with lanes, float32 (width, LANES). A chain of steps is packed into flat arrays, so that one compiled
function serves every model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from graycert._compilation import bare, inlined
from graycert._types import Float32Array, IntArray
from graycert.sampling.kernels.draws import LANES, ONE, ZERO, Int32Array, lanes_of
from graycert.sampling.kernels.products import apply_linear

IDENTITY, RELU, ELU, LEAKY_RELU = 0, 1, 2, 3

_LOG2_E = np.float32(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LARGEST, _SMALLEST, _HALF = np.float32(88.0), np.float32(-87.0), np.float32(0.5)
_C0, _C1, _C2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_C3, _C4, _C5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_BIAS, _MANTISSA_BITS = np.int32(127), np.int32(23)


@dataclass(frozen=True, eq=False)
class RowwiseStep:
    """x -> W · activation(scale ∘ x + shift) + bias.

    Args:
        scale: Shape (width,).
        shift: Shape (width,).
        activation: IDENTITY, RELU, ELU or LEAKY_RELU.
        slope: Of the negative side: alpha of ELU, or the slope of LEAKY_RELU.
        weight: Shape (width_out, width), or None for no linear map.
        bias: Shape (width_out,), or None without ``weight``.
    """

    scale: Float32Array
    shift: Float32Array
    activation: int = IDENTITY
    slope: float = 1.0
    weight: Float32Array | None = None
    bias: Float32Array | None = None

    @property
    def width_out(self) -> int:
        """Width of the result."""
        return int(self.scale.size if self.weight is None else self.weight.shape[0])


class Steps(NamedTuple):
    """A chain of steps in flat arrays.

    Args:
        shapes: Per step activation, width, width after the linear map (0 without one) and offset in ``values``,
            int64 (num_steps, 4).
        slopes: float32 (num_steps,).
        values: scale, shift, weight column by column and bias, step after step; float32.
    """

    shapes: IntArray
    slopes: Float32Array
    values: Float32Array


class Output(NamedTuple):
    """Where a kernel works and where its result goes.

    Args:
        steps: What follows the aggregation.
        tile: Scratch for the row of one receiver, float32 (widest row, LANES).
        spare: Scratch, same shape.
        weights: Scratch for a weight or score per in-edge, with room to spare, float32
            (heads in hand * (largest in-degree + 4), LANES).
        senders: Scratch for a node per in-edge, with room for `AHEAD` more, int32 (largest in-degree + 2 + AHEAD,).
        lanes: Scratch for sums over in-edges, float32 (heads in hand + 4, LANES).
        rows: Result, float32 (num_receivers, width, LANES).
        first: Receivers are nodes ``first ... first + num_receivers - 1``.
    """

    steps: Steps
    tile: Float32Array
    spare: Float32Array
    weights: Float32Array
    senders: Int32Array
    lanes: Float32Array
    rows: Float32Array
    first: int = 0


def pack_steps(steps: Sequence[RowwiseStep]) -> Steps:
    """Pack at least one step."""
    shapes: list[tuple[int, int, int, int]] = []
    values: list[Float32Array] = []
    offset = 0
    for step in steps:
        maps = () if step.weight is None or step.bias is None else (step.weight.T.ravel(), step.bias)
        parts = (step.scale, step.shift, *maps)
        shapes.append((step.activation, step.scale.size, step.width_out if maps else 0, offset))
        values.extend(parts)
        offset += sum(part.size for part in parts)
    return Steps(
        shapes=np.array(shapes, dtype=np.int64),
        slopes=np.array([step.slope for step in steps], dtype=np.float32),
        values=np.concatenate(values).astype(np.float32),
    )


@inlined
def exp(x: Any) -> Any:
    """Return e^x in float32, to two units in the last place, for x between -87 and 88; beyond, the ends.

    Powers of two times a polynomial of degree 7 on [-ln 2 / 2, ln 2 / 2] (Moshier's Cephes, expf), without a branch.
    """
    x = min(max(x, _SMALLEST), _LARGEST)
    n = np.floor(x * _LOG2_E + _HALF)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = ((((_C0 * r + _C1) * r + _C2) * r + _C3) * r + _C4) * r + _C5
    power = np.int32((np.int32(n) + _BIAS) << _MANTISSA_BITS).view(np.float32)
    return (p * r * r + r + ONE) * power


@bare
def _activate(
    tile: Float32Array, scale: Float32Array, shift: Float32Array, activation: int, slope: np.float32, out: Float32Array
) -> None:
    for c in range(scale.size):  # results lie elsewhere, or LLVM thinks of no vectors
        row, result, factor, offset = tile[c], out[c], scale[c], shift[c]
        if activation == RELU:
            for i in range(lanes_of(row)):
                result[i] = max(row[i] * factor + offset, ZERO)
        elif activation == ELU:
            for i in range(LANES):  # so long that LLVM does not unroll it
                value = row[i] * factor + offset
                result[i] = value if value > ZERO else slope * (exp(value) - ONE)
        elif activation == LEAKY_RELU:
            for i in range(lanes_of(row)):
                value = row[i] * factor + offset
                result[i] = value if value > ZERO else slope * value
        else:
            for i in range(lanes_of(row)):
                result[i] = row[i] * factor + offset


@bare
def finish(output: Output, u: int) -> None:
    """Send the aggregated row of receiver ``u``, in ``output.tile``, through the chain to its row of the result."""
    steps, tile, spare, out = output.steps, output.tile, output.spare, output.rows[u - output.first]
    last = steps.shapes.shape[0] - 1
    for step in range(last + 1):
        activation, width, width_out, start = steps.shapes[step]
        scale = steps.values[start : start + width]
        shift = steps.values[start + width : start + 2 * width]
        activated = out if step == last and width_out == 0 else spare
        _activate(tile, scale, shift, activation, steps.slopes[step], activated)
        tile, spare = spare, tile
        if width_out > 0:
            start += 2 * width
            weight = steps.values[start : start + width * width_out].reshape(width, width_out)
            bias = steps.values[start + width * width_out : start + width * width_out + width_out]
            apply_linear(weight, bias, tile, out if step == last else spare)
            tile, spare = spare, tile
