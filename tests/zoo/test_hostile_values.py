"""How far hostile values of edges are noticed: exactly as far as each convolution of the zoo should."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from graycert.audit import check_hostile_values
from graycert.zoo import GIVEN, zoo_graph

ONE_HOP_MORE = {"ARMAConv, weighted", "GCNConv, weighted", "SGConv, weighted", "TAGConv, weighted"}
OUT_DEGREES = {"ChebConv, weighted"}


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.mark.few(2)
@pytest.mark.parametrize("name", list(GIVEN))
def test_values_are_noticed_within_the_reach_and_no_further(name):
    exhibit = GIVEN[name]
    data = exhibit.graph(zoo_graph())
    model = exhibit.make(data)
    right = exhibit.depth + (name in ONE_HOP_MORE)
    for reach in (right - 1, right, exhibit.depth + 1):
        check = check_hostile_values(model, data, exhibit.edge_inputs, reach=reach, ablation_token=None, seed=0)
        assert check.passed is (reach >= right and name not in OUT_DEGREES), (reach, check.detail)


class Alarm(nn.Module):
    """All scores change if any edge of the graph has a value of some kind."""

    def __init__(self, name, is_alarming):
        super().__init__()
        self.conv, self.name, self.is_alarming = pyg.SAGEConv(8, 3), name, is_alarming

    def forward(self, x, edge_index, **values):
        scores = self.conv(x, edge_index)
        return scores + 1 if self.is_alarming(values[self.name]).any() else scores


@pytest.mark.parametrize(
    ("name", "is_alarming"),
    [
        ("edge_weight", lambda values: (values < 0) & (values > -0.1)),
        ("edge_weight", lambda values: (values > 0) & (values < 0.01)),
        ("edge_weight", lambda values: values == -1),
        ("edge_attr", lambda values: (values[:, 0] < 0) & (values[:, 1] > 0)),
        ("edge_type", lambda values: values < 0),
        ("edge_type", lambda values: values > 2),
        ("edge_type", lambda values: values == -2),
    ],
    ids=["small negative", "small", "minus one", "differing entries", "negative", "beyond", "minus the largest"],
)
def test_rare_values_that_hostile_nodes_may_choose_are_tried(name, is_alarming):
    data = GIVEN["GCNConv, weighted"].graph(zoo_graph())
    for seed in range(5):
        check = check_hostile_values(Alarm(name, is_alarming), data, (name,), reach=1, ablation_token=None, seed=seed)
        assert not check.passed, seed


def test_integers_that_a_model_cannot_take_are_left_out():
    class Table(nn.Module):
        """Looks relations up."""

        def __init__(self):
            super().__init__()
            self.table, self.conv = nn.Embedding(3, 2), pyg.GATv2Conv(8, 3, edge_dim=2)

        def forward(self, x, edge_index, edge_type):
            return self.conv(x, edge_index, self.table(edge_type))

    data = GIVEN["GCNConv, weighted"].graph(zoo_graph())
    assert check_hostile_values(Table(), data, ("edge_type",), reach=1, ablation_token=None, seed=0).passed
