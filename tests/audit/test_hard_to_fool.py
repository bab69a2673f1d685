"""Models that leak in ways that a test could miss: each is refused, and what is shown is small (A1, A3, B1-B4)."""

import functools
import itertools
import os

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.data import Data

import graycert
from graycert.audit import audit_model
from graycert.audit.covering import covering_words, separating_blocks
from graycert.audit.memory import OtherInput
from graycert.errors import UnsoundSetupError
from graycert.models.outside_state import same_value
from support.two_layers import CLASSES, WIDTH, TwoLayers

THREAT = graycert.NodeFeatureThreat(min_distance=1)


def toy(*, num_nodes=60, seed=0, binary=False):
    """Three classes, nodes of a class linked, features one-hot of the class plus noise."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(num_nodes) % CLASSES
    x = torch.nn.functional.one_hot(labels, WIDTH).float()
    if not binary:
        x = x + 0.3 * torch.randn(num_nodes, WIDTH, generator=generator)
    pairs = torch.randint(num_nodes // CLASSES, (2, 3 * num_nodes), generator=generator) * CLASSES
    pairs = pairs + torch.randint(CLASSES, (1, 3 * num_nodes), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    return Data(x=x, edge_index=torch.unique(torch.cat([pairs, pairs.flip(0)], dim=1), dim=1), y=labels)


def slugs(report):
    return {check.slug for check in report.checks if not check.passed}


# B1, B4: what is remembered, wherever it is kept


def fitted_in_attribute():
    class Scaled(TwoLayers):
        low = None

        def forward(self, x, edge_index):
            if self.low is None:
                self.low, self.high = x.min(dim=0).values, x.max(dim=0).values
            return self.gnn((x - self.low) / (self.high - self.low + 1e-6), edge_index)

    return Scaled()


def fitted_in_class():
    class Scaled(TwoLayers):
        low = None

        def forward(self, x, edge_index):
            if Scaled.low is None:
                Scaled.low, Scaled.high = x.min(dim=0).values, x.max(dim=0).values
            return self.gnn((x - Scaled.low) / (Scaled.high - Scaled.low + 1e-6), edge_index)

    return Scaled()


def fitted_without_declaration():
    class Scaled(TwoLayers):
        def forward(self, x, edge_index):
            if not hasattr(self, "mean"):
                self.mean = x.mean(dim=0)
            return self.gnn(x - self.mean, edge_index)

    return Scaled()


STATISTICS = {}
_SCALE = None


class FittedInGlobal(TwoLayers):
    def forward(self, x, edge_index):
        if "norm" not in STATISTICS:
            STATISTICS["norm"] = x.norm()
        return self.gnn(x / STATISTICS["norm"], edge_index)


class FittedInRebound(TwoLayers):
    def forward(self, x, edge_index):
        global _SCALE
        if _SCALE is None:
            _SCALE = x.abs().max()
        return self.gnn(x / _SCALE, edge_index)


def fitted_in_closure():
    sums = []

    class Scaled(TwoLayers):
        def forward(self, x, edge_index):
            if not sums:
                sums.append(x.sum())
            return self.gnn(x / sums[0], edge_index)

    return Scaled()


def fitted_in_default():
    class Scaled(TwoLayers):
        def forward(self, x, edge_index, _kept={}):  # noqa: B006 (that is the point)
            return self.gnn(x - _kept.setdefault("mean", x.mean(dim=0)), edge_index)

    return Scaled()


class Registry:
    def __init__(self):
        self.known = {}

    def remember(self, key, value):
        return self.known.setdefault(key, value)


REGISTRY = Registry()


class EdgesByNumber(TwoLayers):
    def forward(self, x, edge_index):
        return self.gnn(x, REGISTRY.remember((x.size(0), edge_index.size(1)), edge_index))


def edges_in_class():
    class Cached(TwoLayers):
        edges = {}  # noqa: RUF012 (that is the point)

        def forward(self, x, edge_index):
            return self.gnn(x, self.edges.setdefault((x.size(0), edge_index.size(1)), edge_index))

    return Cached()


def features_in_helper():
    @functools.cache
    def shelf(_):
        return []

    class Cached(TwoLayers):
        def forward(self, x, edge_index):
            kept = shelf(0)
            kept or kept.append(x.mean(dim=0))
            return self.gnn(x - kept[0], edge_index)

    return Cached()


class KeptInTorch(TwoLayers):
    def forward(self, x, edge_index):
        if not hasattr(torch, "kept_by_a_model"):
            torch.kept_by_a_model = x.mean(dim=0)
        return self.gnn(x - torch.kept_by_a_model, edge_index)


HIDDEN = []


class KeptByName(TwoLayers):
    def forward(self, x, edge_index):
        kept = globals()["HID" + "DEN"]
        if not kept:
            kept.append(x.mean(dim=0))
        return self.gnn(x - kept[0], edge_index)


class KeptInTheEnvironment(TwoLayers):
    def forward(self, x, edge_index):
        mean = float(os.environ.setdefault("MEAN_OF_THE_FIRST_INPUT", str(float(x.mean()))))
        return self.gnn(x - mean, edge_index)


class Momentum(TwoLayers):
    """A running mean that evaluation mode does not stop."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(WIDTH))

    def forward(self, x, edge_index):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(dim=0)
        return self.gnn(x - self.mean, edge_index)


