"""Whatever becomes of a certification, the caller's model, data and random state stay as they were (A7, A8)."""

import copy
import random

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

import graycert
from graycert.audit import audit_model
from graycert.errors import GraycertError, InvalidParameterError
from support.attributed_graphs import random_graph
from support.foreign_models import CLASSES, WIDTH, TwoLiner

SMOOTHINGS = {
    "interception": (
        graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.8),
        graycert.Draws(num_selection=20, num_estimation=30),
    ),
    "retention": (
        graycert.UniformRetention(keep_ratio=0.5, tau=4),
        graycert.Draws(num_selection=20, num_estimation=30),
    ),
    "global ablation": (
        graycert.RandomizedAblation(scope="global", p_ablate=0.8),
        graycert.Draws(num_selection=20, num_estimation=30),
    ),
    "local ablation": (
        graycert.RandomizedAblation(scope="local", p_ablate=0.8),
        graycert.Draws(num_selection=20, num_estimation=30),
    ),
    "subgraphs": (graycert.SubgraphVoting(num_subgraphs=3), None),
    "features only": (graycert.FeaturesOnly(), None),
}


class InPlace(TwoLiner):
    """Its first step overwrites what it is given."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, x, edge_index):
        self.step(x)
        edge_index += 0
        return super().forward(x, edge_index)


class Apart(InPlace):
    """The same with a copy of its own."""

    def forward(self, x, edge_index):
        return super().forward(x.clone(), edge_index.clone())


class KeepsTheSize(TwoLiner):
    """Sound: remembers the number of nodes, and looks at a flag and a buffer."""

    def __init__(self):
        super().__init__()
        self.n, self.flag = None, False
        self.register_buffer("shift", torch.zeros(WIDTH))

    def forward(self, x, edge_index):
        if self.n is None:
            self.n = x.size(0)
            self.shift = self.shift + 0
            self.flag = True
        return super().forward(x + self.shift, edge_index)


class Draws(TwoLiner):
    """Moves every global generator without using what it draws, and leaves the gradient mode changed."""

    def forward(self, x, edge_index):
        torch.rand(3), np.random.rand(3), random.random()  # noqa: NPY002
        torch.set_grad_enabled(False)
        return super().forward(x, edge_index)


class Interrupted(TwoLiner):
    def __init__(self, after):
        super().__init__()
        self.left = [after]

    def __deepcopy__(self, memo):
        made = Interrupted(self.left[0])
        made.load_state_dict(self.state_dict())
        return made

    def forward(self, x, edge_index):
        self.left[0] -= 1
        torch.rand(1)
        if self.left[0] < 0:
            raise KeyboardInterrupt
        x.mul_(2)
        return super().forward(x, edge_index)


def state(model, data):
    """Everything of the caller that could change, as comparable values."""
    attributes = [
        {name: copy.deepcopy(value) for name, value in vars(module).items() if not name.startswith("_")}
        for module in model.modules()
    ]
    return {
        "attributes": repr(attributes),
        "weights": {name: value.clone() for name, value in model.state_dict().items()},
        "gradients": [(p.requires_grad, p.grad, p.device, p.dtype) for p in model.parameters()],
        "modes": [module.training for module in model.modules()],
        "hooks": [len(module._forward_pre_hooks) for module in model.modules()],
        "keys": sorted(data.keys()),
        "tensors": [id(data.x), id(data.edge_index)],
        "x": data.x.clone(),
        "edges": data.edge_index.clone(),
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state()[1].copy(),  # noqa: NPY002
        "python": random.getstate(),
        "grad": torch.is_grad_enabled(),
    }


def same(first, second):
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    return first == second


def certify(model, data, name="interception"):
    smoothing, draws = SMOOTHINGS[name]
    return graycert.certify(
        model, data, smoothing=smoothing, draws=draws, threat=graycert.NodeFeatureThreat(min_distance=1)
    )


@pytest.fixture
def data():
    with torch.enable_grad():  # puts the mode back after each test
        yield random_graph(num_nodes=25, num_pairs=40)


STEPS = {
    "clamp": lambda x: x.clamp_(0, 1),
    "multiply": lambda x: x.mul_(1.1),
    "only NaN": lambda x: x.nan_to_num_(0.0),
    "one column": lambda x: x[:, 0].zero_(),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("step", list(STEPS))
@pytest.mark.parametrize("smoothing", list(SMOOTHINGS))
def test_a_first_step_in_place_sees_a_copy(step, smoothing, data):
    model = InPlace(STEPS[step])
    before = state(model, data)
    found = certify(model, data, smoothing)
    assert same(state(model, data), before)
    plain = Apart(STEPS[step])
    plain.load_state_dict(model.state_dict())
    expected = certify(plain, data, smoothing)
    assert np.array_equal(found.prediction, expected.prediction)
    assert found.setup.graph_fingerprint == expected.setup.graph_fingerprint


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", [KeepsTheSize, Draws, lambda: pyg.GCN(WIDTH, 8, 2, CLASSES)])
@pytest.mark.parametrize("smoothing", list(SMOOTHINGS))
def test_nothing_of_the_caller_changes(kind, smoothing, data):
    model = kind()
    model.train()
    before = state(model, data)
    certify(model, data, smoothing)
    assert same(state(model, data), before)
    audit_model(model, data)
    assert same(state(model, data), before)
    model.eval()
    assert model(data.x, data.edge_index).shape == (25, CLASSES)


def test_a_refusal_changes_nothing(data):
    class Mean(InPlace):
        def forward(self, x, edge_index):
            torch.rand(1)
            return super().forward(x, edge_index) + x.mean()

    model = Mean(STEPS["multiply"])
    before = state(model, data)
    with pytest.raises(GraycertError):
        certify(model, data)
    assert same(state(model, data), before)
    assert not audit_model(model, data).passed
    assert same(state(model, data), before)


@pytest.mark.parametrize("after", [0, 3, 30])
def test_an_interruption_changes_nothing(after, data):
    model = Interrupted(after)
    before = state(model, data)
    with pytest.raises(KeyboardInterrupt):
        certify(model, data)
    assert same(state(model, data), before)


def test_weights_that_need_no_gradient_stay_so(data):
    model = TwoLiner()
    model.conv.bias.requires_grad_(False)
    data.x.requires_grad_(True)
    certify(model, data)
    assert [p.requires_grad for p in model.parameters()].count(False) == 1
    assert data.x.requires_grad
    assert data.x.grad is None


def test_votes_are_those_of_a_model_that_nobody_called_before(data):
    """Tracing the caller's own object used to leave a proxy in it (A8)."""
    first, second = KeepsTheSize(), KeepsTheSize()
    second.load_state_dict(first.state_dict())
    second.eval()(data.x, data.edge_index)
    assert np.array_equal(certify(first, data).estimation_votes, certify(second, data).estimation_votes)


@pytest.mark.deep
def test_lazy_layers_that_were_never_called_are_named(data):
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = pyg.SAGEConv(-1, CLASSES)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    model = Lazy()
    for call in (certify, audit_model):
        with pytest.raises(InvalidParameterError, match=r"once, then train it"):
            call(model, data)
    model(data.x, data.edge_index)
    certify(model, data)


def test_a_model_that_cannot_be_copied_is_refused_in_words(data):
    model = TwoLiner()
    model.last = model(data.x, data.edge_index)
    with pytest.raises(InvalidParameterError, match="deepcopy"):
        certify(model, data, "global ablation")
