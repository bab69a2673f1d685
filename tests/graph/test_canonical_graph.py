"""Probabilities follow their edges into the one order that everything is computed and stored in, and back."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from graycert import NodeFeatureThreat, delta_bounds
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import CanonicalGraph, as_adjacency, path_graph, probability_arrays
from graycert.smoothing.interception.parameters import InterceptionSmoothing

UNIFORM = InterceptionSmoothing(p_delete=0.3, p_ablate=0.8)
OTHERS = NodeFeatureThreat(min_distance=1)


def graph_with_loops(seed=0):
    """A shuffled graph with self-loops, and a probability that tells which edge it belongs to."""
    rng = np.random.default_rng(seed)
    edges = np.unique(rng.integers(0, 9, (2, 40)), axis=1)
    edges = np.concatenate([edges[:, edges[0] != edges[1]], [[4, 0], [4, 0]]], axis=1)
    edges = edges[:, rng.permutation(edges.shape[1])]
    return Data(edge_index=torch.from_numpy(edges), num_nodes=9), weights(edges[0], edges[1])


def weights(sources, targets):
    return (10 * np.asarray(sources) + np.asarray(targets)) / 100


def canonical(graph, smoothing):
    return smoothing.with_canonical_edges(CanonicalGraph.of(graph).sorted)


def on_adjacency(graph, smoothing):
    return canonical(graph, smoothing).with_canonical_edges(CanonicalGraph.of(graph).proper)


def test_canonical_order_is_by_target_and_source_with_self_loops():
    data, p_delete = graph_with_loops()
    graph = CanonicalGraph.of(data)
    sources, targets = data.edge_index.numpy()[:, graph.order]
    assert np.lexsort((sources, targets)).tolist() == list(range(p_delete.size))
    assert graph.num_edges == p_delete.size
    assert graph.num_nodes == 9
    assert graph.is_proper.tolist() == (sources != targets).tolist()
    np.testing.assert_array_equal(graph.sorted(p_delete), weights(sources, targets))


def test_adjacency_order():
    data, p_delete = graph_with_loops()
    adjacency = as_adjacency(data)
    found = on_adjacency(data, InterceptionSmoothing(p_delete=p_delete, p_ablate=np.linspace(0, 1, 9)))
    np.testing.assert_array_equal(found.p_delete, weights(adjacency.sources, adjacency.targets))
    np.testing.assert_array_equal(found.p_ablate, np.linspace(0, 1, 9))
    assert on_adjacency(adjacency, found) == found
    edges, nodes = probability_arrays(adjacency, found)
    np.testing.assert_array_equal(edges, found.p_delete)
    np.testing.assert_array_equal(nodes, found.p_ablate)
    only_nodes = InterceptionSmoothing(p_delete=0.3, p_ablate=np.linspace(0, 1, 9))
    assert on_adjacency(data, only_nodes) is only_nodes


def test_numbers_fit_every_graph():
    data, _ = graph_with_loops()
    for graph in (data, as_adjacency(data), sp.csr_array((4, 4))):
        assert on_adjacency(graph, UNIFORM) is canonical(graph, UNIFORM) is UNIFORM
    edges, nodes = probability_arrays(path_graph(3), UNIFORM)
    assert (edges.tolist(), nodes.tolist()) == ([0.3] * 4, [0.8] * 3)


def test_canonical_order_survives_another_order_of_the_columns():
    data, p_delete = graph_with_loops()
    graph = CanonicalGraph.of(data)
    stored = canonical(data, InterceptionSmoothing(p_delete=p_delete, p_ablate=0.5))
    columns = np.random.default_rng(1).permutation(p_delete.size)
    shuffled = CanonicalGraph.of(Data(edge_index=data.edge_index[:, columns], num_nodes=9))
    assert shuffled.fingerprint == graph.fingerprint
    again = stored.with_canonical_edges(shuffled.in_columns)
    np.testing.assert_array_equal(again.p_delete, p_delete[columns])
    assert again.with_canonical_edges(shuffled.sorted) == stored
    assert stored.with_canonical_edges(graph.in_columns).p_delete.tolist() == p_delete.tolist()


def test_fingerprint_is_that_of_the_edges_without_self_loops():
    data, _ = graph_with_loops()
    without = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    fingerprint = CanonicalGraph.of(data).fingerprint
    assert CanonicalGraph.of(Data(edge_index=without, num_nodes=9)).fingerprint == fingerprint
    assert CanonicalGraph.of(as_adjacency(data)).fingerprint == fingerprint
    assert CanonicalGraph.of(Data(edge_index=without, num_nodes=10)).fingerprint != fingerprint
    assert CanonicalGraph.of(Data(edge_index=without[:, 1:], num_nodes=9)).fingerprint != fingerprint


def test_wrong_lengths_are_refused():
    data, p_delete = graph_with_loops()
    adjacency = as_adjacency(data)
    columns = InterceptionSmoothing(p_delete=p_delete[:-1], p_ablate=0.5)
    nodes = InterceptionSmoothing(p_delete=0.5, p_ablate=np.zeros(8))

    def bounds(graph, smoothing):
        return delta_bounds(graph, [0], smoothing=smoothing, threat=OTHERS, num_layers=2)

    for place in (canonical, bounds):
        with pytest.raises(InvalidParameterError, match=rf"`p_delete` .* one entry per column .*\({p_delete.size}\)"):
            place(data, columns)
        with pytest.raises(InvalidParameterError, match="one entry per edge of the Adjacency"):
            place(adjacency, InterceptionSmoothing(p_delete=p_delete, p_ablate=0.5))
        with pytest.raises(InvalidParameterError, match="must be a number if the graph is a sparse matrix"):
            place(adjacency.to_csr(), columns)
    for graph in (data, adjacency, adjacency.to_csr()):
        with pytest.raises(InvalidParameterError, match=r"`p_ablate` .* one entry per node \(9\), got 8 entries"):
            bounds(graph, nodes)


def test_parallel_edges_are_refused():
    with pytest.raises(UnsoundSetupError, match="parallel-edges"):
        CanonicalGraph.of(Data(edge_index=torch.tensor([[1, 1], [0, 0]]), num_nodes=2))
