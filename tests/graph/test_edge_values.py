"""Probabilities follow their edges into other orders."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from graycert.errors import InvalidParameterError
from graycert.graph import as_adjacency, path_graph
from graycert.graph.edge_values import (
    probability_arrays,
    smoothing_from_stored_order,
    smoothing_in_stored_order,
    smoothing_on,
)
from graycert.smoothing.interception.parameters import InterceptionSmoothing

UNIFORM = InterceptionSmoothing(p_delete=0.3, p_ablate=0.8)


def graph_with_loops(seed=0):
    """A shuffled graph with self-loops, and a probability that tells which edge it belongs to."""
    rng = np.random.default_rng(seed)
    edges = np.unique(rng.integers(0, 9, (2, 40)), axis=1)
    edges = np.concatenate([edges[:, edges[0] != edges[1]], [[4, 0], [4, 0]]], axis=1)
    edges = edges[:, rng.permutation(edges.shape[1])]
    return Data(edge_index=torch.from_numpy(edges), num_nodes=9), weights(edges[0], edges[1])


def weights(sources, targets):
    return (10 * np.asarray(sources) + np.asarray(targets)) / 100


def test_adjacency_order():
    data, p_delete = graph_with_loops()
    adjacency = as_adjacency(data)
    found = smoothing_on(data, InterceptionSmoothing(p_delete=p_delete, p_ablate=np.linspace(0, 1, 9)))
    np.testing.assert_array_equal(found.p_delete, weights(adjacency.sources, adjacency.targets))
    np.testing.assert_array_equal(found.p_ablate, np.linspace(0, 1, 9))
    assert smoothing_on(adjacency, found) is found
    edges, nodes = probability_arrays(adjacency, found)
    np.testing.assert_array_equal(edges, found.p_delete)
    np.testing.assert_array_equal(nodes, found.p_ablate)
    only_nodes = InterceptionSmoothing(p_delete=0.3, p_ablate=np.linspace(0, 1, 9))
    assert smoothing_on(data, only_nodes) is only_nodes


def test_numbers_fit_every_graph():
    data, _ = graph_with_loops()
    for graph in (data, as_adjacency(data), sp.csr_array((4, 4))):
        assert smoothing_on(graph, UNIFORM) is UNIFORM
    assert smoothing_in_stored_order(data, UNIFORM) is smoothing_from_stored_order(data, UNIFORM) is UNIFORM
    edges, nodes = probability_arrays(path_graph(3), UNIFORM)
    assert (edges.tolist(), nodes.tolist()) == ([0.3] * 4, [0.8] * 3)


def test_stored_order_survives_another_order_of_the_columns():
    data, p_delete = graph_with_loops()
    stored = smoothing_in_stored_order(data, InterceptionSmoothing(p_delete=p_delete, p_ablate=0.5))
    columns = np.random.default_rng(1).permutation(p_delete.size)
    shuffled = Data(edge_index=data.edge_index[:, columns], num_nodes=9)
    again = smoothing_from_stored_order(shuffled, stored)
    np.testing.assert_array_equal(again.p_delete, p_delete[columns])
    assert smoothing_in_stored_order(shuffled, again) == stored
    assert smoothing_from_stored_order(data, stored).p_delete.tolist() == p_delete.tolist()


def test_wrong_lengths_are_refused():
    data, p_delete = graph_with_loops()
    adjacency = as_adjacency(data)
    columns = InterceptionSmoothing(p_delete=p_delete[:-1], p_ablate=0.5)
    for place in (smoothing_on, smoothing_in_stored_order, smoothing_from_stored_order):
        with pytest.raises(InvalidParameterError, match=rf"`p_delete` .* one entry per column .*\({p_delete.size}\)"):
            place(data, columns)
        with pytest.raises(InvalidParameterError, match=r"`p_ablate` .* one entry per node \(9\), got 8 entries"):
            place(data, InterceptionSmoothing(p_delete=0.5, p_ablate=np.zeros(8)))
    with pytest.raises(InvalidParameterError, match="one entry per edge of the Adjacency"):
        smoothing_on(adjacency, InterceptionSmoothing(p_delete=p_delete, p_ablate=0.5))
    matrix = adjacency.to_csr()
    with pytest.raises(InvalidParameterError, match="must be a number if the graph is a sparse matrix"):
        smoothing_on(matrix, columns)
    with pytest.raises(InvalidParameterError, match="`p_ablate`"):
        smoothing_on(matrix, InterceptionSmoothing(p_delete=0.5, p_ablate=np.zeros(8)))
