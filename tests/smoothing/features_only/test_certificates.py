"""The floor: certified against every other node, because it looks at none."""

from pathlib import Path

import numpy as np
import pytest
import torch

import graycert
from graycert.data import load_graph
from graycert.errors import InvalidParameterError
from graycert.smoothing.features_only.training import train_mlp
from graycert.threats.node_features import NodeFeatureThreat
from support.communities import two_communities

OTHERS = NodeFeatureThreat(min_distance=1)


def certified(model, data, targets, threat=OTHERS):
    return graycert.certify(model, data, smoothing=graycert.FeaturesOnly(), targets=targets, threat=threat)


def test_it_is_two_linear_maps_with_relu_between_them() -> None:
    data = two_communities()
    model = train_mlp(graycert.inductive_split(data, seed=0, per_class=8, test_fraction="0.2"), max_epochs=3)
    first, second = (layer.state_dict() for layer in model.layers)
    weights = [[state[name] for name in sorted(state)] for state in (first, second)]
    (bias1, weight1), (bias2, weight2) = weights
    with torch.inference_mode():
        expected = torch.relu(data.x @ weight1.T + bias1) @ weight2.T + bias2
        assert torch.allclose(model.skip_logits(data.x), expected, atol=1e-5)
    assert certified(model, data, np.arange(60)).prediction.tolist() == expected.argmax(dim=1).tolist()


def test_it_learns_and_the_seed_decides() -> None:
    data = two_communities()
    split = graycert.inductive_split(data, seed=0, per_class=8, test_fraction="0.2")
    models = [train_mlp(split, learning_rate=0.01, max_epochs=60, seed=seed) for seed in (1, 1, 2)]
    parameters = [torch.cat([p.detach().flatten() for p in model.parameters()]) for model in models]
    assert torch.equal(parameters[0], parameters[1])
    assert not torch.equal(parameters[0], parameters[2])
    nodes = split.test.nodes.numpy()
    assert (certified(models[0], data, nodes).prediction == data.y[nodes].numpy()).mean() >= 0.75


def test_other_nodes_and_edges_change_nothing() -> None:
    data = two_communities()
    split = graycert.inductive_split(data, seed=0, per_class=8, test_fraction="0.2")
    model = train_mlp(split, max_epochs=3)
    targets = split.test.nodes.numpy()
    before = certified(model, data, targets).prediction
    attacked = data.clone()
    attacked.x = torch.full_like(data.x, 1e4)
    attacked.x[targets] = data.x[targets]
    attacked.edge_index = data.edge_index[:, ::3]
    assert certified(model, attacked, targets).prediction.tolist() == before.tolist()


def test_the_radius_is_the_whole_field_unless_the_target_may_be_hostile() -> None:
    data = two_communities()
    model = train_mlp(graycert.inductive_split(data, seed=0, per_class=8, test_fraction="0.2"), max_epochs=1)
    targets = np.array([5, 3])
    adjacency = torch.eye(60, dtype=torch.bool)
    adjacency[data.edge_index[0], data.edge_index[1]] = True
    within_two = (adjacency.float() @ adjacency.float() > 0)[:, targets]
    found = certified(model, data, targets)
    assert found.num_eligible.tolist() == (within_two.sum(dim=0) - 1).tolist()
    assert found.radius.tolist() == found.num_eligible.tolist()
    far = certified(model, data, targets, NodeFeatureThreat(min_distance=2))
    assert far.radius.tolist() == (within_two & ~adjacency[:, targets]).sum(dim=0).tolist()
    trusted = np.zeros(60, dtype=bool)
    trusted[5] = True
    exposed = certified(model, data, targets, NodeFeatureThreat(trusted=trusted))
    assert exposed.radius[1] == 0 < exposed.num_eligible[1]
    assert exposed.radius[0] == exposed.num_eligible[0] > 0


def test_foreign_models_and_threats_are_refused() -> None:
    data = two_communities()
    with pytest.raises(InvalidParameterError, match="`model` must be callable as model"):
        certified(torch.nn.Linear(40, 2), data, [0])
    model = graycert.build_model("gcn", data)
    with pytest.raises(InvalidParameterError, match=r"`threat` must be a threat of graycert, .* got int"):
        certified(model, data, [0], 1)


@pytest.mark.deep
def test_the_floor_on_cora_ml_is_far_above_chance(data_root: Path) -> None:
    data = load_graph("cora_ml", data_root=data_root)
    split = graycert.inductive_split(data, seed=13)
    nodes = split.test.nodes.numpy()
    found = certified(train_mlp(split, seed=13, max_epochs=150), data, nodes)
    accuracy = (found.prediction == found.labels).mean()
    assert 0.5 < accuracy < 0.75  # the most frequent of seven classes makes 0.28


@pytest.mark.deep
def test_a_node_model_is_shown_all_targets_at_once_with_the_same_outcome() -> None:
    data = two_communities()
    split = graycert.inductive_split(data, seed=0, per_class=8, test_fraction="0.2")
    model = graycert.distill(split, members=2, hidden_channels=8, max_epochs=10)
    targets = split.test.nodes.numpy()
    alone = [int(model(data.x[target : target + 1]).argmax()) for target in targets]
    found = certified(model, data, targets)
    assert found.prediction.tolist() == alone
    assert np.array_equal(found.radius, found.num_eligible)