REMEMBERS = {
    "attribute": fitted_in_attribute,
    "class": fitted_in_class,
    "undeclared": fitted_without_declaration,
    "global": FittedInGlobal,
    "rebound global": FittedInRebound,
    "closure": fitted_in_closure,
    "default": fitted_in_default,
    "registry": EdgesByNumber,
    "class cache": edges_in_class,
    "lru cache": features_in_helper,
    "momentum": Momentum,
    "torch": KeptInTorch,
    "by name": KeptByName,
}


@pytest.mark.few(2)
@pytest.mark.parametrize("called_before", [False, True])
@pytest.mark.parametrize("name", list(REMEMBERS))
def test_memory_is_found_wherever_it_is_kept(name, called_before):
    data, model = toy(), REMEMBERS[name]()
    STATISTICS.clear()
    REGISTRY.known.clear()
    HIDDEN.clear()
    if hasattr(torch, "kept_by_a_model"):
        del torch.kept_by_a_model
    if called_before and name not in ("momentum", "lru cache"):
        with torch.no_grad():
            model.eval()(data.x, data.edge_index)
    kept = dict(STATISTICS), dict(REGISTRY.known)
    report = audit_model(model, data, num_layers=2)
    assert "not-deterministic" in slugs(report), str(report)
    assert called_before or not (hasattr(torch, "kept_by_a_model") or HIDDEN)
    left = dict(STATISTICS), dict(REGISTRY.known)
    assert same_value(left, kept), "the audit leaves what it finds outside the module"


def test_memory_in_the_environment_is_found_and_undone():
    report = audit_model(KeptInTheEnvironment(), toy())
    assert "not-deterministic" in slugs(report)
    assert "os.environ" in str(report)
    assert "MEAN_OF_THE_FIRST_INPUT" not in os.environ


class Counts(TwoLayers):
    calls = 0

    def forward(self, x, edge_index):
        type(self).calls += 1
        return self.gnn(x, edge_index)


def test_what_is_stored_and_never_read_is_no_memory():
    report = audit_model(Counts(), toy())
    assert report.passed, str(report)
    assert Counts.calls == 0


class Constants(TwoLayers):
    """Sound: fitted by hand before, and kept as attributes, a global and a table."""

    table = {"shift": 0.5}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.mean = torch.full((WIDTH,), 0.1)
        self.options = {"factor": 2.0}

    def fit(self, x):
        self.mean = x.mean(dim=0)

    def forward(self, x, edge_index):
        return self.gnn((x - self.mean) * self.options["factor"] + self.table["shift"], edge_index)


def test_constants_are_no_memory():
    report = audit_model(Constants(), toy())
    assert report.passed, str(report)


@pytest.mark.parametrize("binary", [False, True])
def test_the_other_input_shares_no_summary(binary):
    data = toy(binary=binary)
    data.x[:, 5] = 0
    other = OtherInput.than(data.x, data.edge_index)
    for summary in (torch.amin, torch.amax, torch.mean, torch.std):
        assert not bool(torch.isclose(summary(other.x, dim=0), summary(data.x, dim=0)).any()), summary
    assert other.x.shape == data.x.shape
    assert other.edge_index.shape == data.edge_index.shape
    theirs, ours = (set(map(tuple, edges.T.tolist())) for edges in (other.edge_index, data.edge_index))
    assert len(theirs) == len(ours)
    assert theirs != ours


