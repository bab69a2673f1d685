"""Sums of products over lanes that stay in registers from the first term to the last.

Numba's own loop over terms reads and writes a sum in memory at each of them, and asks whether its operands overlap: it
takes four times as long. Here LLVM is told the loop, for a few sums at a time. A sum takes its terms in their order,
one fused product each, so it rounds alike in any number of lanes, and as BLAS rounds.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from graycert._compilation import kernel
from graycert._types import Float32Array
from graycert.sampling.kernels.draws import LANES, Int32Array

_TOGETHER = 4  # sums, which are as many registers as a processor has room for, of 32 lanes
_FUSED = ("contract", "nsz")
_INTEGER = ir.IntType(64)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _write_sums(
    _typing: Any,
    sums: Any,
    weights: Any,
    factors: Any,
    places: Any,
    strides: Any,
    num_terms: Any,
    scale: Any,
    shift: Any,
    together: Any,
    lanes: Any,
) -> Any:
    """Write ``together`` sums of ``num_terms`` products each.

    Args:
        sums: Rows of lanes, float32 (at least ``together``, lanes); overwritten.
        weights: A row of lanes for each term, float32 (at least ``num_terms``, lanes).
        factors: A number, or a row of lanes if they have three axes, for each term and sum; float32.
        places: Place p of each term in ``factors``, int32, or None for p = 0, 1, ...
        strides: Factors of sum s lie at offset + p * per_term + s * per_sum; a tuple of the three.
        num_terms: Number of terms.
        scale: What the sums are multiplied by in the end, a row of lanes, or None.
        shift: What is added to each sum in the end, float32 (at least ``together``,), or None.
        together: Number of sums, a constant.
        lanes: A constant.
    """
    for array in (sums, weights, factors, scale, shift):
        if array != types.none and (array.layout != "C" or array.dtype != types.float32):
            raise TypeError(f"sums of products need contiguous arrays of float32, got {array}")
    signature = types.void(sums, weights, factors, places, strides, num_terms, scale, shift, together, lanes)
    return signature, _write_loop


def _write_loop(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write what `_write_sums` does in LLVM's language."""
    kinds = signature.args
    together, lanes = (kind.literal_value for kind in kinds[8:])
    vector = ir.VectorType(ir.FloatType(), lanes)

    def data(place: int) -> Any:
        if kinds[place] == types.none:
            return None
        return context.make_array(kinds[place])(context, builder, arguments[place]).data

    def row(start: Any, index: Any) -> Any:
        return builder.bitcast(builder.gep(start, [index]), vector.as_pointer())

    def load(start: Any, index: Any) -> Any:
        return builder.load(row(start, index), align=4)

    sums, weights, factors, places, scale, shift = (data(place) for place in (0, 1, 2, 3, 6, 7))
    offset, per_term, per_sum = (builder.extract_value(arguments[4], index) for index in range(3))
    found = [cgutils.alloca_once(builder, vector) for _ in range(together)]
    for each in found:
        builder.store(ir.Constant(vector, [0.0] * lanes), each)
    with cgutils.for_range(builder, arguments[5]) as loop:
        weight, place = load(weights, builder.mul(loop.index, _INTEGER(lanes))), loop.index
        if places is not None:
            place = builder.sext(builder.load(builder.gep(places, [loop.index])), _INTEGER)
        start = builder.add(offset, builder.mul(place, per_term))
        for index, each in enumerate(found):
            at = builder.add(start, builder.mul(per_sum, _INTEGER(index)))
            factor = load(factors, at) if kinds[2].ndim == 3 else _spread(builder, factors, at, vector)
            product = builder.fmul(factor, weight, flags=_FUSED)
            builder.store(builder.fadd(builder.load(each), product, flags=_FUSED), each)
    for index, each in enumerate(found):
        value = builder.load(each)
        if scale is not None:
            value = builder.fmul(value, load(scale, _INTEGER(0)))
        if shift is not None:
            value = builder.fadd(value, _spread(builder, shift, _INTEGER(index), vector))
        builder.store(value, row(sums, _INTEGER(index * lanes)), align=4)
    return context.get_dummy_value()


def _spread(builder: Any, factors: Any, at: Any, vector: ir.VectorType) -> Any:
    """Return a number as a vector."""
    anything, first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    number = builder.insert_element(anything, builder.load(builder.gep(factors, [at])), first)
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(number, anything, everywhere)


@kernel
def sum_static(
    out: Float32Array,
    low: int,
    weights: Float32Array,
    table: Float32Array,
    rows: Int32Array,
    scale: Float32Array | None,
) -> None:
    """Write sums of weighted rows that are the same in every lane.

    Args:
        out: One per column from ``low``, float32 (num_columns, LANES).
        low: First column of ``table``.
        weights: Weight of each row, (at least rows.size, LANES).
        table: Finite, (num_nodes, at least ``low + num_columns``).
        rows: Which rows of ``table``, in the order in which they are added.
        scale: What the sums are multiplied by, (LANES,), or None.
    """
    whole = out.shape[0] - out.shape[0] % _TOGETHER
    for c in range(0, whole, _TOGETHER):
        strides = (low + c, table.shape[1], 1)
        _write_sums(out[c:], weights, table, rows, strides, rows.size, scale, None, _TOGETHER, LANES)
    for c in range(whole, out.shape[0]):
        strides = (low + c, table.shape[1], 1)
        _write_sums(out[c:], weights, table, rows, strides, rows.size, scale, None, 1, LANES)


@kernel
def sum_rows(
    out: Float32Array,
    low: int,
    weights: Float32Array,
    table: Float32Array,
    rows: Int32Array,
    scale: Float32Array | None,
) -> None:
    """Write sums of weighted rows that have lanes, of ``table`` (num_nodes, columns, LANES); else as `sum_static`."""
    width = table.shape[1] * LANES
    whole = out.shape[0] - out.shape[0] % _TOGETHER
    for c in range(0, whole, _TOGETHER):
        strides = ((low + c) * LANES, width, LANES)
        _write_sums(out[c:], weights, table, rows, strides, rows.size, scale, None, _TOGETHER, LANES)
    for c in range(whole, out.shape[0]):
        strides = ((low + c) * LANES, width, LANES)
        _write_sums(out[c:], weights, table, rows, strides, rows.size, scale, None, 1, LANES)


@kernel
def apply_linear(weight: Float32Array, bias: Float32Array, rows: Float32Array, out: Float32Array) -> None:
    """Write ``weight`` (width_out, width) times ``rows`` (at least width, LANES), plus ``bias``, to ``out``."""
    width_out, width = weight.shape
    whole = width_out - width_out % _TOGETHER
    for c in range(0, whole, _TOGETHER):
        _write_sums(out[c:], rows, weight, None, (c * width, 1, width), width, None, bias[c:], _TOGETHER, LANES)
    for c in range(whole, width_out):
        _write_sums(out[c:], rows, weight, None, (c * width, 1, width), width, None, bias[c:], 1, LANES)
