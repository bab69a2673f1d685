import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.smoothing.retention.maximum_coverage import WeightedSets, maximum_coverage


def random_sets(rng):
    table = rng.random((int(rng.integers(0, 12)), int(rng.integers(1, 8)))) < rng.choice([0.2, 0.5])
    scale = 10 ** int(rng.choice([0, 1, 40]))  # weights beyond 64 bits, too
    weights = [int(value) * scale + int(rng.integers(2)) for value in rng.integers(0, 9, table.shape[0])]
    sets, members = np.nonzero(table)
    return table, weights, WeightedSets(sets, members, weights)


def hit_weight(table, weights, nodes) -> int:
    return sum(weight for weight, row in zip(weights, table, strict=True) if row[list(nodes)].any())


def exact(table, weights, size) -> int:
    nodes = range(table.shape[1])
    return max(hit_weight(table, weights, chosen) for chosen in itertools.combinations(nodes, min(size, len(nodes))))


def test_the_best_nodes_are_found():
    rng = np.random.default_rng(0)
    for _ in range(300):
        table, weights, sets = random_sets(rng)
        for size in range(6):
            found = maximum_coverage(sets, size=size)
            assert found.lower == found.upper == exact(table, weights, size)
            assert hit_weight(table, weights, found.nodes) == found.lower
            assert len(found.nodes) <= size


def test_a_stopped_search_still_bounds():
    rng = np.random.default_rng(1)
    unsolved = 0
    for _ in range(300):
        table, weights, sets = random_sets(rng)
        single = sorted((hit_weight(table, weights, [node]) for node in range(table.shape[1])), reverse=True)
        for size, steps in itertools.product(range(1, 5), (1, 2)):
            found = maximum_coverage(sets, size=size, max_steps=steps)
            assert found.lower <= exact(table, weights, size) <= found.upper <= sum(single[:size])
            unsolved += found.lower < found.upper
    assert unsolved > 10


def test_questions_are_answered_early_and_right():
    rng = np.random.default_rng(2)
    for _ in range(200):
        table, weights, sets = random_sets(rng)
        for size in (1, 2, 3):
            truth = exact(table, weights, size)
            for enough in (truth, truth + 1):
                found = maximum_coverage(sets, size=size, enough=enough)
                assert (found.lower >= enough) == (truth >= enough)
                assert (found.upper < enough) == (truth < enough)


def test_greedy_alone_is_not_enough():
    sets = WeightedSets([0, 0, 1, 1, 2, 3], [0, 1, 0, 2, 1, 2], weights=[3, 3, 2, 2])
    assert maximum_coverage(sets, size=1).nodes == (0,)
    assert set(maximum_coverage(sets, size=2).nodes) == {1, 2}  # greedy takes 0 first


@given(st.integers(0, 2**32 - 1))
def test_more_nodes_never_hit_less_and_all_together_hit_everything(seed):
    _, _, sets = random_sets(np.random.default_rng(seed))
    best = [maximum_coverage(sets, size=size).upper for size in range(sets.nodes.size + 2)]
    assert best == sorted(best)
    assert best[-1] == best[-2] == sets.total


def test_arguments_are_checked():
    sets = WeightedSets([0], [0], [1])
    with pytest.raises(InvalidParameterError, match="`size` must be"):
        maximum_coverage(sets, size=-1)
    with pytest.raises(InvalidParameterError, match="`max_steps` must be"):
        maximum_coverage(sets, size=1, max_steps=0)
    with pytest.raises(InvalidParameterError, match="`weights` must be"):
        WeightedSets([0], [0], [-1])
    with pytest.raises(InvalidParameterError, match="`set_of_member` must be"):
        WeightedSets([1], [0], [1])
    with pytest.raises(InvalidParameterError, match="`members` must have the shape"):
        WeightedSets([0, 0], [0], [1])
    with pytest.raises(InvalidParameterError, match="at most once per set"):
        WeightedSets([0, 0], [0, 0], [1])
