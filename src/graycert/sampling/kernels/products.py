"""Sums of products over lanes that stay in registers from the first term to the last.

Numba's own loop over terms reads and writes a sum in memory at each of them, and asks whether its operands overlap: it
takes four times as long. Here LLVM is told the loops, for a few sums at a time. A sum takes its terms in their order,
one fused product each, so it rounds alike in any number of lanes, and as BLAS rounds.
"""

from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic

from graycert._compilation import bare
from graycert._types import Float32Array
from graycert.sampling.kernels.draws import LANES, Int32Array

_TOGETHER = 8 if get_host_cpu_features().get("avx512f") else 4  # sums of 32 lanes, which stay in registers
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
    lanes: Any,
) -> Any:
    """Write as many sums as ``sums`` has rows, of ``num_terms`` products each.

    Args:
        sums: Rows of lanes, float32 (num_sums, lanes); overwritten.
        weights: A row of lanes for each term, float32 (at least ``num_terms``, lanes).
        factors: A number, or a row of lanes if they have three axes, for each term and sum; float32.
        places: Place p of each term in ``factors``, int32, or None for p = 0, 1, ...
        strides: Factors of sum s lie at offset + p * per_term + s * per_sum; a tuple of the three.
        num_terms: Number of terms.
        scale: What the sums are multiplied by in the end, a row of lanes, or None.
        shift: What is added to each sum in the end, float32 (at least num_sums,), or None.
        lanes: A constant.
    """
    for array in (sums, weights, factors, scale, shift):
        if array != types.none and (array.layout != "C" or array.dtype != types.float32):
            raise TypeError(f"sums of products need contiguous arrays of float32, got {array}")
    signature = types.void(sums, weights, factors, places, strides, num_terms, scale, shift, lanes)
    return signature, _write_loops


def _write_loops(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write what `_write_sums` does in LLVM's language: groups of sums, each as large as still fits."""
    kinds = signature.args
    lanes = kinds[8].literal_value
    vector = ir.VectorType(ir.FloatType(), lanes)

    def data(place: int) -> Any:
        if kinds[place] == types.none:
            return None
        return context.make_array(kinds[place])(context, builder, arguments[place]).data

    def row(start: Any, index: Any) -> Any:
        return builder.bitcast(builder.gep(start, [index]), vector.as_pointer())

    def load(start: Any, index: Any) -> Any:
        return builder.load(row(start, index), align=4)

    def write_group(first: Any, together: int) -> None:
        for each in found[:together]:
            builder.store(ir.Constant(vector, [0.0] * lanes), each)
        with cgutils.for_range(builder, arguments[5]) as loop:
            weight, place = load(weights, builder.mul(loop.index, _INTEGER(lanes))), loop.index
            if places is not None:
                place = builder.sext(builder.load(builder.gep(places, [loop.index])), _INTEGER)
            start = builder.add(builder.add(offset, builder.mul(first, per_sum)), builder.mul(place, per_term))
            for index, each in enumerate(found[:together]):
                at = builder.add(start, builder.mul(per_sum, _INTEGER(index)))
                factor = load(factors, at) if kinds[2].ndim == 3 else _spread(builder, factors, at, vector)
                product = builder.fmul(factor, weight, flags=_FUSED)
                builder.store(builder.fadd(builder.load(each), product, flags=_FUSED), each)
        for index, each in enumerate(found[:together]):
            value, place = builder.load(each), builder.add(first, _INTEGER(index))
            if scale is not None:
                value = builder.fmul(value, load(scale, _INTEGER(0)))
            if shift is not None:
                value = builder.fadd(value, _spread(builder, shift, place, vector))
            builder.store(value, row(sums, builder.mul(place, _INTEGER(lanes))), align=4)

    sums, weights, factors, places, scale, shift = (data(place) for place in (0, 1, 2, 3, 6, 7))
    offset, per_term, per_sum = (builder.extract_value(arguments[4], index) for index in range(3))
    num_sums = builder.extract_value(context.make_array(kinds[0])(context, builder, arguments[0]).shape, 0)
    found = [cgutils.alloca_once(builder, vector) for _ in range(_TOGETHER)]
    done, together = _INTEGER(0), _TOGETHER
    while together:
        whole = builder.and_(num_sums, _INTEGER(-together))
        with cgutils.for_range_slice(builder, done, whole, _INTEGER(together), _INTEGER) as (first, _):
            write_group(first, together)
        done, together = whole, together // 2
    return context.get_dummy_value()


def _spread(builder: Any, factors: Any, at: Any, vector: ir.VectorType) -> Any:
    """Return a number as a vector."""
    anything, first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    number = builder.insert_element(anything, builder.load(builder.gep(factors, [at])), first)
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(number, anything, everywhere)


@bare
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
    _write_sums(out, weights, table, rows, (low, table.shape[1], 1), rows.size, scale, None, LANES)


@bare
def sum_rows(
    out: Float32Array,
    low: int,
    weights: Float32Array,
    table: Float32Array,
    rows: Int32Array,
    scale: Float32Array | None,
) -> None:
    """Write sums of weighted rows that have lanes, of ``table`` (num_nodes, columns, LANES); else as `sum_static`."""
    strides = (low * LANES, table.shape[1] * LANES, LANES)
    _write_sums(out, weights, table, rows, strides, rows.size, scale, None, LANES)


@bare
def apply_linear(weight: Float32Array, bias: Float32Array, rows: Float32Array, out: Float32Array) -> None:
    """Write ``weight`` (width_out, width) times ``rows`` (at least width, LANES), plus ``bias``, to ``out``."""
    width_out, width = weight.shape
    _write_sums(out[:width_out], rows, weight, None, (0, 1, width), width, None, bias, LANES)
