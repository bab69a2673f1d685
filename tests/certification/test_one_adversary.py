"""The collective certificate of a run: its matrix of single nodes, its level, and who is counted as lost."""

import itertools

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graycert
from graycert import InterceptionSmoothing, NodeFeatureThreat, delta_bounds
from graycert.bounds.single_source_matrix import single_source_matrix
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.rules import (
    certified_radius,
    collective_certificate,
    intersection_union_bounds,
    multiclass_margin,
    simultaneous_level,
)
from graycert.statistics import EstimationVotes
from support.enumeration import arrival_law, arrival_probability, nodes_that_reach
from support.flat_arguments import certify_flat
from support.random_graphs import random_edges, to_adjacency

SMOOTHING = InterceptionSmoothing(p_delete=0.4, p_ablate=0.7)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("min_distance", [0, 1, 2])
def test_an_entry_is_what_one_hostile_node_can_do(num_layers, min_distance):
    rng = np.random.default_rng(num_layers * 3 + min_distance)
    trusted = np.array([False] * 5 + [True])
    threat = NodeFeatureThreat(min_distance=min_distance, trusted=trusted)
    for _ in range(20):
        edges = random_edges(rng, 6, 0.3, directed=True)
        graph = to_adjacency(edges, 6)
        matrix = single_source_matrix(graph, [0, 1], smoothing=SMOOTHING, threat=threat, num_layers=num_layers)
        worst = delta_bounds(
            graph,
            [0, 1],
            smoothing=SMOOTHING,
            threat=threat,
            num_layers=num_layers,
            max_radius=1,
            bound="multiplicative",
        )
        for row, target in enumerate((0, 1)):
            law = arrival_law(edges, target, num_layers, 0.4)
            fields = [nodes_that_reach(edges, target, k) for k in range(num_layers + 1)]
            hops = {node: k for k in range(num_layers, -1, -1) for node in fields[k]}
            entries = matrix[[row]].toarray()[0]
            eligible = []
            for node in range(6):
                reaches = any(node in reached for reached in law)
                distance = hops.get(node)
                if not reaches or trusted[node]:
                    assert entries[node] == 0.0
                elif distance < min_distance:
                    assert entries[node] == 1.0
                else:
                    assert entries[node] >= arrival_probability(law, [node], 0.7) - 1e-13  # of floats
                    eligible.append(entries[node])
            assert max(eligible, default=0.0) == worst.delta_upper[row, 0]


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(5)
    pairs = {tuple(sorted(pair)) for pair in rng.integers(0, 40, (60, 2)).tolist() if pair[0] != pair[1]}
    edges = np.array(sorted(pairs))
    edge_index = np.concatenate([edges, edges[:, ::-1]]).T
    features = rng.random((40, 5)).astype(np.float32)

    labels = torch.arange(40) % 3
    return Data(x=torch.from_numpy(features), edge_index=torch.from_numpy(np.ascontiguousarray(edge_index)), y=labels)


@pytest.fixture(scope="module")
def run(graph):
    model = graycert.build_model("gcn", graph, seed=3, skip=True)
    return certify_flat(
        model,
        graph,
        smoothing=InterceptionSmoothing(p_delete=0.6, p_ablate=0.8),
        threat=NodeFeatureThreat(min_distance=1),
        num_selection=200,
        num_estimation=2_000,
        engine="torch",
        say=lambda _: None,
    )


def test_it_is_the_program_of_the_votes_at_the_level_of_all_targets(graph, run):
    found = run.against_one_adversary(graph, budgets=[1, 2, 5])
    level = simultaneous_level(run.setup.alpha, len(run))
    votes = EstimationVotes(run.estimation_votes, run.setup.draws.num_estimation)
    margin = multiclass_margin(*intersection_union_bounds(votes, run.prediction, alpha=level))
    radius = certified_radius(margin, run.delta_upper)
    matrix = single_source_matrix(
        graycert.graph.as_adjacency(graph),
        run.targets,
        smoothing=run.setup.smoothing,
        threat=run.setup.threat,
        num_layers=2,
    )
    wanted = collective_certificate(
        matrix, margin, budgets=[1, 2, 5], radius=radius, whole_field=(radius >= 0) & (radius >= run.num_eligible)
    )
    assert found.num_robust.tolist() == wanted.num_robust.tolist()
    assert found.num_active == np.count_nonzero(margin > 0.0) > 0
    assert (np.diff(found.num_robust) <= 0).all()
    assert found.num_robust[0] > 0


def test_a_hostile_target_is_lost(graph, run):
    """With a skip connection each of ρ hostile targets is lost, so at most N - ρ predictions survive."""
    found = run.against_one_adversary(graph, budgets=[1, 3, 10])
    assert (found.num_robust <= len(run) - found.budgets).all()


def test_groups_with_budgets_leave_more(graph, run):
    groups = np.arange(40) % 2
    free = run.against_one_adversary(graph, budgets=[2, 6])
    held = run.against_one_adversary(graph, budgets=[2, 6], groups=groups, group_budgets=[1, 0])
    assert (held.num_robust >= free.num_robust).all()
    assert held.num_robust[1] > free.num_robust[1]


def test_what_does_not_fit_is_refused(graph, run):
    smaller = Data(x=graph.x[:5], edge_index=graph.edge_index[:, (graph.edge_index < 5).all(dim=0)])
    with pytest.raises(InvalidParameterError, match=r"with 40 nodes and fingerprint .* got 5 nodes"):
        run.against_one_adversary(smaller)
    other = Data(x=graph.x, edge_index=graph.edge_index[:, 1:])  # as many nodes, another graph
    with pytest.raises(InvalidParameterError, match="must be the graph of the certificates"):
        run.against_one_adversary(other)
    with pytest.raises(UnsoundSetupError, match="'paper'"):
        run.replace(setup=run.setup.replace(rule="paper")).against_one_adversary(graph)


def test_all_pairs_of_hostile_nodes_flip_no_more_than_the_bound(graph, run):
    """A target can only flip if Δ(B) reaches half its margin; Δ(B) <= 1 - product over single nodes (Theorem 3)."""
    found = run.against_one_adversary(graph, budgets=[2])
    level = simultaneous_level(run.setup.alpha, len(run))
    votes = EstimationVotes(run.estimation_votes, run.setup.draws.num_estimation)
    margin = multiclass_margin(*intersection_union_bounds(votes, run.prediction, alpha=level))
    single = single_source_matrix(
        graycert.graph.as_adjacency(graph),
        run.targets,
        smoothing=run.setup.smoothing,
        threat=run.setup.threat,
        num_layers=2,
    ).toarray()
    active = margin > 0.0
    from graycert.bounds.hop_limited import arrival_probability as exact

    adjacency = graycert.graph.as_adjacency(graph)
    for pair in itertools.islice(itertools.combinations(range(40), 2), 0, None, 13):
        kept = 0
        for row in np.flatnonzero(active):
            if (single[row, list(pair)] == 1.0).any():
                continue
            p = exact(adjacency, int(run.targets[row]), list(pair), p_delete=0.6, p_ablate=0.8, num_layers=2).p_upper
            kept += p < margin[row] / 2
        assert kept >= found.num_robust[0]
