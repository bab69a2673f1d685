"""The compiled engine: vote by vote that of the textbook loop and of the engine for any model."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import models as pyg_models
from torch_geometric.utils import sort_edge_index

from graycert.errors import InvalidParameterError
from graycert.models import build_model
from graycert.sampling import Purpose, build_engine, choose_engine
from graycert.sampling.kernels.draws import LANES
from graycert.sampling.kernels.votes import NEAR_TIE
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph
from support.known_models import CLASSES, KNOWN, WIDTH, TwoLiner, known_model, shaken
from support.plain_models import plain_forward, plain_skip
from support.textbook_loop import textbook_votes

SMOOTHING = InterceptionSmoothing(p_delete=0.3, p_ablate=0.5)


def compiled_of(model, data, targets, *, num_layers=2, smoothing=SMOOTHING, **options):
    return choose_engine(
        model, data, np.asarray(targets), smoothing=smoothing, num_layers=num_layers, engine="compiled", **options
    )


def chosen_for(model, data, *, num_layers=2):
    return choose_engine(model, data, np.arange(4), smoothing=SMOOTHING, num_layers=num_layers)


@pytest.mark.few(1)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_equals_the_textbook_loop(architecture, num_layers, skip, directed):
    data = random_graph(directed=directed)
    edges = sort_edge_index(data.edge_index, sort_by_row=False)  # SMA takes in-neighbours of equal weight in this order
    model = shaken(build_model(architecture, data, skip=skip, num_layers=num_layers, num_neighbors=3))
    targets = [2, 0, 13, 7]
    engine = compiled_of(model, data, targets, num_layers=num_layers)
    assert engine.name.startswith("compiled kernels (")
    expected = textbook_votes(
        lambda x, edges: plain_forward(model, x, edges),
        data.x,
        edges,
        targets,
        model.ablation_token.detach(),
        SMOOTHING,
        seed=4,
        purpose="estimation",
        num_samples=12,
        first_sample=27,  # across the border of two chunks
        skip=plain_skip(model, data.x).detach() if skip else None,
    )
    votes, near_ties = engine.votes_and_near_ties(4, Purpose.ESTIMATION, num_samples=12, first_sample=27)
    assert near_ties.sum() == 0
    np.testing.assert_array_equal(votes, expected)
    assert votes.dtype == np.int64


@pytest.mark.few(5)
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("name", KNOWN)
def test_models_of_pytorch_geometric_are_found_by_inspection(name, self_loops):
    model = known_model(name)
    data = random_graph(directed=True)
    if self_loops:
        data = Data(x=data.x, edge_index=torch.cat([data.edge_index, torch.tensor([[1, 4, 2], [1, 4, 2]])], dim=1))
    num_layers = 3 if name == "GCN" else 2
    mixed = {type(m) for m in model.modules()} & {pyg.SAGEConv, pyg.GINConv} and name in ("no bias", "linear first")
    engine = chosen_for(model, data, num_layers=num_layers)
    if self_loops and mixed:
        assert "mixes convolutions" in engine.name
        return
    assert engine.name.startswith("compiled kernels"), engine.name
    expected = textbook_votes(
        model, data.x, data.edge_index, range(4), torch.zeros(WIDTH), SMOOTHING, seed=0, purpose="audit", num_samples=20
    )
    votes, near_ties = engine.votes_and_near_ties(0, Purpose.AUDIT, num_samples=20)
    assert near_ties.sum() == 0
    np.testing.assert_array_equal(votes, expected)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = pyg.GCNConv(WIDTH, WIDTH)
        self.out = pyg.GCNConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.out(self.conv(x, edge_index) + x, edge_index)


class LooksAtValues(Branches):
    def forward(self, x, edge_index):
        return self.out(x if x.sum() > 0 else -x, edge_index)


class CallsTwice(Branches):
    def forward(self, x, edge_index):
        return self.out(self.conv(self.conv(x, edge_index), edge_index), edge_index)


class DropsAlways(Branches):
    def forward(self, x, edge_index):
        return self.out(torch.nn.functional.dropout(x, p=0.0), edge_index)


class Reverses(Branches):
    def forward(self, x, edge_index):
        return self.out(self.conv(x, edge_index.flip(0)), edge_index)


class MyConv(pyg.GCNConv):
    """A subclass may do anything."""


def hooked():
    model = TwoLiner(pyg.GCNConv(WIDTH, 8), pyg.GCNConv(8, CLASSES))
    model.conv1.register_forward_hook(lambda module, inputs, output: output * 2)
    return model


def patched():
    model = TwoLiner(pyg.GCNConv(WIDTH, 8), pyg.GCNConv(8, CLASSES))
    model.conv1.forward = lambda x, edge_index: 2 * pyg.GCNConv.forward(model.conv1, x, edge_index)
    return model


def with_first(conv):
    return TwoLiner(conv, pyg.GCNConv(8, CLASSES))


def with_other_messages():
    model = with_first(pyg.GCNConv(WIDTH, 8))
    model.conv1.message = lambda x_j, edge_weight: x_j
    return model


def changed(change):
    """One of graycert's own models, altered by hand."""
    model = build_model("gcn", random_graph())
    change(model)
    return model


