"""Targets with equal routes share one search: bit by bit what each of them has alone, and who is named is its own."""

import numpy as np
import pytest

from graycert.bounds.evaluation import evaluate_deltas
from graycert.bounds.two_level import TwoLevelSearch
from graycert.graph import Adjacency, receptive_fields
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats import NodeFeatureThreat

HUBS, LEAVES, ALONE = 3, 6, 4
NUM_NODES = HUBS * (1 + LEAVES) + ALONE


def hubs_with_leaves():
    """Hubs linked with each other, each with leaves, and nodes without edges; numbered at random."""
    pairs = [(hub, other) for hub in range(HUBS) for other in range(hub)]
    pairs += [(hub, HUBS + hub * LEAVES + leaf) for hub in range(HUBS) for leaf in range(LEAVES)]
    names = np.random.default_rng(0).permutation(NUM_NODES)
    edges = names[np.array(pairs).T]
    return Adjacency.from_edge_index(np.concatenate([edges, edges[::-1]], axis=1), num_nodes=NUM_NODES), names


def smoothing_of(kind, graph):
    random = np.random.default_rng(1)
    edges, nodes = np.full(graph.num_edges, 0.31), np.full(NUM_NODES, 0.6)
    if kind == "uniform":
        return InterceptionSmoothing(p_delete=0.31, p_ablate=0.6)
    if kind == "two kinds":  # some leaves are equal, others are not
        edges[graph.targets % 2 == 0] = 0.4
        nodes[::3] = 0.5
    else:
        edges, nodes = random.uniform(0.2, 0.5, graph.num_edges), random.uniform(0.4, 0.8, NUM_NODES)
    return InterceptionSmoothing(p_delete=edges, p_ablate=nodes)


@pytest.mark.parametrize("kind", ["uniform", "two kinds", "all differ"])
@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("min_distance", [0, 1, 2])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_together_targets_have_what_each_has_alone(num_layers, min_distance, trusted, kind):
    graph, _ = hubs_with_leaves()
    threat = NodeFeatureThreat(
        min_distance=min_distance, trusted=np.random.default_rng(2).random(NUM_NODES) < 0.4 if trusted else None
    )
    options = {
        "smoothing": smoothing_of(kind, graph),
        "threat": threat,
        "num_layers": num_layers,
        "max_radius": 5,
        "bound": "exact" if num_layers < 3 else "surrogate",
    }
    together = evaluate_deltas(graph, np.arange(NUM_NODES), **options)
    for target in range(0, NUM_NODES, 3):
        alone = evaluate_deltas(graph, [target], **options)
        for name in ("delta_upper", "proved", "methods", "num_eligible", "receptive_field_size"):
            assert getattr(together, name)[target].tolist() == getattr(alone, name)[0].tolist()
        assert together.attackers[target].tolist() == alone.attackers[0].tolist()


def searches(kind, *, eligible=True):
    graph, names = hubs_with_leaves()
    smoothing = smoothing_of(kind, graph)
    search = TwoLevelSearch(
        graph,
        p_delete=np.array(np.broadcast_to(smoothing.p_delete, graph.num_edges)),
        p_ablate=np.array(np.broadcast_to(smoothing.p_ablate, NUM_NODES)),
        num_layers=2,
    )
    fields = receptive_fields(graph, np.arange(NUM_NODES), num_layers=2)
    may_be_hostile = np.full(fields.nodes.size, eligible)
    found = search.worst_sets_of(fields.indptr, fields.nodes, may_be_hostile, max_radius=8)
    return search.num_searches, found, names


def test_leaves_of_a_neighbour_and_nodes_without_edges_share_a_search():
    number, found, names = searches("uniform")
    assert number <= HUBS + 2  # hubs may list their in-neighbours in different orders, all leaves are alike
    leaves = names[HUBS : HUBS + LEAVES]
    whole = [set(found[leaf].attackers[7].tolist()) for leaf in leaves]
    hub = names[0]
    for leaf, worst in zip(leaves, whole, strict=True):
        assert worst >= {leaf, hub}  # who is hostile is named for each: first itself and the hub
        assert found[leaf].attackers[0].tolist()[0] == leaf
    assert len({found[leaf].delta_upper.tobytes() for leaf in leaves}) == 1


def test_nothing_is_shared_where_probabilities_differ():
    assert searches("all differ")[0] == NUM_NODES
