"""The example with node types, small: what it trains is certified, and its sampler samples what it should."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.loader import NeighborLoader

import graycert

_FILE = Path(__file__).resolve().parents[2] / "examples" / "typed_mini_batches.py"
_SPEC = importlib.util.spec_from_file_location("typed_mini_batches", _FILE)
example = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(example)

NUM_NODES = 300


@pytest.fixture(scope="module")
def data():
    graph = example.generated_graph(NUM_NODES)
    graph[example.WRITES].edge_attr = graph[example.WRITES].edge_index.T.float()
    return graph


def loader(data, limits, **options):
    sampler = example.TypedInNeighborSampler(data, limits)
    inputs = ("paper", data["paper"].train_mask)
    return NeighborLoader(data, limits, inputs, batch_size=16, neighbor_sampler=sampler, **options)


@pytest.mark.deep
def test_a_model_trained_in_batches_with_interception_is_certified_on_the_whole_graph(data):
    found = example.run(data, epochs=80, draws=graycert.Draws(num_selection=40, num_estimation=160)).certificates
    assert len(found) == data["paper"].num_nodes
    assert found.setup.num_layers == 2
    assert (found.prediction == found.labels).mean() > 0.7
    assert (found.radius >= 1).mean() > 0.4


def test_batches_hold_distinct_edges_of_the_graph_at_most_so_many_per_receiver_and_relation(data):
    for batch in loader(data, [3, 2]):
        writes = batch[example.WRITES]
        edges = torch.stack([batch["author"].n_id[writes.edge_index[0]], batch["paper"].n_id[writes.edge_index[1]]])
        assert torch.equal(writes.edge_attr, edges.T.float())
        assert torch.equal(data[example.WRITES].edge_index[:, writes.e_id], edges)
        assert torch.unique(edges, dim=1).size(1) == edges.size(1)
        first = writes.edge_index[1, : writes.num_sampled_edges[0]]
        assert int(first.max()) < batch["paper"].batch_size
        assert int(torch.bincount(first).max()) <= 3
        drawn = graycert.RandomInterception(0.5, 0.0)(batch)
        left = drawn[example.WRITES]
        assert sum(left.num_sampled_edges) == left.num_edges
        assert torch.equal(left.edge_attr[:, 0], drawn["author"].n_id[left.edge_index[0]].float())


def test_with_all_neighbours_a_batch_gives_the_scores_of_the_whole_graph(data):
    torch.manual_seed(0)
    model = example.made_model(data).eval()
    with torch.no_grad():
        whole = model(data.x_dict, data.edge_index_dict)["paper"]
        for batch in loader(data, [NUM_NODES, NUM_NODES]):
            number = batch["paper"].batch_size
            scores = model(batch.x_dict, batch.edge_index_dict)["paper"][:number]
            np.testing.assert_allclose(scores, whole[batch["paper"].n_id[:number]], rtol=1e-4, atol=1e-5)


def test_a_batch_itself_is_not_certified(data):
    batch = next(iter(loader(data, [3, 2])))
    with pytest.raises(graycert.UnsoundSetupError, match="batch-not-graph"):
        graycert.certify(
            example.made_model(data),
            graycert.RandomInterception(0.1, 0.1)(batch),
            smoothing=graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794),
            threat=graycert.NodeFeatureThreat(),
        )


def test_a_batch_without_nodes_of_a_type_is_drawn_from(data):
    batch = data.clone()
    batch["author"].x = batch["author"].x[:0]
    for relation in (example.WRITES, example.WRITTEN_BY):
        batch[relation].edge_index = batch[relation].edge_index[:, :0]
    del batch[example.WRITES].edge_attr
    drawn = graycert.RandomInterception(0.1, {"paper": 0.1, "author": 0.5})(batch)
    assert drawn["author"].x.shape == (0, 8)
    assert 0 < drawn[example.CITES].num_edges < batch[example.CITES].num_edges
