"""The four architectures against plain PyTorch Geometric layers and against the formula of the soft medoid."""

import pytest
import torch

from graycert.errors import InvalidParameterError
from graycert.models import InterceptionGNN, ModelConfig, RowwiseStart, build_from_config, build_model
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph
from support.plain_models import plain_forward, plain_skip, soft_medoid_loop


def built(architecture, *, num_layers=2, skip=False, dtype=torch.float32, **options):
    data = random_graph(num_nodes=20, num_pairs=70, dtype=dtype)
    model = build_model(architecture, data, num_layers=num_layers, skip=skip, **options).to(dtype).eval()
    with torch.no_grad():  # biases start at zero, which would hide a missing one
        for name, parameter in model.named_parameters():
            if "bias" in name:
                parameter.copy_(torch.linspace(-0.5, 0.5, parameter.numel()))
    return model, data


@pytest.mark.few(6)
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_equals_plain_layers_with_the_same_weights(architecture, num_layers):
    model, data = built(architecture, num_layers=num_layers)
    with torch.no_grad():
        scores = model(data.x, data.edge_index)
    assert scores.shape == (20, 3)
    assert model.num_layers == num_layers
    torch.testing.assert_close(scores, plain_forward(model, data.x, data.edge_index), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_forward_is_propagate_of_project(architecture):
    model, data = built(architecture)
    assert isinstance(model, RowwiseStart)
    with torch.no_grad():
        split = model.propagate(model.project(data.x), data.edge_index)
        assert torch.equal(split, model(data.x, data.edge_index))
        rows = torch.cat([model.project(row.unsqueeze(0)) for row in data.x])
    torch.testing.assert_close(rows, model.project(data.x), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_skip_branch_is_the_same_weights_without_edges_and_relu(architecture, num_layers):
    model, data = built(architecture, skip=True, num_layers=num_layers)
    with torch.no_grad():
        torch.testing.assert_close(model.skip_logits(data.x), plain_skip(model, data.x), atol=1e-6, rtol=1e-6)
        assert torch.equal(model.skip_from_projection(model.project(data.x)), model.skip_logits(data.x))


def test_skip_connection_is_not_part_of_forward():
    (with_skip, data), (without, _) = built("gat", skip=True), built("gat")
    with torch.no_grad():
        assert torch.equal(with_skip(data.x, data.edge_index), without(data.x, data.edge_index))


@pytest.mark.parametrize("num_neighbors", [1, 2, 3, 5, 33, 64])
@pytest.mark.parametrize("temperature", [0.2, 1.0])
def test_soft_medoid_follows_its_formula(num_neighbors, temperature):
    model, data = built("sma", dtype=torch.float64, num_neighbors=num_neighbors, temperature=temperature)
    layer = model.layers[0]
    degrees = torch.bincount(data.edge_index[1], minlength=20) + 1
    assert int(degrees.max()) > 5 > int(degrees.min())
    with torch.no_grad():
        rows = layer.project(data.x)
        expected = soft_medoid_loop(rows, data.edge_index, num_neighbors=num_neighbors, temperature=temperature)
        torch.testing.assert_close(layer.aggregate(rows, data.edge_index), expected + layer.bias, atol=1e-12, rtol=0)


def test_soft_medoid_considers_the_largest_weights_among_more_than_64():
    """A star with 70 leaves of different degrees: six leaves of the largest degree are left out."""
    leaves = torch.arange(1, 71)
    star = torch.stack([leaves, torch.zeros_like(leaves)])
    extra = torch.tensor([[0, leaf] for leaf in range(1, 8)]).t()  # seven leaves with smaller weight
    model, _ = built("sma", dtype=torch.float64)
    layer = model.layers[0]
    rows = torch.randn(71, 64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    edges = torch.cat([star, extra], dim=1)
    with torch.no_grad():
        found = layer.aggregate(rows, edges)
        expected = soft_medoid_loop(rows, edges, num_neighbors=64, temperature=1.0) + layer.bias
        everyone = soft_medoid_loop(rows, edges, num_neighbors=71, temperature=1.0) + layer.bias
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    assert not torch.allclose(found[0], everyone[0])


def test_soft_medoid_resists_an_outlier():
    rows = torch.zeros(5, 64, dtype=torch.float64)
    rows[4] = 1e6
    edges = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]])
    model, _ = built("sma", dtype=torch.float64)
    with torch.no_grad():
        medoid = model.layers[0].aggregate(rows, edges)[0] - model.layers[0].bias
    assert float(medoid.abs().max()) < 1e-9  # the weighted sum of a GCN would be above 1e5


