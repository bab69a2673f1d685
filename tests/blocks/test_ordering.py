"""Targets in an order in which neighbours share blocks: less work is repeated, and results do not show it."""

import numpy as np
import pytest

import graycert
from graycert.blocks.cutting import messages
from graycert.blocks.ordering import better_order, by_hubs
from graycert.graph import as_adjacency
from graycert.problem import Problem
from graycert.setup import Setup
from support.attributed_graphs import random_graph
from support.certified_groups import TARGETS
from support.every_smoothing import CASES, made, model_of, small_graph
from support.random_graphs import random_edges, to_adjacency


def hub_of(node, edges, num_nodes):
    """The neighbour that most edges end at, the first of several, unless the node has as many itself."""
    degree = [sum(node in edge for edge in edges) for node in range(num_nodes)]
    near = {a + b - node for a, b in edges if node in (a, b)}
    best = max((node, *near), key=lambda each: (degree[each], -each))
    return node if best == node else best


@pytest.mark.parametrize("seed", range(8))
def test_a_walk_through_the_trees_of_hubs(seed):
    rng = np.random.default_rng(seed)
    edges = sorted(random_edges(rng, 14, 0.1, directed=True))
    graph = as_adjacency(to_adjacency(edges, 14))
    order = by_hubs(graph, np.arange(14)).tolist()
    assert sorted(order) == list(range(14))
    above = {node: hub_of(node, edges, 14) for node in range(14)}

    def below(root):
        return {root}.union(*(below(node) for node in range(14) if above[node] == root != node))

    for root in range(14):  # whatever hangs below a node follows it at once
        start = order.index(root)
        assert set(order[start : start + len(below(root))]) == below(root)
    some = rng.permutation(14)[:6]
    assert [int(each) for each in some[by_hubs(graph, some)]] == [each for each in order if each in some]


def problem_of(targets, data):
    setup = Setup(
        smoothing=graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.7),
        threat=graycert.NodeFeatureThreat(),
        draws=graycert.Draws(),
        rule="sound",
        num_layers=2,
    )
    return Problem.of(data, targets, setup=setup)


def test_less_work_is_repeated_than_in_the_given_order():
    data = graycert.load_graph("wordnet_nouns")
    for targets in (None, np.random.default_rng(0).permutation(data.num_nodes)):
        problem = problem_of(targets, data)
        order = better_order(problem, 1_000)
        other = problem_of(problem.targets[order], data)
        assert messages(other, 1_000) < messages(problem, 1_000)


def test_the_given_order_stays_where_it_is_as_good():
    problem = problem_of(None, random_graph(num_nodes=40))
    assert (better_order(problem, 40) == np.arange(40)).all()
    assert (better_order(problem, 1) == np.arange(40)).all()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", sorted(set(CASES) - {"no-largest-radius"}))
def test_results_come_in_the_order_of_the_targets(name, monkeypatch):
    order = np.random.default_rng(4).permutation(TARGETS.size)
    monkeypatch.setattr("graycert.blocks.in_blocks.better_order", lambda problem, size: order)
    arguments = {"targets": TARGETS, "alpha": 0.05, "max_radius": 6, "seed": 3, **CASES[name]}
    found = graycert.certify(
        model_of(name), small_graph(), execution=graycert.Execution(block_size=5, say=lambda _: None), **arguments
    )
    expected = made(name)
    for key, (_, array) in expected.every_array().items():
        np.testing.assert_array_equal(found.every_array()[key][1], array, err_msg=key)
