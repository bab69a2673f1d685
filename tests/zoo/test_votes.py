"""Votes over the zoo: those of one forward pass over the whole graph per draw, whatever shares a pass."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import sort_edge_index

import graycert
from graycert.zoo import LOCAL, zoo_graph
from support.textbook_loop import intercept

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.5)
DRAWS = graycert.Draws(num_selection=9, num_estimation=31)
NUMBERS = {"selection": 9, "estimation": 31}
SEED, CLASSES = 5, 3
BATCH_SIZES = (1, 7, 64, None)
REPRESENTATIVE = (  # compiled, compiled with attention, merged, in company alone, one by one, on this graph alone
    "GCNConv",
    "GATConv",
    "SAGEConv, softmax",
    "graph size norm",
    "SAGEConv, LSTM",
    "a row per node",
)


def with_loops(data: Data, every: int) -> Data:
    loops = torch.arange(0, int(data.num_nodes), every).repeat(2, 1)
    return Data(x=data.x, y=data.y, edge_index=torch.cat([data.edge_index, loops], dim=1))


def in_one_direction_and_both(data: Data) -> Data:
    """Add the reverse of every fourth edge: some friendships go both ways, some one way."""
    edges = torch.cat([data.edge_index, data.edge_index[:, ::4].flip(0)], dim=1).unique(dim=1)
    return Data(x=data.x, y=data.y, edge_index=edges)


GRAPHS = {
    "directed, isolated nodes": lambda: zoo_graph(num_nodes=30, seed=1, directed=True),
    "undirected, self-loops": lambda: with_loops(zoo_graph(num_nodes=24, seed=2), 3),
    "both ways and one, self-loops": lambda: in_one_direction_and_both(
        with_loops(zoo_graph(num_nodes=27, seed=3, directed=True), 4)
    ),
}


@cache
def graph(name):
    data = GRAPHS[name]()
    data.edge_index = sort_edge_index(data.edge_index, sort_by_row=False)  # an LSTM reads its messages in this order
    return data


@cache
def drawn(name, purpose):
    data = graph(name)
    token = torch.zeros(data.x.size(1))
    return [
        intercept(data.x, data.edge_index, token, SMOOTHING, seed=SEED, purpose=purpose, sample=number)
        for number in range(NUMBERS[purpose])
    ]


def voted_for(scores):
    """The class whose score alone is the largest, or none."""
    return [
        row.index(max(row)) if row.count(max(row)) == 1 and not any(value != value for value in row) else None
        for row in scores.tolist()
    ]


def one_by_one(model, name, purpose):
    """Votes, and how many are for no class: one forward pass of a fresh copy per draw."""
    votes = np.zeros((int(graph(name).num_nodes), CLASSES + 1), dtype=np.int64)
    for x, edge_index in drawn(name, purpose):
        with torch.no_grad():
            scores = deepcopy(model).eval()(x.clone(), edge_index)
        for node, winner in enumerate(voted_for(scores)):
            votes[node, CLASSES if winner is None else winner] += 1
    return votes[:, :CLASSES], votes[:, CLASSES]


def made(name, data):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LOCAL[name].make(data)
    if name == "SAGEConv, LSTM":  # its states hardly vary with untrained weights
        with torch.no_grad():
            for weights in model.parameters():
                weights *= 3
    return model


def compare(name, on, batch_sizes):
    exhibit, data = LOCAL[name], graph(on)
    model = made(name, data)
    expected = {purpose: one_by_one(model, on, purpose) for purpose in NUMBERS}
    for batch_size in batch_sizes:
        found = graycert.certify(
            model,
            data.clone(),
            smoothing=SMOOTHING,
            threat=graycert.NodeFeatureThreat(),
            draws=DRAWS,
            seed=SEED,
            num_layers=None if exhibit.counted else exhibit.depth,
            execution=graycert.Execution(
                batch_size=batch_size, engine="auto" if batch_size is None else "torch", say=lambda _: None
            ),
        )
        for purpose, (votes, for_none) in expected.items():
            said = f"{name}, batch size {batch_size}, {found.setup.engine}"
            np.testing.assert_array_equal(getattr(found, f"{purpose}_votes"), votes, err_msg=said)
            beside = getattr(found, f"{purpose}_no_class")
            np.testing.assert_array_equal(0 if beside is None else beside, for_none, err_msg=said)
    assert (np.count_nonzero(expected["estimation"][0], axis=1) > 1).any(), "a comparison of unanimous votes is blind"


@pytest.mark.few(1)
@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_votes_are_those_of_one_forward_pass_per_draw(name):
    compare(name, "both ways and one, self-loops", (7, None))


@pytest.mark.slow
@pytest.mark.parametrize("on", list(GRAPHS))
@pytest.mark.parametrize("name", list(LOCAL))
def test_so_they_are_for_every_local_model_and_batch_size(name, on):
    compare(name, on, BATCH_SIZES)


def test_the_graphs_are_what_they_are_called():
    loops = {name: bool((graph(name).edge_index[0] == graph(name).edge_index[1]).any()) for name in GRAPHS}
    assert list(loops.values()) == [False, True, True]
    assert [graph(name).is_undirected() for name in GRAPHS] == [False, True, False]
    for name in GRAPHS:
        assert torch.unique(graph(name).edge_index).numel() < graph(name).num_nodes or "self-loops" in name
