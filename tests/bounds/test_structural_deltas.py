"""Structural changes against every outcome of every coin: what is noticed, how likely, and the bound on it."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert import InterceptionSmoothing, delta_bounds
from graycert.bounds.structural import edge_deletion_bounds
from graycert.errors import InvalidParameterError
from graycert.threats.structural import EdgeDeletionThreat, NodeDeletionThreat, NodeInsertionThreat
from support.enumeration import hop_distances
from support.random_graphs import random_edges, to_adjacency
from support.symbolic_messages import probability, reach_of_all_draws, state, states_of_all_draws

TIGHT = Fraction(1, 10**12)
FAMILIES = ("local", "degree-normalised")
CASES = [(directed, family, k) for directed in (True, False) for family in FAMILIES for k in (1, 2, 3, 4)]
ALMOST_ZERO = 2.0**-60  # p_d = 0 itself is refused


def small_graph(rng, directed, max_edges):
    while True:
        num_nodes = int(rng.integers(2, 6))
        edges = random_edges(rng, num_nodes, rng.uniform(0.15, 0.9), directed=directed)
        if 0 < len(edges) <= max_edges:
            return num_nodes, edges


def draw_probability(rng):
    return float(rng.choice([ALMOST_ZERO, 1.0, 0.31, rng.random(), rng.random()]))


def partly_ablated(rng, num_nodes):
    return {node: "token" if rng.random() < 0.4 else node for node in range(num_nodes)}


def bounds(edges, num_nodes, p_delete, threat, num_layers, p_ablate=0.0, max_radius=3):
    smoothing = InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)
    graph = to_adjacency(edges, num_nodes)
    found = delta_bounds(graph, [0], smoothing=smoothing, threat=threat, num_layers=num_layers, max_radius=max_radius)
    return found.delta_upper[0].tolist()


def noticed(states, edges, removed):
    """In which draws the target's state differs once the edges ``removed`` are gone."""
    stay = sum(1 << i for i, edge in enumerate(edges) if edge not in removed)
    return states != states[np.arange(states.size) & stay]


def compare(changes, bound, p_delete, exact_single):
    """Check Δ̄(ρ) against the largest probability over all sets of ρ; ``changes[set]`` marks the draws."""
    for radius in (1, 2, 3):
        worst = max((probability(changes[s], p_delete) for s in changes if len(s) <= radius), default=Fraction(0))
        assert Fraction(bound[radius - 1]) >= worst
        if radius == 1 and exact_single:
            assert Fraction(bound[0]) - worst <= TIGHT


def check_nodes(seed, directed, family, num_layers, num_graphs, max_edges):
    rng = np.random.default_rng([seed, directed, num_layers])
    for _ in range(num_graphs):
        num_nodes, edges = small_graph(rng, directed, max_edges)
        p_delete, min_distance = draw_probability(rng), int(rng.integers(1, 4))
        threat = NodeDeletionThreat(convolution=family, min_distance=min_distance)
        reach = threat.reach(num_layers)
        states = states_of_all_draws(
            edges, partly_ablated(rng, num_nodes), 0, num_layers=num_layers, family=family, names={}
        )
        distances = hop_distances(edges, 0, reach)
        others = range(1, num_nodes)
        changes = {}
        for deleted in itertools.chain.from_iterable(itertools.combinations(others, size) for size in (1, 2, 3)):
            change = noticed(states, edges, {edge for edge in edges if set(edge) & set(deleted)})
            event = np.logical_or.reduce([reach_of_all_draws(edges, node, 0, reach) for node in deleted])
            assert (change == event).all()  # neither more nor less than a path of `reach` edges, whatever is ablated
            if all(distances.get(node, reach + 1) >= min_distance for node in deleted):
                changes[deleted] = change
        compare(changes, bounds(edges, num_nodes, p_delete, threat, num_layers), Fraction(p_delete), reach <= 2)


def check_edges(seed, directed, family, num_layers, num_graphs, max_edges):
    rng = np.random.default_rng([seed, directed, num_layers])
    for _ in range(num_graphs):
        num_nodes, edges = small_graph(rng, directed, max_edges)
        p_delete, min_distance = draw_probability(rng), int(rng.integers(1, 4))
        threat = EdgeDeletionThreat(convolution=family, min_distance=min_distance)
        reach = threat.reach(num_layers)
        states = states_of_all_draws(
            edges, partly_ablated(rng, num_nodes), 0, num_layers=num_layers, family=family, names={}
        )
        distances = hop_distances(edges, 0, reach)
        draws = np.arange(states.size)
        events = [
            (draws >> i & 1 == 1) & reach_of_all_draws(edges, edge[1], 0, reach - 1) for i, edge in enumerate(edges)
        ]
        changes = {}
        for chosen in itertools.chain.from_iterable(itertools.combinations(range(len(edges)), n) for n in (1, 2, 3)):
            change = noticed(states, edges, {edges[i] for i in chosen})
            assert (change == np.logical_or.reduce([events[i] for i in chosen])).all()
            if all(distances.get(edges[i][1], reach) + 1 >= min_distance for i in chosen):
                changes[chosen] = change
        compare(changes, bounds(edges, num_nodes, p_delete, threat, num_layers), Fraction(p_delete), reach <= 3)


