"""Training on graphs with node types and relations: `RandomInterception` in a loop, and `graycert.train`."""

import pytest
import torch
from torch import nn

import graycert
from graycert.errors import InvalidParameterError
from support.typed_graphs import AUTHOR, CITES, PAPER, REVIEWS, WRITES, WRITTEN_BY, Convs, typed_graph

P_DELETE = {WRITES: 0.2, WRITTEN_BY: 0.9, REVIEWS: 0.2, CITES: 0.0}
P_ABLATE = {"paper": 0.1, "author": 0.9}


@pytest.fixture(scope="module")
def data():
    graph = typed_graph(num_papers=600, num_authors=400)
    graph[WRITES].edge_attr = graph[WRITES].edge_index.T.float()
    return graph


def test_each_relation_and_type_has_its_own_probability(data):
    before = data.clone()
    token = {"paper": torch.full((PAPER,), 7.0), "author": torch.full((AUTHOR,), 9.0)}
    intercept = graycert.RandomInterception(P_DELETE, P_ABLATE, token=token, seed=1)
    drawn = intercept(data)
    for relation in data.edge_types:
        left = drawn[relation].num_edges / data[relation].num_edges
        assert abs(left - (1 - P_DELETE[relation])) < 0.06
    for name, value in (("paper", 7.0), ("author", 9.0)):
        hidden = (drawn[name].x == value).all(dim=1)
        assert abs(float(hidden.double().mean()) - P_ABLATE[name]) < 0.06
        assert torch.equal(drawn[name].x[~hidden], data[name].x[~hidden])
    assert torch.equal(drawn[WRITES].edge_attr, drawn[WRITES].edge_index.T.float())
    assert torch.equal(drawn["paper"].y, data["paper"].y)
    assert not torch.equal(intercept(data)["author"].x, drawn["author"].x)
    for relation in data.edge_types:
        assert torch.equal(data[relation].edge_index, before[relation].edge_index)
    again = graycert.RandomInterception(P_DELETE, P_ABLATE, token=token, seed=1)(data)
    assert torch.equal(again[WRITES].edge_index, drawn[WRITES].edge_index)


def test_relations_of_one_pair_share_a_coin(data):
    drawn = graycert.RandomInterception(0.5, 0.0)(data)

    def pairs(graph, relation):
        return {tuple(pair) for pair in graph[relation].edge_index.T.tolist()}

    both = pairs(data, WRITES) & pairs(data, REVIEWS)
    left = [pairs(drawn, relation) & both for relation in (WRITES, REVIEWS)]
    assert left[0] == left[1]
    assert 0 < len(left[0]) < len(both)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: graycert.RandomInterception(0.1, {"paper": 0.5}), "lacks 'author'"),
        (lambda: graycert.RandomInterception({WRITES: 1.5}, 0.1), "`p_delete` must be in"),
        (lambda: graycert.RandomInterception(0.1, 0.1, torch.zeros(8)), "dict with a tensor per node type"),
        (lambda: graycert.RandomInterception(0.1, 0.1, {"paper": torch.zeros(3)}), "8 numbers for the type 'paper'"),
    ],
)
def test_refusals(make, message, data):
    with pytest.raises(InvalidParameterError, match=message):
        make()(data)


def test_a_trained_token_per_type_gets_gradients(data):
    token = nn.ParameterDict({"paper": torch.zeros(PAPER), "author": torch.zeros(AUTHOR)})
    torch.manual_seed(0)
    drawn = graycert.RandomInterception(0.1, 0.5, token=token)(data)
    Convs()(drawn.x_dict, drawn.edge_index_dict)["paper"].square().mean().backward()
    assert all(bool(part.grad.abs().sum() > 0) for part in token.values())


@pytest.mark.deep
def test_train_learns_with_masks_of_the_type_and_what_it_learned_is_certified():
    data = typed_graph(num_papers=120, num_authors=60)
    order = torch.randperm(120, generator=torch.Generator().manual_seed(0))
    train, validation = order[:50], order[50:80]
    torch.manual_seed(0)
    model = Convs(token=True)
    before = model.ablation_token["author"].detach().clone()
    smoothing = graycert.InterceptionSmoothing(p_delete=0.05, p_ablate={"paper": 0.1, "author": 0.8})
    record = graycert.train(
        model,
        data,
        train_mask=train,
        validation_mask={"paper": validation},
        smoothing=smoothing,
        class_weight="balanced",
        learning_rate=0.02,
        max_epochs=40,
    )
    assert record.epochs == 40 or record.epochs > record.best_epoch
    assert not model.training
    assert not torch.equal(model.ablation_token["author"], before)
    found = graycert.certify(
        model,
        data,
        targets={"paper": order[80:]},
        smoothing=smoothing,
        threat=graycert.NodeFeatureThreat(eligible_types=("author",)),
        draws=graycert.Draws(num_selection=50, num_estimation=200),
        max_radius=3,
        execution=graycert.Execution(engine="torch", say=lambda _: None),
    )
    assert (found.prediction == found.labels).mean() > 0.8
    assert (found.radius >= 1).mean() > 0.3


def test_masks_of_a_graph_are_taken_by_default_and_overlaps_are_refused():
    data = typed_graph()
    data["paper"].train_mask = torch.arange(24) < 12
    data["paper"].val_mask = torch.arange(24) >= 12
    options = {"smoothing": graycert.InterceptionSmoothing(p_delete=0.1, p_ablate=0.1), "max_epochs": 2}
    assert graycert.train(Convs(), data, **options).epochs == 2
    with pytest.raises(InvalidParameterError, match="no node in common"):
        graycert.train(Convs(), data, validation_mask=torch.arange(5), **options)
    with pytest.raises(InvalidParameterError, match=r"`train_mask` must be a mask of shape \(24,\)"):
        graycert.train(Convs(), data, train_mask=torch.ones(18, dtype=torch.bool), **options)


def test_batches_that_list_edges_per_hop(data):
    batch = data.clone()
    batch[WRITES].edge_index, batch[WRITES].edge_attr = batch[WRITES].edge_index[:, :2], batch[WRITES].edge_attr[:2]
    batch[WRITES].num_sampled_edges = [1, 1]
    for _ in range(4):
        drawn = graycert.RandomInterception(0.5, 0.0)(batch)
        assert sum(drawn[WRITES].num_sampled_edges) == drawn[WRITES].num_edges
        assert batch[WRITES].num_sampled_edges == [1, 1]
