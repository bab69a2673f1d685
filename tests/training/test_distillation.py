"""Distillation: a student learns what its teacher says, sees one node at a time, and is the same for the same seed."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models.row_scaling import RowScaling
from graycert.training import default_teacher, distill
from graycert.training.distillation import _lessons
from graycert.training.row_fit import seed_of_member

QUICK = {"members": 2, "hidden_channels": 16, "max_epochs": 60}


def communities(*, num_nodes=240, seed=0):
    """Three communities; words of a node follow its own, edges mostly stay inside."""
    rng = np.random.default_rng(seed)
    y = np.arange(num_nodes) % 3
    words = rng.random((num_nodes, 60)) < 0.03
    words |= (np.arange(60) // 20 == y[:, None]) & (rng.random((num_nodes, 60)) < 0.12)
    source = rng.integers(num_nodes, size=6 * num_nodes)
    target = (source + 3 * rng.integers(1, num_nodes // 3, size=source.size)) % num_nodes
    edges = np.unique(np.stack([np.r_[source, target], np.r_[target, source]]), axis=1)
    return Data(
        x=torch.tensor(words, dtype=torch.float32), edge_index=torch.tensor(edges), y=torch.tensor(y, dtype=torch.long)
    )


@pytest.fixture(scope="module")
def split():
    return graycert.inductive_split(communities(), seed=0, per_class=10)


@pytest.fixture(scope="module")
def student(split):
    return distill(split, seed=4, **QUICK)


def accuracy(model, part):
    with torch.no_grad():
        right = model(part.data.x, part.data.edge_index).argmax(dim=1) == part.data.y
    return float(right[part.nodes].float().mean())


@pytest.mark.deep
def test_the_student_is_a_good_model_of_single_nodes(split, student):
    assert isinstance(student, graycert.NodeModel)
    assert not student.training
    assert accuracy(student, split.test) > 0.6
    assert graycert.audit_model(student, split.test.data).is_per_node


def test_the_default_teacher_learns_from_the_graph(split):
    teacher = default_teacher(split, members=2, max_epochs=60)
    assert accuracy(teacher, split.test) > 0.8
    with torch.no_grad():
        log_probabilities = teacher(split.test.data.x, split.test.data.edge_index)
    assert torch.allclose(log_probabilities.exp().sum(dim=1), torch.ones(240))


@pytest.mark.deep
def test_the_same_seed_gives_the_same_bits_and_leaves_the_global_generator_alone(split, student):
    before = torch.random.get_rng_state()
    again = distill(split, seed=4, **QUICK)
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in student.state_dict().items())
    other = distill(split, seed=5, **QUICK)
    assert not torch.equal(other.members[0].first.weight, student.members[0].first.weight)


def test_every_member_of_every_ensemble_has_a_seed_of_its_own():
    seeds = [seed_of_member(seed, role, member) for seed in range(20) for role in range(2) for member in range(4)]
    assert len(set(seeds)) == len(seeds)


def test_lessons_are_the_teacher_s_probabilities_squared_and_true_labels_where_they_are_known(split):
    part, generator = split.train, torch.Generator().manual_seed(0)
    probabilities = torch.rand(part.data.num_nodes, 3, generator=generator, dtype=torch.float64)
    probabilities /= probabilities.sum(dim=1, keepdim=True)
    wanted = _lessons(part, RowScaling.of(part.data.x), probabilities.log(), 2.0).wanted
    squared = probabilities.square() / probabilities.square().sum(dim=1, keepdim=True)
    squared[part.nodes] = torch.eye(3, dtype=torch.float64)[part.data.y[part.nodes]]
    assert torch.allclose(wanted.double(), squared)


def test_a_teacher_is_left_as_it_was(split):
    teacher = graycert.build_model("gcn", split)
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    distill(split, teacher, max_epochs=2, members=1)
    assert teacher.training
    assert all(torch.equal(value, before[name]) for name, value in teacher.state_dict().items())


@pytest.mark.deep
def test_a_graph_with_masks_and_a_teacher_of_probabilities(split):
    data = communities(seed=3)
    masks = torch.zeros(2, data.num_nodes, dtype=torch.bool)
    masks[0, :60], masks[1, 60:120] = True, True
    gnn = graycert.build_model("gcn", data)
    graycert.train(
        gnn,
        data,
        train_mask=masks[0],
        validation_mask=masks[1],
        smoothing=graycert.InterceptionSmoothing(p_delete=0.0, p_ablate=0.0),
        learning_rate=0.01,
        max_epochs=40,
    )
    softmax = graycert.as_node_classifier(
        gnn, call=lambda model, x, edge_index: model(x, edge_index).softmax(dim=1), output="probabilities"
    )
    found = [
        distill(data, teacher, train_mask=masks[0], validation_mask=masks[1], **QUICK) for teacher in (gnn, softmax)
    ]
    x = data.x
    assert torch.allclose(found[0](x), found[1](x), atol=0.1)
    data.train_mask, data.val_mask = masks
    stored = distill(data, gnn, **QUICK)
    assert torch.equal(stored(x), found[0](x))


@pytest.mark.deep
def test_measurements_instead_of_words(split):
    data = split.test.data.clone()
    data.x = torch.randn(240, 4, generator=torch.Generator().manual_seed(0)) * 100 + data.y[:, None] * 120
    found = graycert.inductive_split(data, seed=0, per_class=10)
    assert accuracy(distill(found, **QUICK), found.test) > 0.6


def test_class_names_are_kept(split):
    data = communities()
    data.class_names = ["x", "y", "z"]
    named = graycert.inductive_split(data, seed=0, per_class=10)
    assert distill(named, max_epochs=2, members=1, hidden_channels=4).class_names == ("x", "y", "z")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("members", 0),
        ("hidden_channels", 0),
        ("input_dropout", 1.0),
        ("dropout", -1),
        ("sharpness", 0),
        ("learning_rate", -1),
        ("max_epochs", 0),
        ("patience", 0),
        ("seed", -1),
        ("teacher", torch.nn.Linear(3, 3)),
        ("teacher", "gcn"),
    ],
)
def test_arguments_out_of_range_are_refused(split, argument, value):
    with pytest.raises(InvalidParameterError, match="model" if argument == "teacher" else argument):
        distill(split, **{argument: value})


def test_a_teacher_of_other_classes_is_refused(split):
    wide = torch.nn.Linear(60, 5)
    teacher = graycert.as_node_classifier(wide, call=lambda model, x, edge_index: model(x))
    with pytest.raises(InvalidParameterError, match="3 classes"):
        distill(split, teacher)


def test_values_per_edge_are_asked_for():
    data = communities()
    data.edge_weight = torch.ones(data.edge_index.size(1))
    weighted = graycert.inductive_split(data, seed=0, per_class=10)

    class Weighted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(60, 3)

        def forward(self, x, edge_index, edge_weight):
            spread = torch.zeros(x.size(0), 3).index_add(
                0, edge_index[1], edge_weight[:, None] * self.linear(x)[edge_index[0]]
            )
            return spread + self.linear(x)

    gnn = Weighted()
    with pytest.raises(UnsoundSetupError, match="edge_weight"):
        distill(weighted, gnn)
    assert isinstance(distill(weighted, gnn, edge_inputs=("edge_weight",), **QUICK), graycert.NodeModel)
