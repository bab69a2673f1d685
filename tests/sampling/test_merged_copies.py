"""Merged computation trees: every target has the tree that it has in its drawn graph, once per distinct tree."""

import pytest
import torch
from torch_geometric.utils import sort_edge_index

from graycert.sampling import CoinStream, InterceptionSampler, Purpose
from graycert.sampling.field_graph import field_graph
from graycert.sampling.merged_copies import MergedCopies
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from support.attributed_graphs import random_graph

STREAM = CoinStream(3, Purpose.ESTIMATION)
NUM_NODES = 30


def tree(row, senders, node, depth):
    """The computation tree of ``node`` as nested tuples: row, then the trees that arrive; "self" for loops."""
    if depth == 0:
        return (row[node],)
    return (row[node], *("self" if w == node else tree(row, senders, w, depth - 1) for w in senders[node]))


def senders_of(edge_index, num_nodes):
    senders = [[] for _ in range(num_nodes)]
    for source, target in edge_index.t().tolist():
        senders[target].append(source)
    return senders


def setup(*, num_layers, self_loops, smoothing, in_degrees=False, samples_per_pass=64, largest=10**9):
    data = random_graph(num_nodes=NUM_NODES, num_pairs=60)
    loops = torch.tensor([[4, 9, 17], [4, 9, 17]]) if self_loops else torch.empty(2, 0, dtype=torch.long)
    edges = sort_edge_index(torch.cat([data.edge_index, loops], dim=1), sort_by_row=False)
    targets = torch.tensor([9, 3, 28, 0])
    field = field_graph(edges, targets, num_nodes=NUM_NODES, num_layers=num_layers)
    draws = MergedCopies(field, num_layers, in_degrees, samples_per_pass, largest)
    drawn = InterceptionSampler.of_graph(smoothing, STREAM, edges, num_nodes=NUM_NODES).draw(torch.arange(50))
    return edges, targets, field, draws, drawn


@pytest.mark.parametrize("p", [(0.3, 0.7), (0.0, 0.0), (0.2, 1.0), (1.0, 0.5)])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_trees_are_those_of_the_drawn_graphs(num_layers, self_loops, p):
    smoothing = InterceptionSmoothing(p_delete=p[0], p_ablate=p[1])
    edges, targets, field, draws, drawn = setup(num_layers=num_layers, self_loops=self_loops, smoothing=smoothing)
    (batch,) = draws.batches(smoothing, STREAM, torch.arange(50))
    names = [*field.nodes.tolist(), "token"]
    rows = [names[row] for row in batch.rows.tolist()]
    senders = senders_of(batch.edge_index, len(rows))
    assert all(len(set(sources)) == len(sources) for sources in senders)  # the graph stays simple
    found = batch.outputs.reshape(50, 4).tolist()
    for sample in range(50):
        row = ["token" if gone else w for w, gone in enumerate(drawn.ablated[sample].tolist())]
        whole = senders_of(edges[:, drawn.kept[sample]], NUM_NODES)
        for target, node in zip(targets.tolist(), found[sample], strict=True):
            assert tree(rows, senders, node, num_layers) == tree(row, whole, target, num_layers)


def test_one_more_step_shows_in_degrees_and_nothing_else():
    smoothing = InterceptionSmoothing(p_delete=0.3, p_ablate=0.4)
    edges, targets, field, draws, drawn = setup(num_layers=2, self_loops=False, smoothing=smoothing, in_degrees=True)
    (batch,) = draws.batches(smoothing, STREAM, torch.arange(50))
    names = [*field.nodes.tolist(), "token"]
    rows = [names[row] for row in batch.rows.tolist()]
    senders = senders_of(batch.edge_index, len(rows))
    found = batch.outputs.reshape(50, 4).tolist()
    for sample in range(50):
        row = ["token" if gone else w for w, gone in enumerate(drawn.ablated[sample].tolist())]
        whole = senders_of(edges[:, drawn.kept[sample]], NUM_NODES)

        def expected(node, depth, row=row, whole=whole):
            if depth == 0:
                return (row[node], *[("token",)] * len(whole[node]))
            return (row[node], *(expected(w, depth - 1) for w in whole[node]))

        for target, node in zip(targets.tolist(), found[sample], strict=True):
            assert tree(rows, senders, node, 3) == expected(target, 2)


def test_equal_trees_are_one_node():
    """Everything ablated: trees differ in shape alone, so that a thousand samples need little more than one."""
    smoothing = InterceptionSmoothing(p_delete=0.3, p_ablate=1.0)
    *_, draws, _ = setup(num_layers=1, self_loops=False, smoothing=smoothing, samples_per_pass=1_000)
    (batch,) = draws.batches(smoothing, STREAM, torch.arange(1_000))
    most = int(torch.bincount(batch.edge_index[1]).max())
    assert batch.rows.numel() <= 2 * most + 1  # tokens that send, and one receiver per in-degree
    assert set(batch.rows.tolist()) == {draws.field.nodes.numel()}


@pytest.mark.parametrize("largest", [1, 60, 300])
def test_batches_are_closed_at_their_size_and_go_on_within_a_sample(largest):
    smoothing = InterceptionSmoothing(p_delete=0.3, p_ablate=0.4)
    options = {"num_layers": 2, "self_loops": True, "smoothing": smoothing}
    *_, field, draws, _ = setup(**options, largest=largest)
    (whole,) = setup(**options)[3].batches(smoothing, STREAM, torch.arange(50))
    batches = list(draws.batches(smoothing, STREAM, torch.arange(50)))
    one = field.nodes.numel() + field.edge_index.size(1)
    assert all(batch.rows.numel() + batch.edge_index.size(1) <= largest + 3 * one for batch in batches)
    assert len(batches) > 2
    assert sum(batch.outputs.numel() for batch in batches) == 50 * 4
    parts = []
    for batch in batches:
        rows, senders = batch.rows.tolist(), senders_of(batch.edge_index, batch.rows.numel())
        parts += [tree(rows, senders, node, 2) for node in batch.outputs.tolist()]
    rows, senders = whole.rows.tolist(), senders_of(whole.edge_index, whole.rows.numel())
    assert parts == [tree(rows, senders, node, 2) for node in whole.outputs.tolist()]
