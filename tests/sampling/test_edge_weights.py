"""Edge weights in the compiled kernels: vote by vote one forward per draw, and refused where they would be inexact."""

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

import graycert
from graycert.errors import InvalidParameterError
from graycert.sampling import CoinStream, InterceptionSampler, Purpose, ablate, build_engine, choose_engine
from graycert.sampling.kernels.votes import NEAR_TIE
from graycert.sampling.scores import voted_class
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from support.attributed_graphs import random_graph
from support.known_models import CLASSES, WIDTH, shaken

SMOOTHINGS = [InterceptionSmoothing(p_delete=0.3, p_ablate=0.6), InterceptionSmoothing(p_delete=0.5, p_ablate=0.1)]
SAMPLES = 70  # three chunks


class Weighted(nn.Module):
    """As people write it."""

    def __init__(self, first, second):
        super().__init__()
        self.conv1, self.conv2 = first, second

    def forward(self, x, edge_index, edge_weight=None):
        hidden = self.conv1(x, edge_index, edge_weight).relu()
        return self.conv2(hidden, edge_index, edge_weight=edge_weight)


class FirstAlone(Weighted):
    """The second layer knows no weights."""

    def forward(self, x, edge_index, edge_weight):
        return self.conv2(self.conv1(x, edge_index, edge_weight).relu(), edge_index)


class ByKeyword(Weighted):
    """Takes whatever it is given."""

    def forward(self, x, edge_index, **values):
        return super().forward(x, edge_index, **values)


class Doubles(Weighted):
    """Its weights are not those that it is given."""

    def forward(self, x, edge_index, edge_weight):
        return super().forward(x, edge_index, 2 * edge_weight)


def gcn(a=WIDTH, b=8, **options):
    return pyg.GCNConv(a, b, **options)


def graph_conv(a=WIDTH, b=8, **options):
    return pyg.GraphConv(a, b, **options)


KNOWN = {
    "GCN": lambda: Weighted(gcn(), gcn(8, CLASSES)),
    "GCN, three layers": lambda: pyg.GCN(WIDTH, 8, 3, CLASSES),
    "GCN by keyword": lambda: ByKeyword(gcn(), gcn(8, CLASSES)),
    "sums": lambda: Weighted(graph_conv(), graph_conv(8, CLASSES)),
    "means": lambda: Weighted(graph_conv(aggr="mean"), graph_conv(8, CLASSES, aggr="mean")),
    "GCN, then sums": lambda: Weighted(gcn(), graph_conv(8, CLASSES)),
    "GCN, then attention": lambda: FirstAlone(gcn(), pyg.GATConv(8, CLASSES)),
    "sums, then SAGE": lambda: FirstAlone(graph_conv(), pyg.SAGEConv(8, CLASSES)),
    "sums, then GCN without": lambda: FirstAlone(graph_conv(aggr="mean"), gcn(8, CLASSES)),
    "one logit": lambda: graycert.as_node_classifier(Weighted(gcn(), gcn(8, 1)), output="logit"),
    "another call": lambda: graycert.as_node_classifier(
        Weighted(gcn(), gcn(8, CLASSES)),
        call=lambda model, x, edge_index, edge_weight: model(x, edge_index, edge_weight),
    ),
}


def graph(weights="positive", *, parallel=False, **options):
    data = random_graph(**options)
    generator = torch.Generator().manual_seed(7)
    if parallel:
        data.edge_index = torch.cat([data.edge_index, data.edge_index[:, ::2], data.edge_index[:, :1]], dim=1)
    size = data.num_edges
    data.edge_weight = {
        "positive": lambda: 0.1 + torch.rand(size, generator=generator),
        "wide": lambda: 10 ** torch.empty(size).uniform_(-3, 3, generator=generator),
        "some zero": lambda: torch.rand(size, generator=generator).round(),
        "signed": lambda: 0.1 * torch.randn(size, generator=generator),
        "column": lambda: 0.1 + torch.rand(size, 1, generator=generator),
    }[weights]()
    return data


def forward_per_draw(model, data, smoothing, *, first=0):
    """One forward of the whole graph per draw, as its user would call the model."""
    stream = CoinStream(5, Purpose.ESTIMATION)
    sampler = InterceptionSampler.of_graph(smoothing, stream, data.edge_index, num_nodes=data.num_nodes)
    draws = sampler.draw(torch.arange(first, first + SAMPLES))
    with torch.inference_mode():
        return torch.stack(
            [
                model(
                    ablate(data.x, torch.zeros(WIDTH), gone),
                    data.edge_index[:, kept],
                    edge_weight=data.edge_weight[kept],
                )
                for kept, gone in zip(draws.kept, draws.ablated, strict=True)
            ]
        )


