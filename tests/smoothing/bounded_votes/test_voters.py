"""Voters are the nodes with the largest walk weights, by the structure alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from graycert.graph import Adjacency
from graycert.graph.toy_graphs import path_graph, star_graph
from graycert.smoothing.bounded_votes.label_propagation import propagated_labels
from graycert.smoothing.bounded_votes.voters import voters_by_pagerank, voters_by_walks, voters_by_weights
from support.random_graphs import random_edges, to_adjacency

WALKS = {"num_voters": 5, "walk_length": 4, "decay": 0.9}


def random_adjacency(seed, *, density):
    return to_adjacency(random_edges(np.random.default_rng(seed), 20, density, directed=True), 20)


def dense(adjacency):
    """A[v, w] = 1 for an edge w -> v."""
    matrix = np.zeros((adjacency.num_nodes, adjacency.num_nodes))
    matrix[adjacency.targets, adjacency.sources] = 1.0
    return matrix


def steps_of(adjacency):
    matrix = dense(adjacency)
    return matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1.0)


def assert_heaviest(voters, weights, targets, *, num_voters):
    """They weigh as much as the heaviest ones do, heaviest first, the lower index first where weights are equal."""
    for row, target in enumerate(targets):
        own = weights[target].copy()
        own[target] = 0.0
        number = min(num_voters, int(np.count_nonzero(own > 1e-15)))
        found = voters[row][voters[row] >= 0]
        assert found.size == len(set(found.tolist())) == number
        assert target not in found
        np.testing.assert_allclose(own[found], np.sort(own)[::-1][:number], rtol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_walks_are_powers_of_the_transition_matrix(seed):
    adjacency = random_adjacency(seed, density=0.12)
    step, weights = steps_of(adjacency), np.zeros((20, 20))
    power = np.eye(20)
    for place in range(4):
        power = power @ step
        weights += 0.9**place * power
    targets = np.array([3, 0, 19, 7])
    voters = voters_by_walks(adjacency, targets, **WALKS)
    assert_heaviest(voters, weights, targets, num_voters=5)
    one_by_one = [voters_by_walks(adjacency, np.array([target]), **WALKS)[0] for target in targets]
    np.testing.assert_array_equal(voters, one_by_one)


@pytest.mark.parametrize("seed", range(6))
def test_pushes_come_close_to_pagerank(seed):
    adjacency = random_adjacency(seed, density=0.16)
    exact = 0.1 * np.linalg.inv(np.eye(20) - 0.9 * steps_of(adjacency))
    targets = np.arange(20)
    voters = voters_by_pagerank(adjacency, targets, num_voters=4, decay=0.9, tolerance=1e-12)
    assert_heaviest(voters, exact, targets, num_voters=4)
    rough = voters_by_pagerank(adjacency, targets, num_voters=4, decay=0.9, tolerance=1e-2)
    assert np.mean([len(set(a) & set(b)) for a, b in zip(rough.tolist(), voters.tolist(), strict=True)]) > 3


def test_equal_weights_go_to_the_lowest_nodes():
    hub = star_graph(7)
    assert voters_by_walks(hub, np.array([0]), num_voters=3, walk_length=1, decay=0.9).tolist() == [[1, 2, 3]]
    found = voters_by_pagerank(hub, np.array([0]), num_voters=3, decay=0.9, tolerance=1e-3)
    assert found.tolist() == [[1, 2, 3]]


def test_long_walks_and_nodes_that_hear_nobody():
    line = Adjacency.from_edge_index([[0, 1], [1, 2]], num_nodes=3)  # 0 -> 1 -> 2
    for voters in (
        voters_by_walks(line, np.arange(3), num_voters=9, walk_length=900, decay=0.9),
        voters_by_pagerank(line, np.arange(3), num_voters=9, decay=0.9, tolerance=1e-6),
    ):
        assert voters.tolist() == [[-1, -1, -1], [0, -1, -1], [1, 0, -1]]


def test_own_weights_rank_voters():
    matrix = sp.csr_array(np.array([[9.0, 1.0, 0.0, 2.0], [0.0, 5.0, 0.0, 0.0], [1.0, 1.0, 0.0, 1.0], [0.0] * 4]))
    entries = matrix.tocoo()
    triples = np.stack([entries.row, entries.col, entries.data])
    found = voters_by_weights(triples, np.array([2, 0, 1, 3]), num_nodes=4, num_voters=2)
    assert found.tolist() == [[0, 1], [3, 1], [-1, -1], [-1, -1]]


def test_labels_spread_as_dense_matrices_say():
    adjacency, labels = path_graph(5), np.array([0, -1, -1, -1, 1])
    looped = dense(adjacency) + np.eye(5)
    scale = 1 / np.sqrt(looped.sum(axis=1))
    step = scale[:, None] * looped * scale
    start = np.zeros((5, 2))
    start[0, 0] = start[4, 1] = 1.0
    spread = start
    for _ in range(20):
        spread = 0.9 * step @ spread + 0.1 * start
    spread = spread + 1e-12
    found = propagated_labels(adjacency, labels, num_classes=2)
    np.testing.assert_allclose(found, spread / spread.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(found[2], [0.5, 0.5])
    lonely = Adjacency.from_edge_index(np.zeros((2, 0), dtype=np.int64), num_nodes=2)
    assert propagated_labels(lonely, np.array([1, -1]), num_classes=4)[1].tolist() == [0.25] * 4
