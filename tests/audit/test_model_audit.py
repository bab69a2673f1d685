"""Which models pass the audit, which are refused, and why."""

import copy

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from graycert.audit import audit_model
from graycert.audit.influence import measure_influence
from graycert.audit.structure import check_structure
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models import build_model
from support import foreign_models as foreign
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph
from support.foreign_models import CLASSES, WIDTH, Sandwich


@pytest.fixture(scope="module")
def data():
    return random_graph(num_nodes=25, num_pairs=40)


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def slugs(report):
    return {check.slug for check in report.checks if not check.passed}


@pytest.mark.few(2)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_built_in_models_pass(architecture, skip, directed):
    graph = random_graph(num_nodes=25, num_pairs=40, directed=directed)
    num_layers = 3 if skip else 2
    model = build_model(architecture, graph, skip=skip, num_layers=num_layers)
    report = audit_model(model, graph)
    assert report.passed, str(report)
    report.require()
    assert (report.num_layers, report.counted_steps, report.farthest_influence) == (num_layers,) * 3
    assert model.training
    assert "Lemma 1 holds with" in str(report)


class Twice(nn.Module):
    """One convolution called twice."""

    def __init__(self):
        super().__init__()
        self.map, self.conv = nn.Linear(WIDTH, CLASSES), pyg.GCNConv(CLASSES, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(torch.tanh(self.conv(self.map(x), edge_index)), edge_index)


class Propagated(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.map, self.conv = nn.Linear(WIDTH, CLASSES), conv

    def forward(self, x, edge_index):
        return self.conv(self.map(x), edge_index)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("make", "steps"),
    [
        (lambda: Sandwich(first=pyg.TAGConv(WIDTH, 8, K=3), second=pyg.TAGConv(8, CLASSES, K=3)), 6),
        (lambda: Sandwich(first=pyg.SGConv(WIDTH, 8, K=3), second=pyg.SGConv(8, CLASSES, K=3)), 6),
        (lambda: Sandwich(first=pyg.ChebConv(WIDTH, 8, K=3), second=pyg.ChebConv(8, CLASSES, K=3)), 4),
        (
            lambda: Sandwich(first=pyg.ARMAConv(WIDTH, 8, num_layers=2), second=pyg.ARMAConv(8, CLASSES, num_layers=2)),
            4,
        ),
        (lambda: Propagated(pyg.APPNP(K=10, alpha=0.1)), 10),
        (Twice, 2),
        (lambda: pyg.GCN(WIDTH, 8, 4, CLASSES), 4),
        (lambda: pyg.GraphSAGE(WIDTH, 8, 2, CLASSES), 2),
        (lambda: pyg.GIN(WIDTH, 8, 2, CLASSES), 2),
        (lambda: pyg.GAT(WIDTH, 8, 2, CLASSES, heads=2), 2),
        (lambda: pyg.GAT(WIDTH, 8, 2, CLASSES, v2=True, jk="cat"), 2),
    ],
    ids=["TAG", "SG", "Cheb", "ARMA", "APPNP", "twice", "GCN", "SAGE", "GIN", "GAT", "GATv2-jk"],
)
def test_propagation_steps_are_counted(make, steps, data):
    model = make()
    report = audit_model(model, data)
    assert report.passed, str(report)
    assert (report.num_layers, report.counted_steps) == (steps, steps)
    assert report.farthest_influence <= steps
    assert slugs(audit_model(model, data, num_layers=steps - 1)) >= {"too-few-layers"}
    assert audit_model(model, data, num_layers=steps + 1).num_layers == steps + 1


def test_a_model_without_messages_has_one_step(data):
    report = audit_model(foreign.Returns(lambda x: x[:, :3] * 2), data)
    assert report.passed
    assert (report.num_layers, report.counted_steps, report.farthest_influence) == (1, 0, 0)


@pytest.mark.few(2)
@pytest.mark.parametrize("conv", [pyg.SAGEConv, pyg.GATv2Conv, pyg.TransformerConv, pyg.GraphConv, pyg.LEConv])
@pytest.mark.parametrize(
    "middle", [pyg.LayerNorm(8, mode="node"), pyg.BatchNorm(8), nn.BatchNorm1d(8), nn.LayerNorm(8), pyg.MessageNorm]
)
def test_sound_modules_pass(conv, middle, data):
    middle = nn.Identity() if middle is pyg.MessageNorm else middle
    report = audit_model(Sandwich(middle, first=conv(WIDTH, 8), second=conv(8, CLASSES)), data)
    assert report.passed, str(report)
    assert report.num_layers == 2


def test_aggregators_of_convolutions_are_no_pooling(data):
    model = Sandwich(
        first=pyg.SAGEConv(WIDTH, 8, aggr="softmax"), second=pyg.SAGEConv(8, CLASSES, aggr=["mean", "max"])
    )
    assert audit_model(model, data).passed


class Readout(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = pyg.MeanAggregation()

    def forward(self, x):
        return x + self.pool(x, torch.zeros(x.size(0), dtype=torch.long))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("slug", "make"),
    [
        ("cached-propagation", lambda: Sandwich(first=pyg.GCNConv(WIDTH, 8, cached=True))),
        ("cached-propagation", lambda: Sandwich(first=pyg.SGConv(WIDTH, 8, K=1, cached=True))),
        ("batch-statistics", lambda: Sandwich(nn.BatchNorm1d(8, track_running_stats=False))),
        ("batch-statistics", lambda: Sandwich(pyg.BatchNorm(8, track_running_stats=False))),
        ("graph-wide-normalization", lambda: Sandwich(pyg.LayerNorm(8))),
        ("graph-wide-normalization", lambda: Sandwich(pyg.GraphNorm(8))),
        ("graph-wide-normalization", lambda: Sandwich(pyg.PairNorm())),
        ("graph-wide-normalization", lambda: Sandwich(pyg.MeanSubtractionNorm())),
        ("graph-wide-normalization", lambda: Sandwich(pyg.InstanceNorm(8))),
        ("global-pooling", lambda: Sandwich(Readout())),
    ],
)
def test_forbidden_modules_are_refused_by_name(slug, make, data):
    report = audit_model(make(), data)
    assert not report.passed
    assert slug in slugs(report)
    with pytest.raises(UnsoundSetupError) as caught:
        report.require()
    assert caught.value.slug == slug
    assert "does NOT hold" in str(report)


class Holds(nn.Module):
    def __init__(self, held):
        super().__init__()
        self.held = held


@pytest.mark.parametrize(
    ("slug", "held"),
    [
        ("global-attention", lambda: pyg.GPSConv(8, pyg.GCNConv(8, 8), heads=2)),
        ("global-attention", lambda: nn.MultiheadAttention(8, 2)),
        ("global-attention", lambda: nn.TransformerEncoderLayer(8, 2)),
        ("global-pooling", lambda: pyg.TopKPooling(8)),
        ("global-pooling", lambda: pyg.SAGPooling(8)),
        ("global-pooling", lambda: pyg.Set2Set(8, 2)),
        ("feature-dependent-structure", lambda: pyg.DynamicEdgeConv.__new__(pyg.DynamicEdgeConv)),
    ],
)
def test_forbidden_modules_are_seen_wherever_they_sit(slug, held):
    module = held()
    if not hasattr(module, "_modules"):
        pyg.MessagePassing.__init__(module)  # the constructor of DynamicEdgeConv wants torch-cluster
        module.nn = nn.Identity()
    found = check_structure(Holds(nn.ModuleList([nn.ModuleDict({"deep": module})])))
    assert slug in {check.slug for check in found if not check.passed}
    assert all("held.0.deep" in check.detail for check in found)


def test_a_graph_transformer_is_refused(data):
    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.map, self.gps = nn.Linear(WIDTH, 8), pyg.GPSConv(8, pyg.GCNConv(8, 8), heads=2, norm=None)
            self.out = nn.Linear(8, CLASSES)

        def forward(self, x, edge_index):
            return self.out(self.gps(self.map(x), edge_index))

    assert {"global-attention", "message-leak"} <= slugs(audit_model(Transformer(), data))


LEAKY = {
    "mean": foreign.GlobalMean,
    "virtual node": foreign.VirtualNode,
    "z-scores": foreign.ZScores,
    "softmax over nodes": foreign.NodeSoftmax,
    "softmax with global max": foreign.GlobalMaxAttention,
    "nearest neighbours": foreign.NearestNeighbours,
    "dense matrix": lambda: foreign.SparseProduct(foreign.dense_matrix),
    "zero weights": lambda: foreign.SparseProduct(foreign.zero_weights),
    "backwards": lambda: pyg.GCNConv(WIDTH, CLASSES, flow="target_to_source"),
    "skip shows others": foreign.SkipShowsOthers,
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", list(LEAKY))
def test_leaks_are_executed(name, data):
    """Nothing in these models has a suspicious type; what they do gives them away."""
    report = audit_model(LEAKY[name](), data, num_layers=4)
    assert "message-leak" in slugs(report), str(report)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", [name for name in LEAKY if name != "backwards"])
def test_the_leak_test_alone_finds_them_too(name, data, monkeypatch):
    """The probe on path graphs and the test on the data are independent of each other."""
    monkeypatch.setattr("graycert.audit.model_audit.probe_model", lambda *_, **__: None)
    report = audit_model(LEAKY[name](), data, num_layers=4)
    assert [check.slug for check in report.checks if check.name == "leak test"] == ["message-leak"], str(report)


@pytest.mark.parametrize("name", [name for name in LEAKY if name != "skip shows others"])
def test_the_probe_alone_finds_them_too(name):
    with torch.inference_mode():
        seen = measure_influence(LEAKY[name]().eval(), num_features=WIDTH, dtype=torch.float32, at_least=4)
    assert seen.leaks


@pytest.mark.parametrize("num_layers", [1, 2, 5])
def test_the_probe_measures_the_distance(num_layers):
    with torch.inference_mode():
        model = pyg.GCN(WIDTH, 8, num_layers, CLASSES).eval()
        for at_least in (0, 1, 7):
            seen = measure_influence(model, num_features=WIDTH, dtype=torch.float32, at_least=at_least)
            assert (seen.distance, seen.leaks) == (num_layers, False)


def test_a_hop_too_many_is_a_leak(data, monkeypatch):
    """With both depth checks blinded, the executed test still sees that two hops are not one."""
    monkeypatch.setattr("graycert.audit.model_audit.count_propagation_steps", lambda model, *args: (1, model(*args)))
    monkeypatch.setattr("graycert.audit.model_audit.probe_model", lambda *_, **__: None)
    assert slugs(audit_model(Sandwich(), data, num_layers=1)) == {"message-leak"}
    assert slugs(audit_model(Sandwich(), data, num_layers=2)) == set()


def test_attention_with_a_maximum_per_receiver_passes(data):
    assert audit_model(foreign.GlobalMaxAttention(per_receiver=True), data, num_layers=1).passed


@pytest.mark.parametrize("product", [foreign.sparse_sum, foreign.sparse_matrix])
def test_messages_without_convolutions_need_the_number_of_layers(product, data):
    model = foreign.SparseProduct(product)
    report = audit_model(model, data)
    assert slugs(report) >= {"unknown-depth"}
    assert report.farthest_influence == 2
    assert audit_model(model, data, num_layers=2).passed
    assert slugs(audit_model(model, data, num_layers=1)) >= {"too-few-layers"}


def test_a_model_of_one_graph_needs_the_number_of_layers(data):
    model = foreign.NumbersNodes(25)
    report = audit_model(model, data)
    assert slugs(report) == {"unknown-depth"}
    assert report.farthest_influence == -1
    assert audit_model(model, data, num_layers=1).passed


@pytest.mark.parametrize("kind", [foreign.SkipIsALayer, foreign.TwoLiner])
def test_harmless_models_pass(kind, data):
    assert audit_model(kind(), data).passed


def test_names_of_the_protocol_prove_nothing(data):
    report = audit_model(foreign.StepNamedPropagate(), data, num_layers=3)
    assert report.passed, str(report)
    assert report.farthest_influence == 3


@pytest.mark.parametrize("kind", [foreign.AlwaysDropout, foreign.RemembersFeatures, foreign.RemembersEdges])
def test_randomness_and_memory_are_refused(kind, data):
    assert "not-deterministic" in slugs(audit_model(kind(), data))


def test_a_model_in_training_mode_is_audited_in_evaluation_mode(data):
    model = Sandwich(nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.5)))
    model.train()
    before = copy.deepcopy(model.state_dict())
    assert audit_model(model, data).passed
    assert model.training
    assert model.middle[0].training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_token_that_is_the_mean_of_the_features_is_refused(data):
    report = audit_model(foreign.TwoLiner(), data, ablation_token=data.x.mean(dim=0))
    assert slugs(report) == {"token-from-features"}
    assert audit_model(foreign.TwoLiner(), data, ablation_token=torch.ones(WIDTH)).passed


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: x[:, 0], "shape"),
        (lambda x: x[:, :1], "two classes"),
        (lambda x: x[:-1, :3], "shape"),
        (lambda x: (x[:, :3], None), "tuple"),
        (lambda x: x[:, :3] * float("nan"), "finite"),
        (lambda x: x[:, :3] * float("inf"), "finite"),
        (lambda x: x @ torch.zeros(4, 3), "model.x, edge_index"),
        (lambda x: {}["scores"], "KeyError"),
    ],
)
def test_useless_outputs_are_refused(make, words, data):
    with pytest.raises(InvalidParameterError, match=r"`model`") as caught:
        audit_model(foreign.Returns(make), data)
    assert any(part in str(caught.value) for part in (words, words.replace(".", "(")))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"num_layers": 0}, "num_layers"),
        ({"num_layers": 1.5}, "num_layers"),
        ({"num_draws": 0}, "num_draws"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"ablation_token": torch.zeros(3)}, "ablation_token"),
    ],
)
def test_bad_arguments_are_refused(arguments, name, data):
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        audit_model(foreign.TwoLiner(), data, **arguments)