def compiled(model, data, smoothing=SMOOTHINGS[0], *, engine="compiled", num_layers=3):
    return choose_engine(
        model,
        data,
        np.arange(data.num_nodes),
        smoothing=smoothing,
        num_layers=num_layers,
        edge_inputs=("edge_weight",),
        engine=engine,
    )


@pytest.mark.deep
@pytest.mark.parametrize("parallel", [False, True], ids=["simple", "parallel"])
@pytest.mark.parametrize("name", KNOWN)
def test_votes_are_those_of_one_forward_per_draw(name, parallel):
    torch.manual_seed(3)
    model, data = shaken(KNOWN[name]()), graph(parallel=parallel)
    for smoothing in SMOOTHINGS:
        engine = compiled(model, data, smoothing)
        assert engine.name.startswith("compiled kernels (weighted ")
        expected = forward_per_draw(model, data, smoothing)
        found = engine.logits(5, Purpose.ESTIMATION, torch.arange(SAMPLES))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))
        votes, near_ties = engine.votes_and_near_ties(5, Purpose.ESTIMATION, num_samples=SAMPLES)
        assert near_ties.sum() == 0
        winners = voted_class(expected)
        np.testing.assert_array_equal(votes, torch.nn.functional.one_hot(winners, votes.shape[1]).sum(dim=0))
        np.testing.assert_array_equal(engine.predictions(5, Purpose.ESTIMATION, num_samples=SAMPLES), winners.T)


@pytest.mark.few(1)
@pytest.mark.parametrize("weights", ["wide", "some zero", "signed", "column"])
@pytest.mark.parametrize("name", ["GCN", "sums", "means"])
def test_whatever_the_weights_are(name, weights):
    torch.manual_seed(3)
    model, data = shaken(KNOWN[name]()), graph(weights, directed=False)
    engine = compiled(model, data, num_layers=2)
    expected = forward_per_draw(model, data, SMOOTHINGS[0])
    found = engine.logits(5, Purpose.ESTIMATION, torch.arange(SAMPLES))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


def test_weights_of_one_are_no_weights_and_others_are_seen():
    torch.manual_seed(3)
    model, data = shaken(KNOWN["GCN"]()), graph()
    with_weights = compiled(model, data).logits(0, Purpose.AUDIT, torch.arange(40))
    data.edge_weight = torch.ones(data.num_edges)
    ones = compiled(model, data).logits(0, Purpose.AUDIT, torch.arange(40))
    without = choose_engine(
        model, data, np.arange(data.num_nodes), smoothing=SMOOTHINGS[0], num_layers=2, edge_inputs=(), engine="compiled"
    ).logits(0, Purpose.AUDIT, torch.arange(40))
    assert torch.equal(ones, without)
    assert float((with_weights - without).abs().max()) > 0.01


@pytest.mark.deep
def test_votes_depend_neither_on_the_order_of_edges_nor_on_targets_or_memory():
    torch.manual_seed(3)
    model, data = shaken(KNOWN["GCN, then sums"]()), graph(parallel=True, num_nodes=30, num_pairs=60)
    reference = compiled(model, data).votes(1, Purpose.SELECTION, num_samples=150)
    order = torch.randperm(data.num_edges, generator=torch.Generator().manual_seed(0))
    shuffled = data.clone()
    shuffled.edge_index, shuffled.edge_weight = data.edge_index[:, order], data.edge_weight[order]
    np.testing.assert_array_equal(compiled(model, shuffled).votes(1, Purpose.SELECTION, num_samples=150), reference)
    options = {"smoothing": SMOOTHINGS[0], "num_layers": 2, "edge_inputs": ("edge_weight",), "engine": "compiled"}
    few = choose_engine(model, data, np.array([8, 3]), memory=1, **options)
    np.testing.assert_array_equal(few.votes(1, Purpose.SELECTION, num_samples=150), reference[[8, 3]])


