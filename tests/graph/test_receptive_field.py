import networkx as nx
import numpy as np
import pytest

from graycert.errors import InvalidParameterError
from graycert.graph import bottleneck_graph, path_graph, receptive_fields, star_graph, target_blocks
from support.random_graphs import random_edges, to_adjacency


@pytest.mark.few(2)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("num_layers", [1, 2, 3, 5])
def test_fields_and_distances_equal_networkx(directed, num_layers):
    rng = np.random.default_rng(num_layers)
    for _ in range(20):
        num_nodes = int(rng.integers(2, 14))
        edges = random_edges(rng, num_nodes, rng.uniform(0, 0.5), directed=directed)
        reverse = nx.DiGraph()
        reverse.add_nodes_from(range(num_nodes))
        reverse.add_edges_from((target, source) for source, target in edges)
        targets = rng.permutation(num_nodes)[: int(rng.integers(1, num_nodes + 1))]
        fields = receptive_fields(to_adjacency(edges, num_nodes), targets, num_layers=num_layers)
        assert fields.targets.tolist() == targets.tolist()
        for row, target in enumerate(targets.tolist()):
            hops = nx.single_source_shortest_path_length(reverse, target, cutoff=num_layers)
            wanted = sorted((distance, node) for node, distance in hops.items())
            part = slice(fields.indptr[row], fields.indptr[row + 1])
            assert list(zip(fields.distances[part].tolist(), fields.nodes[part].tolist(), strict=True)) == wanted
            assert fields.sizes[row] == len(wanted)


def test_small_and_large_levels_are_sorted():
    rng = np.random.default_rng(4)
    graph = to_adjacency(random_edges(rng, 400, 0.008, directed=True), 400)
    fields = receptive_fields(graph, rng.permutation(400), num_layers=4)
    keys = (fields.rows * 5 + fields.distances) * 400 + fields.nodes
    assert (np.diff(keys) > 0).all()
    levels = np.unique(fields.rows * 5 + fields.distances, return_counts=True)[1]
    assert levels.min() < 400 // 32 < levels.max()


def test_direction_matters():
    graph = to_adjacency([(1, 0)], 2)
    assert receptive_fields(graph, [0, 1], num_layers=2).sizes.tolist() == [2, 1]


@pytest.mark.parametrize("num_layers", [0, 1.5, True])
def test_layers_must_be_a_positive_integer(num_layers):
    with pytest.raises(InvalidParameterError, match="num_layers"):
        receptive_fields(path_graph(2), [0], num_layers=num_layers)


@pytest.mark.parametrize("targets", [[], [2], [-1], [0, 0], [[0]]])
def test_targets_must_be_distinct_nodes(targets):
    with pytest.raises(InvalidParameterError, match="targets"):
        receptive_fields(path_graph(2), targets, num_layers=1)


@pytest.mark.parametrize("max_entries", [1, 7, 30, 10**6])
def test_blocks_keep_the_order_and_the_limit(max_entries):
    rng = np.random.default_rng(0)
    graph = to_adjacency(random_edges(rng, 30, 0.1, directed=True), 30)
    targets = rng.permutation(30)
    blocks = list(target_blocks(graph, targets, num_layers=2, max_entries=max_entries))
    assert np.concatenate(blocks).tolist() == targets.tolist()
    for block in blocks:
        assert block.size == 1 or receptive_fields(graph, block, num_layers=2).nodes.size <= max_entries
    assert max_entries < 10**6 or len(blocks) == 1


def test_toy_graphs():
    assert receptive_fields(star_graph(5), [0, 1], num_layers=2).sizes.tolist() == [6, 6]
    assert receptive_fields(bottleneck_graph(4), [0], num_layers=2).distances.tolist() == [0, 1, 2, 2, 2, 2]
    assert path_graph(1).num_edges == star_graph(0).num_edges == 0