def test_something_that_is_no_module_is_refused(data):
    with pytest.raises(InvalidParameterError, match=r"torch\.nn\.Module"):
        audit_model(lambda x, edge_index: x, data)


def test_a_model_that_cannot_be_copied_is_refused_in_words(data):
    model = foreign.TwoLiner()
    model.last = model(data.x, data.edge_index)  # a non-leaf tensor
    with pytest.raises(InvalidParameterError, match="deepcopy"):
        audit_model(model, data)


def test_weights_stored_per_edge_are_refused_in_words(data):
    class Stored(foreign.TwoLiner):
        def forward(self, x, edge_index):
            return self.conv(x, edge_index, torch.ones(data.edge_index.size(1)))

    with pytest.raises(InvalidParameterError, match="cannot follow deleted edges"):
        audit_model(Stored(), data, num_layers=1)


@pytest.mark.parametrize("kind", [foreign.IndexesByFeature, foreign.AssertsFinite, foreign.NeedsEdges])
def test_models_that_fail_on_hostile_features_or_few_edges_are_refused_in_words(kind, data):
    sparse = random_graph(num_nodes=25, num_pairs=1)
    with pytest.raises(InvalidParameterError, match="any features and any edges"):
        audit_model(kind(), sparse if kind is foreign.NeedsEdges else data, num_layers=1)