def other_conv(model):
    conv = MyConv(64, CLASSES)
    conv.lin = nn.Identity()
    model.layers[1].conv = conv


UNKNOWN = {
    "messages": (with_other_messages, "replaces `message` of GCNConv"),
    "own model, other conv": (lambda: changed(other_conv), "MyConv"),
    "own model, map twice": (lambda: changed(lambda m: setattr(m.layers[1].conv, "lin", nn.Linear(3, 3))), "twice"),
    "own model, norm first": (lambda: changed(lambda m: setattr(m, "feature_dropout", nn.LayerNorm(5))), "LayerNorm"),
    "own model, tanh": (lambda: changed(lambda m: setattr(m, "activation", torch.tanh)), "tanh"),
    "not a chain": (Branches, "is not a chain of layers"),
    "values": (LooksAtValues, "cannot be traced"),
    "dropout": (DropsAlways, "drops out in evaluation mode"),
    "other edges": (Reverses, "is not a chain|more than features and edges"),
    "subclass": (lambda: with_first(MyConv(WIDTH, 8)), "MyConv"),
    "hook": (hooked, "has hooks on GCNConv"),
    "patched": (patched, "replaces `forward` of GCNConv"),
    "improved": (lambda: with_first(pyg.GCNConv(WIDTH, 8, improved=True)), "improved=True"),
    "not normalised": (lambda: with_first(pyg.GCNConv(WIDTH, 8, normalize=False)), "add_self_loops=False"),
    "no loops": (lambda: with_first(pyg.GATConv(WIDTH, 8, add_self_loops=False)), "add_self_loops=False"),
    "residual": (lambda: with_first(pyg.GATConv(WIDTH, 8, residual=True)), "residual=True"),
    "edge features": (lambda: with_first(pyg.GATv2Conv(WIDTH, 8, edge_dim=2)), "edge_dim=2"),
    "max": (lambda: with_first(pyg.SAGEConv(WIDTH, 8, aggr="max")), "aggregates by max"),
    "sage normalised": (lambda: with_first(pyg.SAGEConv(WIDTH, 8, normalize=True)), "normalize=True"),
    "projected": (lambda: with_first(pyg.SAGEConv(WIDTH, 8, project=True)), "project=True"),
    "reversed flow": (lambda: with_first(pyg.GCNConv(WIDTH, 8, flow="target_to_source")), "flow=target_to_source"),
    "other conv": (lambda: with_first(pyg.LEConv(WIDTH, 8)), "LEConv"),
    "largest": (lambda: with_first(pyg.GraphConv(WIDTH, 8, aggr="max")), "aggregates by max"),
    "gelu": (lambda: TwoLiner(pyg.GCNConv(WIDTH, 8), pyg.GCNConv(8, CLASSES), torch.nn.functional.gelu), "gelu"),
    "softmax": (lambda: TwoLiner(pyg.GCNConv(WIDTH, 8), pyg.GCNConv(8, CLASSES), ending=torch.softmax), "softmax"),
    "layer norm": (lambda: pyg_models.GCN(WIDTH, 8, 2, CLASSES, norm="layer_norm"), "is not a chain of layers"),
    "jump": (
        lambda: pyg_models.GCN(WIDTH, 8, 2, CLASSES, jk="cat"),
        "is not a chain|cannot be traced|JumpingKnowledge",
    ),
    "double": (lambda: with_first(pyg.GCNConv(WIDTH, 8)).double(), "float64"),
    "graph statistics": (
        lambda: pyg_models.GCN(WIDTH, 8, 2, CLASSES, norm="batch_norm", norm_kwargs={"track_running_stats": False}),
        "statistics of the graph",
    ),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_for_certain_goes_to_the_engine_for_any_model(name):
    build, reason = UNKNOWN[name]
    model = build().eval()
    data = random_graph()
    if name == "double":
        data.x = data.x.double()
    engine = chosen_for(model, data)
    assert engine.name.startswith("torch")
    with pytest.raises(InvalidParameterError, match=reason):
        compiled_of(model, data, np.arange(4))
    assert "no compiled kernels because the model" in engine.name


def test_a_model_that_changes_between_calls_is_caught_by_comparison():
    """Inspection sees the code, not what it will do the next time."""

    class Moody(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.calls = pyg.GCNConv(WIDTH, CLASSES), 0

        def forward(self, x, edge_index):
            self.calls += 1
            out = self.conv(x, edge_index)
            return out.relu() if self.calls > 2 else out

    engine = choose_engine(Moody().eval(), random_graph(), np.arange(4), smoothing=SMOOTHING, num_layers=1)
    assert "computes something else" in engine.name


def test_a_convolution_that_is_called_twice_is_followed():
    model = shaken(CallsTwice())
    data = random_graph()
    engine = compiled_of(model, data, [0, 3], num_layers=3)
    expected = textbook_votes(
        model, data.x, data.edge_index, [0, 3], torch.zeros(WIDTH), SMOOTHING, seed=0, purpose="audit", num_samples=9
    )
    np.testing.assert_array_equal(engine.votes(0, Purpose.AUDIT, num_samples=9), expected)


@pytest.mark.deep
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_votes_depend_on_nothing_but_the_seed(architecture):
    data = random_graph(num_nodes=30, num_pairs=60)
    model = shaken(build_model(architecture, data))
    targets = np.array([3, 17, 29, 8, 0])
    engine = compiled_of(model, data, targets)
    reference = engine.votes(0, Purpose.SELECTION, num_samples=150)
    assert (reference.sum(axis=1) == 150).all()
    assert (np.count_nonzero(reference, axis=1) > 1).any()
    shards = [engine.votes(0, Purpose.SELECTION, num_samples=75, first_sample=first) for first in (0, 75)]
    np.testing.assert_array_equal(sum(shards), reference)
    fewer = compiled_of(model, data, targets[[3, 1]])
    np.testing.assert_array_equal(fewer.votes(0, Purpose.SELECTION, num_samples=150), reference[[3, 1]])
    samples = torch.arange(40)
    assert torch.equal(  # bit by bit
        engine.logits(0, Purpose.AUDIT, samples)[:, [3, 1]], fewer.logits(0, Purpose.AUDIT, samples)
    )
    shuffled = Data(x=data.x, edge_index=data.edge_index[:, torch.randperm(data.edge_index.size(1))])
    again = compiled_of(model, shuffled, targets)
    np.testing.assert_array_equal(again.votes(0, Purpose.SELECTION, num_samples=150), reference)
    threads = torch.get_num_threads()
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            np.testing.assert_array_equal(engine.votes(0, Purpose.SELECTION, num_samples=150), reference)
    finally:
        torch.set_num_threads(threads)
    seen = []
    votes = replace(engine, memory=1).votes(0, Purpose.SELECTION, num_samples=150, progress=seen.append)
    np.testing.assert_array_equal(votes, reference)
    assert sum(seen) == 150


def test_other_seeds_purposes_and_samples_give_other_votes():
    data = random_graph()
    engine = compiled_of(shaken(build_model("gat", data)), data, np.arange(14))
    votes = engine.votes(4, Purpose.ESTIMATION, num_samples=20)
    assert (votes != engine.votes(4, Purpose.SELECTION, num_samples=20)).any()
    assert (votes != engine.votes(5, Purpose.ESTIMATION, num_samples=20)).any()
    assert (votes != engine.votes(4, Purpose.ESTIMATION, num_samples=20, first_sample=1)).any()


@pytest.mark.parametrize("p_delete", [0.0, 1.0])
@pytest.mark.parametrize("p_ablate", [0.0, 1.0])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_certain_deletion_and_ablation(architecture, p_ablate, p_delete):
    data = random_graph()
    model = shaken(build_model(architecture, data))
    smoothing = InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)
    engine = compiled_of(model, data, np.arange(14), smoothing=smoothing)
    x = data.x if p_ablate == 0 else model.ablation_token.detach().expand_as(data.x)
    edges = data.edge_index if p_delete == 0 else data.edge_index[:, :0]
    with torch.no_grad():
        expected = model(x, edges)
    found = engine.logits(0, Purpose.SELECTION, torch.arange(2))
    torch.testing.assert_close(found, expected.expand(2, -1, -1), rtol=1e-4, atol=1e-5)


@pytest.mark.deep
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_no_edges_and_isolated_targets(architecture):
    data = random_graph()
    model = shaken(build_model(architecture, data))
    for edge_index in (data.edge_index[:, :0], torch.tensor([[3], [4]])):
        lonely = Data(x=data.x, edge_index=edge_index, y=data.y)
        ours, theirs = (
            engine.logits(1, Purpose.SELECTION, torch.arange(5))
            for engine in (
                compiled_of(model, lonely, [0, 4]),
                build_engine(model, lonely, np.array([0, 4]), smoothing=SMOOTHING, num_layers=2),
            )
        )
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-4, atol=1e-5)


