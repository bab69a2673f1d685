"""Structural threats on real models: how far each convolution notices a change, and what is refused."""

import itertools

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import (
    APPNP,
    ChebConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    SAGEConv,
    SGConv,
    TAGConv,
)

from graycert import Draws, Execution, InterceptionSmoothing, NodeFeatureThreat, certify, certify_votes, delta_bounds
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import path_graph
from graycert.models import build_model
from graycert.models.names import ARCHITECTURES
from graycert.threats import AttributeFlipThreat
from graycert.threats.structural import (
    _FAMILIES,
    CONVOLUTIONS,
    EdgeDeletionThreat,
    NodeDeletionThreat,
    NodeInsertionThreat,
    convolution_family,
)
from support.attributed_graphs import random_graph
from support.random_graphs import to_adjacency

THREATS = (NodeDeletionThreat, NodeInsertionThreat, EdgeDeletionThreat)
WIDTH = 4
SMOOTHING = InterceptionSmoothing(p_delete=0.5, p_ablate=0.0)


def directed_path(num_nodes, *, seed=0):
    """num_nodes - 1 -> ... -> 1 -> 0, with random features and two classes."""
    generator = torch.Generator().manual_seed(seed)
    nodes = torch.arange(num_nodes)
    return Data(
        x=torch.randn(num_nodes, WIDTH, generator=generator),
        edge_index=torch.stack([nodes[1:], nodes[:-1]]),
        y=nodes % 2,
    )