def test_a_scale_that_only_huge_finite_features_shift_is_found():
    report = audit_model(foreign.ScaledAboveAMillion(), random_graph(num_nodes=25, num_pairs=40))
    assert slugs(report) == {"message-leak"}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_other_float_types_can_be_audited(dtype):
    graph = random_graph(num_nodes=25, num_pairs=40)
    graph.x = graph.x.to(dtype)
    report = audit_model(foreign.TwoLiner().to(dtype), graph)
    assert report.passed, str(report)


def test_a_seed_may_come_from_numpy(data):
    assert audit_model(foreign.TwoLiner(), data, seed=np.int64(3)).passed


def test_graphs_without_edges(data):
    lonely = random_graph()
    lonely.edge_index = torch.empty(2, 0, dtype=torch.long)
    report = audit_model(build_model("sma", lonely), lonely)
    assert report.passed
    assert report.num_layers == 2


def test_a_statistic_that_only_a_majority_moves_is_found():
    """More than half of the nodes must be hostile before anything shows: the leak test lets nearly all be hostile."""

    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = pyg.GCNConv(WIDTH, CLASSES)

        def forward(self, x, edge_index):
            many = ((x.abs() > 100).float().mean() > 0.5).float()
            return self.conv(x.clamp(-1, 1) * (1 + many), edge_index)

    assert "message-leak" in slugs(audit_model(Gated(), random_graph(num_nodes=200, num_pairs=150)))