@pytest.mark.parametrize("check", [check_nodes, check_edges])
@pytest.mark.parametrize(("directed", "family", "num_layers"), CASES)
def test_every_set_of_nodes_or_edges_is_covered(check, directed, family, num_layers):
    check(1, directed, family, num_layers, num_graphs=8, max_edges=6)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_nodes, check_edges])
@pytest.mark.parametrize(("directed", "family", "num_layers"), CASES)
def test_two_thousand_graphs_per_statement(check, directed, family, num_layers):
    check(2, directed, family, num_layers, num_graphs=130, max_edges=8)  # 16 cases: 2,080 graphs for each check


def law_of_states(edges, features, p_delete, p_ablate, **kind):
    """Return the probability of each state of node 0 under φ, from this graph's own coins alone."""
    law = {}
    nodes = sorted(features)
    for ablated in itertools.product((True, False), repeat=len(nodes)):
        shown = {node: "token" if hidden else features[node] for node, hidden in zip(nodes, ablated, strict=True)}
        weight = p_ablate ** sum(ablated) * (1 - p_ablate) ** (len(nodes) - sum(ablated))
        for left in itertools.product((True, False), repeat=len(edges)):
            chance = weight * p_delete ** (len(edges) - sum(left)) * (1 - p_delete) ** sum(left)
            found = state(list(itertools.compress(edges, left)), shown, 0, **kind)
            law[found] = law.get(found, 0) + chance
    return law


def check_label_probabilities(seed, num_graphs, max_edges):
    """The two graphs are smoothed separately; the largest gap over all classifiers is a distance of two laws."""
    rng = np.random.default_rng(seed)
    for index in range(num_graphs):
        family, num_layers = FAMILIES[index % 2], 1 + index // 2 % 3
        num_nodes, edges = small_graph(rng, bool(rng.integers(2)), max_edges)
        p_delete = Fraction(float(rng.choice([0.31, 0.6, rng.random()])))
        p_ablate = Fraction(float(rng.choice([0.0, 1.0, 0.5])))
        inserted = rng.permutation(np.arange(1, num_nodes))[: int(rng.integers(1, 3))].tolist()
        clean = [edge for edge in edges if not set(edge) & set(inserted)]
        names = {}
        kind = {"num_layers": num_layers, "family": family, "names": names}
        features = {node: node for node in range(num_nodes)}
        perturbed_law = law_of_states(edges, features, p_delete, p_ablate, **kind)
        clean_law = law_of_states(
            clean, {node: node for node in features if node not in inserted}, p_delete, p_ablate, **kind
        )
        gap = sum(max(perturbed_law[found] - clean_law.get(found, 0), 0) for found in perturbed_law)
        threat = NodeInsertionThreat(convolution=family)
        bound = bounds(edges, num_nodes, float(p_delete), threat, num_layers, p_ablate=float(p_ablate))
        assert gap <= Fraction(bound[len(inserted) - 1])
        if family == "local" and p_ablate == 0:  # a classifier that looks for the inserted nodes attains the event
            reached = [reach_of_all_draws(edges, node, 0, num_layers) for node in inserted]
            assert gap == probability(np.logical_or.reduce(reached), p_delete)


def test_label_probabilities_of_two_separately_smoothed_graphs():
    check_label_probabilities(3, num_graphs=24, max_edges=4)


@pytest.mark.slow
def test_label_probabilities_of_many_graphs():
    check_label_probabilities(4, num_graphs=400, max_edges=6)


@pytest.mark.parametrize("family", FAMILIES)
def test_inserting_is_deleting_seen_from_the_perturbed_graph(family):
    edges = [(1, 0), (2, 1), (3, 2), (3, 0), (4, 3)]
    deletion = bounds(edges, 5, 0.3, NodeDeletionThreat(convolution=family), 2)
    assert bounds(edges, 5, 0.3, NodeInsertionThreat(convolution=family), 2) == deletion