def test_near_ties_are_found_and_counted():
    """Two classes with the same weights tie in every draw; the vote goes to none, and all are counted."""
    data = random_graph()
    model = shaken(build_model("gcn", data))
    with torch.no_grad():
        last = model.layers[-1]
        last.linear.weight[1] = last.linear.weight[0]
        last.conv.bias.copy_(torch.tensor([5.0, 5.0, -50.0]))
    engine = compiled_of(model, data, np.arange(14))
    votes, near_ties = engine.votes_and_near_ties(0, Purpose.ESTIMATION, num_samples=50)
    assert not votes.any()
    assert (near_ties == 50).all()
    with torch.no_grad():
        last.conv.bias.copy_(torch.tensor([5.0, 5.0 * (1 + 2 * float(NEAR_TIE)), -5.0]))
        last.linear.weight.zero_()
    votes, near_ties = compiled_of(model, data, np.arange(14)).votes_and_near_ties(
        0, Purpose.ESTIMATION, num_samples=50
    )
    assert (votes[:, 1] == 50).all()
    assert near_ties.sum() == 0


def test_scores_too_far_apart_for_one_exponent_go_to_torch():
    data = random_graph()
    model = build_model("gat", data).eval()
    with torch.no_grad():
        model.layers[0].conv.att_src.mul_(1e4)
    assert "attention scores that differ by" in chosen_for(model, data).name


