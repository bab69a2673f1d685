"""Counting votes, and the votes that rounding may have decided."""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from graycert._compilation import bare, kernel
from graycert._types import Float32Array
from graycert.sampling.kernels.draws import LANES, Int32Array
from graycert.sampling.kernels.tiles import Output

NEAR_TIE = np.float32(2.0**-16)
"""Two engines round differently, by up to about 1e-6 of the scores. A lead smaller than this share of the largest
absolute score of the target may fall either way, and is counted as a near-tie."""

LAYER: Any = None
"""The kernel of the last layer, `graycert._compilation.with_constants` says which."""


class Ballot(NamedTuple):
    """Where the votes of some targets are counted, of one chunk.

    Args:
        skip: Added to the scores, float32 (num_targets, num_classes).
        low: First lane that counts.
        high: Last lane that counts, plus one.
        votes: Result, int64 (num_targets, num_classes).
        near_ties: Result, int64 (num_targets,): votes whose lead is below `NEAR_TIE`.
        predictions: Result, the class of each vote, -1 for none, integers that hold all classes, (num_targets,
            high - low); not filled if it has no column.
    """

    skip: Float32Array
    low: int
    high: int
    votes: NDArray[np.int64]
    near_ties: NDArray[np.int64]
    predictions: NDArray[np.signedinteger]

    def of(self, rows: slice) -> "Ballot":
        """Return that of some of the targets."""
        return Ballot(
            self.skip[rows], self.low, self.high, self.votes[rows], self.near_ties[rows], self.predictions[rows]
        )


@kernel
def layer_then_votes(
    before: tuple[Any, ...], output: Output, after: tuple[Any, ...], at_once: int, ballot: Ballot
) -> None:
    """Run the last layer for a few targets at a time, and count their votes before their scores leave the cache.

    Args:
        before: What the kernel of the layer is given before ``output``.
        output: Where it works, with room for the rows of ``at_once`` targets; they are overwritten.
        after: What it is given after that.
        at_once: Targets at a time.
        ballot: Where votes of all targets from ``output.first`` on are counted.
    """
    numbers, winner = np.empty((4, LANES), dtype=np.float32), np.empty(LANES, dtype=np.int32)
    size = ballot.votes.shape[0]
    for first in range(0, size, at_once):
        last = min(first + at_once, size)
        some = Output(
            output.steps,
            output.tile,
            output.spare,
            output.weights,
            output.senders,
            output.lanes,
            output.rows[: last - first],
            output.first + first,
        )
        LAYER(*before, some, *after)
        _count(
            some.rows,
            Ballot(
                ballot.skip[first:last],
                ballot.low,
                ballot.high,
                ballot.votes[first:last],
                ballot.near_ties[first:last],
                ballot.predictions[first:last],
            ),
            numbers,
            winner,
        )


@kernel
def count_votes(scores: Float32Array, ballot: Ballot) -> None:
    """Add the votes of some lanes; scores that single out no class are a vote for none.

    That is so where the largest score is attained twice exactly, or one is NaN: see `graycert.sampling.scores`.

    Args:
        scores: float32 (num_targets, num_classes, LANES).
        ballot: Where to.
    """
    _count(scores, ballot, np.empty((4, LANES), dtype=np.float32), np.empty(LANES, dtype=np.int32))


@bare
def _count(scores: Float32Array, ballot: Ballot, numbers: Float32Array, winner: Int32Array) -> None:
    best, second, largest, total = numbers[0], numbers[1], numbers[2], numbers[3]
    votes, near_ties, predictions = ballot.votes, ballot.near_ties, ballot.predictions
    for target in range(scores.shape[0]):
        _leaders(scores[target], ballot.skip[target], numbers, winner, LANES)
        for i in range(ballot.low, ballot.high):
            alone = best[i] > second[i] and not np.isnan(total[i])
            if alone:
                votes[target, winner[i]] += 1
            near_ties[target] += not alone or best[i] - second[i] <= NEAR_TIE * largest[i]
            if predictions.shape[1] > 0:
                predictions[target, i - ballot.low] = winner[i] if alone else -1


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _leaders(_typing: Any, scores: Any, added: Any, numbers: Any, winner: Any, lanes: Any) -> Any:
    """Find the largest scores of each lane, which stay in registers from the first class to the last.

    Args:
        scores: float32 (num_classes, lanes).
        added: Added to the scores of each class, float32 (num_classes,).
        numbers: Result, float32 (4, lanes): the largest score, the second largest, the largest absolute score, and
            the sum of absolute scores, which is NaN if and only if one of them is.
        winner: Result, int32 (lanes,): the first class with the largest score.
        lanes: A constant.
    """
    for array in (scores, added, numbers, winner):
        if array.layout != "C":
            raise TypeError(f"leaders are looked for in contiguous arrays, got {array}")
    return types.void(scores, added, numbers, winner, lanes), _find_leaders


def _find_leaders(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write what `_leaders` does in LLVM's language."""
    lanes, word = signature.args[4].literal_value, ir.IntType(64)
    vector, integers = ir.VectorType(ir.FloatType(), lanes), ir.VectorType(ir.IntType(32), lanes)
    arrays = [context.make_array(signature.args[place])(context, builder, arguments[place]) for place in range(4)]
    scores, added, numbers, winners = (array.data for array in arrays)
    num_classes = builder.extract_value(arrays[0].shape, 0)

    def spread(value: Any, kind: Any) -> Any:
        anything, first = ir.Constant(kind, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        return builder.shuffle_vector(builder.insert_element(anything, value, first), anything, zeros)

    def row(start: Any, index: Any, kind: Any) -> Any:
        return builder.bitcast(builder.gep(start, [builder.mul(index, word(lanes))]), kind.as_pointer())

    def constant(value: float) -> Any:
        return ir.Constant(vector, [value] * lanes)

    found = [cgutils.alloca_once(builder, kind) for kind in (vector, vector, vector, vector, integers)]
    starts = (constant(-np.inf), constant(-np.inf), constant(0.0), constant(0.0), ir.Constant(integers, [0] * lanes))
    for each, start in zip(found, starts, strict=True):
        builder.store(start, each)
    kind = ir.FunctionType(vector, [vector])
    absolute = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fabs.v{lanes}f32")
    with cgutils.for_range(builder, num_classes) as loop:
        value = builder.load(row(scores, loop.index, vector), align=4)
        value = builder.fadd(value, spread(builder.load(builder.gep(added, [loop.index])), vector))
        best, second, largest, total, winner = (builder.load(each) for each in found)
        size = builder.call(absolute, [value])
        leads = builder.fcmp_ordered(">", value, best)
        follows = builder.select(builder.fcmp_ordered(">", value, second), value, second)
        number = spread(builder.trunc(loop.index, ir.IntType(32)), integers)
        changed = (
            builder.select(leads, value, best),
            builder.select(leads, best, follows),
            builder.select(builder.fcmp_ordered(">", size, largest), size, largest),
            builder.fadd(total, size),
            builder.select(leads, number, winner),
        )
        for each, new in zip(found, changed, strict=True):
            builder.store(new, each)
    for index, each in enumerate(found[:4]):
        builder.store(builder.load(each), row(numbers, word(index), vector), align=4)
    builder.store(builder.load(found[4]), row(winners, word(0), integers), align=4)
    return context.get_dummy_value()
