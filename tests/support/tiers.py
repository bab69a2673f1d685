"""Which parametrisations of a test are default tests, where a mark says that a few stand for all."""

from collections import defaultdict

import pytest

NOT_DEFAULT = ("deep", "slow", "processes", "browser")


def mark_deep(items: list[pytest.Item]) -> None:
    """Mark as deep all parametrisations of a test but the few that its mark `few` asks for."""
    same = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few") and not any(item.get_closest_marker(name) for name in NOT_DEFAULT):
            same[item.nodeid.partition("[")[0]].append(item)
    for each in same.values():
        mark = each[0].get_closest_marker("few")
        assert mark is not None
        for place in set(range(len(each))) - set(spread(len(each), *mark.args)):
            each[place].add_marker(pytest.mark.deep)


def spread(size: int, number: int) -> list[int]:
    """Return ``number`` places among ``size``, from the first to the last; all of them if there are not more."""
    return sorted({round(place * (size - 1) / max(1, number - 1)) for place in range(number)})
