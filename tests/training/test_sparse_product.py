"""Products with sparse features and along edges, and their gradients, are those of dense matrices."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import APPNP

from graycert.training.features import Features
from graycert.training.sparse_product import SparsePattern, times
from graycert.training.spreading import Spreading
from support.communities import two_communities


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.mark.parametrize("shape", [(7, 5), (1, 9), (6, 1)])
def test_product_and_gradient_are_the_dense_ones(shape):
    dense = torch.randn(shape, dtype=torch.float64) * (torch.rand(shape) < 0.4)
    matrix = dense.to_sparse_coo().coalesce()
    factor = torch.randn(shape[1], 3, dtype=torch.float64, requires_grad=True)
    found = times(SparsePattern.of(matrix), matrix.values(), factor)
    upstream = torch.randn_like(found)
    (gradient,) = torch.autograd.grad(found, factor, upstream)
    assert torch.allclose(found, dense @ factor)
    assert torch.allclose(gradient, dense.T @ upstream)


def test_a_layer_and_its_gradients_are_those_on_dense_features():
    x = two_communities().x
    x[3] = 0.0  # an empty row
    layer, same = nn.Linear(x.size(1), 4), nn.Linear(x.size(1), 4)
    same.load_state_dict(layer.state_dict())
    features = Features(x)
    upstream = torch.randn(x.size(0), 4)
    features.through(layer).backward(upstream)
    same(x).backward(upstream)
    assert torch.allclose(features.through(layer), same(x), atol=1e-6)
    for ours, theirs in zip(layer.parameters(), same.parameters(), strict=True):
        assert torch.allclose(ours.grad, theirs.grad, atol=1e-5)


@pytest.mark.parametrize("sparse", [True, False])
def test_entries_are_dropped_at_the_stated_rate_and_the_others_raised(sparse):
    x = two_communities(sparse=sparse).x
    drop, draws, layer = 0.8, 4_000, nn.Linear(x.size(1), x.size(1), bias=True)
    layer.weight.data, layer.bias.data = torch.eye(x.size(1)), torch.zeros(x.size(1))
    features = Features(x)
    with torch.no_grad():
        seen = torch.stack([features.through(layer, drop=drop)[:5] for _ in range(draws)])
    whole = x[:5]
    assert bool(((seen == 0) | torch.isclose(seen, whole / (1 - drop), atol=1e-6)).all())
    # a few hundred shares of 4,000 draws: 6 standard errors are exceeded with probability below 1e-5 in all
    share = (seen[:, whole != 0] != 0).double().mean(dim=0)
    assert bool(((share - (1 - drop)).abs() <= 6 * (drop * (1 - drop) / draws) ** 0.5).all())


def test_spreading_and_its_gradient_are_those_of_appnp_on_a_directed_graph_with_parallel_edges():
    edges = torch.randint(0, 30, (2, 150))
    edges = torch.cat([edges, edges[:, :9]], dim=1)
    scores = torch.randn(32, 3, requires_grad=True)
    ours = Spreading(edges, num_nodes=32, teleport=0.2, steps=4)(scores)
    theirs = APPNP(K=4, alpha=0.2)(scores, edges)
    upstream = torch.randn_like(ours)
    assert torch.allclose(ours, theirs, atol=1e-6)
    gradients = [torch.autograd.grad(each, scores, upstream)[0] for each in (ours, theirs)]
    assert torch.allclose(*gradients, atol=1e-6)
