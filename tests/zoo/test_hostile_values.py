"""How far hostile values of edges are noticed: exactly as far as each convolution of the zoo should."""

import pytest
import torch

from graycert.audit import check_hostile_values
from graycert.zoo import GIVEN, zoo_graph

ONE_HOP_MORE = {"ARMAConv, weighted", "GCNConv, weighted", "SGConv, weighted", "TAGConv, weighted"}
OUT_DEGREES = {"ChebConv, weighted"}


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.mark.parametrize("name", list(GIVEN))
def test_values_are_noticed_within_the_reach_and_no_further(name):
    exhibit = GIVEN[name]
    data = exhibit.graph(zoo_graph())
    model = exhibit.make(data)
    right = exhibit.depth + (name in ONE_HOP_MORE)
    for reach in (right - 1, right, exhibit.depth + 1):
        check = check_hostile_values(model, data, exhibit.edge_inputs, reach=reach, ablation_token=None, seed=0)
        assert check.passed is (reach >= right and name not in OUT_DEGREES), (reach, check.detail)
