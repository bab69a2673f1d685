"""Values per edge under another name than that of an argument of forward, or of another type than the model's."""

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

import graycert
from graycert import as_node_classifier
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models.edge_inputs import chosen_edge_inputs
from graycert.models.precision import check_precision
from graycert.zoo import zoo_graph

QUICK = {
    "smoothing": graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.6),
    "threat": graycert.NodeFeatureThreat(min_distance=1),
    "draws": graycert.Draws(num_selection=20, num_estimation=40),
    "max_radius": 2,
    "execution": graycert.Execution(engine="torch", say=lambda text: None),
}


def graph(**values):
    data = zoo_graph()
    for name, value in values.items():
        data[name] = value
    return data


def weights(seed=0):
    return 0.1 + torch.rand(zoo_graph().num_edges, generator=torch.Generator().manual_seed(seed))


class Anything(nn.Module):
    """Passes on what it is given."""

    def __init__(self):
        super().__init__()
        self.conv = pyg.GCNConv(8, 3)

    def forward(self, *args, **kwargs):
        return self.conv(*args, **kwargs)


class Unnamed(Anything):
    """Takes more, which cannot be named."""

    def forward(self, x, edge_index, *others):
        return self.conv(x, edge_index, *others)


class Scaled(Anything):
    """Its further arguments are none of edges."""

    def forward(self, x, edge_index, scale=1.0, *, batch=None, size=None):
        return self.conv(scale * x, edge_index)


@pytest.mark.parametrize(
    ("make", "name", "line"),
    [
        (lambda: pyg.GCNConv(8, 3), "amount", r'`edge_weight`.*edge_inputs=\{"edge_weight": "amount"\}'),
        (lambda: pyg.GCNConv(8, 3), "edge_attr", r'edge_inputs=\{"edge_weight": "edge_attr"\}'),
        (lambda: pyg.GAT(8, 8, 2, 3), "w", r'edge_inputs=\{"edge_weight": "w"\}'),
        (Anything, "w", r"edge_inputs=\('w',\)"),
        (Unnamed, "w", r"as_node_classifier\(model, call=lambda model, x, edge_index, w: \.\.\.\)"),
        (lambda: as_node_classifier((pyg.GCNConv(8, 8), nn.Linear(8, 3))), "edge_weight", r"\('edge_weight',\)"),
        (lambda: as_node_classifier(Scaled(), call="data"), "w", r"edge_inputs=\('w',\)"),
    ],
)
def test_a_tensor_per_edge_is_never_left_out_in_silence(make, name, line):
    data, model = graph(**{name: weights()}), make()
    with pytest.raises(UnsoundSetupError, match=rf"`data.{name}`.*{line}.*, or edge_inputs=\(\)") as refused:
        chosen_edge_inputs(model, data, None)
    assert refused.value.slug == "edge-inputs-unsaid"
    assert chosen_edge_inputs(model, data, ()) == ()


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (lambda: pyg.SAGEConv(8, 3), {"amount": weights()}),
        (Scaled, {"amount": weights()}),
        (lambda: as_node_classifier((pyg.SAGEConv(8, 8), nn.Linear(8, 3))), {"amount": weights()}),
        (lambda: pyg.GCNConv(8, 3), {"score": torch.rand(60), "rate": torch.rand(3)}),
    ],
)
def test_nobody_is_asked_where_nothing_could_be_meant(make, values):
    assert chosen_edge_inputs(make(), graph(**values), None) is None


def test_with_as_many_nodes_as_edges_what_is_known_to_be_of_nodes_does_not_count():
    data = zoo_graph()
    data.edge_index = data.edge_index[:, :60]
    data.train_mask = torch.ones(60, dtype=torch.bool)
    assert chosen_edge_inputs(pyg.GCNConv(8, 3), data, None) is None
    data.amount = torch.rand(60)
    with pytest.raises(UnsoundSetupError, match="amount"):
        chosen_edge_inputs(pyg.GCNConv(8, 3), data, None)


def test_what_a_preparation_left_out_is_asked_for_by_its_name():
    with pytest.raises(
        UnsoundSetupError, match=r"preparation left out: set `data.amount`.*\"edge_weight\": \"amount\""
    ):
        chosen_edge_inputs(pyg.GCNConv(8, 3), graycert.prepare_graph(graph(amount=weights())), None)