# B2: hostile rows like the features


class Flagged(TwoLayers):
    def __init__(self, flag):
        super().__init__()
        self.flag = flag

    def forward(self, x, edge_index):
        out = self.gnn(x.nan_to_num(0, 0, 0).clamp(-3, 3), edge_index)
        return out.flip(1) if self.flag(x) else out


FLAGS = {
    "a bit that nobody has": lambda x: bool((x[:, 7] == 1).any()),
    "a bit that somebody lacks": lambda x: bool((x[:, 6] == 0).any()),
    "beyond the range": lambda x: bool((x[:, 0] > 1.005).any()),
    "just below": lambda x: bool((x[:, 0] < -0.005).any()),
    "within": lambda x: bool(((x[:, 0] > 0.2) & (x[:, 0] < 0.8)).any()),
    "unequal": lambda x: bool(((x[:, 0] == 1) & (x[:, 7] == 0) & (x[:, 1] == 1)).any()),
    "another number of a kind": lambda x: int((x[:, 0] == 1).sum()) > 45,
    "NaN": lambda x: bool(x.isnan().any()),
    "huge": lambda x: bool((x > 1e30).any() and x.isfinite().all()),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", list(FLAGS))
def test_a_flag_that_nobody_has_is_found(name):
    data = toy(num_nodes=90, binary=True)
    data.x[:, 6], data.x[:, 7] = 1, 0
    report = audit_model(Flagged(FLAGS[name]), data)
    assert slugs(report) == {"message-leak"}, str(report)


def test_a_refusal_shows_one_node_and_one_feature():
    data = toy(num_nodes=90, binary=True)
    data.x[:, 7] = 0
    report = audit_model(Flagged(FLAGS["a bit that nobody has"]), data)
    (detail,) = [check.detail for check in report.checks if not check.passed]
    assert "changed feature 7 from 0 to 1" in detail
    hostile, victim = (int(detail.partition(word)[2].split()[0]) for word in ("yet node ", "output of node "))
    assert hostile != victim
    assert max(hostile, victim) < 90


# B3: edges of the model's own


class ExtraEdges(TwoLayers):
    def __init__(self, num_nodes, number, seed, *, guarded=False):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        ends = torch.stack([torch.randperm(num_nodes, generator=generator)[:number] for _ in range(2)])
        ends[1] = torch.where(ends[0] == ends[1], (ends[1] + 1) % num_nodes, ends[1])
        self.register_buffer("extra", ends)
        self.num_nodes, self.guarded = num_nodes, guarded

    def forward(self, x, edge_index):
        if not self.guarded or x.size(0) == self.num_nodes:
            edge_index = torch.cat([edge_index, self.extra], dim=1)
        return self.gnn(x, edge_index)


@pytest.mark.few(2)
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_extra_edges_are_always_found(seed, number, guarded):
    data = toy(num_nodes=600)
    report = audit_model(ExtraEdges(600, number, seed, guarded=guarded), data, num_layers=2)
    assert "message-leak" in slugs(report), str(report)


@pytest.mark.parametrize("num_nodes", [1, 2, 3, 20, 252, 253, 900])
def test_blocks_separate_every_node_from_every_other(num_nodes):
    blocks = torch.stack(list(separating_blocks(num_nodes, torch.Generator().manual_seed(0)))).float()
    apart = blocks.T @ (1 - blocks)  # in how many blocks is u, and v not
    assert bool((apart + torch.eye(num_nodes) > 0).all())
    assert blocks.size(0) <= 15


@pytest.mark.parametrize("num_nodes", [1, 2, 20, 3_780])
def test_every_node_changes_while_any_other_stays(num_nodes):
    words = covering_words(num_nodes, torch.Generator().manual_seed(0))
    assert words.size(1) + 6 <= 15  # with the passes over the whole graph that other tests make
    assert set(words.unique().tolist()) == {0, 1, 2, 3, 4}
    same = torch.stack([words[:, i] == words[:, j] for i, j in itertools.combinations(range(9), 2)]).int()
    mild = torch.stack(
        [(words[:, i] == words[:, j]) & (words[:, i] < 3) for i, j in itertools.combinations(range(9), 2)]
    )
    for v in range(0, num_nodes, 37):
        found = (mild[:, v : v + 1] & (same == 0)).any(dim=0)
        assert int(found.sum()) == num_nodes - 1
        assert not found[v]


# A1: not a function of the features


class Beforehand(TwoLayers):
    def __init__(self, data):
        super().__init__()
        self.register_buffer("scores", TwoLayers()(data.x, data.edge_index).detach())

    def forward(self, x, edge_index):
        return self.scores


class LeaksInLargeGraphs(TwoLayers):
    """Only with many nodes and many edges."""

    def forward(self, x, edge_index):
        out = self.gnn(x, edge_index)
        return out + x.mean() if x.size(0) > 400 and edge_index.size(1) > 300 else out


@pytest.mark.parametrize("width", [WIDTH, 1_000])
def test_a_leak_that_only_the_whole_graph_shows_is_found(width):
    data = toy(num_nodes=600)
    data.x = torch.cat([data.x, torch.rand(600, width - WIDTH)], dim=1)
    model = LeaksInLargeGraphs()
    model.first = pyg.GCNConv(width, 16)
    assert slugs(audit_model(model, data)) == {"message-leak"}


class HalfBeforehand(TwoLayers):
    """Features are propagated before; the rest is a linear map that never sees ``x``."""

    def __init__(self, data):
        super().__init__()
        self.features = pyg.SimpleConv()(data.x, data.edge_index)
        self.out = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.out(self.features) + 0 * x[:, :CLASSES].nan_to_num(0, 0, 0)


class OnlyOneNode(TwoLayers):
    def __init__(self, data):
        super().__init__()
        self.register_buffer("scores", TwoLayers()(data.x, data.edge_index).detach())

    def forward(self, x, edge_index):
        mask = (torch.arange(x.size(0)) == 0).unsqueeze(1)
        return torch.where(mask, self.gnn(x, edge_index), self.scores)


class Constant(TwoLayers):
    def forward(self, x, edge_index):
        return torch.tensor([1.0, 2.0, 3.0]).expand(x.size(0), 3)


@pytest.mark.parametrize("kind", [Beforehand, HalfBeforehand, lambda _: Constant()])
def test_a_model_that_ignores_features_is_refused(kind):
    data = toy()
    model = kind(data)
    assert slugs(audit_model(model, data, num_layers=2)) == {"ignores-features"}
    with pytest.raises(UnsoundSetupError) as caught:
        graycert.certify(
            model,
            data,
            smoothing=graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.8),
            draws=graycert.Draws(num_selection=10, num_estimation=10),
            threat=THREAT,
            num_layers=2,
        )
    assert caught.value.slug == "ignores-features"


