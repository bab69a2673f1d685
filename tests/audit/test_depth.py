"""The depth is the longest chain of propagation, for every convolution and composition (F4)."""

import itertools

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

import graycert
from graycert.audit import audit_model
from graycert.audit.depth import count_propagation_steps
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models import build_model
from support.attributed_graphs import random_graph
from support.foreign_models import CLASSES, WIDTH, NumbersNodes, Sandwich, SparseProduct, sparse_sum

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.8)
DRAWS = graycert.Draws(num_selection=10, num_estimation=20)
THREAT = graycert.NodeFeatureThreat(min_distance=1)


@pytest.fixture(scope="module")
def data():
    return random_graph(num_nodes=25, num_pairs=40)


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


class Relational(nn.Module):
    """Three relations, told by the numbers of the nodes that an edge joins."""

    def __init__(self, conv, layers):
        super().__init__()
        widths = [WIDTH, *[8] * (layers - 1), CLASSES]
        self.convs = nn.ModuleList(conv(a, b, 3) for a, b in itertools.pairwise(widths))

    def forward(self, x, edge_index):
        kind = (edge_index[0] + edge_index[1]) % 3
        for conv in self.convs:
            x = conv(x, edge_index, kind).tanh()
        return x


class Members(nn.Module):
    """Models in parallel, summed."""

    def __init__(self, *members):
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x, edge_index):
        return sum(member(x, edge_index) for member in self.members)