class Chain(torch.nn.Module):
    """Layers of PyTorch Geometric one after another."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x, edge_index):
        for layer in self.layers:
            x = layer(x, edge_index)
        return x


def two_step_model(name):
    if name in ARCHITECTURES:
        return build_model(name, directed_path(6), num_layers=2).eval()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        one_step = {
            "GCNConv": lambda: GCNConv(WIDTH, WIDTH),
            "GATConv": lambda: GATConv(WIDTH, WIDTH),
            "GATv2Conv": lambda: GATv2Conv(WIDTH, WIDTH),
            "SAGEConv": lambda: SAGEConv(WIDTH, WIDTH),
            "GINConv": lambda: GINConv(torch.nn.Linear(WIDTH, WIDTH)),
        }
        two_steps = {
            "SGConv": lambda: SGConv(WIDTH, WIDTH, K=2),
            "TAGConv": lambda: TAGConv(WIDTH, WIDTH, K=2),
            "APPNP": lambda: APPNP(K=2, alpha=0.1),
        }
        layers = [two_steps[name]()] if name in two_steps else [one_step[name](), one_step[name]()]
    return Chain(*layers).eval()


def scores(model, data, *, without=None, kept=None):
    """Return the scores of node 0 on the edges ``kept``, without the node ``without`` (the last one)."""
    edge_index = data.edge_index if kept is None else data.edge_index[:, kept]
    x = data.x
    if without is not None:
        assert without == data.num_nodes - 1
        x, edge_index = x[:-1], edge_index[:, (edge_index != without).all(dim=0)]
    with torch.inference_mode():
        return model.double()(x.double(), edge_index)[0]


def same(first, second):
    """Whether nothing was noticed: linear maps round differently when there is one row less."""
    return torch.allclose(first, second, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", _FAMILIES)
def test_a_deleted_node_is_noticed_exactly_as_far_as_the_family_says(name):
    model = two_step_model(name)
    reach = NodeDeletionThreat(convolution=convolution_family(name)).reach(2)
    assert reach == (3 if convolution_family(name) == "degree-normalised" else 2)
    for distance in range(1, 6):
        data = directed_path(distance + 1)
        closing = torch.tensor([[0], [distance]])  # TAGConv, without self-loops, ignores a sender of in-degree 0
        data.edge_index = torch.cat([data.edge_index, closing], dim=1)
        unnoticed = same(scores(model, data), scores(model, data, without=distance))
        assert unnoticed == (distance > reach)


@pytest.mark.parametrize("name", _FAMILIES)
def test_no_known_convolution_looks_at_out_degrees(name):
    model, data = two_step_model(name), directed_path(4)
    data.edge_index = torch.tensor([[2, 1, 1], [1, 0, 3]])  # 2 -> 1 -> 0, and node 3 only receives
    assert same(scores(model, data), scores(model, data, without=3))


def test_chebconv_looks_at_out_degrees_and_is_refused():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, data = Chain(ChebConv(WIDTH, WIDTH, K=2)).eval(), directed_path(3)
    data.edge_index = torch.tensor([[1, 0, 1], [0, 1, 2]])  # no path from 2 to 0
    assert not same(scores(model, data), scores(model, data, without=2))
    for threat in THREATS[:2]:
        claimed = threat(convolution="degree-normalised", min_distance=2)
        delta = delta_bounds(data, [0], smoothing=SMOOTHING, threat=claimed, num_layers=2)
        assert delta.delta_upper.max() == 0.0  # so neither family may be claimed
    with pytest.raises(UnsoundSetupError, match="unknown-convolution"):
        convolution_family("ChebConv")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_node_one_hop_too_far_of_theory_a2(name):
    """3 -> 2 -> 1 -> 0 and two layers: without node 3, GCN and SMA change, GAT and GATv2 do not."""
    model, data = two_step_model(name), directed_path(4)
    changed = [
        not same(scores(model, data, kept=list(left)), scores(model, data, kept=list(left), without=3))
        for left in itertools.product((True, False), repeat=3)
    ]
    family = convolution_family(name)
    exact = sum(changed) / 8
    assert exact == (1 / 8 if family == "degree-normalised" else 0.0)
    for threat in (NodeDeletionThreat, NodeInsertionThreat):
        threatened = threat(convolution=family, min_distance=3)
        bound = delta_bounds(data, [0], smoothing=SMOOTHING, threat=threatened, num_layers=2, max_radius=1)
        assert exact <= bound.delta_upper[0, 0] <= exact + 1e-12
    features = NodeFeatureThreat(min_distance=3)
    feature_bound = delta_bounds(data, [0], smoothing=SMOOTHING, threat=features, num_layers=2)
    assert feature_bound.delta_upper.max() == 0.0  # the paper's reach would certify any number of such nodes


def test_without_the_extra_hop_a_false_certificate_would_be_issued():
    """One step of a model that says B iff node 1's message arrives with in-degree 1, on 2 -> 1 -> 0."""
    data = directed_path(3)
    keep = 0.9
    smoothing = InterceptionSmoothing(p_delete=0.1, p_ablate=0.0)
    with_node_2, without_node_2 = keep**2, 0.0  # probabilities of B, exactly
    votes = [[1_000 - round(1_000 * with_node_2), round(1_000 * with_node_2)]]
    many = [[10_000 - round(10_000 * with_node_2), round(10_000 * with_node_2)]]
    certified = {}
    for family in CONVOLUTIONS:
        threat = NodeDeletionThreat(convolution=family, min_distance=2)
        bound = delta_bounds(data, [0], smoothing=smoothing, threat=threat, num_layers=1, max_radius=1)
        assert (bound.delta_upper[0, 0] >= abs(with_node_2 - without_node_2)) == (family == "degree-normalised")
        found = certify_votes(votes, many, bound, belongs_to="a path of three nodes")
        certified[family] = bool(found.radius[0] >= bound.num_eligible[0])  # whatever all nodes two hops away do
    assert certified == {"local": True, "degree-normalised": False}