def test_the_targets_are_those_that_must_depend_on_features():
    data = toy()
    model = OnlyOneNode(data)
    assert audit_model(model, data, num_layers=2).passed
    others = torch.arange(1, 60).numpy()
    assert slugs(audit_model(model, data, num_layers=2, targets=others)) == {"ignores-features"}


def test_nothing_that_can_attack_is_no_reason_to_refuse():
    data = toy()
    data.edge_index = torch.empty(2, 0, dtype=torch.long)
    assert audit_model(Constant(), data).passed


def test_the_model_alone_may_ignore_features():
    data = toy()
    found = graycert.certify(Constant(), data, smoothing=graycert.FeaturesOnly(), threat=THREAT)
    assert set(found.prediction.tolist()) == {2}


# A3: a batch is no graph


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["n_id", "input_id", "batch_size", "e_id"])
def test_a_batch_handed_over_as_a_graph_is_refused_by_name(name):
    data = toy()
    data[name] = 5 if name == "batch_size" else torch.arange(5)
    for call in (
        lambda: audit_model(TwoLayers(), data),
        lambda: graycert.certify(TwoLayers(), data, smoothing=graycert.FeaturesOnly(), threat=THREAT),
        lambda: graycert.certify(
            TwoLayers(),
            data,
            smoothing=graycert.SparseSmoothing(p_plus=0.01, p_minus=0.6),
            threat=graycert.AttributeFlipThreat(),
        ),
    ):
        with pytest.raises(UnsoundSetupError, match=f"`{name}`") as caught:
            call()
        assert caught.value.slug == "batch-not-graph"
    del data[name]
    assert audit_model(TwoLayers(), data).passed