@pytest.mark.parametrize("factors", [(1e9, 1e9), (1e17, 1e-17)])  # at the end, and only on the way
def test_values_that_could_overflow_go_to_torch(factors):
    data = random_graph()
    model = build_model("gcn", data).eval()
    with torch.no_grad():
        for layer, factor in zip(model.layers, factors, strict=True):
            layer.linear.weight.mul_(factor)
    assert "could reach values" in chosen_for(model, data).name


def test_a_hub_larger_than_the_soft_medoid_considers():
    """The kept neighbours are those of smallest degree, and the first of them at a tie."""
    hub = torch.stack([torch.arange(1, 40), torch.zeros(39, dtype=torch.long)])
    more = torch.tensor([[2, 3, 4, 5, 6, 7, 0], [8, 8, 9, 9, 9, 10, 12]])
    data = Data(
        x=torch.randn(40, WIDTH, generator=torch.Generator().manual_seed(2)),
        edge_index=torch.cat([hub, more], dim=1),
        y=torch.arange(40) % CLASSES,
    )
    model = shaken(build_model("sma", data, num_neighbors=7))
    engine = compiled_of(model, data, [0, 9, 12])
    plain = build_engine(model, data, np.array([0, 9, 12]), smoothing=SMOOTHING, num_layers=2)
    samples = torch.arange(LANES + 3)
    torch.testing.assert_close(
        engine.logits(0, Purpose.AUDIT, samples), plain.logits(0, Purpose.AUDIT, samples).detach(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_cora_ml_vote_by_vote(architecture, skip, data_root):
    import graycert

    data = graycert.load_graph("cora_ml", data_root=data_root)
    split = graycert.inductive_split(data, seed=42)
    model = shaken(graycert.build_model(architecture, split, skip=skip, seed=1), factor=0.5)
    targets = split.test.nodes.numpy()[:80]
    smoothing = InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
    engine = compiled_of(model, data, targets, smoothing=smoothing)
    plain = build_engine(model, data, targets, smoothing=smoothing, num_layers=2)
    samples = torch.arange(40)
    with torch.inference_mode():
        ours, theirs = (each.logits(3, Purpose.ESTIMATION, samples) for each in (engine, plain))
    scale = theirs.abs().amax(dim=-1)
    assert ((ours - theirs).abs().amax(dim=-1) <= 0.25 * float(NEAR_TIE) * scale).all()
    top = theirs.topk(2, dim=-1).values
    near = (top[..., 0] - top[..., 1]) <= float(NEAR_TIE) * scale
    differ = ours.argmax(dim=-1) != theirs.argmax(dim=-1)
    assert not (differ & ~near).any()
    counted = engine.votes_and_near_ties(3, Purpose.ESTIMATION, num_samples=40)
    np.testing.assert_array_equal(counted[0].sum(axis=1), np.full(80, 40))
    assert abs(int(counted[1].sum()) - int(near.sum())) <= 2
    assert replace(engine, smoothing=SMOOTHING).smoothing == SMOOTHING
