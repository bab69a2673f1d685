"""The largest total weight that a few nodes can hit: exact by branch and bound, in whole numbers."""

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from graycert._types import IntArray
from graycert._validation import check_integer, check_integer_array
from graycert.errors import InvalidParameterError

_DIGIT_BITS = 31  # sums of fewer than 2^32 digits below 2^31 fit int64


@dataclass(frozen=True)
class CoverageBounds:
    """What is known about the largest weight that can be hit; ``lower`` is attained, and equal to ``upper`` if solved.

    Args:
        lower: Weight that ``nodes`` hit.
        upper: No admissible set of nodes hits more.
        nodes: A set that attains ``lower``.
    """

    lower: int
    upper: int
    nodes: tuple[int, ...]


class WeightedSets:
    """Sets of nodes with whole-number weights of any size; a node hits the sets that contain it.

    Args:
        set_of_member: Set that each entry of ``members`` belongs to, in [0, len(weights)), shape (num_members,).
        members: Nodes, integers >= 0, no repeats within a set, shape (num_members,).
        weights: Weight of each set, integers >= 0.

    Raises:
        InvalidParameterError: If shapes disagree or an entry is out of range.
    """

    def __init__(self, set_of_member: ArrayLike, members: ArrayLike, weights: Sequence[int]) -> None:
        nodes = check_integer_array("members", members, ndim=1, at_least=0)
        sets = check_integer_array("set_of_member", set_of_member, ndim=1, at_least=0, less_than=len(weights))
        if nodes.shape != sets.shape:
            raise InvalidParameterError(f"`members` must have the shape of `set_of_member`, got {nodes.shape}.")
        if min(weights, default=0) < 0:
            raise InvalidParameterError(f"`weights` must be >= 0, got {min(weights)}.")
        self.nodes, rows = np.unique(nodes, return_inverse=True)
        shape = (self.nodes.size, len(weights))
        self._sets_of = sp.csr_array((np.ones(nodes.size, dtype=np.int64), (rows, sets)), shape=shape)
        if self._sets_of.data.max(initial=0) > 1:
            raise InvalidParameterError("`members` must name a node at most once per set, got a repeated pair.")
        self._digits = _digits(weights)
        self.total = sum(weights[index] for index in np.unique(sets).tolist())  # of sets that can be hit

    def gains(self, rows: Sequence[int]) -> list[int]:
        """Return the weight that each of ``nodes`` adds to that of ``rows`` (positions in ``nodes``)."""
        hit = np.zeros(self._sets_of.shape[1], dtype=np.bool_)
        for row in rows:
            hit[self._sets_of.indices[self._sets_of.indptr[row] : self._sets_of.indptr[row + 1]]] = True
        sums = self._sets_of @ np.where(hit[:, None], 0, self._digits)
        return [sum(digit << (_DIGIT_BITS * place) for place, digit in enumerate(row)) for row in sums.tolist()]


def maximum_coverage(
    sets: WeightedSets, *, size: int, max_steps: int = 1_000, enough: int | None = None
) -> CoverageBounds:
    r"""Find the nodes, at most ``size``, that hit most weight.

    $$\max_{|B| \le \rho} c(B), \qquad c(B) = \sum_{S:\ S \cap B \ne \emptyset} \text{weight}_S$$

    c is monotone and submodular: what a node adds never grows as B grows. So c(A) plus the largest gains of single
    further nodes bounds every set that extends A. Best first; a step looks at all extensions of one A.

    Guarantee:
        ``lower <= max c(B) <= upper`` in exact whole numbers, whatever ``max_steps``; equal if the search ends by
        itself. If it is stopped, ``upper`` is the largest bound of what was not looked at; already after one step that
        is at most the sum of the ρ largest weights that single nodes hit.

    Args:
        sets: Sets with weights.
        size: Largest number ρ of nodes, >= 0.
        max_steps: Largest number of steps, >= 1.
        enough: If given, stop as soon as it is known whether the maximum is at least this number.

    Returns:
        Bounds on the maximum and the best set found, as entries of ``sets.nodes``.

    Raises:
        InvalidParameterError: If ``size`` < 0 or ``max_steps`` < 1.

    Example:
        >>> sets = WeightedSets([0, 0, 1, 2], [7, 8, 8, 9], weights=[5, 4, 3])
        >>> maximum_coverage(sets, size=2)
        CoverageBounds(lower=12, upper=12, nodes=(8, 9))
    """
    size = check_integer("size", size, at_least=0)
    max_steps = check_integer("max_steps", max_steps, at_least=1)
    best = _greedy(sets, size)
    everything = _Open(rows=(), weight=0, candidates=tuple(range(sets.nodes.size)))
    number = itertools.count()  # the heap never compares further than this
    waiting = [(-sets.total, next(number), everything)] if size else []
    for _ in range(max_steps):
        upper = -waiting[0][0] if waiting else best.weight
        if upper <= best.weight or (enough is not None and (best.weight >= enough or upper < enough)):
            break
        for bound, extension in _extensions(sets, heapq.heappop(waiting)[2], size):
            best = max(best, extension, key=lambda found: found.weight)
            if bound > best.weight and len(extension.rows) < size:
                heapq.heappush(waiting, (-bound, next(number), extension))
    upper = max(best.weight, -waiting[0][0] if waiting else 0)
    return CoverageBounds(best.weight, upper, tuple(sets.nodes[list(best.rows)].tolist()))


@dataclass(frozen=True)
class _Open:
    """All sets that contain ``rows``, which hit ``weight``, and otherwise only ``candidates``."""

    rows: tuple[int, ...]
    weight: int
    candidates: tuple[int, ...]


def _extensions(sets: WeightedSets, node: _Open, size: int) -> Iterator[tuple[int, _Open]]:
    """Split ``node`` by the first candidate that is taken, with a bound for each part."""
    gains = sets.gains(node.rows)
    useful = sorted((row for row in node.candidates if gains[row]), key=lambda row: -gains[row])
    further = size - len(node.rows) - 1
    before = list(itertools.accumulate((gains[row] for row in useful), initial=0))
    for place, row in enumerate(useful):
        extension = _Open((*node.rows, row), node.weight + gains[row], tuple(useful[place + 1 :]))
        last = min(place + 1 + further, len(useful))
        yield min(extension.weight + before[last] - before[place + 1], sets.total), extension


def _greedy(sets: WeightedSets, size: int) -> _Open:
    """Take the node that adds most, ``size`` times."""
    found = _Open((), 0, ())
    for _ in range(min(size, sets.nodes.size)):
        gains = sets.gains(found.rows)
        row = max(range(len(gains)), key=gains.__getitem__)
        found = _Open((*found.rows, row), found.weight + gains[row], ())
    return found


def _digits(weights: Sequence[int]) -> IntArray:
    """Return the digits of the weights to the base 2^31, lowest first, shape (num_weights, num_digits)."""
    places = max(1, -(-max(weights, default=0).bit_length() // _DIGIT_BITS))
    mask = (1 << _DIGIT_BITS) - 1
    digits = [[(weight >> (_DIGIT_BITS * place)) & mask for place in range(places)] for weight in weights]
    return np.array(digits, dtype=np.int64).reshape(len(weights), places)