class Projects(nn.Module):
    """A model that starts row-wise, or says so: what `mix` adds to its projection comes from all rows."""

    def __init__(self, mix):
        super().__init__()
        self.mix, self.map, self.conv = mix, nn.Linear(WIDTH, CLASSES), pyg.SimpleConv()

    def project(self, x):
        return self.map(x) + self.mix(x)

    def propagate(self, hidden, edge_index):
        return self.conv(hidden, edge_index) + hidden

    def forward(self, x, edge_index):
        return self.propagate(self.project(x), edge_index)


def majority(x):
    return ((x.abs() > 100).float().mean() > 0.5).float()


MIXES = {
    "mean": lambda x: 1e-3 * x.mean(),
    "majority": majority,
    "mean of finite values": lambda x: 1e-3 * x.nan_to_num(0, 0, 0).mean(),
    "value times zero": lambda x: 0 * x.sum(),
    "number of rows": lambda x: torch.tensor(float(x.size(0) > 256)),
    "neighbour in order": lambda x: 1e-3 * x.roll(1, dims=0)[:, :CLASSES],
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", list(MIXES))
def test_projections_that_mix_rows_are_found(name, monkeypatch):
    """Projected once per node, a row that shows other nodes would leak past every draw."""
    monkeypatch.setattr("graycert.audit.model_audit.probe_model", lambda *_, **__: None)
    graph = random_graph(num_nodes=600, num_pairs=400)
    assert slugs(audit_model(Projects(MIXES[name]), graph, num_layers=1)) == {"message-leak"}
    assert audit_model(Projects(lambda x: x[:, :CLASSES].sin()), graph, num_layers=1).passed


def test_a_row_of_the_skip_branch_that_shows_others_is_found(data):
    model = build_model("gcn", data, skip=True)
    own = model.skip_logits
    assert audit_model(model, data).passed

    class Shows(type(model)):
        def skip_logits(self, x):
            return own(x) + 1e-3 * x.mean()

    model.__class__ = Shows
    assert "message-leak" in slugs(audit_model(model, data))


def test_a_projection_that_cannot_take_another_row_is_refused_in_words(monkeypatch):
    """A sampler projects the nodes and the ablation token."""
    monkeypatch.setattr("graycert.audit.model_audit.probe_model", lambda *_, **__: None)
    rows = torch.rand(600, CLASSES)
    with pytest.raises(InvalidParameterError, match="any features and any edges"):
        audit_model(Projects(lambda x: x[:, :CLASSES] * rows), random_graph(num_nodes=600, num_pairs=9), num_layers=1)
