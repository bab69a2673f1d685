"""The transform: fresh draws with the right rates, edges with their values, nothing changed, no global randomness."""

import random

import numpy as np
import pytest
import torch
import torch_geometric
import torch_geometric.nn as pyg
from torch import nn
from torch.utils.data import DataLoader
from torch_geometric.data import Data
from torch_geometric.transforms import Compose, ToUndirected

import graycert
from graycert.errors import InvalidParameterError
from support.communities import two_communities


def graph(num_nodes=400, num_edges=3_000, seed=0):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randperm(num_nodes**2, generator=generator)[:num_edges]
    edges = torch.stack([pairs // num_nodes, pairs % num_nodes])
    x = torch.rand(num_nodes, 3, generator=generator) + 1.0
    return Data(
        x=x,
        edge_index=edges,
        y=torch.arange(num_nodes) % 2,
        edge_attr=edges.T.float(),
        edge_weight=edges[0] + 0.5 * edges[1],
        edge_type=edges.sum(dim=0) % 4,
    )


@pytest.mark.statistical
def test_rates_are_those_asked_for():
    """4 sigma of 30 draws together, 1e-4 each."""
    data, intercept = graph(), graycert.RandomInterception(0.3, 0.7)
    edges, nodes = 30 * 3_000, 30 * 400
    drawn = [intercept(data) for _ in range(30)]
    deleted = 1 - sum(each.num_edges for each in drawn) / edges
    ablated = sum(int((each.x == 0).all(dim=1).sum()) for each in drawn) / nodes
    assert abs(deleted - 0.3) < 4 * (0.3 * 0.7 / edges) ** 0.5
    assert abs(ablated - 0.7) < 4 * (0.3 * 0.7 / nodes) ** 0.5


def test_values_follow_their_edges_and_the_data_stays_as_it_was():
    data, before = graph(), graph()
    drawn = graycert.RandomInterception(0.5, 0.5)(data)
    assert 0 < drawn.num_edges < data.num_edges
    assert torch.equal(drawn.edge_attr, drawn.edge_index.T.float())
    assert torch.equal(drawn.edge_weight, drawn.edge_index[0] + 0.5 * drawn.edge_index[1])
    assert torch.equal(drawn.edge_type, drawn.edge_index.sum(dim=0) % 4)
    assert drawn.num_nodes == 400
    assert torch.equal(drawn.y, data.y)
    shown = (drawn.x != 0).any(dim=1)
    assert torch.equal(drawn.x[shown], data.x[shown])
    assert all(torch.equal(data[name], before[name]) for name in before.to_dict())


def test_tensors_give_the_draw_that_a_graph_gives():
    data = graph()
    by_graph = graycert.RandomInterception(0.4, 0.4, seed=3)(data)
    x, edges, inputs = graycert.RandomInterception(0.4, 0.4, seed=3)(
        data.x, data.edge_index, edge_attr=data.edge_attr, edge_type=data.edge_type
    )
    assert torch.equal(x, by_graph.x)
    assert torch.equal(edges, by_graph.edge_index)
    assert torch.equal(inputs["edge_attr"], by_graph.edge_attr)
    assert torch.equal(inputs["edge_type"], by_graph.edge_type)


def test_every_call_is_a_fresh_draw_that_the_seed_decides():
    data = graph()
    first, again, other = (graycert.RandomInterception(0.4, 0.4, seed=seed) for seed in (3, 3, 4))
    ours, theirs, others = ([each(data) for _ in range(4)] for each in (first, again, other))
    assert len({tuple(each.edge_index.flatten().tolist()) for each in ours + others}) == 8
    assert len({tuple(each.x.flatten().tolist()) for each in ours + others}) == 8
    for one, two in zip(ours, theirs, strict=True):
        assert torch.equal(one.x, two.x)
        assert torch.equal(one.edge_index, two.edge_index)


def test_global_generators_are_neither_read_nor_changed():
    data = graph()
    results = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
        results.append(graycert.RandomInterception(0.5, 0.5)(data).edge_index)
        assert torch.equal(states[0], torch.get_rng_state())
        assert np.array_equal(states[1], np.random.get_state()[1])  # noqa: NPY002
        assert states[2] == random.getstate()
    assert torch.equal(*results)


def test_parallel_edges_share_a_coin():
    edges = graph().edge_index
    twice = torch.cat([edges, edges], dim=1)
    _, kept, inputs = graycert.RandomInterception(0.5, 0.0)(
        torch.ones(400, 1), twice, copy=torch.arange(2).repeat_interleave(3_000)
    )
    assert torch.equal(kept[:, inputs["copy"] == 0], kept[:, inputs["copy"] == 1])


def test_nothing_and_everything():
    data = graph()
    same = graycert.RandomInterception(0, 0)(data)
    assert torch.equal(same.x, data.x)
    assert torch.equal(same.edge_index, data.edge_index)
    token = torch.tensor([1.0, 2.0, 3.0])
    nothing = graycert.RandomInterception(1, 1, token)(data)
    assert nothing.num_edges == 0
    assert torch.equal(nothing.x, token.expand(400, 3))


class Net(nn.Module):
    def __init__(self, token=True):
        super().__init__()
        self.gnn = pyg.GraphSAGE(40, 16, 2, 2)
        if token:
            self.ablation_token = nn.Parameter(torch.zeros(40))

    def forward(self, x, edge_index):
        return self.gnn(x, edge_index)


@pytest.mark.deep
def test_the_token_is_trained_in_ones_own_loop_and_handed_to_certify():
    torch.manual_seed(0)
    data, model = two_communities(), Net()
    intercept = graycert.RandomInterception(0.2, 0.5, token=model.ablation_token)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(10):
        drawn = intercept(data)
        loss = nn.functional.cross_entropy(model(drawn.x, drawn.edge_index), drawn.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert float(model.ablation_token.detach().abs().max()) > 0
    options = {
        "smoothing": graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.7),
        "threat": graycert.NodeFeatureThreat(),
        "draws": graycert.Draws(num_selection=40, num_estimation=100),
    }
    of_model = graycert.certify(model, data, **options)
    given = graycert.certify(model.gnn, data, ablation_token=intercept.token.detach(), **options)
    zeros = graycert.certify(model.gnn, data, **options)
    assert np.array_equal(of_model.votes[1].counts, given.votes[1].counts)
    assert not np.array_equal(of_model.votes[1].counts, zeros.votes[1].counts)


def test_composes_with_other_transforms():
    data = Compose([ToUndirected(), graycert.RandomInterception(0.5, 0.0)])(graph())
    assert 0 < data.num_edges < 6_000


class Transformed(torch.utils.data.Dataset):
    """The same graph, transformed on access, as PyTorch Geometric's data sets do."""

    def __init__(self, transform):
        self.data, self.transform = graph(), transform

    def __len__(self):
        return 4

    def __getitem__(self, _):
        edges = torch.zeros(400 * 400, dtype=torch.bool)
        kept = self.transform(self.data).edge_index
        edges[kept[0] * 400 + kept[1]] = True
        return edges


@pytest.mark.parametrize("workers", [0, 2])
def test_draws_are_fresh_in_every_worker_and_epoch(workers):
    torch.manual_seed(0)
    loader = DataLoader(Transformed(graycert.RandomInterception(0.5, 0.5)), num_workers=workers, batch_size=None)
    seen = {tuple(edges.nonzero()[:, 0].tolist()) for _ in range(2) for edges in loader}
    assert len(seen) == 8


def test_a_trained_token_is_refused_in_workers_with_the_line_for_the_loop():
    transform = graycert.RandomInterception(0.5, 0.5, nn.Parameter(torch.zeros(3)))
    loader = DataLoader(Transformed(transform), num_workers=1, batch_size=None)
    with pytest.raises(InvalidParameterError, match=r"batch = intercept\(batch\)"):
        next(iter(loader))


def test_batches_that_list_edges_per_hop():
    data = graph()
    data.num_sampled_edges = [1_000, 1_500, 500]
    drawn = graycert.RandomInterception(0.5, 0.0)(data)
    assert sum(drawn.num_sampled_edges) == drawn.num_edges
    first = drawn.num_sampled_edges[0]
    ids = {tuple(pair) for pair in data.edge_index[:, :1_000].T.tolist()}
    assert all(tuple(pair) in ids for pair in drawn.edge_index[:, :first].T.tolist())
    assert tuple(drawn.edge_index[:, first].tolist()) not in ids


def test_the_edges_of_an_edge_index_object():
    data = graph()
    data.edge_index = torch_geometric.EdgeIndex(data.edge_index, sparse_size=(400, 400))
    drawn = graycert.RandomInterception(0.5, 0.0)(data)
    assert type(drawn.edge_index) is torch.Tensor
    assert torch.equal(drawn.edge_attr, drawn.edge_index.T.float())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: graycert.RandomInterception(1.2, 0.5), "`p_delete` must be in"),
        (lambda: graycert.RandomInterception(0.1, -1), "`p_ablate` must be in"),
        (lambda: graycert.RandomInterception(0.1, 0.1, [0.0]), "`token` must be a float tensor"),
        (lambda: graycert.RandomInterception(0.1, 0.1, torch.zeros(1, 3)), "`token` must be a float tensor"),
        (lambda: graycert.RandomInterception(0.1, 0.1, torch.zeros(4))(graph()), "3 here, got 4"),
        (lambda: graycert.RandomInterception(0.1, 0.1, seed=-1), "`seed` must be"),
        (lambda: graycert.RandomInterception(0.1, 0.1)(Data(num_nodes=3)), "without them"),
        (lambda: graycert.RandomInterception(0.1, 0.1)(torch_geometric.data.HeteroData()), "got an empty HeteroData"),
        (lambda: graycert.RandomInterception(0.1, 0.1)(graph(), graph().edge_index), "`x` must be a dense tensor"),
        (
            lambda: graycert.RandomInterception(0.1, 0.1)(graph().x, graph().edge_index, edge_attr=torch.ones(2)),
            "`edge_attr` must be a tensor with a row for each of the 3000 edges",
        ),
        (
            lambda: graycert.RandomInterception(0.1, 0.1)(graph().x, graph().edge_index, w=None),
            "`w` must be a tensor with a row for each of the 3000 edges, got NoneType",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InvalidParameterError, match=message):
        make()


def square(**values):
    """As many nodes as edges: a shape does not tell whose rows they are."""
    data = Data(x=torch.ones(8, 2), edge_index=torch.stack([torch.arange(8), torch.arange(1, 9) % 8]))
    for name, value in values.items():
        data[name] = value
    return data


def test_with_as_many_nodes_as_edges_well_known_names_decide():
    ends = torch.arange(8)
    data = square(edge_attr=ends, e_id=ends, y=ends, train_mask=ends > 3, n_id=ends)
    drawn = graycert.RandomInterception(0.5, 0.0, seed=1)(data)
    assert 0 < drawn.num_edges < 8
    for name in ("edge_attr", "e_id"):
        assert torch.equal(drawn[name], drawn.edge_index[0])
    assert all(torch.equal(drawn[name], data[name]) for name in ("y", "train_mask", "n_id"))


@pytest.mark.parametrize("name", ["amount", "edge_count"])  # PyTorch Geometric takes the latter for one of edges
def test_with_as_many_nodes_as_edges_other_names_are_asked_for(name):
    data = square(**{name: torch.arange(8)})
    with pytest.raises(InvalidParameterError, match=rf'`edge_inputs` must say.*`{name}`.*edge_inputs=\("{name}",\)'):
        graycert.RandomInterception(0.5, 0.0, seed=1)(data)
    follows = graycert.RandomInterception(0.5, 0.0, seed=1, edge_inputs=(name,))(data)
    assert torch.equal(follows[name], follows.edge_index[0])
    stays = graycert.RandomInterception(0.5, 0.0, seed=1, edge_inputs=())(data)
    assert torch.equal(stays.edge_index, follows.edge_index)
    assert torch.equal(stays[name], data[name])


def test_an_earlier_graph_shows_whose_rows_they_are():
    intercept, data = graycert.RandomInterception(0.5, 0.0, seed=1), square(amount=torch.arange(8), age=torch.arange(8))
    clear = data.clone()
    clear.x, clear.age = torch.ones(9, 2), torch.arange(9)
    intercept(clear)
    drawn = intercept(data)
    assert torch.equal(drawn.amount, drawn.edge_index[0])
    assert torch.equal(drawn.age, data.age)


def test_names_that_are_not_of_edges_are_refused():
    data = graph()
    with pytest.raises(InvalidParameterError, match="row for each of the 3000 edges, got 'y', which has 400"):
        graycert.RandomInterception(0.5, 0.5, edge_inputs=("y",))(data)
