"""The largest of many values are those of a stable sort."""

import numpy as np
import pytest

from graycert.smoothing.bounded_votes.largest import fewest, largest_first


@pytest.mark.parametrize("kind", ["int64", "float64"])
@pytest.mark.parametrize("seed", range(40))
def test_largest_values_in_order_and_at_a_tie_the_lowest_places(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(rng.choice([3, 1_000]), size=rng.integers(1, 60)).astype(kind)
    kept = np.full(rng.integers(0, 70), -1)
    number = largest_first(rng.permutation(values.size), values, kept)
    assert number == min(kept.size, values.size)
    assert kept[:number].tolist() == np.argsort(-values, kind="stable")[:number].tolist()
    assert (kept[number:] == -1).all()


@pytest.mark.parametrize("seed", range(40))
def test_how_few_of_the_largest_exceed_a_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hits = rng.integers(rng.choice([3, 1_000]), size=rng.integers(1, 60)) + 1
    sums = np.cumsum(np.sort(hits)[::-1])
    for left in (0, *(sums[:-1] - 1), *sums[:-1]):
        assert fewest(hits.copy(), left) == np.flatnonzero(sums > left)[0] + 1
