"""The bits of a row of probabilities depend on that row of features alone."""

import numpy as np
import pytest
import torch
from torch import nn

from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models.node_model import NodeModel, NodeModelConfig
from graycert.models.row_probabilities import BLOCK, row_probabilities, sees_rows_alone
from graycert.models.row_products import rows_times


class PerNode(nn.Module):
    """Calls layers without edges."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x, edge_index=None):
        return self.layers(x)


class Ensemble(nn.Module):
    """Rows on the unit sphere, three MLPs as one batch, the mean of their probabilities."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.randn(3, 37, 19))
        self.second = nn.Parameter(torch.randn(3, 19, 7))

    def forward(self, x, edge_index=None):
        x = nn.functional.normalize(x * torch.linspace(0.5, 2, 37))
        hidden = torch.relu(torch.einsum("nf,efh->enh", x, self.first))
        return torch.bmm(hidden, self.second).softmax(dim=-1).mean(dim=0).log()


class Convolving(nn.Module):
    """Has an operation that nobody knows to treat rows alike."""

    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv1d(1, 3, 5), nn.Linear(3 * 33, 7)

    def forward(self, x, edge_index=None):
        return self.out(torch.tanh(self.conv(x[:, None])).flatten(1))


class OverTheNodes(nn.Module):
    """Subtracts the mean over nodes."""

    def forward(self, x, edge_index=None):
        return x[:, :7] - x.mean(dim=0)[:7]


def mlp():
    layers = (nn.Linear(37, 33), nn.BatchNorm1d(33), nn.GELU(), nn.Dropout(), nn.LayerNorm(33), nn.Linear(33, 7))
    return PerNode(*layers)


def node_model():
    config = NodeModelConfig(
        num_features=37, num_classes=7, hidden_channels=33, members=3, input_dropout=0.6, dropout=0.5
    )
    return NodeModel(config)


MODELS = {"mlp": mlp, "node model": node_model, "ensemble": Ensemble, "unknown operation": Convolving}
any_model = pytest.mark.parametrize("kind", MODELS)


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def features(number=BLOCK + 90):
    x = torch.randn(number, 37) * torch.rand(number, 1) * 3
    x[torch.rand(x.shape) < 0.5] = 0.0
    return x


@pytest.mark.deep
@any_model
def test_bits_do_not_depend_on_company_or_threads(kind):
    model, x = MODELS[kind](), features(BLOCK + 90 if kind != "unknown operation" else 60)
    whole = row_probabilities(model, x)
    for size in (1, 7):
        few = x[:29]
        parts = [row_probabilities(model, part) for part in torch.split(few, size)]
        assert np.concatenate(parts).tobytes() == whole[:29].tobytes()
    order = torch.randperm(x.size(0))
    assert row_probabilities(model, x[order]).tobytes() == whole[order.numpy()].tobytes()
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            assert row_probabilities(model, x).tobytes() == whole.tobytes()
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.mark.few(1)
@any_model
def test_they_are_the_softmax_of_the_scores(kind):
    model, x = MODELS[kind]().eval(), features(50)
    with torch.no_grad():
        expected = model(x, torch.empty(2, 0, dtype=torch.long)).double().softmax(dim=1)
    np.testing.assert_allclose(row_probabilities(model, x), expected, rtol=1e-4, atol=1e-7)
    double = model.double()
    with torch.no_grad():
        expected = double(x.double(), torch.empty(2, 0, dtype=torch.long)).softmax(dim=1)
    np.testing.assert_allclose(row_probabilities(double, x.double()), expected, rtol=1e-10)


@any_model
def test_hostile_rows_change_no_other_row(kind):
    model, x = MODELS[kind](), features(40)
    whole = row_probabilities(model, x)
    for value in (float("nan"), float("inf"), -float("inf"), 3e38, 1e4, 0.0):
        attacked = x.clone()
        attacked[::3] = value
        attacked[1, 5] = value
        found = row_probabilities(model, attacked)
        assert np.isfinite(found).all()
        assert found[2::3].tobytes() == whole[2::3].tobytes()
        if not np.isfinite(value):
            assert (found[::3] == 1 / 7).all()
            assert (found[1] == 1 / 7).all()


def test_scores_that_are_not_finite_are_uniform():
    class Logs(nn.Module):
        def forward(self, x, edge_index=None):
            return x[:, :3].log()

    x = torch.tensor([[1.0, 1.0, 2.0, 9.0], [0.0, 1.0, 1.0, 9.0], [-1.0, 1.0, 1.0, 9.0]])
    found = row_probabilities(Logs(), x)
    np.testing.assert_allclose(found, [[0.25, 0.25, 0.5], [1 / 3] * 3, [1 / 3] * 3])


def test_models_that_read_other_rows_are_refused():
    with pytest.raises(UnsoundSetupError, match="not-per-node"):
        row_probabilities(OverTheNodes(), features(30))
    deep = mlp()
    deep.num_layers = 2
    with pytest.raises(UnsoundSetupError, match="2 steps of messages"):
        row_probabilities(deep, features(30))
    deep.num_layers = 0
    assert row_probabilities(deep, features(3)).shape == (3, 7)
    with pytest.raises(InvalidParameterError, match="two classes"):
        row_probabilities(PerNode(nn.Linear(37, 1)), features(3))


def test_only_an_untouched_node_model_is_known():
    assert sees_rows_alone(node_model())
    assert not sees_rows_alone(mlp())
    hooked = node_model()
    hooked.members[0].register_forward_hook(lambda module, inputs, out: out - out.mean(dim=0))
    assert not sees_rows_alone(hooked)
    replaced = node_model()
    replaced.members[0].first.forward = lambda rows: rows[:, :33]
    assert not sees_rows_alone(replaced)


def test_products_are_sums_in_order():
    rows, weights = torch.randn(5, 8, 11), torch.randn(5, 11, 4)
    np.testing.assert_allclose(rows_times(rows, weights), torch.bmm(rows, weights), rtol=1e-4, atol=1e-5)
    exact = [
        [sum(float(a) * float(b) for a, b in zip(row, column, strict=True)) for column in weights[0].T]
        for row in rows[0]
    ]
    np.testing.assert_allclose(rows_times(rows[0], weights[0]), np.array(exact, dtype=np.float32), rtol=1e-6)
