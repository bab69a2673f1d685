"""Draws from φ and the part of the graph that they are applied to."""

import numpy as np
import pytest
import torch

from graycert.sampling import CoinStream, InterceptionSampler, Purpose, ablate
from graycert.sampling.field_graph import field_graph, whole_graph
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from support.attributed_graphs import random_graph
from support.reference_coins import is_intercepted

SMOOTHING = InterceptionSmoothing(p_delete=0.4, p_ablate=0.7)


def test_draw_is_the_coins_of_edges_and_nodes():
    data = random_graph()
    sampler = InterceptionSampler.of_graph(SMOOTHING, CoinStream(5, Purpose.SELECTION), data.edge_index, num_nodes=14)
    draw = sampler.draw(torch.tensor([3, 9]))
    for row, sample in enumerate((3, 9)):
        edges = [s * 14 + t for s, t in data.edge_index.t().tolist()]
        assert draw.kept[row].tolist() == [not is_intercepted(5, "selection", "edge", sample, e, 0.4) for e in edges]
        assert draw.ablated[row].tolist() == [is_intercepted(5, "selection", "node", sample, w, 0.7) for w in range(14)]


def test_edge_order_does_not_matter():
    data = random_graph()
    shuffled = data.edge_index.flip(1)
    stream, samples = CoinStream(5, Purpose.SELECTION), torch.arange(20)
    first = InterceptionSampler.of_graph(SMOOTHING, stream, data.edge_index, num_nodes=14).draw(samples)
    second = InterceptionSampler.of_graph(SMOOTHING, stream, shuffled, num_nodes=14).draw(samples)
    assert torch.equal(first.kept, second.kept.flip(1))
    assert torch.equal(first.ablated, second.ablated)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_field_holds_every_edge_into_the_receptive_field_with_its_own_coins(directed, num_layers):
    data = random_graph(num_nodes=40, num_pairs=50, directed=directed)
    targets = torch.tensor([4, 39, 11])
    field = field_graph(data.edge_index, targets, num_nodes=40, num_layers=num_layers)
    assert field.nodes[field.targets].tolist() == targets.tolist()
    edges = data.edge_index.t().tolist()
    reach = set(targets.tolist())
    for _ in range(num_layers):
        reach |= {source for source, target in edges if target in reach}
    wanted = [(source, target) for source, target in edges if target in reach]
    found = field.nodes[field.edge_index].t().tolist()
    assert [tuple(edge) for edge in found] == wanted
    assert set(field.nodes.tolist()) == reach | {source for source, _ in wanted}
    assert len(wanted) < len(edges) or not directed
    stream, samples = CoinStream(1, Purpose.ESTIMATION), torch.arange(30)
    part = InterceptionSampler(SMOOTHING, stream, field.edge_ids, field.nodes).draw(samples)
    whole = whole_graph(data.edge_index, targets, num_nodes=40)
    everything = InterceptionSampler(SMOOTHING, stream, whole.edge_ids, whole.nodes).draw(samples)
    positions = [edges.index(list(edge)) for edge in wanted]
    assert torch.equal(part.kept, everything.kept[:, positions])
    assert torch.equal(part.ablated, everything.ablated[:, field.nodes])


def test_ablation_selects_rows_so_that_nothing_survives():
    x = torch.tensor([[1.0, float("nan")], [float("inf"), 2.0], [3.0, 4.0]])
    token = torch.tensor([7.0, 8.0])
    ablated = torch.tensor([[True, False, False], [True, True, True]])
    out = ablate(x, token, ablated)
    assert out.shape == (2, 3, 2)
    np.testing.assert_array_equal(out[0].numpy(), [[7, 8], [np.inf, 2], [3, 4]])
    np.testing.assert_array_equal(out[1].numpy(), [[7, 8]] * 3)