def test_values_worked_out_by_hand():
    path = [(1, 0), (2, 1), (3, 2)]  # 3 -> 2 -> 1 -> 0, two steps, p_d = 1/2
    for family in FAMILIES:  # two nodes share the last edge; two edges have a coin each
        nodes = bounds(path, 4, 0.5, NodeDeletionThreat(convolution=family), 2)
        edges = bounds(path, 4, 0.5, EdgeDeletionThreat(convolution=family), 2)
        assert nodes[:2] == pytest.approx([1 / 2, 1 / 2], abs=1e-12)
        assert edges[:2] == pytest.approx([1 / 2, 5 / 8], abs=1e-12)
    for threat in (NodeDeletionThreat, EdgeDeletionThreat):
        far = {family: threat(convolution=family, min_distance=3) for family in FAMILIES}
        assert bounds(path, 4, 0.5, far["local"], 2) == [0.0, 0.0, 0.0]
        assert bounds(path, 4, 0.5, far["degree-normalised"], 2) == pytest.approx([1 / 8] * 3, abs=1e-12)


def test_an_edge_out_of_the_target_comes_back():
    # 0 -> 1 -> 0: without the edge 0 -> 1, node 1 sends another message after the first step.
    edges = [(0, 1), (1, 0)]
    threat = EdgeDeletionThreat(convolution="local", min_distance=2)
    assert bounds(edges, 2, 0.5, threat, 2)[0] == pytest.approx(1 / 4, abs=1e-12)
    assert bounds(edges, 2, 0.5, threat, 1)[0] == 0.0


def test_the_receiver_has_one_edge_less_to_go():
    # Two steps: the absence of 3 -> 1 is noticed along 1 -> 0, but no longer along 1 -> 2 -> 0.
    threat = EdgeDeletionThreat(convolution="local", min_distance=2)
    assert bounds([(3, 1), (1, 0), (1, 2), (2, 0)], 4, 0.5, threat, 2)[0] == pytest.approx(1 / 4, abs=1e-12)


def test_a_walk_through_its_own_source_counts():
    # 1 -> 2 -> 1 -> 0: no simple path from node 1 uses the edge 1 -> 2, yet its absence is noticed after three steps.
    edges = [(1, 2), (2, 1), (1, 0)]
    names = {}
    kind = {"target": 0, "num_layers": 3, "family": "local", "names": names}
    features = {0: 0, 1: 1, 2: 2}
    assert state(edges, features, **kind) != state(edges[1:], features, **kind)
    assert bounds(edges, 3, 0.5, EdgeDeletionThreat(convolution="local", min_distance=3), 3)[0] == pytest.approx(
        1 / 8, abs=1e-12
    )


def test_one_coin_for_both_directions_breaks_the_edge_bound():
    # The reason for "a coin per directed edge": here the edge survives exactly when the way back does.
    separate, joint = Fraction(1, 2) ** 3, Fraction(1, 2) ** 2
    threat = EdgeDeletionThreat(convolution="local", min_distance=3)
    bound = bounds([(1, 2), (2, 1), (1, 0)], 3, 0.5, threat, 3)[0]
    assert separate <= bound < joint


def test_certain_outcomes_are_exact():
    assert edge_deletion_bounds([0.0, 0.5, 1.0], p_delete=1.0).tolist() == [0.0, 0.0, 0.0]
    assert edge_deletion_bounds([0.0, 0.5, 1.0], p_delete=0.0).tolist() == [0.0, 0.5, 1.0]
    assert edge_deletion_bounds([0.0, 1.0], p_delete=0.25).tolist() == [0.0, 0.75]


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan])
def test_probabilities_are_checked(value):
    with pytest.raises(InvalidParameterError, match="`delta_receivers` must be"):
        edge_deletion_bounds([0.5, value], p_delete=0.5)
    with pytest.raises(InvalidParameterError, match="`p_delete` must be"):
        edge_deletion_bounds([0.5], p_delete=value)


NUM_NODES = 6
graphs = st.sets(
    st.tuples(st.integers(0, NUM_NODES - 1), st.integers(0, NUM_NODES - 1)).filter(lambda pair: pair[0] != pair[1]),
    max_size=18,
)
graph_and_adversary = {
    "edges": graphs,
    "p_delete": st.floats(0.01, 1.0),
    "num_layers": st.integers(1, 3),
    "min_distance": st.integers(1, 3),
}


@given(threat=st.sampled_from([NodeDeletionThreat, EdgeDeletionThreat]), **graph_and_adversary)
def test_bounds_are_probabilities_that_never_fall_with_the_radius(threat, edges, p_delete, num_layers, min_distance):
    for family in FAMILIES:
        bound = bounds(
            sorted(edges), NUM_NODES, p_delete, threat(convolution=family, min_distance=min_distance), num_layers
        )
        assert all(0.0 <= value <= 1.0 for value in bound)
        assert (np.diff(bound) >= 0.0).all()


@given(**graph_and_adversary)
def test_more_edges_are_noticed_if_degrees_are(edges, p_delete, num_layers, min_distance):
    local, normalised = (
        bounds(
            sorted(edges),
            NUM_NODES,
            p_delete,
            EdgeDeletionThreat(convolution=family, min_distance=min_distance),
            num_layers,
        )
        for family in FAMILIES
    )
    assert (np.array(normalised) >= np.array(local) - 1e-13).all()
