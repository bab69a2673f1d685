"""The largest of many values, without sorting all of them: kernels that are compiled in a moment."""

from typing import Any

from graycert._compilation import inlined, kernel
from graycert._types import IntArray


@kernel
def largest_first(places: IntArray, values: Any, kept: IntArray) -> int:
    """Write the places with the largest values into ``kept``, the largest first, the lower one first at a tie.

    Args:
        places: Distinct places.
        values: By place, int64 or float64.
        kept: As many as are wanted, or fewer where there are fewer places; meanwhile a heap, the smallest value first.

    Returns:
        How many there are: the smaller one of both sizes.
    """
    number = min(kept.size, places.size)
    for index in range(places.size if number else 0):
        place = places[index]
        if index >= number:
            if _is_smaller(kept[0], place, values):
                _sink(kept, number, place, values)
            continue
        at = index
        while at > 0 and _is_smaller(place, kept[(at - 1) // 2], values):
            kept[at] = kept[(at - 1) // 2]
            at = (at - 1) // 2
        kept[at] = place
    for last in range(number - 1, 0, -1):
        place = kept[last]
        kept[last] = kept[0]
        _sink(kept, last, place, values)
    return number


@kernel
def _sink(kept: IntArray, number: int, place: int, values: Any) -> None:
    """Replace the first place of a heap."""
    at = 0
    while 2 * at + 1 < number:
        child = 2 * at + 1
        if child + 1 < number and _is_smaller(kept[child + 1], kept[child], values):
            child += 1
        if not _is_smaller(kept[child], place, values):
            break
        kept[at] = kept[child]
        at = child
    kept[at] = place


@inlined
def _is_smaller(one: int, other: int, values: Any) -> bool:
    return values[one] < values[other] or (values[one] == values[other] and one > other)


@kernel
def fewest(hits: IntArray, left: int) -> int:
    """Return how many of the largest hits add up to more than ``left`` >= 0, which all do together; reorders them."""
    first, end = 0, hits.size
    while True:
        pivot = _middle(hits[first], hits[(first + end) // 2], hits[end - 1])
        above, equal, total = first, first, 0
        for place in range(first, end):
            hit = hits[place]
            if hit > pivot:
                hits[place], hits[equal], hits[above] = hits[equal], hits[above], hit
                above, equal, total = above + 1, equal + 1, total + hit
            elif hit == pivot:
                hits[place], hits[equal] = hits[equal], hit
                equal += 1
        if total > left:
            end = above
            continue
        left -= total
        if pivot * (equal - above) > left:
            return above + left // pivot + 1
        left -= pivot * (equal - above)
        first = equal


@inlined
def _middle(one: int, two: int, three: int) -> int:
    return max(min(one, two), min(max(one, two), three))
