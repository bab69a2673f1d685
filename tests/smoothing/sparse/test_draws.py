"""Draws of attributes: the coins of the streams, with the stated probabilities, independent over samples and bits."""

import math

import numpy as np
import pytest
import torch

from graycert.errors import InvalidParameterError
from graycert.sampling import CoinStream, Purpose
from graycert.smoothing.sparse.draws import AttributeDraws
from support.binary_graphs import binary_graph

STREAM = CoinStream(3, Purpose.ESTIMATION)


def draws_of(x, nodes=None, *, p_plus, p_minus, stream=STREAM):
    nodes = torch.arange(x.size(0)) if nodes is None else nodes
    return AttributeDraws.of(x, nodes, p_plus=p_plus, p_minus=p_minus, stream=stream)


@pytest.mark.parametrize(("p_plus", "p_minus"), [(0.0, 0.6), (0.3, 0.6), (0.2, 0.0), (1.0, 1.0)])
def test_each_attribute_has_the_coin_of_the_stream(p_plus, p_minus):
    x = binary_graph().x
    draws = draws_of(x, p_plus=p_plus, p_minus=p_minus)
    flat = x.flatten()
    chance = torch.where(flat == 1, p_minus, p_plus).double()
    flips = STREAM._coins("attribute", torch.arange(5), torch.arange(flat.numel()), chance)
    for sample in range(5):
        drawn = draws.draw(sample)
        torch.sparse_csr_tensor(drawn.crow_indices(), drawn.col_indices(), drawn.values(), check_invariants=True)
        assert torch.equal(drawn.to_dense(), torch.where(flips[sample], 1 - flat, flat).reshape(x.shape))
        assert drawn.dtype == x.dtype


def test_a_draw_of_some_nodes_is_that_part_of_the_draw_of_all():
    x, nodes = binary_graph().x, torch.tensor([7, 2, 11])
    for p_plus in (0.0, 0.3):
        everyone = draws_of(x, p_plus=p_plus, p_minus=0.6).draw(4).to_dense()
        assert torch.equal(draws_of(x, nodes, p_plus=p_plus, p_minus=0.6).draw(4).to_dense(), everyone[nodes])


def test_certain_coins_are_certain():
    x = binary_graph().x
    assert torch.equal(draws_of(x, p_plus=0, p_minus=0).draw(0).to_dense(), x)
    assert draws_of(x, p_plus=0, p_minus=1).draw(0).to_dense().sum() == 0
    assert draws_of(x, p_plus=1, p_minus=0).draw(0).to_dense().sum() == x.numel()
    assert torch.equal(draws_of(x, p_plus=1, p_minus=1).draw(0).to_dense(), 1 - x)


def test_only_ones_have_coins_if_no_zero_can_be_set():
    x = binary_graph().x
    assert draws_of(x, p_plus=0, p_minus=0.6).columns.size == int(x.sum())
    assert draws_of(x, p_plus=0.1, p_minus=0.6).columns.size == x.numel()


def test_streams_and_samples_have_other_coins():
    x = torch.ones(20, 10)
    one = draws_of(x, p_plus=0, p_minus=0.5).draw(0).to_dense()
    assert not torch.equal(one, draws_of(x, p_plus=0, p_minus=0.5).draw(1).to_dense())
    for stream in (CoinStream(4, Purpose.ESTIMATION), CoinStream(3, Purpose.SELECTION)):
        assert not torch.equal(one, draws_of(x, p_plus=0, p_minus=0.5, stream=stream).draw(0).to_dense())


@pytest.mark.parametrize("value", [0.5, 2.0, float("nan"), -1.0])
def test_refuses_attributes_that_are_not_binary(value):
    x = binary_graph().x
    x[3, 2] = value
    with pytest.raises(InvalidParameterError, match=r"`data\.x` must hold zeros and ones"):
        draws_of(x, p_plus=0, p_minus=0.5)


@pytest.mark.statistical
def test_shares_and_pairs_of_attributes_and_of_samples_are_those_of_independent_coins():
    """Each z-score is beyond 6 with probability 2e-9; 40 + 40 + 80 of them: in all below 1e-6."""
    x = (torch.arange(40) % 2).float().reshape(4, 10)
    p_plus, p_minus, num_samples = 0.2, 0.6, 5_000
    draws = draws_of(x, p_plus=p_plus, p_minus=p_minus)
    drawn = np.stack([draws.draw(sample).to_dense().flatten().numpy() for sample in range(num_samples)])
    mean = np.where(x.flatten().numpy() == 1, 1 - p_minus, p_plus)
    spread = np.sqrt(mean * (1 - mean))
    scores = (drawn - mean) / spread
    assert np.abs(scores.mean(axis=0)).max() < 6 / math.sqrt(num_samples)
    same_sample = (scores[:, :-1] * scores[:, 1:]).mean(axis=0)  # products have mean 0 and variance 1
    next_sample = (scores[:-1] * scores[1:]).mean(axis=0)
    other_place = (scores[:-1, :-1] * scores[1:, 1:]).mean(axis=0)
    assert max(np.abs(each).max() for each in (same_sample, next_sample, other_place)) < 6 / math.sqrt(num_samples - 1)
