"""Values per edge follow surviving edges: every way of merging draws casts the votes of one forward per draw."""

import dataclasses

import numpy as np
import pytest
import torch

from graycert.sampling import CoinStream, InterceptionSampler, Purpose, ablate, build_engine
from graycert.sampling.disjoint_copies import DisjointCopies
from graycert.sampling.merged_copies import MergedCopies
from graycert.sampling.scores import voted_class
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.zoo import GIVEN, with_values, zoo_graph

SMOOTHINGS = [InterceptionSmoothing(p_delete=0.3, p_ablate=0.6), InterceptionSmoothing(p_delete=0.6, p_ablate=0.1)]
SAMPLES = 24
TARGETS = np.arange(0, 40, 3)


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        yield


def repeated(data):
    """Return a graph in which every third edge comes twice, one three times, and nodes have loops."""
    loops = torch.arange(0, 12, 2).repeat(2, 1)
    edges = torch.cat([data.edge_index, data.edge_index[:, ::3], data.edge_index[:, 3:4], loops], dim=1)
    data = data.clone()
    data.edge_index = edges[:, torch.randperm(edges.size(1), generator=torch.Generator().manual_seed(3))]
    return data


def one_forward_per_draw(model, data, names, smoothing, purpose):
    """Draw edges and nodes of the whole graph, column by column, and call the model as its user would."""
    sampler = InterceptionSampler.of_graph(smoothing, CoinStream(5, purpose), data.edge_index, num_nodes=data.num_nodes)
    draws = sampler.draw(torch.arange(SAMPLES))
    scores = []
    with torch.inference_mode():
        for kept, ablated in zip(draws.kept, draws.ablated, strict=True):
            values = {name: data[name][kept] for name in names}
            x = ablate(data.x, torch.zeros(data.x.size(1)), ablated)
            scores.append(model.eval()(x, data.edge_index[:, kept], **values)[torch.tensor(TARGETS)])
    return torch.stack(scores)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", list(GIVEN))
@pytest.mark.parametrize("parallel", [False, True], ids=["simple", "parallel"])
def test_every_way_of_merging_draws_gives_the_votes_of_one_forward_per_draw(name, parallel):
    data = with_values(repeated(zoo_graph()) if parallel else zoo_graph())
    exhibit = GIVEN[name]
    model = exhibit.make(data).eval()
    for smoothing in SMOOTHINGS:
        engine = build_engine(
            model, data, TARGETS, smoothing=smoothing, num_layers=exhibit.depth, edge_inputs=exhibit.edge_inputs
        )
        expected = one_forward_per_draw(model, data, exhibit.edge_inputs, smoothing, Purpose.ESTIMATION)
        scale = float(expected.abs().max())
        found = engine.logits(5, Purpose.ESTIMATION, torch.arange(SAMPLES))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * scale)
        np.testing.assert_array_equal(
            engine.predictions(5, Purpose.ESTIMATION, num_samples=SAMPLES), voted_class(expected).T.numpy()
        )


@pytest.mark.parametrize("name", ["GATv2Conv, attributes", "GINEConv, attributes", "RGCNConv, relations"])
def test_so_does_each_way_that_was_not_chosen(name):
    """Convolutions that read no degree of their senders compute the same however a pass is made."""
    data = with_values(repeated(zoo_graph()))
    exhibit = GIVEN[name]
    chosen = build_engine(
        exhibit.make(data).eval(),
        data,
        TARGETS,
        smoothing=SMOOTHINGS[1],
        num_layers=exhibit.depth,
        edge_inputs=exhibit.edge_inputs,
    )
    expected = chosen.logits(5, Purpose.ESTIMATION, torch.arange(SAMPLES))
    for draws in (
        DisjointCopies(chosen.field, 7),
        MergedCopies(chosen.field, exhibit.depth, False, 256, 10**6),
        MergedCopies(chosen.field, exhibit.depth, True, 256, 10**6),
        MergedCopies(chosen.field, exhibit.depth, False, 5, 300),
    ):
        found = dataclasses.replace(chosen, draws=draws).logits(5, Purpose.ESTIMATION, torch.arange(SAMPLES))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


def test_equal_values_are_one_row_and_more_draws_share_a_pass():
    data = with_values(zoo_graph())
    exhibit = GIVEN["RGCNConv, relations"]
    engine = build_engine(
        exhibit.make(data), data, TARGETS, smoothing=SMOOTHINGS[0], num_layers=2, edge_inputs=("edge_type",)
    )
    assert engine.model.inputs.num_rows == 3
    assert "equal subtrees merged" in engine.name


def test_votes_do_not_depend_on_the_order_of_edges():
    data = with_values(repeated(zoo_graph()))
    exhibit = GIVEN["NNConv, attributes"]
    model = exhibit.make(data).eval()
    shuffled = data.clone()
    order = torch.randperm(data.edge_index.size(1))
    shuffled.edge_index, shuffled.edge_attr = data.edge_index[:, order], data.edge_attr[order]
    found = [
        build_engine(model, each, TARGETS, smoothing=SMOOTHINGS[1], num_layers=2, edge_inputs=("edge_attr",)).logits(
            0, Purpose.ESTIMATION, torch.arange(SAMPLES)
        )
        for each in (data, shuffled)
    ]
    assert torch.equal(*found)
