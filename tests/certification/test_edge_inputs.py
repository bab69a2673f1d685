"""Values per edge: never dropped in silence."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

import graycert
from graycert.errors import UnsoundSetupError
from graycert.zoo import zoo_graph

QUICK = {
    "smoothing": graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.6),
    "threat": graycert.NodeFeatureThreat(min_distance=1),
    "draws": graycert.Draws(num_selection=30, num_estimation=60),
    "max_radius": 3,
    "execution": graycert.Execution(engine="torch", say=lambda text: None),
}


class TakesAnything(nn.Module):
    """Takes whatever it is given by name."""

    def __init__(self):
        super().__init__()
        self.conv = pyg.GCNConv(8, 3)

    def forward(self, x, edge_index, **others):
        return self.conv(x, edge_index, others.get("edge_weight"))


class Typed(nn.Module):
    """Needs a relation per edge."""

    def __init__(self):
        super().__init__()
        self.conv = pyg.RGCNConv(8, 3, 2)

    def forward(self, x, edge_index, edge_type=None):
        return self.conv(x, edge_index, torch.zeros_like(edge_index[0]) if edge_type is None else edge_type)


def weighted(**others):
    data = zoo_graph()
    generator = torch.Generator().manual_seed(0)
    data.edge_weight = torch.rand(data.num_edges, generator=generator) + 0.1
    data.edge_type = torch.randint(2, (data.num_edges,), generator=generator)
    for name, value in others.items():
        data[name] = value
    return data


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: pyg.GCN(8, 8, 2, 3), "edge_weight"),
        (TakesAnything, "edge_weight"),
        (Typed, "edge_type"),
    ],
)
def test_a_model_that_could_be_given_values_per_edge_is_refused_until_it_is_said_which(make, name):
    with pytest.raises(UnsoundSetupError, match=rf"data.{name}.*edge_inputs=\(\)") as refused:
        graycert.certify(make(), weighted(), **QUICK)
    assert refused.value.slug == "edge-inputs-unsaid"


def test_none_is_an_answer_and_is_stored(tmp_path):
    torch.manual_seed(0)
    model, data = pyg.GCN(8, 8, 2, 3), weighted()
    run = graycert.certify(model, data, edge_inputs=(), **QUICK)
    assert run.setup.edge_inputs == ()
    run.save(tmp_path / "run")
    assert graycert.Certificates.load(tmp_path / "run").setup == run.setup
    assert graycert.verify(tmp_path / "run", data=data, model=model).passed


@pytest.mark.parametrize("value", [torch.rand(7), [1.0], "text"])
def test_nobody_has_to_choose_where_nothing_is_per_edge(value):
    data = zoo_graph()
    data.edge_weight = value
    assert graycert.certify(pyg.GCN(8, 8, 2, 3), data, **QUICK).setup.edge_inputs is None


def test_nobody_has_to_choose_where_the_model_takes_nothing():
    assert graycert.certify(pyg.SAGEConv(8, 3), weighted(), **QUICK).setup.edge_inputs is None
