"""A pass over the whole graph that would take much: in parts for models that are known, with what it gave before."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import graycert
from graycert.audit import audit_model, model_audit
from graycert.models.edge_inputs import sorted_edges
from graycert.sampling import engines, whole_pass
from graycert.sampling.as_trained import scores_without_smoothing, without_smoothing
from support import foreign_models as foreign
from support.known_models import CLASSES, KNOWN, WIDTH, known_model

NUM_NODES = 700


@pytest.fixture(scope="module")
def data():
    """A graph with a hub, and with nodes that receive nothing; edges in any order."""
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randint(NUM_NODES - 20, (2, 2_500), generator=generator)
    hub = torch.stack([torch.arange(1, 500), torch.zeros(499, dtype=torch.int64)])
    edges = torch.unique(torch.cat([pairs, hub], dim=1), dim=1)
    edges = edges[:, edges[0] != edges[1]]
    edges = edges[:, torch.randperm(edges.size(1), generator=generator)]
    x = torch.randn(NUM_NODES, WIDTH, generator=generator)
    return Data(x=x, edge_index=edges, y=torch.arange(NUM_NODES) % CLASSES)


@pytest.fixture
def much(monkeypatch):
    """Every pass takes much, and kernels are compared with the model on a few nodes."""
    monkeypatch.setattr(whole_pass, "MUCH", -1)
    monkeypatch.setattr(engines, "_COMPARED_UNITS", 400)
    monkeypatch.setattr(engines, "_COMPARED_NODES", 60)
    monkeypatch.setattr(engines, "_COMPARED_TARGETS", 8)


@pytest.fixture
def seen(monkeypatch):
    """How many nodes each call of a GCNConv is given."""
    sizes, forward = [], GCNConv.forward

    def noting(self, x, edge_index, edge_weight=None):
        sizes.append(x.size(0))
        return forward(self, x, edge_index, edge_weight)

    monkeypatch.setattr(GCNConv, "forward", noting)
    return sizes


@pytest.mark.few(10)
@pytest.mark.parametrize("messages", [True, False])
@pytest.mark.parametrize("name", list(KNOWN))
def test_scores_are_those_of_the_whole_pass_up_to_a_number_per_node(name, messages, data, monkeypatch):
    model, targets = known_model(name), np.arange(0, NUM_NODES, 3)
    expected = scores_without_smoothing(model, data, targets, edge_inputs=None, messages=messages)
    monkeypatch.setattr(whole_pass, "MUCH", -1)
    found = scores_without_smoothing(model, data, targets, edge_inputs=None, messages=messages)
    edges = sorted_edges(data.edge_index)[:, : None if messages else 0]
    assert torch.equal(found, engines.scores_by_layers(model, data, edges, targets))
    expected, found = (each - each.mean(dim=1, keepdim=True) for each in (expected, found))
    assert torch.allclose(found, expected, rtol=0, atol=1e-4 * float(expected.abs().max()))
    assert not messages or not torch.equal(found, expected)  # it is computed another way


def test_a_skip_connection_is_left_out_as_it_was_and_added_without_messages(data, much):
    model = graycert.build_model("gcn", data, skip=True, seed=0).eval()
    found, alone = (
        scores_without_smoothing(model, data, np.arange(NUM_NODES), edge_inputs=None, messages=messages)
        for messages in (True, False)
    )
    with torch.inference_mode():
        assert torch.allclose(found, model(data.x, data.edge_index), atol=1e-6)
        expected = model(data.x, data.edge_index[:, :0]) + model.skip_logits(data.x)
        assert torch.allclose(alone, expected, atol=1e-6)


@pytest.mark.deep
def test_weights_of_edges_count(data, much):
    model, weighted = known_model("two GraphConv"), data.clone()
    weighted.edge_weight = 0.5 + torch.rand(data.num_edges, generator=torch.Generator().manual_seed(0))
    found = scores_without_smoothing(Weighted(model), weighted, np.arange(NUM_NODES), edge_inputs=("edge_weight",))
    with torch.inference_mode():
        expected = Weighted(model)(data.x, data.edge_index, weighted.edge_weight)
    assert torch.allclose(found, expected, atol=1e-5 * float(expected.abs().max()))


class Weighted(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.conv1, self.conv2 = model.conv1, model.conv2

    def forward(self, x, edge_index, edge_weight):
        return self.conv2(self.conv1(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


def test_a_known_model_never_sees_the_whole_graph_where_that_takes_much(data, much, seen):
    without_smoothing(known_model("two GCNConv"), data, np.arange(NUM_NODES), edge_inputs=None, device=None, alone=True)
    assert 0 < max(seen) < NUM_NODES // 2


def test_the_audit_of_a_known_model_never_sees_the_whole_graph(data, seen):
    assert audit_model(known_model("two GCNConv"), data).passed
    assert 0 < max(seen) < NUM_NODES // 2


@pytest.mark.deep
@pytest.mark.parametrize("name", ["GCN", "GAT", "GIN", "linear first"])
def test_the_audit_finds_the_same_on_parts_as_on_the_whole_graph(name, data, monkeypatch):
    model = known_model(name)
    found = audit_model(model, data)
    monkeypatch.setattr(model_audit, "_is_known", lambda *_: False)
    whole = audit_model(model, data)
    assert found.passed
    assert whole.passed
    assert [each.name for each in found.checks] == [each.name for each in whole.checks]
    assert (found.num_layers, found.counted_steps) == (whole.num_layers, whole.counted_steps)
    assert found.farthest_influence == whole.farthest_influence


LEAKY = {
    "mean": foreign.GlobalMean,
    "virtual node": foreign.VirtualNode,
    "z-scores": foreign.ZScores,
    "softmax over nodes": foreign.NodeSoftmax,
    "backwards": lambda: GCNConv(WIDTH, CLASSES, flow="target_to_source"),
}


@pytest.mark.parametrize("name", list(LEAKY))
def test_what_leaks_is_refused_as_before(name, data, much):
    report = audit_model(LEAKY[name](), data, num_layers=4)
    assert "message-leak" in {check.slug for check in report.checks}


class OnlyOfManyNodes(GCNConv):
    """Adds the mean of all nodes where there are more than any part of a graph has."""

    def message(self, x_j, edge_weight):
        sent = super().message(x_j, edge_weight)
        return sent + self.of_all if self.of_all is not None else sent

    def forward(self, x, edge_index):
        self.of_all = x.mean() if x.size(0) > NUM_NODES // 2 else None
        return super().forward(x, edge_index)


def test_a_convolution_that_looks_like_a_known_one_is_run_on_the_whole_graph(data, much, seen):
    report = audit_model(OnlyOfManyNodes(WIDTH, CLASSES), data)
    assert max(seen) == NUM_NODES
    assert not report.passed


def test_a_known_convolution_that_was_replaced_is_run_on_the_whole_graph(data, much, seen):
    model = known_model("two GCNConv")
    message = model.conv2.message
    model.conv2.message = lambda x_j, edge_weight: message(x_j, edge_weight) + x_j.mean()
    report = audit_model(model, data)
    assert max(seen) == NUM_NODES
    assert not report.passed


def test_what_kernels_do_not_know_is_evaluated_at_once(data, much):
    loops = data.clone()
    loops.edge_index = torch.cat([data.edge_index, torch.tensor([[0], [0]])], dim=1)
    mixed = known_model("linear first")  # of convolutions that add self-loops and others that do not
    assert engines.scores_by_layers(mixed, loops, sorted_edges(loops.edge_index), np.arange(NUM_NODES)) is None
    with torch.inference_mode():
        expected = mixed(loops.x, sorted_edges(loops.edge_index))
    found = scores_without_smoothing(mixed, loops, np.arange(NUM_NODES), edge_inputs=None)
    assert torch.equal(found, expected)


def test_certificates_are_those_of_the_whole_pass(data, monkeypatch):
    model = graycert.build_model("gcn", data, seed=0).eval()
    options = {
        "smoothing": graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.8),
        "threat": graycert.NodeFeatureThreat(min_distance=1),
        "draws": graycert.Draws(num_selection=20, num_estimation=40),
        "targets": np.arange(0, NUM_NODES, 5),
    }
    expected = graycert.certify(model, data, **options)
    monkeypatch.setattr(whole_pass, "MUCH", -1)
    found = graycert.certify(model, data, **options)
    assert np.array_equal(found.radius, expected.radius)
    assert np.array_equal(found.votes[1].counts, expected.votes[1].counts)
    assert np.array_equal(found.prediction_as_trained, expected.prediction_as_trained)


def test_how_much_a_pass_takes():
    x, model = torch.zeros(3, 2), torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Linear(16, 2))
    assert whole_pass.pass_bytes(model, x, num_edges=10) == 4 * (3 * 2 + 2 * 16 * 10)
    assert whole_pass.pass_bytes(model, x.double(), num_edges=10) == 8 * (3 * 2 + 2 * 16 * 10)
    assert not whole_pass.takes_much(model, x[:0], num_edges=2**21)
    assert whole_pass.takes_much(model, x, num_edges=2**21)
    assert whole_pass.takes_much(model, torch.empty(2**26 + 1, 1, device="meta"), num_edges=0)
