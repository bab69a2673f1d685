"""Both radii against every way of changing votes."""

from itertools import combinations, product

import numpy as np
import pytest

from graycert.smoothing.subgraphs.flipped_votes import attackable_radius, majority_radius


def winner(ballots: tuple[int, ...], num_classes: int) -> int:
    counts = [ballots.count(c) for c in range(num_classes)]
    return counts.index(max(counts))


def largest_safe(ballots: tuple[int, ...], attackable: tuple[int, ...], num_classes: int) -> int:
    """The largest number of attackable ballots that can be rewritten in every way without another winner."""
    before = winner(ballots, num_classes)
    for size in range(1, len(attackable) + 1):
        for places in combinations(attackable, size):
            for values in product(range(num_classes), repeat=size):
                changed = list(ballots)
                for place, value in zip(places, values, strict=True):
                    changed[place] = value
                if winner(tuple(changed), num_classes) != before:
                    return size - 1
    return -1


def counts_of(ballots: tuple[int, ...], places: tuple[int, ...], num_classes: int) -> np.ndarray:
    return np.array([[sum(ballots[place] == c for place in places) for c in range(num_classes)]])


@pytest.mark.parametrize(("num_votes", "num_classes"), [(4, 2), (5, 2), (4, 3), (5, 3), (4, 4)])
def test_the_majority_radius_is_exactly_what_enumeration_finds(num_votes: int, num_classes: int) -> None:
    everyone = tuple(range(num_votes))
    for ballots in product(range(num_classes), repeat=num_votes):
        expected = largest_safe(ballots, everyone, num_classes)
        assert majority_radius(counts_of(ballots, everyone, num_classes)).tolist() == [expected], ballots


@pytest.mark.parametrize(("num_votes", "num_classes"), [(4, 2), (5, 2), (4, 3), (5, 3)])
def test_the_attackable_radius_is_exactly_what_enumeration_finds(num_votes: int, num_classes: int) -> None:
    unlimited = np.array([99])
    for ballots in product(range(num_classes), repeat=num_votes):
        votes = counts_of(ballots, tuple(range(num_votes)), num_classes)
        for size in range(num_votes + 1):  # ballots run through all orders, so a prefix is any subset
            attackable = tuple(range(size))
            expected = largest_safe(ballots, attackable, num_classes)
            found = attackable_radius(votes, counts_of(ballots, attackable, num_classes), unlimited)
            assert found.tolist() == [expected if expected >= 0 else 99], (ballots, size)


def test_a_tie_needs_no_vote_less_for_the_smaller_class() -> None:
    # 3:3 goes to class 0; one vote is enough to lose it. 4:2 for class 1 falls to 3:3, which class 0 wins.
    assert majority_radius(np.array([[3, 3], [2, 4], [4, 2]])).tolist() == [0, 0, 1]
