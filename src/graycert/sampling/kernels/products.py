"""Sums of products over lanes that stay in registers from the first term to the last.

Numba's own loop over terms reads and writes a sum in memory at each of them, and asks whether its operands overlap: it
takes four times as long. Here LLVM is told the loops, for a few sums at a time; where there are few lanes, several sums
share a vector. A sum takes its terms in their order, one fused product each, so it rounds alike in any number of lanes,
and as BLAS rounds.
"""

from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic

from graycert._compilation import bare
from graycert._types import Float32Array
from graycert.sampling.kernels.draws import LANES, Int32Array

_FEATURES = get_host_cpu_features()
_WIDE = bool(_FEATURES.get("avx512f"))
_FUSES = bool(_FEATURES.get("fma", True))  # only processors of the x86 family name it
_VECTOR = 16 if _WIDE else 8  # numbers; a vector of narrow tiles holds all lanes of several sums
_TOGETHER = 256 if _WIDE else 128  # numbers that stay in registers
_LINE = 16  # numbers in a line of the cache
_INTEGER = ir.IntType(64)

AHEAD = 8
"""How many terms before it is added a row is fetched into the second cache: rows of a large graph lie anywhere."""


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _write_sums(
    _typing: Any,
    sums: Any,
    weights: Any,
    factors: Any,
    offset: Any,
    per_term: Any,
    places: Any,
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
        offset: Factors of the first sum lie at offset + p * per_term, those of the next sums after it.
        per_term: See ``offset``.
        places: Place p of each term in ``factors``, int32 (at least ``num_terms``,), those that are wanted next after
            them; or None for p = 0, 1, ...
        num_terms: Number of terms.
        scale: What the sums are multiplied by in the end, a row of lanes, or None.
        shift: What is added to each sum in the end, float32 (at least num_sums,), or None.
        lanes: A constant.
    """
    for array in (sums, weights, factors, scale, shift):
        if array != types.none and (array.layout != "C" or array.dtype != types.float32):
            raise TypeError(f"sums of products need contiguous arrays of float32, got {array}")
    signature = types.void(sums, weights, factors, offset, per_term, places, num_terms, scale, shift, lanes)
    return signature, _write_loops


def _write_loops(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write what `_write_sums` does in LLVM's language: groups of sums, each as large as still fits."""
    kinds = signature.args
    lanes = kinds[9].literal_value

    def array_of(place: int) -> Any:
        return context.make_array(kinds[place])(context, builder, arguments[place])

    def data(place: int) -> Any:
        return None if kinds[place] == types.none else array_of(place).data

    def row(start: Any, index: Any, size: int) -> Any:
        return builder.bitcast(builder.gep(start, [index]), ir.VectorType(ir.FloatType(), size).as_pointer())

    def load(start: Any, index: Any, size: int) -> Any:
        return builder.load(row(start, index, size), align=4)

    def pick(vector: Any, places: list[int]) -> Any:
        if places == list(range(vector.type.count)):
            return vector
        chosen = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
        return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), chosen)

    def of_lanes(start: Any, index: Any, size: int) -> Any:
        """Return a row of lanes, as often as ``size`` sums need it."""
        return pick(load(start, index, lanes), list(range(lanes)) * size)

    def of_sums(start: Any, index: Any, size: int) -> Any:
        """Return a number for each of ``size`` sums, in all of its lanes."""
        return pick(load(start, index, size), [each for each in range(size) for _ in range(lanes)])

    def add_product(factor: Any, weight: Any, value: Any) -> Any:
        """Add in one rounding, said so: what may be fused is fused in one loop and not in the next."""
        if not _FUSES:
            return builder.fadd(value, builder.fmul(factor, weight))
        kind, name = ir.FunctionType(value.type, [value.type] * 3), f"llvm.fma.v{value.type.count}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [factor, weight, value])

    def fetch(start: Any, size: int) -> None:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, *[ir.IntType(32)] * 3])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        within = [] if per_sum % _LINE == 0 else [size - 1]  # a row that begins within a line ends in one more
        for number in [*range(0, size, _LINE), *within]:
            at = builder.bitcast(builder.gep(factors, [builder.add(start, _INTEGER(number))]), pointer)
            builder.call(prefetch, [at, *(ir.Constant(ir.IntType(32), each) for each in (0, 2, 1))])

    def write_group(first: Any, vectors: int, size: int) -> None:
        """Write ``vectors * size`` sums, a vector for ``size`` of them."""
        kind = ir.VectorType(ir.FloatType(), size * lanes)
        found = [cgutils.alloca_once(builder, kind) for _ in range(vectors)]
        for each in found:
            builder.store(ir.Constant(kind, [0.0] * kind.count), each)
        offset_here = builder.add(offset, builder.mul(first, _INTEGER(per_sum)))
        with cgutils.for_range(builder, num_terms) as loop:
            weight, place = of_lanes(weights, builder.mul(loop.index, _INTEGER(lanes)), size), loop.index
            if places is not None:
                place = place_of(loop.index)
                later = builder.add(loop.index, _INTEGER(AHEAD))
                later = builder.select(builder.icmp_signed("<", later, last), later, last)
                start = builder.add(offset_here, builder.mul(place_of(later), per_term))
                fetch(start, vectors * size * per_sum)
            start = builder.add(offset_here, builder.mul(place, per_term))
            for index, each in enumerate(found):
                at = builder.add(start, _INTEGER(index * size * per_sum))
                factor = load(factors, at, size * lanes) if per_sum > 1 else of_sums(factors, at, size)
                builder.store(add_product(factor, weight, builder.load(each)), each)
        for index, each in enumerate(found):
            value, place = builder.load(each), builder.add(first, _INTEGER(index * size))
            if scale is not None:
                value = builder.fmul(value, of_lanes(scale, _INTEGER(0), size))
            if shift is not None:
                value = builder.fadd(value, of_sums(shift, place, size))
            builder.store(value, row(sums, builder.mul(place, _INTEGER(lanes)), kind.count), align=4)

    def place_of(index: Any) -> Any:
        return builder.sext(builder.load(builder.gep(places, [index])), _INTEGER)

    sums, weights, factors, places, scale, shift = (data(place) for place in (0, 1, 2, 5, 7, 8))
    offset, per_term, num_terms = arguments[3], arguments[4], arguments[6]
    per_sum = lanes if kinds[2].ndim == 3 else 1
    last = None if places is None else builder.sub(builder.extract_value(array_of(5).shape, 0), _INTEGER(1))
    num_sums = builder.extract_value(array_of(0).shape, 0)
    widest = max(1, _VECTOR // lanes)  # sums in a vector
    done, together = _INTEGER(0), _TOGETHER // lanes
    while together:
        whole, size = builder.and_(num_sums, _INTEGER(-together)), min(together, widest)
        with cgutils.for_range_slice(builder, done, whole, _INTEGER(together), _INTEGER) as (first, _):
            write_group(first, together // size, size)
        done, together = whole, together // 2
    return context.get_dummy_value()


@bare
def foresee(sources: Int32Array, first: int, own: int, rows: Int32Array) -> None:
    """Write the rows that are likely to be next: the sources of the next in-edges from ``first`` on, or ``own``."""
    for ahead in range(AHEAD):
        rows[ahead] = sources[first + ahead] if first + ahead < sources.size else own


@bare
def sum_static(
    out: Float32Array,
    low: int,
    weights: Float32Array,
    table: Float32Array,
    rows: Int32Array,
    num_rows: int,
    scale: Float32Array | None,
) -> None:
    """Write sums of weighted rows that are the same in every lane.

    Args:
        out: One per column from ``low``, float32 (num_columns, LANES).
        low: First column of ``table``.
        weights: Weight of each row, (at least num_rows, LANES).
        table: Finite, (num_nodes, at least ``low + num_columns``).
        rows: Which rows of ``table``, in the order in which they are added; then those that are likely to be next.
        num_rows: How many rows are added.
        scale: What the sums are multiplied by, (LANES,), or None.
    """
    _write_sums(out, weights, table, low, table.shape[1], rows, num_rows, scale, None, LANES)


@bare
def sum_rows(
    out: Float32Array,
    low: int,
    weights: Float32Array,
    table: Float32Array,
    rows: Int32Array,
    num_rows: int,
    scale: Float32Array | None,
) -> None:
    """Write sums of weighted rows that have lanes, of ``table`` (num_nodes, columns, LANES); else as `sum_static`."""
    _write_sums(out, weights, table, low * LANES, table.shape[1] * LANES, rows, num_rows, scale, None, LANES)


@bare
def apply_linear(weight: Float32Array, bias: Float32Array, rows: Float32Array, out: Float32Array) -> None:
    """Write ``rows`` (at least width, LANES), times ``weight`` (width, width_out), plus ``bias``, to ``out``."""
    width, width_out = weight.shape
    _write_sums(out[:width_out], rows, weight, 0, width_out, None, width, None, bias, LANES)
