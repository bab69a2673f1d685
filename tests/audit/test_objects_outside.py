"""Registries of objects that a model names: looked through, never emptied for good, and part of what it is."""

import argparse
import collections
import logging
import types

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.data import Data

from graycert.audit import audit_model
from graycert.models.outside_state import same_value

WIDTH, CLASSES = 8, 3


class Centre:
    """Adds the mean over all nodes."""

    def apply(self, out):
        return out + 100 * out.mean(dim=0)


class Scale:
    """Local."""

    def __init__(self):
        self.factor = 0.5

    def apply(self, out):
        return self.factor * out


LEAKY, LOCAL, ACTIVATIONS = [Centre()], [Scale(), Scale()], {"elu": nn.ELU()}
NORM = nn.BatchNorm1d(CLASSES).eval()
PLACES = {
    "namespace": types.SimpleNamespace(mean=None),
    "arguments": argparse.Namespace(mean=None),
    "data": Data(),
}
QUEUE = collections.deque(maxlen=1)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = pyg.SAGEConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


class WithLeaky(Plain):
    def forward(self, x, edge_index):
        out = self.conv(x, edge_index)
        for extra in LEAKY:
            out = extra.apply(out)
        return out


class WithLocal(Plain):
    def forward(self, x, edge_index):
        out = self.conv(x, edge_index)
        for extra in LOCAL:
            out = extra.apply(out)
        return ACTIVATIONS["elu"](NORM(out))


class Kept(Plain):
    """A scaling fitted at the first call, in an object that somebody else's library made."""

    def __init__(self, place):
        super().__init__()
        self.where = place

    def forward(self, x, edge_index):
        kept = PLACES[self.where]
        if getattr(kept, "mean", None) is None:
            kept.mean = x.mean(dim=0)
        return self.conv(x - kept.mean, edge_index)


LOGGER = logging.getLogger("a model's own")


class LeftOnAFunction(Plain):
    def forward(self, x, edge_index):
        if not hasattr(nn.functional.relu, "kept_by_a_model"):
            nn.functional.relu.kept_by_a_model = x.mean(dim=0)
        return self.conv(x - nn.functional.relu.kept_by_a_model, edge_index)


class LeftOnALogger(Plain):
    def forward(self, x, edge_index):
        if not hasattr(LOGGER, "kept_by_a_model"):
            LOGGER.kept_by_a_model = x.mean(dim=0)
        return self.conv(x - LOGGER.kept_by_a_model, edge_index)


class Queued(Plain):
    def forward(self, x, edge_index):
        if not QUEUE:
            QUEUE.append(x.mean(dim=0))
        return self.conv(x - QUEUE[0], edge_index)


def toy():
    generator = torch.Generator().manual_seed(0)
    edges = torch.unique(torch.randint(40, (2, 100), generator=generator), dim=1)
    return Data(x=torch.randn(40, WIDTH, generator=generator), edge_index=edges[:, edges[0] != edges[1]])


def slugs(model):
    return {check.slug for check in audit_model(model, toy()).checks if not check.passed}


def test_an_object_in_a_global_list_is_part_of_the_model():
    held = list(LEAKY)
    assert "message-leak" in slugs(WithLeaky())
    assert held == LEAKY


def test_registries_are_as_they_were_and_local_models_pass():
    local, activations, state = list(LOCAL), dict(ACTIVATIONS), {k: v.clone() for k, v in NORM.state_dict().items()}
    model, data = WithLocal().eval(), toy()
    before = model(data.x, data.edge_index)
    assert not slugs(model)
    assert [id(each) for each in LOCAL] == [id(each) for each in local]
    assert ACTIVATIONS["elu"] is activations["elu"]
    assert all(torch.equal(value, state[name]) for name, value in NORM.state_dict().items())
    assert torch.equal(model(data.x, data.edge_index), before)


@pytest.mark.parametrize("place", list(PLACES))
def test_memory_in_objects_of_libraries_is_found_and_undone(place):
    assert "not-deterministic" in slugs(Kept(place))
    assert getattr(PLACES[place], "mean", None) is None


def test_sparse_matrices_are_compared_by_what_they_hold():
    indices, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, float("nan")])
    first, second = (torch.sparse_coo_tensor(indices, values, (2, 2), check_invariants=True) for _ in range(2))
    assert same_value(first, second)
    assert not same_value(first, 2 * second)
    assert not same_value(first, second.to_dense())


@pytest.mark.parametrize("model", [LeftOnAFunction, LeftOnALogger])
def test_memory_left_in_a_library_is_found_and_undone(model):
    assert "not-deterministic" in slugs(model())
    assert not hasattr(nn.functional.relu, "kept_by_a_model")
    assert not hasattr(LOGGER, "kept_by_a_model")


def test_memory_in_a_queue_is_found_and_undone():
    assert "not-deterministic" in slugs(Queued())
    assert not QUEUE


def test_a_module_in_a_global_that_changes_while_it_runs_is_found_and_undone():
    state = {name: value.clone() for name, value in NORM.state_dict().items()}
    NORM.train()
    try:
        assert slugs(WithLocal())
        assert NORM.training
        assert all(torch.equal(value, state[name]) for name, value in NORM.state_dict().items())
    finally:
        NORM.eval()
