import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.data import load_graph
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import (
    Adjacency,
    as_adjacency,
    bottleneck_graph,
    count_simple_paths,
    path_graph,
    receptive_fields,
    star_graph,
)
from graycert.graph.trees import in_tree, sparsify_to_trees, tree_shaped
from support.random_graphs import random_edges, to_adjacency

FEW_OR_MANY = [150, pytest.param(2_000, marks=pytest.mark.slow)]


def random_graph(rng):
    num_nodes = int(rng.integers(1, 12))
    edges = random_edges(rng, num_nodes, rng.uniform(0.05, 0.5), directed=bool(rng.integers(2)))
    return to_adjacency(edges, num_nodes)


def has_one_path_per_node(graph, num_layers):
    """The definition: for each target, one simple path from every other node of its field."""
    paths = count_simple_paths(graph, np.arange(graph.num_nodes), num_layers=num_layers, max_paths=10**6)
    assert paths.exact.all()
    doubled = (paths.counts.sum(axis=1) > 1).astype(np.int64)
    return np.bincount(paths.rows, weights=doubled, minlength=graph.num_nodes) == 0


def edges_left(graph, kept):
    return Adjacency.from_edge_index([graph.sources[kept], graph.targets[kept]], num_nodes=graph.num_nodes)


@pytest.mark.parametrize("repetitions", FEW_OR_MANY)
def test_tree_shaped_is_one_simple_path_per_node(repetitions):
    rng, trees, fields = np.random.default_rng(0), 0, 0
    for _ in range(repetitions):
        graph = random_graph(rng)
        for num_layers in (1, 2, 3, 4, 6):
            found = tree_shaped(graph, np.arange(graph.num_nodes), num_layers=num_layers)
            np.testing.assert_array_equal(found, has_one_path_per_node(graph, num_layers))
            trees, fields = trees + found.sum(), fields + found.size
    assert 0.2 < trees / fields < 0.9


def test_an_edge_between_the_outermost_nodes_does_no_harm():
    triangle_at_the_end = to_adjacency([(1, 0), (0, 1), (2, 0), (0, 2), (1, 2), (2, 1)], 3)
    assert tree_shaped(triangle_at_the_end, [0], num_layers=1).tolist() == [True]
    assert tree_shaped(triangle_at_the_end, [0], num_layers=2).tolist() == [False]


def test_many_walks_of_a_star_are_still_one_path_each():
    # count_simple_paths can only say "walks" here; the search needs no counts.
    assert not count_simple_paths(star_graph(6), [0], num_layers=5, max_paths=5).exact[0]
    assert tree_shaped(star_graph(6), np.arange(7), num_layers=5).all()


def test_the_share_of_trees_in_the_citation_graphs(data_root):
    # The paper reports 25 % for Cora-ML and two layers.
    cora = as_adjacency(load_graph("cora_ml", data_root=data_root))
    shaped = tree_shaped(cora, np.arange(cora.num_nodes), num_layers=2)
    assert (shaped.sum(), shaped.size) == (709, 2_810)
    np.testing.assert_array_equal(shaped, has_one_path_per_node(cora, 2))
    citeseer = as_adjacency(load_graph("citeseer", data_root=data_root))
    shaped = tree_shaped(citeseer, np.arange(citeseer.num_nodes), num_layers=2)
    assert round(100 * shaped.mean(), 1) == 46.6
    np.testing.assert_array_equal(shaped, has_one_path_per_node(citeseer, 2))


def test_a_tree_lists_the_field_with_its_edges():
    rng, trees = np.random.default_rng(1), 0
    for _ in range(300):
        graph = random_graph(rng)
        num_layers = int(rng.integers(1, 5))
        shaped = tree_shaped(graph, np.arange(graph.num_nodes), num_layers=num_layers)
        for target in np.flatnonzero(shaped).tolist():
            tree = in_tree(graph, target, num_layers=num_layers)
            field = receptive_fields(graph, [target], num_layers=num_layers)
            distance = dict(zip(field.nodes.tolist(), field.distances.tolist(), strict=True))
            assert dict(zip(tree.nodes.tolist(), tree.depths.tolist(), strict=True)) == distance
            assert (np.diff(tree.depths) >= 0).all()
            assert (tree.nodes[0], tree.parents[0], tree.edges[0]) == (target, -1, -1)
            assert (tree.parents < np.arange(tree.nodes.size)).all()
            np.testing.assert_array_equal(graph.sources[tree.edges[1:]], tree.nodes[1:])
            np.testing.assert_array_equal(graph.targets[tree.edges[1:]], tree.nodes[tree.parents[1:]])
            np.testing.assert_array_equal(tree.depths[1:], tree.depths[tree.parents[1:]] + 1)
            trees += tree.nodes.size > 2
        for target in np.flatnonzero(~shaped).tolist():
            with pytest.raises(UnsoundSetupError, match="field-not-a-tree"):
                in_tree(graph, target, num_layers=num_layers)
    assert trees > 300


