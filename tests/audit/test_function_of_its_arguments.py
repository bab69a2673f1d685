"""Smoothings that need no locality still need a function of features and edges."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GraphNorm

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError

ATTRIBUTES = {
    "smoothing": graycert.SparseSmoothing(p_plus=0.05, p_minus=0.6),
    "threat": graycert.AttributeFlipThreat(max_additions=2),
    "draws": graycert.Draws(num_selection=20, num_estimation=60),
}
NODES = {
    "smoothing": graycert.RandomizedAblation(scope="global", p_ablate=0.9),
    "threat": graycert.NodeFeatureThreat(min_distance=1),
    "draws": graycert.Draws(num_selection=20, num_estimation=60),
}


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(0)
    edges = torch.unique(torch.randint(30, (2, 120), generator=generator), dim=1)
    x = (torch.rand(30, 8, generator=generator) < 0.4).float()
    return Data(x=x, edge_index=edges[:, edges[0] != edges[1]])


class _OneLayer(torch.nn.Module):
    def __init__(self, data):
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.kept = GCNConv(8, 3, bias=True), None
        self.register_buffer("read_before", data.x.clone())
        torch.nn.init.normal_(self.conv.bias)


class KeepsTheFirstInput(_OneLayer):
    def forward(self, x, edge_index):
        self.kept = x.clone() if self.kept is None else self.kept
        return self.conv(self.kept, edge_index)


class ReadBefore(_OneLayer):
    def forward(self, x, edge_index):
        return self.conv(self.read_before, edge_index)


class ReadBeforeWithoutEdges(_OneLayer):
    def forward(self, x, edge_index):
        return self.read_before[:, :3] + self.conv.bias


class Draws(_OneLayer):
    def forward(self, x, edge_index):
        return self.conv(torch.nn.functional.dropout(x, 0.5), edge_index)


class NormalisedOverTheGraph(_OneLayer):
    """Not local, and allowed here."""

    def __init__(self, data):
        super().__init__(data)
        self.norm = GraphNorm(8)

    def forward(self, x, edge_index):
        return self.conv(self.norm(x), edge_index)


@pytest.mark.parametrize("asked", [ATTRIBUTES, NODES], ids=["sparse", "global ablation"])
@pytest.mark.parametrize(
    ("model", "slug"),
    [
        (KeepsTheFirstInput, "not-deterministic"),
        (ReadBefore, "ignores-features"),
        (ReadBeforeWithoutEdges, "ignores-features"),
        (Draws, "not-deterministic"),
    ],
)
def test_what_is_no_function_of_its_arguments_is_refused(model, slug, asked, data):
    with pytest.raises(UnsoundSetupError) as refusal:
        graycert.certify(model(data), data, **asked)
    assert refusal.value.slug == slug


@pytest.mark.few(1)
@pytest.mark.parametrize("asked", [ATTRIBUTES, NODES], ids=["sparse", "global ablation"])
def test_a_function_that_is_not_local_passes(asked, data):
    found = graycert.certify(NormalisedOverTheGraph(data), data, **asked)
    assert found.setup.num_layers is None
    with pytest.raises(UnsoundSetupError):
        graycert.audit_model(NormalisedOverTheGraph(data), data).require()


def test_its_own_row_attacks_a_target_that_nobody_reaches(data):
    data.edge_index = torch.empty(2, 0, dtype=torch.int64)
    with pytest.raises(UnsoundSetupError, match="ignores-features"):
        graycert.certify(ReadBefore(data), data, **ATTRIBUTES)


class LimitedByTheFirstInput(_OneLayer):
    """What it keeps of the first call binds only a thousand times above it."""

    def forward(self, x, edge_index):
        if self.kept is None:
            self.kept = 1e3 * x.abs().max()
        return self.conv(x.clamp(-self.kept, self.kept), edge_index)


class RefusesMillions(_OneLayer):
    """Takes features up to a million, as an index or a table of its own might."""

    def forward(self, x, edge_index):
        if x.abs().max() > 1e6:
            raise ValueError("too large")
        return self.conv(x, edge_index)


def test_a_limit_that_is_fitted_at_the_first_call_and_binds_later_is_refused(data):
    with pytest.raises(UnsoundSetupError, match="not-deterministic"):
        graycert.audit_model(LimitedByTheFirstInput(data), data).require()


def test_a_model_that_takes_no_large_features_is_told_so(data):
    with pytest.raises(InvalidParameterError, match="must accept any features"):
        graycert.audit_model(RefusesMillions(data), data)
