"""Blocks of targets on several threads, in order, a few at a time."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(function: Callable[[Item], Result], items: Iterable[Item], *, num_threads: int) -> Iterator[Result]:
    """Yield the function of each item, in order; no more items are begun than threads and one that waits.

    Args:
        function: Releases the interpreter where it computes.
        items: Taken one by one.
        num_threads: >= 1.

    Example:
        >>> list(in_order(abs, [-1, 2, -3], num_threads=2))
        [1, 2, 3]
    """
    if num_threads == 1:
        yield from map(function, items)
        return
    begun: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(num_threads) as pool:
        for item in items:
            begun.append(pool.submit(function, item))
            if len(begun) > num_threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
