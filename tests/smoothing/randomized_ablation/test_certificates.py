"""certify() with randomized ablation, from model and graph to certificates, against every outcome, and its refusals."""

import itertools

import numpy as np
import pytest
import torch

from graycert.bounds.levine import levine_delta
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models import build_model
from graycert.rules import certify_votes
from graycert.sampling import Purpose
from graycert.smoothing.randomized_ablation.draws import build_randomized_ablation_engine
from graycert.smoothing.randomized_ablation.parameters import RandomizedAblation
from graycert.threats.node_features import NodeFeatureThreat
from support import foreign_models as foreign
from support.attributed_graphs import random_graph
from support.enumeration import hop_distances, nodes_that_reach
from support.flat_arguments import certify_flat

FEW = {"num_selection": 20, "num_estimation": 60, "max_radius": 4}


def certified(model, data, **changes):
    smoothing = RandomizedAblation(scope=changes.pop("scope", "global"), p_ablate=0.8)
    arguments = {"smoothing": smoothing, "threat": NodeFeatureThreat(), "targets": [9, 2, 13, 4]}
    return certify_flat(model, data, **{**arguments, **FEW, **changes})


@pytest.mark.few(2)
@pytest.mark.parametrize("scope", ["global", "local"])
@pytest.mark.parametrize(("min_distance", "trusted"), [(0, ()), (1, (2, 5)), (2, (7,)), (3, ())])
def test_is_the_composition_of_its_parts(scope, min_distance, trusted):
    data = random_graph()
    mask = np.isin(np.arange(14), trusted)
    threat = NodeFeatureThreat(min_distance=min_distance, trusted=mask if trusted else None)
    found = certified(build_model("gat", data), data, scope=scope, threat=threat, alpha=0.05, seed=3)
    edges = data.edge_index.t().tolist()
    for row, target in enumerate([9, 2, 13, 4]):
        field = nodes_that_reach(edges, target, 2)
        distance = hop_distances(edges, target, 14)  # farther nodes are as far as can be
        nodes = field if scope == "local" else range(14)
        eligible = [w for w in nodes if distance.get(w, 99) >= min_distance and w not in trusted]
        numbers = {"num_nodes": len(nodes), "num_kept": -(-len(nodes) // 5), "num_eligible": len(eligible)}
        assert found.num_candidates[row] == numbers["num_nodes"]
        assert found.num_shown[row] == numbers["num_kept"]
        assert found.num_eligible[row] == numbers["num_eligible"]
        np.testing.assert_array_equal(found.delta_upper[row], levine_delta(max_radius=4, **numbers))
    again = certify_votes(*found.votes, found.delta_upper, alpha=0.05, belongs_to="the same run")
    np.testing.assert_array_equal(found.radius, np.minimum(again.radius, found.num_eligible))
    np.testing.assert_array_equal(found.prediction, again.prediction)
    assert found.targets.tolist() == [9, 2, 13, 4]
    assert found.selection_votes.sum(axis=1).tolist() == [20] * 4
    assert found.estimation_votes.sum(axis=1).tolist() == [60] * 4
    engine = build_randomized_ablation_engine(
        build_model("gat", data),
        data,
        found.targets,
        smoothing=RandomizedAblation(scope=scope, p_ablate=0.8),
        num_layers=2,
    )
    for votes, purpose, size in [
        (found.selection_votes, Purpose.SELECTION, 20),
        (found.estimation_votes, Purpose.ESTIMATION, 60),
    ]:
        np.testing.assert_array_equal(votes, engine.votes(3, purpose, num_samples=size))


def smoothed_class(model, x, edge_index, target, nodes, num_kept):
    """The class with most outcomes, lowest index first; listed exactly."""
    votes = torch.zeros(3, dtype=torch.long)
    with torch.inference_mode():
        for shown in itertools.combinations(sorted(nodes), num_kept):
            rows = model.ablation_token.repeat(x.size(0), 1)
            rows[list(shown)] = x[list(shown)]
            votes[model(rows, edge_index)[target].argmax()] += 1
    return int(votes.argmax())


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize(("scope", "num_graphs"), [("global", 2), ("local", 4)])
def test_certified_classes_stand_every_attack_tried(scope, num_graphs):
    """Exact smoothed classes under an attack by every set of ρ nodes; alpha 1e-8 for each of 18 certificates."""
    generator, attacks = torch.Generator().manual_seed(1), 0
    for seed in range(num_graphs):
        data = random_graph(num_nodes=7, num_pairs=16, directed=False, seed=seed, dtype=torch.float64)
        model = build_model("gcn", data, seed=seed).double().eval()
        found = certify_flat(
            model,
            data,
            threat=NodeFeatureThreat(),
            smoothing=RandomizedAblation(scope=scope, num_kept=1),
            targets=[0, 3, 5],
            num_selection=50,
            num_estimation=400,
            alpha=1e-8,
            max_radius=3,
            seed=seed,
        )
        for row, target in enumerate([0, 3, 5]):
            nodes = range(7) if scope == "global" else nodes_that_reach(data.edge_index.t().tolist(), target, 2)
            radius = int(found.radius[row])
            for hostile in itertools.combinations(range(7), radius) if radius > 0 else ():
                x = data.x.clone()
                x[list(hostile)] = 10 * torch.randn(radius, 5, generator=generator, dtype=x.dtype)
                assert smoothed_class(model, x, data.edge_index, target, nodes, 1) == found.prediction[row]
                attacks += 1
    assert attacks > 20


def test_the_global_scope_needs_no_locality_and_the_local_scope_refuses_without():
    data = random_graph()
    torch.manual_seed(0)
    model = foreign.GlobalMean()
    assert certified(model, data).num_candidates.tolist() == [14] * 4
    with pytest.raises(UnsoundSetupError) as caught:
        certified(model, data, scope="local")
    assert caught.value.slug == "message-leak"


@pytest.mark.parametrize("scope", ["global", "local"])
def test_a_skip_connection_exposes_the_target(scope):
    data = random_graph()
    model = build_model("gat", data, skip=True)
    with pytest.raises(UnsoundSetupError) as caught:
        certified(model, data, scope=scope)
    assert caught.value.slug == "skip-exposes-target"
    others = certified(model, data, scope=scope, threat=NodeFeatureThreat(min_distance=1))
    assert (others.num_eligible == others.num_candidates - 1).all()


def test_a_skip_connection_that_mixes_rows_sees_one_row_in_the_global_scope():
    """Other targets' features must not reach a target past the ablation."""
    data, others = random_graph(), NodeFeatureThreat(min_distance=1)
    torch.manual_seed(0)
    model = foreign.SkipShowsOthers()
    alone = certified(model, data, threat=others, targets=[9])
    together = certified(model, data, threat=others)
    np.testing.assert_array_equal(together.estimation_votes[0], alone.estimation_votes[0])


def test_parallel_edges_are_harmless_because_no_edge_is_deleted():
    data = random_graph()
    data.edge_index = torch.cat([data.edge_index, data.edge_index[:, :3]], dim=1)
    found = certified(build_model("gcn", data), data)
    assert found.num_eligible.tolist() == [14] * 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("smoothing", {"scope": "global", "p_ablate": 0.8}),
        ("threat", "anyone"),
        ("targets", [14]),
        ("targets", []),
        ("num_selection", 0),
        ("num_estimation", 0),
        ("max_radius", 0),
        ("alpha", 0.0),
        ("seed", -1),
        ("batch_size", 0),
    ],
)
def test_arguments_are_checked(name, value):
    data = random_graph()
    with pytest.raises(InvalidParameterError, match=rf"`{name}` must"):
        certified(build_model("gcn", data), data, **{name: value})