@pytest.mark.deep
def test_names_are_mapped_stored_and_verified(tmp_path):
    torch.manual_seed(0)
    model = pyg.GCN(8, 8, 2, 3)
    data, plain = graph(amount=weights()), graph(edge_weight=weights())
    run = graycert.certify(model, data, edge_inputs={"edge_weight": "amount"}, **QUICK)
    expected = graycert.certify(model, plain, edge_inputs=("edge_weight",), **QUICK)
    np.testing.assert_array_equal(run.estimation_votes, expected.estimation_votes)
    assert run.setup.edge_inputs == ("edge_weight=amount",)
    assert "brings its own edge_weight (data.amount) to the model" in run.summary()
    run.save(tmp_path / "run")
    assert graycert.Certificates.load(tmp_path / "run").setup == run.setup
    found = graycert.verify(tmp_path / "run", data=data, model=model)
    assert found.passed, str(found)
    data.amount[3] += 0.1
    assert not graycert.verify(tmp_path / "run", data=data).passed
    report = graycert.audit_model(model, plain, edge_inputs={"edge_weight": "edge_weight"})
    assert graycert.certify(model, plain, audit=report, edge_inputs=("edge_weight",), **QUICK).setup == expected.setup


def test_training_maps_names_too():
    data = graph(amount=weights())
    data.train_mask = torch.arange(60) < 30
    data.val_mask = ~data.train_mask
    options = {"smoothing": QUICK["smoothing"], "max_epochs": 2, "seed": 0}
    losses = []
    for name in ("amount", "edge_weight"):
        torch.manual_seed(0)
        model = pyg.GCN(8, 8, 2, 3)
        data.edge_weight = data.amount
        losses.append(graycert.train(model, data, edge_inputs={"edge_weight": name}, **options).best_validation_loss)
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"edge_weight": "nothing"}, "row for each"),
        ({"other": "amount"}, "does not take"),
        (("amount",), r'edge_inputs=\{"ARGUMENT": "amount"\}'),
        ({"edge_weight": 3}, "distinct names"),
        (("edge_weight=amount", "edge_weight=edge_attr"), "distinct names"),
        (("edge_weight=",), "distinct names"),
    ],
)
def test_mappings_that_cannot_be_are_refused(said, reason):
    with pytest.raises(InvalidParameterError, match=reason):
        chosen_edge_inputs(pyg.GCNConv(8, 3), graph(amount=weights(), edge_attr=weights()), said)


class Relational(nn.Module):
    """Needs integers for relations, floats for weights."""

    def __init__(self):
        super().__init__()
        self.first, self.second = pyg.RGCNConv(8, 8, 2), pyg.GCN(8, 8, 2, 3)

    def forward(self, x, edge_index, edge_type, edge_weight):
        return self.second(self.first(x, edge_index, edge_type).relu(), edge_index, edge_weight)


@pytest.mark.parametrize(
    ("kind", "cast"),
    [(torch.int64, "float()"), (torch.float64, "float()"), (torch.bool, "float()"), (torch.int8, "float")],
)
def test_the_cast_that_mends_values_per_edge_is_named_before_anything_is_drawn(kind, cast):
    data = graph(amount=(1 + 9 * weights()).to(kind), edge_type=torch.arange(zoo_graph().num_edges) % 2)
    said = {"edge_type": "edge_type", "edge_weight": "amount"}
    with pytest.raises(InvalidParameterError, match=r"`edge_inputs` must have the type.*`data.amount") as refused:
        graycert.certify(Relational(), data, edge_inputs=said, **QUICK)
    assert "Write `data.amount = data.amount.float()`" in str(refused.value)
    assert "edge_type =" not in str(refused.value)
    data.amount = data.amount.float()
    check_precision(Relational(), data, edge_inputs=said)


def test_double_precision_asks_for_double_precision():
    data = graph(edge_attr=weights().unsqueeze(1))
    data.x = data.x.double()
    with pytest.raises(InvalidParameterError, match=r"data.edge_attr = data.edge_attr.double\(\)"):
        check_precision(pyg.GATv2Conv(8, 3, edge_dim=1).double(), data, edge_inputs=("edge_attr",))
    check_precision(pyg.GCN(8, 8, 2, 3).double(), graph(x=data.x, edge_weight=weights()), edge_inputs=("edge_weight",))


def test_training_names_the_cast_too():
    data = graph(edge_weight=(1 + 9 * weights()).long())
    data.train_mask = torch.arange(60) < 30
    data.val_mask = ~data.train_mask
    with pytest.raises(InvalidParameterError, match=r"data.edge_weight = data.edge_weight.float\(\)"):
        graycert.train(
            pyg.GCN(8, 8, 2, 3), data, smoothing=QUICK["smoothing"], edge_inputs=("edge_weight",), max_epochs=1
        )


def test_another_failure_is_not_blamed_on_types():
    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = pyg.GCNConv(8, 3)

        def forward(self, x, edge_index, edge_type):
            raise RuntimeError("of its own")

    data = graph(edge_type=torch.zeros(zoo_graph().num_edges, dtype=torch.long))
    with pytest.raises(InvalidParameterError, match="of its own") as refused:
        graycert.certify(Fails(), data, edge_inputs=("edge_type",), **QUICK)
    assert "float()" not in str(refused.value)
