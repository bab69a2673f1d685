"""Coins: the hash against Python integers, exact thresholds, and independence at stated failure probabilities."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import stats

from graycert.errors import InvalidParameterError
from graycert.sampling import CoinStream, Purpose
from graycert.sampling.streams import edge_ids, interception_threshold, mix
from support.reference_coins import is_intercepted, splitmix

FAILURE = 1e-6  # of every statistical test below: the chance that right code fails it, over seeds


def unsigned(values):
    return [value % 2**64 for value in values.tolist()]


def test_mix_is_the_published_finaliser():
    """First outputs of SplitMix64 seeded with 0, as published with its reference code."""
    golden = 0x9E3779B97F4A7C15
    states = torch.tensor([(golden * k % 2**64) - 2**64 * ((golden * k % 2**64) >= 2**63) for k in (1, 2, 3)])
    assert unsigned(mix(states)) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_mix_equals_python_integers():
    values = torch.tensor([0, 1, -1, 2**62, -(2**63), 2**63 - 1, 123456789, -987654321])
    assert unsigned(mix(values)) == [splitmix(value % 2**64) for value in values.tolist()]


def test_arrays_are_mixed_as_tensors_are():
    values = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, size=1_000, endpoint=True)
    np.testing.assert_array_equal(mix(values), mix(torch.from_numpy(values)).numpy())


@pytest.mark.parametrize("purpose", list(Purpose))
@pytest.mark.parametrize("seed", [0, 1, 2**70])
def test_coins_equal_python_integers(seed, purpose):
    stream = CoinStream(seed, purpose)
    samples, ids = torch.tensor([0, 1, 5, 4_000, 2**40]), torch.tensor([0, 1, 2, 77, 2_810**2, 2**61])
    for probability in (0.0, 0.05, 0.31, 0.5, 0.794, 1.0):
        for kind, coins in (
            ("edge", stream.edge_coins(samples, ids, p_delete=probability)),
            ("node", stream.node_coins(samples, ids, p_ablate=probability)),
        ):
            expected = [
                [is_intercepted(seed, purpose.value, kind, s, i, probability) for i in ids.tolist()]
                for s in samples.tolist()
            ]
            assert coins.tolist() == expected


def test_pinned_coins():
    """Stored certificates are drawn again by `graycert verify`: these coins must never change."""
    stream = CoinStream(0, Purpose.ESTIMATION)
    rows = ["".join("01"[c] for c in row) for row in stream.edge_coins(torch.arange(4), torch.arange(24), p_delete=0.5)]
    assert rows == PINNED_EDGES
    rows = ["".join("01"[c] for c in row) for row in stream.node_coins(torch.arange(2), torch.arange(24), p_ablate=0.5)]
    assert rows == PINNED_NODES


PINNED_EDGES = [
    "111101100100111100110011",
    "110011000100101100001111",
    "001000100000111001100101",
    "001111011010011100101100",
]
PINNED_NODES = ["101001001001101100000101", "100011100010000000101101"]


@pytest.mark.parametrize("probability", [0.0, 1.0, 0.5, 0.1, 0.31, 0.794, 5e-324, 1e-18, 2**-62, 2**-63, 1 - 2**-53])
def test_thresholds_are_exact_and_never_below_the_probability(probability):
    real = Fraction(interception_threshold(probability), 2**62)
    assert Fraction(probability) <= real < Fraction(probability) + Fraction(1, 2**62)
    assert 0 <= real <= 1


def test_probability_zero_and_one_are_certain():
    stream = CoinStream(3, Purpose.SELECTION)
    samples, ids = torch.arange(300), torch.arange(300)
    assert not stream.edge_coins(samples, ids, p_delete=0.0).any()
    assert stream.edge_coins(samples, ids, p_delete=1.0).all()
    assert not stream.node_coins(samples, ids, p_ablate=0.0).any()
    assert stream.node_coins(samples, ids, p_ablate=1.0).all()


def test_coins_grow_with_the_probability():
    stream = CoinStream(3, Purpose.SELECTION)
    samples, ids = torch.arange(50), torch.arange(50)
    low, high = (stream.edge_coins(samples, ids, p_delete=p) for p in (0.2, 0.4))
    assert bool((low <= high).all())


def test_negative_and_wrong_seeds_are_refused():
    for seed in (-1, 0.5, "0"):
        with pytest.raises(InvalidParameterError, match="`seed`"):
            CoinStream(seed, Purpose.SELECTION)


def test_edge_identity_depends_on_direction():
    ids = edge_ids(torch.tensor([[0, 1, 2], [1, 0, 2]]), num_nodes=3)
    assert ids.tolist() == [1, 3, 8]


def uniform_cells_pvalue(patterns, num_bits, probability):
    """p-value of the chi-square test that ``num_bits`` coins are independent with the given probability."""
    counts = np.bincount(patterns, minlength=2**num_bits)
    ones = np.array([cell.bit_count() for cell in range(2**num_bits)])
    expected = probability**ones * (1 - probability) ** (num_bits - ones) * patterns.size
    assert expected.min() > 20
    return stats.chisquare(counts, expected).pvalue


def patterns_of(*coins):
    return sum((coin.long().numpy() << bit) for bit, coin in enumerate(coins))


@pytest.mark.statistical
@pytest.mark.parametrize("probability", [0.31, 0.5, 0.794])
def test_marginals(probability):
    stream = CoinStream(11, Purpose.ESTIMATION)
    coins = stream.edge_coins(torch.arange(3_000), torch.arange(400), p_delete=probability)
    tests = 1 + 400 + 3_000
    assert stats.binomtest(int(coins.sum()), coins.numel(), probability).pvalue > FAILURE / tests
    for axis, trials in ((0, 3_000), (1, 400)):
        found = coins.sum(dim=axis).numpy()
        tail = np.minimum(stats.binom.cdf(found, trials, probability), stats.binom.sf(found - 1, trials, probability))
        assert 2 * tail.min() > FAILURE / tests


@pytest.mark.statistical
@pytest.mark.parametrize("probability", [0.31, 0.5, 0.794])
def test_pairs_and_quadruples_are_independent(probability):
    """Consecutive ids and samples, and the rectangles where the keys of four coins cancel each other."""
    stream = CoinStream(12, Purpose.SELECTION)
    coins = stream.node_coins(torch.arange(24_000), torch.arange(8), p_ablate=probability)
    pvalues = [
        uniform_cells_pvalue(patterns_of(coins[:, i], coins[:, j]), 2, probability)
        for i, j in combinations(range(8), 2)
    ]
    pvalues += [
        uniform_cells_pvalue(patterns_of(*(coins[:, i] for i in four)), 4, probability)
        for four in combinations(range(8), 4)
    ]
    flat = coins.reshape(12_000, 2, 8)
    pvalues += [
        uniform_cells_pvalue(patterns_of(flat[:, 0, i], flat[:, 0, j], flat[:, 1, i], flat[:, 1, j]), 4, probability)
        for i, j in combinations(range(8), 2)
    ]
    assert min(pvalues) > FAILURE / len(pvalues)


@pytest.mark.statistical
def test_streams_are_independent_of_each_other():
    """Purposes, neighbouring seeds, and edges against nodes: all agree as often as independent fair coins."""
    samples, ids = torch.arange(500), torch.arange(400)
    tables = [
        CoinStream(seed, purpose).edge_coins(samples, ids, p_delete=0.5) for seed in (0, 1, 2) for purpose in Purpose
    ]
    tables.append(CoinStream(0, Purpose.ESTIMATION).node_coins(samples, ids, p_ablate=0.5))
    pairs = list(combinations(tables, 2))
    pvalues = [stats.binomtest(int((a == b).sum()), a.numel(), 0.5).pvalue for a, b in pairs]
    assert min(pvalues) > FAILURE / len(pvalues)


def test_a_stuck_or_correlated_coin_would_be_noticed():
    """The statistics above have power: coins that copy each other in 3 % of the cases fail."""
    generator = np.random.default_rng(0)
    first, second = generator.random(24_000) < 0.5, generator.random(24_000) < 0.5
    copied = np.where(generator.random(24_000) < 0.06, first, second)
    patterns = first.astype(np.int64) + 2 * copied
    assert uniform_cells_pvalue(patterns, 2, 0.5) < FAILURE / 126
