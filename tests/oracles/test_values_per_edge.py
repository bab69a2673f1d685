"""Values per edge, parallel edges, hostile values: every outcome of every coin, for a model that forgets nothing."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graycert import InterceptionSmoothing, NodeFeatureThreat, delta_bounds
from graycert.bounds.evaluation import evaluate_deltas
from graycert.graph import CanonicalGraph
from graycert.sampling import CoinStream, InterceptionSampler, Purpose
from support.random_graphs import random_edges

TIGHT = Fraction(1, 10**12)


def multigraph(rng):
    """Return the number of nodes, and edges with values: up to three per pair, on at most seven pairs."""
    while True:
        num_nodes = int(rng.integers(3, 6))
        pairs = random_edges(rng, num_nodes, rng.uniform(0.2, 0.7), directed=True)
        if 0 < len(pairs) <= 7:
            break
    edges = [(*pair, int(rng.integers(3))) for pair in pairs for _ in range(int(rng.integers(1, 4)))]
    return num_nodes, edges


def state(edges, features, target, num_layers, *, counts=False):
    """Return all that a model can know of the target: its own state, and values and states of what arrives.

    With ``counts`` a node also knows the values of its own in-edges from the start, as weighted degrees need.
    """
    states = {
        node: (row, tuple(sorted(str(value) for _, b, value in edges if counts and b == node)))
        for node, row in features.items()
    }
    for _ in range(num_layers):
        states = {
            node: (mine, tuple(sorted((str(value), repr(states[a])) for a, b, value in edges if b == node)))
            for node, mine in states.items()
        }
    return states[target]


def chance_of_change(edges, num_nodes, hostile, num_layers, p_delete, p_ablate, coin_of):
    """Return the exact probability that the state of node 0 depends on the features of hostile nodes."""
    coins = sorted({coin_of(number, edge) for number, edge in enumerate(edges)})
    total = Fraction(0)
    for kept in itertools.product((True, False), repeat=len(coins)):
        survives = dict(zip(coins, kept, strict=True))
        left = [edge for number, edge in enumerate(edges) if survives[coin_of(number, edge)]]
        weight = Fraction(1)
        for each in kept:
            weight *= 1 - p_delete if each else p_delete
        for ablated in itertools.product((True, False), repeat=len(hostile)):
            hidden = dict(zip(hostile, ablated, strict=True))
            share = weight
            for each in ablated:
                share *= p_ablate if each else 1 - p_ablate
            clean, attacked = (
                {
                    node: "token" if hidden.get(node) else (word if node in hostile else node)
                    for node in range(num_nodes)
                }
                for word in ("clean", "hostile")
            )
            if state(left, clean, 0, num_layers) != state(left, attacked, 0, num_layers):
                total += share
    return total


def test_delta_of_the_merged_graph_covers_every_set_and_is_exact_for_two_layers():
    rng = np.random.default_rng(0)
    for _ in range(25):
        num_nodes, edges = multigraph(rng)
        p_delete, p_ablate = (float(rng.choice([0.31, 0.5, rng.random()])) for _ in range(2))
        num_layers = int(rng.integers(1, 4))
        graph = CanonicalGraph.of(as_data(edges, num_nodes), merge_parallel=True)
        deltas = evaluate_deltas(
            graph.adjacency,
            [0],
            smoothing=InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate),
            threat=NodeFeatureThreat(min_distance=1),
            num_layers=num_layers,
            max_radius=2,
        )
        for radius in (1, 2):
            worst = max(
                chance_of_change(
                    edges,
                    num_nodes,
                    hostile,
                    num_layers,
                    Fraction(p_delete),
                    Fraction(p_ablate),
                    lambda _, edge: edge[:2],
                )
                for hostile in itertools.combinations(range(1, num_nodes), radius)
            )
            bound = Fraction(float(deltas.delta_upper[0, radius - 1]))
            assert bound >= worst
            if num_layers <= 2:
                assert bound - worst <= TIGHT


def test_a_coin_per_edge_would_exceed_the_bound():
    edges, half = [(1, 0, 0), (1, 0, 1)], Fraction(1, 2)
    shared = chance_of_change(edges, 2, (1,), 1, half, Fraction(0), lambda _, edge: edge[:2])
    apart = chance_of_change(edges, 2, (1,), 1, half, Fraction(0), lambda number, _: number)
    assert (shared, apart) == (half, Fraction(3, 4))


def as_data(edges, num_nodes):
    return Data(edge_index=torch.tensor([edge[:2] for edge in edges]).T.contiguous(), num_nodes=num_nodes)


def test_the_sampler_flips_one_coin_for_all_edges_of_a_pair():
    rng = np.random.default_rng(1)
    num_nodes, edges = multigraph(rng)
    columns = as_data(edges, num_nodes).edge_index
    sampler = InterceptionSampler.of_graph(
        InterceptionSmoothing(p_delete=0.5, p_ablate=0.0),
        CoinStream(0, Purpose.ESTIMATION),
        columns,
        num_nodes=num_nodes,
    )
    kept = sampler.draw(torch.arange(200)).kept
    for one, two in itertools.combinations(range(len(edges)), 2):
        same_pair = bool((columns[:, one] == columns[:, two]).all())
        assert torch.equal(kept[:, one], kept[:, two]) is same_pair


def chance_of_change_by_values(edges, num_nodes, hostile, num_layers, p_delete, *, counts):
    """Return the exact probability that node 0 notices features of hostile nodes or values of edges that they touch."""
    pairs = sorted({edge[:2] for edge in edges})
    total = Fraction(0)
    rows = dict.fromkeys(range(num_nodes), "token")  # all nodes are ablated: that hides no value
    for kept in itertools.product((True, False), repeat=len(pairs)):
        survives = dict(zip(pairs, kept, strict=True))
        left = [edge for edge in edges if survives[edge[:2]]]
        changed = [(a, b, "hostile" if {a, b} & set(hostile) else value) for a, b, value in left]
        before, after = (state(each, rows, 0, num_layers, counts=counts) for each in (left, changed))
        if before != after:
            total += np.prod([1 - p_delete if each else p_delete for each in kept], dtype=object)
    return total


HOSTILE_VALUES = NodeFeatureThreat(min_distance=1, hostile_edge_inputs=True)


@pytest.mark.few(1)
@pytest.mark.parametrize("counts", [False, True], ids=["local", "weighted degrees"])
def test_delta_covers_hostile_values_of_edges(counts):
    rng = np.random.default_rng(2)
    for _ in range(25):
        num_nodes, edges = multigraph(rng)
        p_delete, num_layers = float(rng.choice([0.31, 0.5, rng.random()])), int(rng.integers(1, 4))
        graph = CanonicalGraph.of(as_data(edges, num_nodes), merge_parallel=True)
        deltas = delta_bounds(
            graph.adjacency,
            [0],
            smoothing=InterceptionSmoothing(p_delete=p_delete, p_ablate=0.9),
            threat=HOSTILE_VALUES,
            num_layers=num_layers,
            max_radius=2,
        )
        for radius in (1, 2):
            for hostile in itertools.combinations(range(1, num_nodes), radius):
                exact = chance_of_change_by_values(
                    edges, num_nodes, hostile, num_layers, Fraction(p_delete), counts=counts
                )
                assert Fraction(float(deltas.delta_upper[0, radius - 1])) >= exact


def test_one_hop_more_is_needed_for_weighted_degrees_and_attained():
    edges = [(2, 1, 0), (1, 0, 0)]
    options = {"smoothing": InterceptionSmoothing(p_delete=0.5, p_ablate=0.9), "num_layers": 1, "max_radius": 1}
    graph = CanonicalGraph.of(as_data(edges, 3)).adjacency
    far = NodeFeatureThreat(min_distance=2, hostile_edge_inputs=True)
    exact = chance_of_change_by_values(edges, 3, (2,), 1, Fraction(1, 2), counts=True)
    assert exact == Fraction(1, 4)
    bound = Fraction(float(delta_bounds(graph, [0], threat=far, **options).delta_upper[0, 0]))
    assert 0 <= bound - exact <= TIGHT
    assert delta_bounds(graph, [0], threat=far.features_alone(), **options).delta_upper[0, 0] == 0


def test_an_edge_out_of_a_hostile_node_is_enough_although_the_node_is_ablated():
    edges = [(1, 0, 0)]
    exact = chance_of_change_by_values(edges, 2, (1,), 1, Fraction(1, 2), counts=False)
    assert exact == Fraction(1, 2)