class Unequal(nn.Module):
    """Branches of one, two and three steps, concatenated; one more step on what they give."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(pyg.GCNConv(WIDTH, WIDTH) for _ in range(3))
        self.out = pyg.SAGEConv(3 * WIDTH, CLASSES)

    def forward(self, x, edge_index):
        found = []
        for steps in (1, 2, 3):
            h = x
            for conv in list(self.convs)[:steps]:
                h = conv(h, edge_index)
            found.append(h)
        return self.out(torch.cat(found, dim=1), edge_index)


class WritesIntoParts(nn.Module):
    """Steps write into one tensor that was made before."""

    def __init__(self, steps):
        super().__init__()
        self.steps, self.conv, self.out = steps, pyg.SimpleConv(), nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        kept = torch.zeros_like(x)
        kept[:, :] = x
        for _ in range(self.steps):
            kept.add_(self.conv(kept, edge_index))
        return self.out(kept)


class Gated(nn.Module):
    """The second step weighs edges by what the first gave; another branch leaves the graph."""

    def __init__(self):
        super().__init__()
        self.first, self.second = pyg.GCNConv(WIDTH, 1), pyg.GraphConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        weight = self.first(x, edge_index).sigmoid()[edge_index[0], 0]
        return self.second(x, edge_index, weight)


class ThroughNumPy(nn.Module):
    """A step whose result leaves torch and comes back."""

    def __init__(self):
        super().__init__()
        self.first, self.second = pyg.GCNConv(WIDTH, 8), pyg.GCNConv(8, CLASSES)

    def forward(self, x, edge_index):
        hidden = torch.from_numpy(np.tanh(self.first(x, edge_index).numpy()))
        return self.second(hidden, edge_index)


def mlp(a, b):
    return nn.Sequential(nn.Linear(a, 8), nn.ReLU(), nn.Linear(8, b))


CONVS = {
    "ARMA": (lambda a, b: pyg.ARMAConv(a, b, num_layers=3), 3),
    "Cheb": (lambda a, b: pyg.ChebConv(a, b, K=4), 3),
    "ClusterGCN": (pyg.ClusterGCNConv, 1),
    "EG": (lambda a, b: pyg.EGConv(a, 8 if b != CLASSES else 4, num_heads=4), 1),
    "FeaSt": (pyg.FeaStConv, 1),
    "FiLM": (pyg.FiLMConv, 1),
    "GAT": (pyg.GATConv, 1),
    "GATv2": (pyg.GATv2Conv, 1),
    "GCN": (pyg.GCNConv, 1),
    "GEN": (pyg.GENConv, 1),
    "GIN": (lambda a, b: pyg.GINConv(mlp(a, b)), 1),
    "Graph": (pyg.GraphConv, 1),
    "LE": (pyg.LEConv, 1),
    "MF": (pyg.MFConv, 1),
    "Mixhop": (lambda a, b: pyg.MixHopConv(a, b, powers=[0, 1, 3]), 3),
    "ResGated": (pyg.ResGatedGraphConv, 1),
    "SAGE": (pyg.SAGEConv, 1),
    "SG": (lambda a, b: pyg.SGConv(a, b, K=3), 3),
    "SSG": (lambda a, b: pyg.SSGConv(a, b, alpha=0.1, K=2), 2),
    "SuperGAT": (pyg.SuperGATConv, 1),
    "TAG": (lambda a, b: pyg.TAGConv(a, b, K=2), 2),
    "Transformer": (pyg.TransformerConv, 1),
    "WLContinuous": (lambda a, b: Then(pyg.WLConvContinuous(), nn.Linear(a, b)), 1),
}


class Then(nn.Module):
    def __init__(self, conv, after):
        super().__init__()
        self.conv, self.after = conv, after

    def forward(self, x, edge_index):
        return self.after(self.conv(x, edge_index))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", list(CONVS))
def test_one_layer_has_the_steps_that_it_takes(name, data):
    make, steps = CONVS[name]
    model = Then(make(WIDTH, 8), nn.LazyLinear(CLASSES))
    model.eval()(data.x, data.edge_index)
    report = audit_model(model, data)
    assert report.passed, str(report)
    assert (report.num_layers, report.counted_steps, report.assumed) == (steps, steps, False)
    assert report.farthest_influence <= steps


COMPOSITIONS = {
    "RGCN": (lambda _: Relational(pyg.RGCNConv, 2), 2),
    "fast RGCN": (lambda _: Relational(pyg.FastRGCNConv, 2), 2),
    "RGAT": (lambda _: Relational(pyg.RGATConv, 3), 3),
    "three GCNs": (lambda _: Members(*(pyg.GCN(WIDTH, 8, 2, CLASSES) for _ in range(3))), 2),
    "unequal members": (lambda _: Members(pyg.GCN(WIDTH, 8, 1, CLASSES), pyg.SAGEConv(WIDTH, CLASSES), Sandwich()), 2),
    "members of ours": (
        lambda data: Members(*(build_model(name, data, num_layers=3) for name in ("sma", "gcn", "gat"))),
        3,
    ),
    "unequal branches": (lambda _: Unequal(), 4),
    "jumping knowledge": (lambda _: pyg.GIN(WIDTH, 8, 3, CLASSES, jk="cat"), 3),
    "jumping knowledge by LSTM": (lambda _: pyg.GCN(WIDTH, 8, 3, CLASSES, jk="lstm"), 3),
    "APPNP": (lambda _: Then(pyg.APPNP(K=7, alpha=0.1), nn.Linear(WIDTH, CLASSES)), 7),
    "in place": (lambda _: WritesIntoParts(3), 3),
    "gated": (lambda _: Gated(), 2),
    "through NumPy": (lambda _: ThroughNumPy(), 2),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", list(COMPOSITIONS))
def test_the_longest_chain_counts(name, data):
    make, steps = COMPOSITIONS[name]
    model = make(data).eval()
    report = audit_model(model, data)
    assert report.passed, str(report)
    assert (report.num_layers, report.counted_steps) == (steps, steps)
    if steps > 1:
        with pytest.raises(UnsoundSetupError) as caught:
            audit_model(model, data, num_layers=steps - 1).require()
        assert caught.value.slug == "too-few-layers"


@pytest.mark.deep
def test_parallel_members_keep_their_radii(data):
    """Three equal members vote as one, and are certified as one."""
    one = pyg.GCN(WIDTH, 8, 2, CLASSES)
    several = [
        graycert.certify(model, data, smoothing=SMOOTHING, draws=DRAWS, threat=THREAT)
        for model in (one, Members(one, one, one))
    ]
    assert np.array_equal(several[0].radius, several[1].radius)
    assert several[1].setup.num_layers == 2


def test_counting_changes_no_bit(data):
    model = Unequal().eval()
    with torch.inference_mode():
        steps, scores = count_propagation_steps(model, data.x, data.edge_index)
        assert steps == 4
        assert torch.equal(scores, model(data.x, data.edge_index))


# where nothing can be counted


@pytest.mark.deep
@pytest.mark.parametrize("make", [lambda: SparseProduct(sparse_sum), lambda: NumbersNodes(25)])
def test_a_number_that_nobody_can_count_is_stated(make, data, tmp_path):
    model = make()
    with pytest.raises(UnsoundSetupError, match="unknown-depth"):
        graycert.certify(model, data, smoothing=SMOOTHING, draws=DRAWS, threat=THREAT)
    found = graycert.certify(model, data, smoothing=SMOOTHING, draws=DRAWS, threat=THREAT, num_layers=2)
    assert found.setup.num_layers_assumed
    assert "Assumed: in one forward pass no message moves more than 2 times" in found.summary()
    found.save(tmp_path / "run")
    assert graycert.Certificates.load(tmp_path / "run").setup.num_layers_assumed
    assert "which is what the user said" in " ".join(graycert.verify(tmp_path / "run", data=data).not_redone)


@pytest.mark.deep
def test_a_counted_number_is_no_assumption(data):
    for num_layers in (None, 2, 3):
        found = graycert.certify(
            Sandwich(), data, smoothing=SMOOTHING, draws=DRAWS, threat=THREAT, num_layers=num_layers
        )
        assert not found.setup.num_layers_assumed
        assert "Assumed" not in found.summary()


def test_an_assumption_below_the_influence_that_was_seen_is_refused(data):
    with pytest.raises(UnsoundSetupError, match="too-few-layers"):
        graycert.certify(SparseProduct(sparse_sum), data, smoothing=SMOOTHING, draws=DRAWS, threat=THREAT, num_layers=1)


def test_an_assumption_is_true_or_false(data):
    found = graycert.certify(Sandwich(), data, smoothing=SMOOTHING, draws=DRAWS, threat=THREAT)
    with pytest.raises(InvalidParameterError, match="num_layers_assumed"):
        found.setup.replace(num_layers_assumed=1)
