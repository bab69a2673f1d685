"""`train` for any module, with the caller's masks, against a textbook loop over whole graphs."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.sampling import CoinStream, InterceptionSampler, Purpose
from graycert.training.module_loss import ModuleLoss
from graycert.training.parts import Parts
from graycert.training.smoothed_loss import SmoothedLoss
from support.communities import two_communities

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.2, p_ablate=0.4)


def graph(*, seed=0, rare=None):
    data = two_communities(seed=seed)
    if rare is not None:
        data.y = torch.where((data.y == 1) & (torch.arange(60) % 8 == 1), 1, 0)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(seed))
    data.train_mask, data.val_mask = torch.zeros(2, 60, dtype=torch.bool)
    data.train_mask[order[:25]] = True
    data.val_mask[order[25:45]] = True
    data.edge_weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(1)) + 0.5
    data.edge_attr = torch.rand(data.num_edges, 3, generator=torch.Generator().manual_seed(2))
    return data


class Net(nn.Module):
    """Two layers with values per edge, and a token that is trained."""

    def __init__(self, conv, token=True):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = conv(40, 16), conv(16, 2)
        if token:
            self.ablation_token = nn.Parameter(torch.zeros(40))

    def forward(self, x, edge_index, **edge_inputs):
        return self.second(self.first(x, edge_index, **edge_inputs).relu(), edge_index, **edge_inputs)


def test_the_loss_of_a_built_model_is_the_same_as_that_of_any_module():
    data = graph()
    split = graycert.inductive_split(data, seed=0, per_class=8, test_fraction="0.2")
    model = graycert.build_model("gat", split, skip=True, dropout=0.0).double()
    split.train.data.x = split.train.data.x.double()
    stream = CoinStream(1, Purpose.TRAINING)
    known, module = (loss(model, split.train, SMOOTHING, stream) for loss in (SmoothedLoss, ModuleLoss))
    for samples in (range(1), range(3, 6)):
        ours, theirs = known(known.batch(samples)), module(module.batch(samples))
        assert float(ours.detach()) == pytest.approx(float(theirs.detach()), rel=1e-12)


@pytest.mark.parametrize(
    ("conv", "edge_inputs"),
    [
        (pyg.SAGEConv, ()),
        (pyg.GCNConv, ("edge_weight",)),
        (lambda i, o: pyg.GATv2Conv(i, o, edge_dim=3), ("edge_attr",)),
    ],
)
def test_weights_are_those_of_a_textbook_loop(conv, edge_inputs):
    data, epochs, weights = graph(), 4, torch.tensor([1.0, 2.0])
    for name in ("x", "edge_weight", "edge_attr"):
        data[name] = data[name].double()
    ours, theirs = Net(conv).double(), Net(conv).double()
    graycert.train(
        ours,
        data,
        smoothing=SMOOTHING,
        class_weight=weights,
        edge_inputs=edge_inputs,
        stop_on="accuracy",
        max_epochs=epochs,
        learning_rate=0.01,
        weight_decay=0.0,
        seed=3,
    )
    optimizer = torch.optim.Adam(theirs.parameters(), lr=0.01)
    streams = CoinStream(3, Purpose.TRAINING), CoinStream(3, Purpose.VALIDATION)
    training, validation = (
        InterceptionSampler.of_graph(SMOOTHING, stream, data.edge_index, num_nodes=60) for stream in streams
    )

    def scores(draw):
        x = data.x.clone()
        x[draw.ablated[0]] = theirs.ablation_token
        kept = draw.kept[0]
        return theirs(x, data.edge_index[:, kept], **{name: data[name][kept] for name in edge_inputs})

    best = (2.0, 0.0, None)
    for epoch in range(1, epochs + 1):
        optimizer.zero_grad()
        out = scores(training.draw(torch.tensor([epoch])))[data.train_mask]
        cross_entropy(out, data.y[data.train_mask], weight=weights.double()).backward()
        optimizer.step()
        with torch.no_grad():
            seen = torch.cat([scores(validation.draw(torch.tensor([s])))[data.val_mask] for s in range(4)])
            labels = data.y[data.val_mask].repeat(4)
            key = (
                -float((seen.argmax(1) == labels).double().mean()),
                float(cross_entropy(seen, labels, weight=weights.double())),
            )
        if key < best[:2]:
            best = (*key, {name: value.clone() for name, value in theirs.state_dict().items()})
    for name, value in ours.state_dict().items():
        torch.testing.assert_close(value, best[2][name], rtol=1e-8, atol=1e-10)
    assert float(ours.ablation_token.detach().abs().max()) > 0


def test_masks_of_the_graph_or_of_the_caller():
    data = graph()
    by_graph, by_hand = Net(pyg.SAGEConv), Net(pyg.SAGEConv)
    options = {"smoothing": SMOOTHING, "max_epochs": 2, "edge_inputs": ()}
    record = graycert.train(by_graph, data, **options)
    train_mask, validation_mask = data.train_mask, data.val_mask.nonzero()[:, 0].tolist()
    del data.train_mask, data.val_mask
    again = graycert.train(by_hand, data, train_mask=train_mask, validation_mask=validation_mask, **options)
    assert again.best_validation_loss == record.best_validation_loss
    assert all(torch.equal(a, b) for a, b in zip(by_graph.parameters(), by_hand.parameters(), strict=True))
    assert not by_graph.training


def test_balanced_weights_and_balanced_accuracy_find_a_rare_class():
    data = graph(rare=True)
    found = {}
    for name, options in {
        "plain": {},
        "balanced": {"class_weight": "balanced", "stop_on": "balanced accuracy"},
    }.items():
        model = Net(pyg.SAGEConv)
        record = graycert.train(model, data, smoothing=SMOOTHING, edge_inputs=(), max_epochs=40, patience=40, **options)
        with torch.no_grad():
            predicted = model(data.x, data.edge_index).argmax(dim=1)
        found[name] = float((predicted[data.y == 1] == 1).double().mean())
    assert (record.stop_on, record.class_weight) == ("balanced accuracy", "balanced")
    assert record.best_validation_accuracy > 0.5
    assert found["balanced"] > found["plain"]


def test_one_logit_and_one_probability_are_trained_as_what_they_are():
    class One(Net):
        def __init__(self, last):
            super().__init__(pyg.SAGEConv)
            torch.manual_seed(0)
            self.second, self.last = pyg.SAGEConv(16, 1), last

        def forward(self, x, edge_index):
            return self.last(super().forward(x, edge_index)).squeeze(-1)

    data = graph()
    losses = []
    for last, output in ((nn.Identity(), "logit"), (nn.Sigmoid(), "probabilities")):
        model = One(last)
        with pytest.raises(InvalidParameterError, match=r"Write: model = graycert\.as_node_classifier"):
            graycert.train(model, data, smoothing=SMOOTHING)
        adapted = graycert.as_node_classifier(model, output=output)
        record = graycert.train(adapted, data, smoothing=SMOOTHING, edge_inputs=(), max_epochs=20, learning_rate=0.01)
        losses.append(record.best_validation_loss)
        assert float(model.ablation_token.detach().abs().max()) > 0
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert losses[0] < 0.6


def test_global_random_state_and_data_are_left_alone():
    class Careless(Net):
        def forward(self, x, edge_index):
            return super().forward(x.mul_(0.5), edge_index)

    data, before = graph(), graph()
    torch.manual_seed(5)
    model = Careless(pyg.SAGEConv)
    state = torch.get_rng_state()
    graycert.train(model, data, smoothing=SMOOTHING, max_epochs=2)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(data[name], before[name]) for name in before.to_dict())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": two_communities()}, "`train_mask` must say which nodes are used"),
        ({"data": 3}, "`data` must be a torch_geometric.data.Data"),
        ({"train_mask": torch.zeros(60, dtype=torch.bool)}, "`train_mask` must choose labelled nodes, got none"),
        ({"train_mask": [60]}, "`train_mask` must be a boolean mask of shape"),
        ({"train_mask": [0.5]}, "`train_mask` must be a boolean mask of shape"),
        ({"validation_mask": list(range(60))}, "`validation_mask` must have no node in common with `train_mask`"),
        ({"edge_inputs": "edge_attr"}, "`edge_inputs` must be a tuple of names, got 'edge_attr'"),
        ({"edge_inputs": ("weights",)}, "`edge_inputs` must name tensors of the graph with a row for each"),
        ({"edge_inputs": ("edge_attr",)}, r"`model` must accept model\(x, edge_index, edge_attr=...\)"),
        ({"model": nn.Identity()}, "`model` must"),
        ({"model": pyg.GCN(40, 4, 1, 1)}, 'output="logit"'),
    ],
)
def test_refusals(changes, message):
    arguments = {"model": Net(pyg.SAGEConv), "data": graph(), "smoothing": SMOOTHING, "edge_inputs": (), **changes}
    with pytest.raises(InvalidParameterError, match=message):
        graycert.train(arguments.pop("model"), arguments.pop("data"), **arguments)


def test_labels_beyond_the_outputs_and_unknown_labels():
    data = graph()
    data.y = data.y.clone()
    data.y[data.train_mask.nonzero()[0, 0]] = -1
    with pytest.raises(InvalidParameterError, match="whose label is unknown"):
        graycert.train(Net(pyg.SAGEConv), data, smoothing=SMOOTHING, edge_inputs=())
    data.y[:] = 2
    with pytest.raises(InvalidParameterError, match="got 2 outputs and label 2"):
        graycert.train(Net(pyg.SAGEConv), data, smoothing=SMOOTHING, edge_inputs=())


def test_parts_of_a_graph_hold_the_whole_graph():
    parts = Parts.of(graph())
    assert isinstance(parts.train.data, Data)
    assert parts.train.data is parts.whole.data
    assert parts.whole.nodes.numel() == 60


def test_values_per_edge_are_asked_for_and_follow_an_inductive_split():
    data = graph()
    with pytest.raises(UnsoundSetupError) as refused:
        graycert.train(Net(pyg.GraphConv), data, smoothing=SMOOTHING)
    assert refused.value.slug == "edge-inputs-unsaid"
    split = graycert.inductive_split(data, seed=0, per_class=5)
    for part in (split.train, split.validation, split.test):
        numbers = {tuple(edge): number for number, edge in enumerate(data.edge_index.T.tolist())}
        chosen = [numbers[tuple(edge)] for edge in part.original[part.data.edge_index].T.tolist()]
        assert torch.equal(part.data.edge_weight, data.edge_weight[chosen])
    graycert.train(Net(pyg.GraphConv), split, smoothing=SMOOTHING, edge_inputs=("edge_weight",), max_epochs=2)
