"""A report of `audit_model` spares the next `certify` the audit, for the very same model, graph and token only."""

import copy
import dataclasses
import os
import types

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GCNConv, SAGEConv

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError

ASKED = {
    "smoothing": graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.6),
    "threat": graycert.NodeFeatureThreat(min_distance=1),
    "draws": graycert.Draws(num_selection=20, num_estimation=60),
    "execution": graycert.Execution(engine="torch"),
}
SCALE = [1.0]
HELD = {"bytes": b"1", "number": np.float32(1), "dtype": torch.float32, "space": types.SimpleNamespace(by=1.0)}
HEAD = torch.nn.Linear(3, 3).eval()


class Scaled(torch.nn.Module):
    """A model whose weights lie in many places."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.conv = SAGEConv(num_features, 3)
        self.factor, self.words = 2.0, {"kinds": ["a", "b"]}
        self.register_buffer("shift", torch.zeros(3))

    def forward(self, x, edge_index):
        return SCALE[0] * self.factor * self.conv(x, edge_index) + self.shift


class Beside(Scaled):
    """A model that uses what is no part of it."""

    def forward(self, x, edge_index):
        more = float(HELD["number"]) + HELD["space"].by + len(HELD["bytes"]) + len(os.environ.get("EXTRA", ""))
        return more * HEAD(super().forward(x, edge_index)).to(HELD["dtype"])


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(2)
    edges = torch.unique(torch.randint(24, (2, 70), generator=generator), dim=1)
    return Data(x=torch.randn(24, 5, generator=generator), edge_index=edges[:, edges[0] != edges[1]])


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Scaled(5).eval()


def test_the_same_certificates_without_a_second_audit(model, data, monkeypatch):
    report = graycert.audit_model(model, data)
    audited = graycert.certify(model, data, **ASKED)

    def refuse(*_, **__):
        raise AssertionError("audited again")

    monkeypatch.setattr("graycert.smoothing.model_check.examine_model", refuse)
    taken = graycert.certify(model, data, audit=report, **ASKED)
    np.testing.assert_array_equal(taken.radius, audited.radius)
    np.testing.assert_array_equal(taken.estimation_votes, audited.estimation_votes)
    assert taken.setup == audited.setup
    assert graycert.certify(copy.deepcopy(model).train(), data, audit=report, **ASKED).setup == audited.setup
    with pytest.raises(AssertionError, match="audited again"):
        graycert.certify(model, data, **ASKED)


def _weight(model, data):
    model.conv.lin_l.weight.data[0, 0] += 1e-6


def _buffer(model, data):
    model.shift[1] = 1.0


def _attribute(model, data):
    model.factor = 3.0


def _nested(model, data):
    model.words["kinds"].append("c")


def _code(model, data):
    class Scaled(type(model)):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index).roll(1, 0)

    Scaled.__module__, Scaled.__qualname__ = type(model).__module__, type(model).__qualname__
    model.__class__ = Scaled


def _bound(model, data):
    model.forward = lambda x, edge_index: x[:, :3].flip(0)


def _hook(model, data):
    model.conv.register_forward_hook(lambda module, given, found: found.roll(1, 0))


def _inner_hook_value(model, data):
    model.conv.aggr_module.extra = 1


def _global(model, data):
    SCALE[0] = 4.0


def _features(model, data):
    data.x[3, 1] += 1e-6


def _edges(model, data):
    data.edge_index = data.edge_index[:, :-1]


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("change", "differs"),
    [
        *((each, "model") for each in (_weight, _buffer, _attribute, _nested, _code, _bound, _hook, _inner_hook_value)),
        (_global, "model"),
        (_features, "data"),
        (_edges, "data"),
    ],
)
def test_a_report_about_something_else_is_refused(model, data, change, differs, monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", list(SCALE))
    report = graycert.audit_model(model, data)
    change(model, data)
    with pytest.raises(InvalidParameterError, match=rf"`audit` must be about this .* differs in {differs}\. Call"):
        graycert.certify(model, data, audit=report, **ASKED)


CHANGES = {
    "bytes": lambda patch: patch.setitem(HELD, "bytes", b"22"),
    "number": lambda patch: patch.setitem(HELD, "number", np.float32(2)),
    "dtype": lambda patch: patch.setitem(HELD, "dtype", torch.float64),
    "namespace": lambda patch: patch.setattr(HELD["space"], "by", 2.0),
    "weight of another module": lambda patch: patch.setattr(HEAD.bias, "data", torch.ones(3)),
    "mode of another module": lambda patch: patch.setattr(HEAD, "training", True),
    "environment": lambda patch: patch.setenv("EXTRA", "1"),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("change", list(CHANGES))
def test_what_lies_beside_the_model_counts(change, data, monkeypatch):
    model = Beside(5).eval()
    report = graycert.audit_model(model, data)
    assert report.passed, str(report)
    graycert.certify(model, data, audit=report, **ASKED)
    CHANGES[change](monkeypatch)
    with pytest.raises(InvalidParameterError, match=r"differs in model\."):
        graycert.certify(model, data, audit=report, **ASKED)


def test_a_change_of_a_library_function_counts(data, monkeypatch):
    model = GCN(5, 8, 2, 3).eval()
    report = graycert.audit_model(model, data)
    monkeypatch.setattr(type(model.convs[0]), "message", lambda self, x_j, edge_weight: x_j.flip(0))
    with pytest.raises(InvalidParameterError, match="differs in model"):
        graycert.certify(model, data, audit=report, **ASKED)


@pytest.mark.parametrize(
    ("asked", "differs"),
    [
        ({"ablation_token": torch.ones(5)}, "ablation_token"),
        ({"num_layers": 2}, "num_layers"),
        ({"smoothing": graycert.FeaturesOnly(), "draws": None}, "features_matter"),
    ],
)
def test_what_is_asked_must_be_what_was_audited(model, data, asked, differs):
    report = graycert.audit_model(model, data)
    with pytest.raises(InvalidParameterError, match=rf"differs in {differs}\."):
        graycert.certify(model, data, audit=report, **{**ASKED, **asked})


@pytest.mark.deep
def test_values_per_edge_belong_to_what_was_audited(data):
    class Weighted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(5, 3)

        def forward(self, x, edge_index, edge_weight=None):
            return self.conv(x, edge_index, edge_weight)

    model, given = Weighted().eval(), ("edge_weight",)
    data.edge_weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(1))
    report = graycert.audit_model(model, data, edge_inputs=given)
    assert graycert.certify(model, data, audit=report, edge_inputs=given, **ASKED).setup.edge_inputs == given
    with pytest.raises(InvalidParameterError, match=r"differs in data, edge_inputs\."):
        graycert.certify(model, data, audit=report, edge_inputs=(), **ASKED)
    data.edge_weight[7] += 1e-6
    with pytest.raises(InvalidParameterError, match=r"differs in data\."):
        graycert.certify(model, data, audit=report, edge_inputs=given, **ASKED)


def test_only_reports_as_this_process_made_them(model, data):
    report = graycert.audit_model(model, data)
    forged = [
        dataclasses.replace(report, num_layers=report.num_layers - 1),
        dataclasses.replace(report, checks=report.checks[:1]),
        dataclasses.replace(report, seal=""),
        dataclasses.replace(report, seal="0" * 64),
        dataclasses.replace(report, about={**report.about, "model": "0"}),
    ]
    for each in forged:
        with pytest.raises(InvalidParameterError, match="`audit` must be a report as audit_model returned it"):
            graycert.certify(model, data, audit=each, **ASKED)
    with pytest.raises(InvalidParameterError, match="got dict"):
        graycert.certify(model, data, audit={"passed": True}, **ASKED)
    graycert.certify(model, data, audit=copy.deepcopy(report), **ASKED)


def test_another_process_has_another_key(model, data, monkeypatch):
    report = graycert.audit_model(model, data)
    monkeypatch.setattr("graycert.audit.seal._KEY", b"of another process")
    with pytest.raises(InvalidParameterError, match="in this process"):
        graycert.certify(model, data, audit=report, **ASKED)


def test_a_shorter_audit_does_not_count(model, data):
    report = graycert.audit_model(model, data, num_draws=2)
    with pytest.raises(InvalidParameterError, match="num_draws = 2, fewer than 15"):
        graycert.certify(model, data, audit=report, **ASKED)


def test_a_failed_audit_still_refuses(data):
    class Leaky(torch.nn.Module):
        def forward(self, x, edge_index):
            return x[:, :3] - x[:, :3].mean(dim=0)

    report = graycert.audit_model(Leaky(), data)
    assert not report.passed
    with pytest.raises(UnsoundSetupError, match="message-leak"):
        graycert.certify(Leaky(), data, audit=report, **ASKED)


def test_targets_that_ignore_the_features_are_found_whatever_the_report_was_about(data):
    class OnlyTheFirst(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = SAGEConv(5, 3)
            self.register_buffer("kept", torch.randn(24, 3))

        def forward(self, x, edge_index):
            nodes = torch.arange(x.size(0))
            return torch.where((nodes < 4)[:, None], self.conv(x, edge_index), self.kept[nodes % 24])

    model = OnlyTheFirst().eval()
    report = graycert.audit_model(model, data)
    assert report.passed
    graycert.certify(model, data, audit=report, targets=[0, 10], **ASKED)
    with pytest.raises(UnsoundSetupError, match="ignores-features"):
        graycert.certify(model, data, audit=report, targets=[10, 11], **ASKED)


def test_a_model_that_cannot_be_hashed_is_audited_anew(data):
    model = Scaled(5).eval()
    model.words["more"] = Opaque()
    report = graycert.audit_model(model, data)
    assert report.passed
    with pytest.raises(InvalidParameterError, match="whose state can be hashed"):
        graycert.certify(model, data, audit=report, **ASKED)


class Opaque:
    """Says nothing of what it holds."""

    def __reduce__(self):
        return (Opaque, ())
