import networkx as nx
import numpy as np
import pytest

from graycert.errors import InvalidParameterError
from graycert.graph import Adjacency, count_simple_paths, explicit_simple_paths, receptive_fields, star_graph
from graycert.graph import simple_paths as module
from support.random_graphs import random_edges, to_adjacency


def networkx_counts(edges, num_nodes, source, target, num_layers):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(edges)
    counts = [0] * num_layers
    for path in nx.all_simple_edge_paths(graph, source, target, cutoff=num_layers):
        counts[len(path) - 1] += 1
    return counts


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("directed", [True, False])
def test_counts_equal_networkx(num_layers, directed):
    rng = np.random.default_rng(10 * num_layers + directed)
    for _ in range(12 if num_layers <= 4 else 5):
        num_nodes = int(rng.integers(2, 9))
        edges = random_edges(rng, num_nodes, rng.uniform(0.1, 0.9), directed=directed)
        targets = rng.permutation(num_nodes)[: int(rng.integers(1, num_nodes + 1))]
        paths = count_simple_paths(to_adjacency(edges, num_nodes), targets, num_layers=num_layers)
        fields = receptive_fields(to_adjacency(edges, num_nodes), targets, num_layers=num_layers)
        np.testing.assert_array_equal(paths.sources, fields.nodes)
        np.testing.assert_array_equal(paths.distances, fields.distances)
        assert paths.exact.all()
        for row, source, counts in zip(paths.rows.tolist(), paths.sources.tolist(), paths.counts.tolist(), strict=True):
            target = int(targets[row])
            if source == target:
                assert counts == [0] * num_layers
            else:
                assert counts == networkx_counts(edges, num_nodes, source, target, num_layers)


def test_one_block_or_many_give_the_same(monkeypatch):
    rng = np.random.default_rng(3)
    graph = to_adjacency(random_edges(rng, 20, 0.2, directed=True), 20)
    whole = count_simple_paths(graph, np.arange(20), num_layers=5)
    split = module.target_blocks
    monkeypatch.setattr(module, "target_blocks", lambda *args, **kw: split(*args, **kw, max_entries=25))
    parts = count_simple_paths(graph, np.arange(20), num_layers=5)
    for name in ("targets", "indptr", "sources", "distances", "counts", "exact"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


def test_counts_over_the_cap_are_walks_and_never_smaller():
    rng = np.random.default_rng(5)
    some_capped = some_exact = strictly_more = False
    for _ in range(8):
        edges = random_edges(rng, 8, rng.uniform(0.2, 0.8), directed=bool(rng.integers(2)))
        graph = to_adjacency(edges, 8)
        exact = count_simple_paths(graph, np.arange(8), num_layers=6)
        capped = count_simple_paths(graph, np.arange(8), num_layers=6, max_paths=60)
        np.testing.assert_array_equal(capped.counts[:, :4], exact.counts[:, :4])
        assert (capped.counts >= exact.counts).all()
        per_target = np.array([exact.counts[exact.rows == row].sum() for row in range(8)])
        np.testing.assert_array_equal(capped.exact, per_target <= 60)
        kept = capped.exact[capped.rows]
        np.testing.assert_array_equal(capped.counts[kept], exact.counts[kept])
        strictly_more |= bool((capped.counts > exact.counts).any())
        some_capped |= bool((~capped.exact).any())
        some_exact |= bool(capped.exact.any())
    assert some_capped
    assert some_exact
    assert strictly_more


def test_the_cap_is_the_largest_number_of_paths_that_is_still_enumerated():
    graph = star_graph(6)  # 6 paths end at the centre, 1 + 5 at each leaf
    assert count_simple_paths(graph, [0, 1], num_layers=5, max_paths=6).exact.tolist() == [True, True]
    assert count_simple_paths(graph, [0, 1], num_layers=5, max_paths=5).exact.tolist() == [False, False]


def test_walks_do_not_return_to_the_target():
    # 2 <-> 1 -> 0 <-> 3: a walk of five edges that first meets 0 at its end starts at 1 and bounces 1-2-1-2-1-0.
    graph = Adjacency.from_edge_index([[1, 2, 1, 0, 3], [2, 1, 0, 3, 0]], num_nodes=4)
    paths = count_simple_paths(graph, [0], num_layers=6, max_paths=1)
    assert not paths.exact[0]
    counts = dict(zip(paths.sources.tolist(), paths.counts[:, 4:].tolist(), strict=True))
    assert counts == {0: [0, 0], 1: [1, 0], 2: [0, 1], 3: [0, 0]}


def test_huge_walk_counts_are_rounded_up():
    # In the complete graph, walks that end at the target for the first time number (n - 2)^(l - 1).
    num_nodes, num_layers = 40, 14
    pairs = [(i, j) for i in range(num_nodes) for j in range(num_nodes) if i != j]
    paths = count_simple_paths(to_adjacency(pairs, num_nodes), [0], num_layers=num_layers, max_paths=100)
    for length in range(5, num_layers + 1):
        exact = (num_nodes - 2) ** (length - 1)
        for count in paths.counts[1:, length - 1].tolist():
            assert exact <= int(count) <= exact * (1 + 1e-13)


def test_explicit_paths_agree_with_the_counts():
    rng = np.random.default_rng(11)
    for num_layers in (1, 3, 5):
        graph = to_adjacency(random_edges(rng, 7, 0.5, directed=True), 7)
        paths = count_simple_paths(graph, [0], num_layers=num_layers)
        for source, counts in zip(paths.sources.tolist(), paths.counts.tolist(), strict=True):
            listed = list(explicit_simple_paths(graph, 0, [source], num_layers=num_layers))
            assert len(set(listed)) == len(listed)
            assert all(path[0] == source and path[-1] == 0 and len(set(path)) == len(path) for path in listed)
            lengths = [len(path) - 1 for path in listed]
            assert [lengths.count(length + 1) for length in range(num_layers)] == counts
    assert list(explicit_simple_paths(graph, 0, [0], num_layers=2)) == [(0,)]


@pytest.mark.parametrize(("name", "value"), [("num_layers", 0), ("max_paths", 0), ("targets", [9])])
def test_arguments_are_checked(name, value):
    arguments = {"targets": [0], "num_layers": 2} | {name: value}
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        count_simple_paths(star_graph(3), arguments.pop("targets"), **arguments)


def test_graphs_whose_counts_could_overflow_are_refused():
    leaves = np.arange(1, 1_000_001)
    graph = Adjacency.from_edge_index(np.stack([leaves, np.zeros_like(leaves)]), num_nodes=1_000_001)
    with pytest.raises(InvalidParameterError, match="`num_layers` must be smaller for this graph"):
        count_simple_paths(graph, [0], num_layers=4)
    assert count_simple_paths(graph, [5], num_layers=2).sources.tolist() == [5]
