"""Taking the first linear maps out of a foreign model: only where nothing else reads the input, and never unchecked."""

import copy

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from graycert.models import build_model
from graycert.models.rowwise_start import SplitModel, rowwise_start
from support import foreign_models as foreign
from support.attributed_graphs import random_graph
from support.foreign_models import CLASSES, WIDTH


def count_hooks(model):
    return sum(len(module._forward_pre_hooks) + len(module._forward_hooks) for module in model.modules())


def split_of(model, data=None):
    data = random_graph(dtype=torch.float64) if data is None else data
    torch.manual_seed(0)
    model = model.double().eval()
    before = copy.deepcopy(model.state_dict())
    modules, hooks = list(model.named_modules()), count_hooks(model)
    with torch.inference_mode():
        found = rowwise_start(model, data.x, data.edge_index, model(data.x, data.edge_index))
        if found is not None:
            x, edges = torch.randn(40, WIDTH, dtype=torch.float64), torch.randint(40, (2, 99))
            assert torch.allclose(found.propagate(found.project(x), edges), model(x, edges), rtol=1e-12)
    assert [(name, id(module)) for name, module in modules] == [(n, id(m)) for n, m in model.named_modules()]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert count_hooks(model) == hooks
    return found


class LinearFirst(foreign.Sandwich):
    def __init__(self, **options):
        super().__init__(first=pyg.SAGEConv(6, 8), **options)
        self.before = nn.Linear(WIDTH, 6)

    def forward(self, x, edge_index):
        return super().forward(torch.relu(self.before(x)), edge_index)


STARTS = {
    "GCN": (lambda: pyg.GCN(WIDTH, 8, 2, CLASSES, act="gelu", jk="cat"), 1),
    "GAT": (lambda: pyg.GAT(WIDTH, 8, 2, CLASSES, heads=2, norm="layer_norm", norm_kwargs={"mode": "node"}), 1),
    "GATv2": (lambda: foreign.Sandwich(first=pyg.GATv2Conv(WIDTH, 4, heads=2)), 2),
    "GATv2, shared": (lambda: foreign.Sandwich(first=pyg.GATv2Conv(WIDTH, 8, share_weights=True)), 1),
    "Transformer": (lambda: foreign.Sandwich(first=pyg.TransformerConv(WIDTH, 4, heads=2)), 4),
    "linear first": (LinearFirst, 1),
    "residual": (foreign.SkipIsALayer, 2),
}


@pytest.mark.parametrize("name", list(STARTS))
def test_first_linear_maps_are_taken_out(name):
    make, number = STARTS[name]
    found = split_of(make())
    assert isinstance(found, SplitModel)
    assert len(found.linears) == number


def test_weights_are_shared_with_the_model():
    model = foreign.TwoLiner()
    assert split_of(model).linears[0].weight is model.conv.lin.weight


def test_a_model_that_offers_both_is_used_as_it_is():
    model = build_model("gat", random_graph())
    assert split_of(model) is model


class ReadsInputToo(foreign.TwoLiner):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + x[:, :CLASSES]


class ReadsNothingThatShows(foreign.TwoLiner):
    """Branches on the input: the copy would agree on every probe."""

    def forward(self, x, edge_index):
        return super().forward(x, edge_index) * (-1 if x.max() > 1e6 else 1)


class UsesWeightsTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.out = nn.Linear(WIDTH, WIDTH), pyg.GCNConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.out(torch.relu(self.lin(torch.relu(self.lin(x)))), edge_index)


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class TransposedWeights(nn.Module):
    """Uses the weights of the first map later on, without calling it."""

    def __init__(self):
        super().__init__()
        self.lin, self.out = nn.Linear(WIDTH, 8, bias=False), pyg.GCNConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.out(self.lin(x) @ self.lin.weight, edge_index)


class Forked(foreign.TwoLiner):
    def __init__(self):
        super().__init__()
        self.conv.lin.register_forward_hook(lambda module, arguments, out: out + 1)


class Uncopyable(foreign.TwoLiner):
    def __deepcopy__(self, memo):
        raise RuntimeError("no")


def with_first(linear):
    model = foreign.Sandwich()
    model.first.lin = linear
    return model


WHOLE = {
    "GraphSAGE": lambda: pyg.GraphSAGE(WIDTH, 8, 2, CLASSES),
    "GIN": lambda: pyg.GIN(WIDTH, 8, 2, CLASSES),
    "GraphConv": lambda: pyg.GraphConv(WIDTH, CLASSES),
    "reads input too": ReadsInputToo,
    "branches on input": ReadsNothingThatShows,
    "weights twice": UsesWeightsTwice,
    "own linear": lambda: with_first(Doubled(WIDTH, 8, bias=False)),
    "transposed weights": TransposedWeights,
    "hook": Forked,
    "no copy": Uncopyable,
    "scaled": foreign.ScaledAboveAMillion,
    "virtual node": foreign.VirtualNode,
}


@pytest.mark.parametrize("name", list(WHOLE))
def test_anything_else_is_evaluated_as_a_whole(name):
    assert split_of(WHOLE[name]()) is None
