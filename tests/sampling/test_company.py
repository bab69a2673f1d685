"""CASES D1: votes are those of one forward pass per draw, whatever is gathered, and for every batch size."""

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.nn import SAGEConv
from torch_geometric.nn.aggr import (
    Aggregation,
    GRUAggregation,
    MultiAggregation,
    QuantileAggregation,
    SetTransformerAggregation,
    SortAggregation,
)
from torch_geometric.utils import add_self_loops

from graycert import InterceptionSmoothing
from graycert.models.padding import reads_padding
from graycert.sampling import CoinStream, InterceptionSampler, Purpose, build_engine
from graycert.sampling.interception import ablate
from graycert.sampling.scores import voted_class
from support.open_scores import three_classes

SMOOTHING = InterceptionSmoothing(p_delete=0.31, p_ablate=0.5)
TARGETS = np.array([0, 7, 21, 33, 41, 59])


class TwoLayers(nn.Module):
    def __init__(self, make):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = make(8, 8), make(8, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class PadsByHand(nn.Module):
    """Not recurrent: a mean over the longest list of messages of the pass, padding included."""

    def forward(self, x, edge_index):
        degree = torch.bincount(edge_index[1], minlength=x.size(0))
        longest = max(int(degree.max()) if edge_index.numel() else 0, 1)
        total = torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])
        return (total[:, :3] + torch.tensor([0.0, 0.3, 0.1]) * longest) / longest


def sage(aggr, **options):
    return lambda wide, out: SAGEConv(wide, out, aggr=aggr(wide) if callable(aggr) else aggr, **options)


class _Sorted(Aggregation):
    """The largest two messages, added up."""

    def __init__(self, wide):
        super().__init__()
        self.sort, self.wide = SortAggregation(k=2), wide

    def forward(self, x, index=None, ptr=None, dim_size=None, dim=-2, **others):
        return self.sort(x, index, ptr=ptr, dim_size=dim_size, dim=dim).reshape(-1, 2, self.wide).sum(dim=1)

    def reset_parameters(self):
        pass


KINDS = {
    "lstm": sage("lstm"),
    "gru": sage(lambda wide: GRUAggregation(wide, wide)),
    "median": sage("median"),
    "quantile": sage(lambda wide: QuantileAggregation(0.3)),
    "softmax": sage("softmax"),
    "powermean": sage("powermean"),
    "multi": sage(lambda wide: MultiAggregation(["mean", "max", "std"], mode="sum")),
    "sort": sage(lambda wide: _Sorted(wide)),
    "set transformer": sage(lambda wide: SetTransformerAggregation(wide)),
}


def one_by_one(model, data, num_samples):
    """Return votes, from one forward pass over the whole graph per draw."""
    edges = data.edge_index[:, np.lexsort((data.edge_index[0], data.edge_index[1]))]
    sampler = InterceptionSampler.of_graph(SMOOTHING, CoinStream(3, Purpose.ESTIMATION), edges, num_nodes=60)
    votes = np.zeros((TARGETS.size, 3), dtype=np.int64)
    draws = sampler.draw(torch.arange(num_samples))
    with torch.inference_mode():
        for kept, ablated in zip(draws.kept, draws.ablated, strict=True):
            scores = model(ablate(data.x, torch.zeros(8), ablated), edges[:, kept])
            for row, winner in enumerate(voted_class(scores[torch.from_numpy(TARGETS)]).tolist()):
                if winner >= 0:
                    votes[row, winner] += 1
    return votes


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", [*KINDS, "by hand"])
def test_votes_are_those_of_one_forward_pass_per_draw(kind):
    data = three_classes()
    model = (PadsByHand() if kind == "by hand" else TwoLayers(KINDS[kind])).eval()
    expected = one_by_one(model, data, 40)
    engines = {}
    for batch_size in (1, 5, None):
        engine = build_engine(model, data, TARGETS, smoothing=SMOOTHING, num_layers=2, batch_size=batch_size)
        engines[batch_size] = engine.name
        found = engine.votes(3, Purpose.ESTIMATION, num_samples=40)
        np.testing.assert_array_equal(found, expected, err_msg=f"{kind}, batch size {batch_size}: {engine.name}")
    if kind in ("lstm", "gru", "by hand"):
        assert all(name.endswith("one full graph per pass") for name in engines.values())
    if kind in ("softmax", "powermean", "multi"):  # the median raises for nodes without messages
        assert not engines[None].endswith("one full graph per pass")


def test_recurrent_networks_are_known_to_pad():
    assert reads_padding(TwoLayers(KINDS["lstm"]))
    assert not reads_padding(TwoLayers(KINDS["median"]))


class WithLoops(TwoLayers):
    """Every node hears itself, so that there is a median of something."""

    def forward(self, x, edge_index):
        return super().forward(x, add_self_loops(edge_index, num_nodes=x.size(0))[0])


@pytest.mark.parametrize("kind", ["median", "quantile"])
def test_a_median_of_something_may_share_a_pass(kind):
    data, model = three_classes(), WithLoops(KINDS[kind]).eval()
    expected = one_by_one(model, data, 40)
    for batch_size in (1, 5, None):
        engine = build_engine(model, data, TARGETS, smoothing=SMOOTHING, num_layers=2, batch_size=batch_size)
        assert not engine.name.endswith("one full graph per pass")
        np.testing.assert_array_equal(engine.votes(3, Purpose.ESTIMATION, num_samples=40), expected)
