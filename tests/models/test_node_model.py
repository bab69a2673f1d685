"""The per-node model: a function of one row, bit for bit, total, and kept on disk."""

import dataclasses
import json

import numpy as np
import pytest
import torch

import graycert
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.models.node_model import NodeModel, NodeModelConfig
from graycert.models.row_scaling import RowScaling
from support.attributed_graphs import random_graph

CONFIG = NodeModelConfig(num_features=60, num_classes=4, hidden_channels=24, members=3, input_dropout=0.5, dropout=0.5)


def bag_of_words(num_rows, *, num_features=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(num_rows, num_features, generator=generator) < 0.1).float()


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    found = NodeModel(CONFIG)
    found.scaling = RowScaling.of(bag_of_words(200, seed=1))
    return found.eval()


def test_probabilities_are_the_mean_of_the_members(model):
    x = bag_of_words(5)
    rows = model.scaling(x).double()
    members = [member.double()(rows).softmax(dim=1) for member in model.members]
    expected = torch.stack(members).mean(dim=0)
    model.float()
    assert torch.allclose(model(x).double().exp(), expected, atol=1e-6)
    assert torch.allclose(model(x).exp().sum(dim=1), torch.ones(5))


@pytest.mark.parametrize("company", [1, 2, 7, 255, 256, 257, 600])
def test_bits_of_a_row_do_not_depend_on_the_others(model, company):
    x = bag_of_words(600, seed=5)
    alone = torch.cat([model(x[row : row + 1]) for row in range(40)])
    order = torch.randperm(600, generator=torch.Generator().manual_seed(company))
    place = torch.argsort(order)
    among = torch.cat([model(part) for part in torch.split(x[order], company)])[place]
    assert torch.equal(among[:40], alone)


def test_bits_do_not_depend_on_the_number_of_threads(model):
    x, before = bag_of_words(600, seed=6), torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            found.append(model(x))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 3e38])
def test_rows_that_are_no_numbers_have_equal_probabilities_and_leave_the_others_alone(model, value):
    x = bag_of_words(300, seed=7)
    broken = x.clone()
    broken[17, 3:9] = value
    out, clean = model(broken), model(x)
    others = torch.arange(300) != 17
    assert torch.equal(out[others], clean[others])
    assert bool(torch.isfinite(out).all())
    if value != 3e38:
        assert torch.equal(out[17], torch.full((4,), -np.log(4.0), dtype=torch.float32))


def test_edges_are_not_looked_at(model):
    x = bag_of_words(30)
    edges = torch.randint(30, (2, 50))
    assert torch.equal(model(x), model(x, edges))


def test_no_rows_give_no_rows(model):
    assert tuple(model(torch.empty(0, 60)).shape) == (0, 4)


def test_scaling_of_a_bag_of_words_is_frozen_inverse_document_frequency():
    x = torch.tensor([[1.0, 0, 0, 0, 0], [2.0, 1, 0, 0, 0], [1.0, 0, 0, 0, 1]])
    scaling = RowScaling.of(x)
    weight = np.log(4 / (1 + np.array([3, 1, 0, 0, 1])))
    assert np.allclose(scaling.weight, weight)
    row = torch.tensor([[0.0, 5, 1, 0, 0]])
    expected = np.array([0, 5 * weight[1], weight[2], 0, 0])
    assert np.allclose(scaling(row), expected / np.linalg.norm(expected))
    assert torch.equal(scaling(torch.zeros(1, 5)), torch.zeros(1, 5))


def test_scaling_of_measurements_is_frozen_z_scores():
    x = torch.randn(50, 3) * torch.tensor([1.0, 100.0, 0.0]) + torch.tensor([-3.0, 5.0, 0.1])
    scaled = RowScaling.of(x)(x)
    assert np.allclose(scaled[:, :2].mean(dim=0), 0, atol=1e-4)
    assert np.allclose(scaled[:, :2].std(dim=0, correction=0), 1, atol=1e-4)
    assert torch.equal(scaled[:, 2], torch.zeros(50))


def test_the_audit_sees_a_model_of_single_nodes(model):
    data = random_graph(num_features=60, num_classes=4)
    report = graycert.audit_model(model, data)
    assert report.passed
    assert report.is_per_node
    gcn = graycert.build_model("gcn", data)
    assert not graycert.audit_model(gcn, data).is_per_node


def test_comes_back_from_disk(model, tmp_path):
    model.class_names = ("a", "b", "c", "d")
    path = graycert.save_model(model, tmp_path / "node", notes={"seed": 1})
    loaded = graycert.load_model(path)
    x = bag_of_words(20)
    assert isinstance(loaded, graycert.NodeModel)
    assert torch.equal(loaded(x), model(x))
    assert (loaded.config, loaded.class_names, loaded.training) == (CONFIG, ("a", "b", "c", "d"), False)


@pytest.mark.parametrize("change", [{"members": 2}, {"hidden_channels": 8}, {"members": 10**9}, {"architecture": "x"}])
def test_files_that_do_not_fit_are_refused(model, change, tmp_path):
    path = graycert.save_model(model, tmp_path / "node")
    described = path.with_suffix(".json")
    document = json.loads(described.read_text())
    document["config"].update(change)
    described.write_text(json.dumps(document))
    with pytest.raises(InvalidFileError):
        graycert.load_model(path)


@pytest.mark.parametrize(
    "change",
    [
        {"num_classes": 1},
        {"members": 0},
        {"hidden_channels": 0},
        {"dropout": 1.0},
        {"input_dropout": -0.1},
        {"architecture": "gcn"},
    ],
)
def test_configurations_out_of_range_are_refused(change):
    with pytest.raises(InvalidParameterError, match=next(iter(change))):
        dataclasses.replace(CONFIG, **change)