def test_degrees_taken_before_the_smoothing_break_the_bound():
    """Weights from the whole graph notice node 2 on 2 -> 1 -> 0 even when its edge is deleted."""
    data = directed_path(3)
    threat = NodeDeletionThreat(convolution="degree-normalised", min_distance=2)
    found = delta_bounds(data, [0], smoothing=SMOOTHING, threat=threat, num_layers=1, max_radius=1)
    bound = found.delta_upper[0, 0]
    noticed = 0.0
    for left in itertools.product((True, False), repeat=2):
        messages = []
        for edges in ([(1, 0), (2, 1)], [(1, 0)]):  # with and without node 2
            in_degree = {node: sum(end == node for _, end in edges) for node in range(3)}
            kept = [edge for edge, stays in zip(edges, left, strict=False) if stays]
            messages.append([(source, in_degree[source]) for source, end in kept if end == 0])
        noticed += 0.25 * (messages[0] != messages[1])
    assert noticed == 0.5
    assert bound < noticed


@pytest.mark.parametrize("threat", THREATS)
def test_ablation_alone_is_refused(threat):
    for family in CONVOLUTIONS:
        with pytest.raises(UnsoundSetupError, match="ablated node still") as refusal:
            delta_bounds(
                path_graph(3),
                [0],
                smoothing=InterceptionSmoothing(p_delete=0.0, p_ablate=0.9),
                threat=threat(convolution=family),
                num_layers=2,
            )
        assert refusal.value.slug == "ablation-cannot-certify-structure"


@pytest.mark.parametrize("probabilities", [([0.5, 0.5, 0.9, 0.9], 0.0), (0.5, [0.1, 0.1, 0.9])])
def test_probabilities_that_may_come_from_the_structure_are_refused(probabilities):
    smoothing = InterceptionSmoothing(p_delete=probabilities[0], p_ablate=probabilities[1])
    for threat in THREATS:
        with pytest.raises(UnsoundSetupError, match="structure-dependent-smoothing"):
            delta_bounds(path_graph(3), [0], smoothing=smoothing, threat=threat(convolution="local"), num_layers=2)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_ablated_node_is_noticed_all_the_same(name):
    """All features are the token, and still the output tells whether node 1 is there: p_a must not lower the bound."""
    model, data = two_step_model(name), directed_path(2)
    with torch.inference_mode():
        data.x[:] = model.ablation_token
    there, gone = scores(model, data), scores(model, data, without=1)
    same_state = name in ("gat", "gatv2")  # attention averages: equal rows look the same however many there are
    assert same(there, gone) == same_state
    threats = [InterceptionSmoothing(p_delete=0.3, p_ablate=p_ablate) for p_ablate in (0.0, 0.5, 1.0)]
    inserted = NodeInsertionThreat(convolution=convolution_family(name))
    bounds = [
        delta_bounds(data, [0], smoothing=smoothing, threat=inserted, num_layers=2).delta_upper.tolist()
        for smoothing in threats
    ]
    assert bounds[0] == bounds[1] == bounds[2]
    assert bounds[0][0][0] == pytest.approx(0.7, abs=1e-12)


@pytest.mark.end_to_end
def test_votes_of_certify_are_votes_for_structural_threats():
    data = random_graph(num_nodes=14, num_pairs=16)
    model = build_model("gat", data, seed=1).eval()
    smoothing = InterceptionSmoothing(p_delete=0.8, p_ablate=0.1)
    arguments = {
        "smoothing": smoothing,
        "draws": Draws(num_selection=100, num_estimation=2_000),
        "execution": Execution(engine="torch", say=lambda _: None),  # no change of features can be certified here
    }
    drawn = certify(model, data, threat=NodeFeatureThreat(), **arguments)
    certificates = {}
    for threat in THREATS:
        bound = delta_bounds(
            data,
            np.arange(14),
            smoothing=smoothing,
            threat=threat(convolution="local"),
            num_layers=drawn.setup.num_layers,
            max_radius=5,
        )
        found = certify_votes(*drawn.votes, bound)
        assert found.prediction.tolist() == drawn.prediction.tolist()
        directly = certify(model, data, threat=threat(), max_radius=5, **arguments)
        assert directly.radius.tolist() == found.radius.tolist()
        assert directly.setup.convolution == "local"
        certificates[threat] = found.radius
    assert certificates[NodeDeletionThreat].max() > 0
    assert certificates[NodeDeletionThreat].tolist() == certificates[NodeInsertionThreat].tolist()


