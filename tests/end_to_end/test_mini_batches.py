"""The example with `NeighborLoader`, small: what it trains is certified, and its sampler samples what it should."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.loader import NeighborLoader

import graycert

_FILE = Path(__file__).resolve().parents[2] / "examples" / "mini_batches.py"
_SPEC = importlib.util.spec_from_file_location("mini_batches", _FILE)
example = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(example)

NUM_NODES = 300


@pytest.fixture(scope="module")
def data():
    graph = example.generated_graph(NUM_NODES)
    graph.ends = graph.edge_index.T.float()
    return graph


def loader(data, limits, **options):
    sampler = example.InNeighborSampler(data.edge_index, NUM_NODES, limits)
    return NeighborLoader(data, limits, data.train_mask, batch_size=32, neighbor_sampler=sampler, **options)


@pytest.mark.deep
@pytest.mark.parametrize("name", list(example.MODELS))
def test_a_model_trained_in_batches_with_interception_is_certified_on_the_whole_graph(name, data):
    draws = graycert.Draws(num_selection=60, num_estimation=200)
    found = example.run(name, data, epochs=60, draws=draws, engine="torch").certificates
    assert len(found) == NUM_NODES
    assert found.setup.num_layers == 2
    assert found.setup.edge_inputs == example.EDGE_INPUTS[name]
    assert (found.prediction == data.y.numpy()).mean() > 0.8
    assert (found.radius >= 1).mean() > 0.2


def test_batches_hold_distinct_edges_of_the_graph_at_most_so_many_per_receiver(data):
    pairs = {tuple(pair) for pair in data.edge_index.T.tolist()}
    for batch in loader(data, [3, 2]):
        edges = batch.n_id[batch.edge_index]
        assert torch.equal(batch.ends, edges.T.float())
        assert torch.equal(data.edge_index[:, batch.e_id], edges)
        found = [tuple(pair) for pair in edges.T.tolist()]
        assert set(found) <= pairs
        first = batch.edge_index[:, : batch.num_sampled_edges[0]]
        assert int(first[1].max()) < batch.batch_size
        assert len(set(found)) == len(found)
        assert int(torch.bincount(first[1]).max()) <= 3
        drawn = graycert.RandomInterception(0.5, 0.0)(batch)
        assert torch.equal(drawn.ends, drawn.n_id[drawn.edge_index].T.float())
        assert sum(drawn.num_sampled_edges) == drawn.num_edges
        assert drawn.batch_size == batch.batch_size


def test_with_all_neighbours_a_batch_gives_the_scores_of_the_whole_graph(data):
    torch.manual_seed(0)
    model = example.MODELS["GATv2"]().eval()
    with torch.no_grad():
        whole = model(data.x, data.edge_index, edge_attr=data.edge_attr)
        for batch in loader(data, [NUM_NODES, NUM_NODES]):
            scores = model(batch.x, batch.edge_index, edge_attr=batch.edge_attr)[: batch.batch_size]
            np.testing.assert_allclose(scores, whole[batch.n_id[: batch.batch_size]], rtol=1e-4, atol=1e-5)


def test_a_batch_itself_is_not_certified(data):
    batch = next(iter(loader(data, [3, 2])))
    with pytest.raises(graycert.UnsoundSetupError, match="batch-not-graph"):
        graycert.certify(
            example.MODELS["GraphSAGE"](),
            graycert.RandomInterception(0.1, 0.1)(batch),
            smoothing=graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794),
            threat=graycert.NodeFeatureThreat(),
        )