@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_nodes_without_edges_and_graphs_without_edges(architecture):
    model, data = built(architecture)
    with torch.no_grad():
        scores = model(data.x, torch.empty(2, 0, dtype=torch.long))
        assert torch.isfinite(scores).all()
        alone = model(data.x, data.edge_index)[-1]
    torch.testing.assert_close(scores[-1], alone, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_paper_defaults(architecture):
    model = build_model(architecture, random_graph())
    attention = architecture in ("gat", "gatv2")
    assert model.config.hidden_channels == (8 if attention else 64)
    assert (model.config.heads, model.config.dropout, model.num_layers, model.skip) == (8, 0.8, 2, False)
    assert (model.config.num_neighbors, model.config.temperature) == (64, 1.0)
    assert model.training
    assert model.ablation_token.shape == (5,)
    assert model.ablation_token.requires_grad


@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_seed_decides_the_weights_and_leaves_the_global_generator_alone(architecture):
    data = random_graph()
    before = torch.get_rng_state()
    first, again, other = (build_model(architecture, data, seed=seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_feature_dropout_acts_in_training_only():
    model, data = built("gcn")
    with torch.no_grad():
        assert torch.equal(model(data.x, data.edge_index), model(data.x, data.edge_index))
        model.train()
        assert not torch.equal(model(data.x, data.edge_index), model(data.x, data.edge_index))


def test_number_of_classes_comes_from_names_or_labels():
    data = random_graph(num_classes=3)
    assert build_model("gcn", data).config.num_classes == 3
    data.class_names = ["a", "b", "c", "d"]
    assert build_model("gcn", data).config.num_classes == 4


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"architecture": "transformer"}, "architecture"),
        ({"num_layers": 0}, "num_layers"),
        ({"num_layers": 2.0}, "num_layers"),
        ({"hidden_channels": 0}, "hidden_channels"),
        ({"heads": 0}, "heads"),
        ({"dropout": 1.0}, "dropout"),
        ({"dropout": -0.1}, "dropout"),
        ({"dropout": "much"}, "dropout"),
        ({"dropout": True}, "dropout"),
        ({"num_neighbors": 0}, "num_neighbors"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"skip": 1}, "skip"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
    ],
)
def test_refuses(changes, name):
    options = {"architecture": "gcn", **changes}
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        build_model(options.pop("architecture"), random_graph(), **options)


@pytest.mark.parametrize("missing", ["x", "y"])
def test_refuses_a_graph_that_does_not_tell_the_sizes(missing):
    data = random_graph()
    data[missing] = None
    with pytest.raises(InvalidParameterError, match="`data`"):
        build_model("gcn", data)


def test_refuses_one_class():
    with pytest.raises(InvalidParameterError, match="num_classes"):
        ModelConfig(architecture="gcn", num_features=3, num_classes=1)
    with pytest.raises(InvalidParameterError, match="architecture"):
        build_from_config(ModelConfig(architecture="mlp", num_features=3, num_classes=2))


def test_config_rebuilds_the_model():
    model = build_model("gatv2", random_graph(), num_layers=3, skip=True, heads=2, seed=5)
    again = build_from_config(ModelConfig(**model.config.as_dict()), seed=5)
    assert isinstance(again, InterceptionGNN)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