def test_trusted_nodes_and_distance_leave_fewer_to_choose_from():
    edges = [(1, 0), (2, 0), (3, 1)]
    graph = to_adjacency(edges, 4)
    trusted = np.array([False, True, False, False])

    def bound(**fields):
        threat = NodeDeletionThreat(convolution="local", **fields)
        found = delta_bounds(graph, [0], smoothing=SMOOTHING, threat=threat, num_layers=2, max_radius=3)
        return found.delta_upper[0]

    assert bound() == pytest.approx([1 / 2, 3 / 4, 3 / 4], abs=1e-12)
    assert bound(trusted=trusted) == pytest.approx([1 / 2, 5 / 8, 5 / 8], abs=1e-12)
    assert bound(min_distance=2, trusted=trusted) == pytest.approx([1 / 4] * 3, abs=1e-12)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_more_equal_edges_than_the_radius_change_nothing(num_layers):
    hub = [(leaf, 0) for leaf in range(1, 40)]
    threat = EdgeDeletionThreat(convolution="local")
    found = delta_bounds(
        to_adjacency(hub, 40), [0, 5], smoothing=SMOOTHING, threat=threat, num_layers=num_layers, max_radius=3
    )
    bound = found.delta_upper
    assert bound[0] == pytest.approx([1 / 2, 3 / 4, 7 / 8], abs=1e-12)
    assert bound[1].tolist() == [0.0, 0.0, 0.0]


def bounds_of(threat):
    return delta_bounds(path_graph(3), [0], smoothing=SMOOTHING, threat=threat, num_layers=2)


@pytest.mark.parametrize("threat", THREATS)
def test_threats_are_checked(threat):
    with pytest.raises(InvalidParameterError, match="`convolution` must be one of"):
        threat(convolution="gcn")
    for use in (lambda left_open: left_open.reach(2), bounds_of):  # the family is never guessed
        with pytest.raises(UnsoundSetupError, match="`convolution` must be given") as refusal:
            use(threat())
        assert refusal.value.slug == "unknown-convolution"
    for distance in (0, -1, 1.0):
        with pytest.raises(InvalidParameterError, match="`min_distance` must be"):
            threat(convolution="local", min_distance=distance)
    with pytest.raises(InvalidParameterError, match="`num_layers` must be"):
        threat(convolution="local").reach(0)
    assert "ρ" in threat(convolution="local").statement


def test_the_trusted_mask_is_checked_and_kept():
    trusted = np.zeros(3, dtype=bool)
    threat = NodeInsertionThreat(convolution="local", trusted=trusted)
    trusted[0] = True
    assert threat.trusted is not None
    assert not threat.trusted[0]
    with pytest.raises(InvalidParameterError, match="`trusted` must be"):
        NodeDeletionThreat(convolution="local", trusted=np.zeros(3))
    with pytest.raises(InvalidParameterError, match="`trusted` must be"):
        delta_bounds(path_graph(4), [0], smoothing=SMOOTHING, threat=threat, num_layers=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threat": AttributeFlipThreat()}, "`threat` must be"),
        ({"smoothing": 0.5}, "`smoothing` must be"),
        ({"max_radius": 0}, "`max_radius` must be"),
        ({"num_layers": 0}, "`num_layers` must be"),
        ({"targets": [9]}, "`targets` must be"),
    ],
)
def test_arguments_are_checked(change, message):
    arguments = {
        "targets": [0],
        "smoothing": SMOOTHING,
        "threat": EdgeDeletionThreat(convolution="local"),
        "num_layers": 2,
    } | change
    with pytest.raises(InvalidParameterError, match=message):
        delta_bounds(path_graph(3), arguments.pop("targets"), **arguments)
