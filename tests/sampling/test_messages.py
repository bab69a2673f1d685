"""Wide messages, some receivers after others: the same bits, counts and verdicts, and no large tensor."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, GraphConv, GraphSAGE, SAGEConv
from torch_geometric.utils import sort_edge_index

import graycert
from graycert.audit.depth import count_propagation_steps
from graycert.sampling import messages
from graycert.sampling.as_trained import without_smoothing
from graycert.sampling.memory import peak_bytes
from graycert.sampling.messages import messages_in_parts

NUM_NODES, WIDTH = 90, 40


@pytest.fixture
def data():
    """A graph with a hub, with nodes that receive nothing, and an edge given twice."""
    generator = torch.Generator().manual_seed(0)
    random = torch.randint(NUM_NODES - 5, (2, 300), generator=generator)
    hub = torch.stack([torch.arange(1, 80), torch.zeros(79, dtype=torch.int64)])
    edges = sort_edge_index(torch.cat([random, hub, random[:, :1]], dim=1), sort_by_row=False)
    return Data(x=torch.randn(NUM_NODES, WIDTH, generator=generator), edge_index=edges, y=torch.arange(NUM_NODES) % 3)


@pytest.fixture
def few(monkeypatch):
    """Ten messages at a time."""
    monkeypatch.setattr(messages, "_BYTES", 10 * WIDTH * 4)


def layer(name):
    torch.manual_seed(0)
    if name == "gin":
        return GINConv(torch.nn.Linear(WIDTH, 3)).eval()
    kind, aggr = name.split()
    return {"sage": SAGEConv, "graph": GraphConv}[kind](WIDTH, 3, aggr=aggr).eval()


@pytest.mark.parametrize("name", ["sage mean", "sage sum", "sage max", "graph mean", "graph add", "gin"])
def test_a_layer_gives_the_same_bits_for_less_memory(name, data, few):
    conv, given = layer(name), (data.x, data.edge_index)
    if name == "graph add":
        given = (*given, torch.rand(data.num_edges, generator=torch.Generator().manual_seed(1)))
    calls, message = [], conv.message

    def counting(*arguments, **values):
        made = message(*arguments, **values)
        calls.append(made.size(0))
        return made

    with torch.inference_mode():
        expected, whole = conv(*given), peak_bytes(lambda: conv(*given))
        with messages_in_parts(conv):
            conv.message = counting
            found, taken = conv(*given), peak_bytes(lambda: conv(*given))
            del conv.message
        assert torch.equal(found, expected)
        assert "propagate" not in vars(conv)
        assert torch.equal(conv(*given), expected)
    in_degrees = np.bincount(data.edge_index[1], minlength=NUM_NODES)
    assert sum(calls) == 2 * data.num_edges
    assert max(calls) == in_degrees.max()  # the hub's, which cannot be cut
    assert sorted(calls)[-3] <= 10
    assert taken < whole


def test_edges_in_any_order_and_bipartite_graphs_are_left_as_they_are(data, few):
    conv = layer("sage mean")
    shuffled = data.edge_index[:, torch.randperm(data.num_edges, generator=torch.Generator().manual_seed(2))]
    pair = (data.x, data.x[: NUM_NODES - 5])
    for x, edges in ((data.x, shuffled), (pair, data.edge_index[:, data.edge_index[1] < NUM_NODES - 5])):
        with torch.inference_mode():
            expected = conv(x, edges)
            with messages_in_parts(conv):
                assert torch.equal(conv(x, edges), expected)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_steps_are_counted_as_without_parts(num_layers, data, few):
    model = GraphSAGE(WIDTH, 8, num_layers, 3).eval()
    with torch.inference_mode():
        expected = count_propagation_steps(model, data.x, data.edge_index)
        with messages_in_parts(model):
            counted, scores = count_propagation_steps(model, data.x, data.edge_index)
    assert counted == expected[0] == num_layers
    assert torch.equal(scores, expected[1])


def test_verdict_and_predictions_are_those_of_whole_passes(data, monkeypatch):
    data.edge_index = torch.unique(data.edge_index, dim=1)
    model = GraphSAGE(WIDTH, 8, 2, 3).eval()
    options = {"edge_inputs": None, "device": None, "alone": True}
    expected = without_smoothing(model, data, np.arange(NUM_NODES), **options)
    report = graycert.audit_model(model, data)
    monkeypatch.setattr(messages, "_BYTES", 10 * WIDTH * 4)
    found = without_smoothing(model, data, np.arange(NUM_NODES), **options)
    assert {name: value.tolist() for name, value in found.items()} == {
        name: value.tolist() for name, value in expected.items()
    }
    again = graycert.audit_model(model, data)
    assert again.passed
    assert (again.checks, again.num_layers, again.counted_steps) == (
        report.checks,
        report.num_layers,
        report.counted_steps,
    )