@pytest.mark.parametrize("repetitions", FEW_OR_MANY)
def test_sparsified_fields_are_trees_and_trees_are_left_alone(repetitions):
    rng = np.random.default_rng(2)
    for _ in range(repetitions):
        graph = random_graph(rng)
        num_layers = int(rng.integers(1, 5))
        targets = rng.permutation(graph.num_nodes)[: int(rng.integers(1, graph.num_nodes + 1))]
        kept = sparsify_to_trees(graph, targets, num_layers=num_layers)
        sparse = edges_left(graph, kept)
        assert tree_shaped(sparse, targets, num_layers=num_layers).all()
        np.testing.assert_array_equal(kept, sparsify_to_trees(graph, np.sort(targets), num_layers=num_layers))
        if tree_shaped(graph, targets, num_layers=num_layers).all():
            assert kept.all()
        thinner = kept & (rng.random(kept.size) < 0.7)
        assert tree_shaped(edges_left(graph, thinner), targets, num_layers=num_layers).all()


def test_a_single_field_keeps_every_node_at_its_distance():
    rng = np.random.default_rng(3)
    for _ in range(300):
        graph = random_graph(rng)
        num_layers = int(rng.integers(1, 5))
        target = int(rng.integers(graph.num_nodes))
        sparse = edges_left(graph, sparsify_to_trees(graph, [target], num_layers=num_layers))
        before = receptive_fields(graph, [target], num_layers=num_layers)
        after = receptive_fields(sparse, [target], num_layers=num_layers)
        np.testing.assert_array_equal(after.nodes, before.nodes)
        np.testing.assert_array_equal(after.distances, before.distances)


def test_putting_back_a_deleted_edge_of_a_single_field_destroys_the_tree():
    rng, deleted = np.random.default_rng(4), 0
    for _ in range(200):
        graph = random_graph(rng)
        target = int(rng.integers(graph.num_nodes))
        kept = sparsify_to_trees(graph, [target], num_layers=3)
        for edge in np.flatnonzero(~kept):
            put_back = kept.copy()
            put_back[edge] = True
            assert not tree_shaped(edges_left(graph, put_back), [target], num_layers=3)[0]
            deleted += 1
    assert deleted > 200


def test_targets_are_treated_one_after_another_on_the_edges_left():
    rng, spared = np.random.default_rng(5), 0
    for _ in range(200):
        graph = random_graph(rng)
        targets = np.flatnonzero(rng.random(graph.num_nodes) < 0.5)
        if targets.size == 0:
            continue
        kept, alone = np.ones(graph.num_edges, dtype=bool), np.ones(graph.num_edges, dtype=bool)
        for target in targets.tolist():
            kept[kept] = sparsify_to_trees(edges_left(graph, kept), [target], num_layers=2)
            alone &= sparsify_to_trees(graph, [target], num_layers=2)
        np.testing.assert_array_equal(sparsify_to_trees(graph, targets, num_layers=2), kept)
        spared += kept.sum() - alone.sum()
    assert spared > 100  # edges that would go if earlier deletions were not taken into account


def test_the_first_of_several_shortest_paths_is_kept():
    # 3 reaches 0 through 1 and through 2: the edge into the larger one goes.
    diamond = to_adjacency([(1, 0), (2, 0), (3, 1), (3, 2)], 4)
    kept = sparsify_to_trees(diamond, [0], num_layers=2)
    assert edges_left(diamond, kept).in_neighbors(2).size == 0
    assert edges_left(diamond, kept).in_neighbors(1).tolist() == [3]


def test_trees_stay_whole():
    for graph in (path_graph(7), star_graph(5), bottleneck_graph(4)):
        assert sparsify_to_trees(graph, np.arange(graph.num_nodes), num_layers=4).all()


@given(seed=st.integers(0, 2**32 - 1), num_layers=st.integers(1, 5))
def test_fewer_edges_or_layers_never_destroy_a_tree(seed, num_layers):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    everyone = np.arange(graph.num_nodes)
    shaped = tree_shaped(graph, everyone, num_layers=num_layers)
    thinner = edges_left(graph, rng.random(graph.num_edges) < 0.7)
    assert tree_shaped(thinner, everyone, num_layers=num_layers)[shaped].all()
    assert tree_shaped(graph, everyone, num_layers=max(1, num_layers - 1))[shaped].all()


@pytest.mark.parametrize("function", [tree_shaped, sparsify_to_trees])
@pytest.mark.parametrize(("name", "value"), [("num_layers", 0), ("targets", [9]), ("targets", [])])
def test_arguments_are_checked(function, name, value):
    arguments = {"targets": [0], "num_layers": 2} | {name: value}
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        function(star_graph(3), arguments.pop("targets"), **arguments)


@pytest.mark.parametrize(("name", "value"), [("num_layers", 0), ("target", 4), ("target", -1), ("target", 1.0)])
def test_arguments_of_a_single_tree_are_checked(name, value):
    arguments = {"target": 0, "num_layers": 2} | {name: value}
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        in_tree(star_graph(3), arguments.pop("target"), **arguments)