@pytest.mark.parametrize("name", ["GCN", "sums", "means"])
def test_a_message_that_does_not_arrive_changes_no_bit(name):
    torch.manual_seed(3)
    model, data = shaken(KNOWN[name]()), graph(num_nodes=30, num_pairs=60)
    attacked = data.clone()
    hostile = torch.arange(30) % 7 == 2
    attacked.x[hostile] *= -1e4
    before, after = (
        compiled(model, each).logits(5, Purpose.ESTIMATION, torch.arange(SAMPLES)) for each in (data, attacked)
    )
    stream = CoinStream(5, Purpose.ESTIMATION)
    draws = InterceptionSampler.of_graph(SMOOTHINGS[0], stream, data.edge_index, num_nodes=30).draw(
        torch.arange(SAMPLES)
    )
    unreached = 0
    for sample in range(SAMPLES):
        source, target = data.edge_index[:, draws.kept[sample]]
        reached = hostile & ~draws.ablated[sample]
        for _ in range(2):
            reached = reached.index_fill(0, target[reached[source]], True)
        assert torch.equal(before[sample, ~reached], after[sample, ~reached])
        unreached += int((~reached).sum())
    assert 0 < unreached < before[..., 0].numel()
    assert not torch.equal(before, after)


def with_loops(data, weight):
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[1, 4], [1, 4]])], dim=1)
    data.edge_weight = torch.cat([data.edge_weight, torch.full((2,), weight)])
    return data


def test_loops_of_weight_one_and_loops_that_are_messages_are_known():
    torch.manual_seed(3)
    for name, weight in (("GCN", 1.0), ("sums", 0.4)):
        model, data = shaken(KNOWN[name]()), with_loops(graph(), weight)
        found = compiled(model, data).logits(5, Purpose.ESTIMATION, torch.arange(SAMPLES))
        torch.testing.assert_close(found, forward_per_draw(model, data, SMOOTHINGS[0]), rtol=1e-4, atol=1e-5)


def replaced(data, **values):
    for name, value in values.items():
        data[name] = value
    return data


UNKNOWN = {
    "loops": (KNOWN["GCN"], lambda: with_loops(graph(), 0.5), "self-loops other than 1"),
    "cancel": (KNOWN["GCN"], lambda: replaced(graph(), edge_weight=torch.full((20,), -0.3)), "leave a node a degree"),
    "huge": (KNOWN["sums"], lambda: replaced(graph(), edge_weight=torch.full((20,), 1e9)), "could reach values"),
    "both kinds": (
        lambda: FirstAlone(gcn(), gcn(8, CLASSES)),
        graph,
        "weighted degrees in one layer, and not in another",
    ),
    "doubled": (lambda: Doubles(gcn(), gcn(8, CLASSES)), graph, "is not a chain|more than features and edges"),
    "attributes": (
        lambda: FirstAlone(pyg.GATConv(WIDTH, 8, edge_dim=1), pyg.GATConv(8, CLASSES)),
        graph,
        "more than features and edges",
    ),
    "integers": (
        lambda: FirstAlone(graph_conv(), pyg.SAGEConv(8, CLASSES)),
        lambda: replaced(graph(), edge_weight=torch.ones(20, dtype=torch.long)),
        "of type torch.int64",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_kernels_would_not_compute_exactly_is_drawn_with_pytorch(name):
    make, data, reason = UNKNOWN[name]
    torch.manual_seed(3)
    model, data = shaken(make()), data()
    with pytest.raises(InvalidParameterError, match=reason):
        compiled(model, data)
    engine = compiled(model, data, engine="auto", num_layers=2)
    assert "no compiled kernels because the model" in engine.name
    expected = forward_per_draw(model, data, SMOOTHINGS[0])
    found = engine.logits(5, Purpose.ESTIMATION, torch.arange(SAMPLES))
    scale = float(expected.nan_to_num().abs().max())  # negative degrees have no square root
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * scale, equal_nan=True)


def test_cora_ml_vote_by_vote(data_root):
    data = graycert.load_graph("cora_ml", data_root=data_root)
    data.edge_weight = 0.1 + torch.rand(data.num_edges, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(1)
    model = shaken(Weighted(gcn(data.x.size(1), 16), gcn(16, 7)), factor=0.5)
    targets = np.arange(0, 2810, 40)
    options = {
        "smoothing": InterceptionSmoothing(p_delete=0.31, p_ablate=0.794),
        "num_layers": 2,
        "edge_inputs": ("edge_weight",),
    }
    engine = choose_engine(model, data, targets, engine="compiled", **options)
    plain = build_engine(model, data, targets, **options)
    samples = torch.arange(40)
    with torch.inference_mode():
        ours, theirs = (each.logits(3, Purpose.ESTIMATION, samples) for each in (engine, plain))
    scale = theirs.abs().amax(dim=-1)
    assert ((ours - theirs).abs().amax(dim=-1) <= 0.25 * float(NEAR_TIE) * scale).all()
    top = theirs.topk(2, dim=-1).values
    near = (top[..., 0] - top[..., 1]) <= float(NEAR_TIE) * scale
    assert not ((voted_class(ours) != voted_class(theirs)) & ~near).any()
