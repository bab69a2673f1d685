"""Votes and bounds certify only together with those of the same set-up."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graycert
from graycert.errors import InvalidParameterError
from graycert.rules import certify_counts
from graycert.statistics import EstimationVotes, SelectionVotes
from support.attributed_graphs import random_graph

OTHERS = graycert.NodeFeatureThreat(min_distance=1)
SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.8)
TARGETS = np.array([3, 0, 7, 11])
DRAWS = graycert.Draws(num_selection=50, num_estimation=2_000)


@pytest.fixture(scope="module")
def data():
    return random_graph(num_nodes=14, num_pairs=16)


@pytest.fixture(scope="module")
def model(data):
    return graycert.build_model("gat", data, seed=1).eval()


@pytest.fixture(scope="module")
def run(model, data):
    return graycert.certify(model, data, targets=TARGETS, smoothing=SMOOTHING, threat=OTHERS, draws=DRAWS)


def bounds_of(graph, **changes):
    arguments = {"smoothing": SMOOTHING, "threat": OTHERS, "num_layers": 2} | changes
    return graycert.delta_bounds(graph, arguments.pop("targets", TARGETS), **arguments)


def without_an_edge(data):
    return Data(x=data.x, edge_index=data.edge_index[:, 1:])


def with_a_node_more(data):
    return Data(x=torch.cat([data.x, data.x[:1]]), edge_index=data.edge_index)


def test_votes_and_bounds_of_one_set_up_give_what_certify_gave(run, data):
    found = graycert.certify_votes(*run.votes, bounds_of(data))
    assert run.radius.max() >= 1
    assert found.radius.tolist() == run.radius.tolist()
    assert found.prediction.tolist() == run.prediction.tolist()
    assert found.belongs_to == ""
    again = graycert.NodeFeatureThreat(min_distance=2)
    other = graycert.certify_votes(*run.votes, bounds_of(data, threat=again, bound="multiplicative"))
    assert other.radius.tolist() == run.again(data, threat=again, bound="multiplicative").radius.tolist()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_layers": 3}, r"differ in: number of layers \(2 and 3\)"),
        ({"num_layers": 1}, r"differ in: number of layers \(2 and 1\)"),
        ({"targets": TARGETS[::-1]}, r"differ in: targets\."),
        ({"targets": [3, 0, 7, 12]}, r"differ in: targets\."),
        (
            {"smoothing": graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.8 + 2**-53)},
            r"differ in: smoothing\.",
        ),
        ({"graph": without_an_edge}, r"differ in: graph\."),
        ({"graph": with_a_node_more}, r"differ in: graph\."),
        (
            {"graph": without_an_edge, "targets": TARGETS[::-1], "num_layers": 3},
            r"differ in: graph, targets, number of layers \(2 and 3\)",
        ),
    ],
)
def test_bounds_of_another_set_up_are_refused(run, data, change, words):
    change = dict(change)
    graph = change.pop("graph", lambda same: same)(data)
    with pytest.raises(InvalidParameterError, match=f"`selection_votes` and `delta_upper` .* {words}"):
        graycert.certify_votes(*run.votes, bounds_of(graph, **change))
    with pytest.raises(InvalidParameterError, match=words):  # saying something does not help against knowing better
        graycert.certify_votes(*run.votes, bounds_of(graph, **change), belongs_to="the same graph, I am sure")


def test_selection_and_estimation_votes_must_be_of_one_set_up(run, data, model):
    other = graycert.certify(model, data, targets=TARGETS[::-1].copy(), smoothing=SMOOTHING, threat=OTHERS, draws=DRAWS)
    with pytest.raises(InvalidParameterError, match=r"`selection_votes` and `estimation_votes` .* differ in: targets"):
        graycert.certify_votes(run.votes[0], other.votes[1], bounds_of(data))


def test_votes_of_another_smoothing_are_refused(data, model):
    levine = graycert.certify(
        model, data, targets=TARGETS, smoothing=graycert.RandomizedAblation(num_kept=2), threat=OTHERS, draws=DRAWS
    )
    with pytest.raises(InvalidParameterError, match="differ in: smoothing"):
        graycert.certify_votes(*levine.votes, bounds_of(data))


def test_a_three_layer_model_on_a_path_of_six_nodes():
    """With Δ̄ of two layers, 0 at distance 3, every prediction would be certified against every adversary."""
    nodes = torch.arange(5)
    edge_index = torch.stack([torch.cat([nodes, nodes + 1]), torch.cat([nodes + 1, nodes])])
    data = Data(x=torch.eye(6), edge_index=edge_index, y=torch.arange(6) % 2)
    model = graycert.build_model("gcn", data, num_layers=3, seed=0).eval()
    smoothing, threat = (
        graycert.InterceptionSmoothing(p_delete=0.1, p_ablate=0.1),
        graycert.NodeFeatureThreat(min_distance=3),
    )
    quiet = graycert.Execution(say=lambda _: None)
    run = graycert.certify(model, data, targets=[0], smoothing=smoothing, threat=threat, draws=DRAWS, execution=quiet)
    assert run.setup.num_layers == 3
    assert run.delta_upper == pytest.approx(0.6561, abs=1e-12)
    assert run.radius[0] <= 0
    arguments = {"smoothing": smoothing, "threat": threat}
    right = graycert.delta_bounds(data, [0], num_layers=3, **arguments)
    assert graycert.certify_votes(*run.votes, right).radius.tolist() == run.radius.tolist()
    wrong = graycert.delta_bounds(data, [0], num_layers=2, **arguments)
    with pytest.raises(InvalidParameterError, match=r"number of layers \(3 and 2\)"):
        graycert.certify_votes(*run.votes, wrong)
    with pytest.raises(TypeError, match="num_layers"):
        graycert.delta_bounds(data, [0], **arguments)


def test_probabilities_per_edge_may_come_in_any_order_of_the_columns(data, model):
    rng = np.random.default_rng(0)
    size = data.edge_index.size(1)
    p_delete, columns = rng.uniform(0.4, 0.6, size), rng.permutation(size)
    smoothing = graycert.InterceptionSmoothing(p_delete=p_delete, p_ablate=0.8)
    run = graycert.certify(model, data, targets=TARGETS, smoothing=smoothing, threat=OTHERS, draws=DRAWS)
    shuffled = Data(x=data.x, edge_index=data.edge_index[:, columns])
    moved = graycert.InterceptionSmoothing(p_delete=p_delete[columns], p_ablate=0.8)
    found = graycert.certify_votes(*run.votes, bounds_of(shuffled, smoothing=moved))
    assert found.radius.tolist() == run.radius.tolist()
    with pytest.raises(InvalidParameterError, match="differ in: smoothing"):
        graycert.certify_votes(*run.votes, bounds_of(shuffled, smoothing=smoothing))


@pytest.mark.parametrize("bare", [{0}, {1}, {2}, {0, 1}, {0, 1, 2}])
@pytest.mark.parametrize("said", ["", "  "])
def test_bare_arrays_must_say_what_they_belong_to(run, data, bare, said):
    bounds = bounds_of(data)
    typed = (*run.votes, bounds)
    arrays = (run.selection_votes, run.estimation_votes, np.asarray(bounds))
    given = [arrays[i] if i in bare else typed[i] for i in range(3)]
    names = [name for i, name in enumerate(("selection_votes", "estimation_votes", "delta_upper")) if i in bare]
    with pytest.raises(InvalidParameterError, match="`belongs_to` must say .*" + "`, `".join(names)):
        graycert.certify_votes(*given, belongs_to=said)
    found = graycert.certify_votes(*given, belongs_to="the run above")
    assert np.minimum(found.radius, run.num_eligible).tolist() == run.radius.tolist()
    assert found.belongs_to == "the run above"


def test_votes_without_an_origin_are_as_bare_as_arrays(run, data):
    selection, estimation = SelectionVotes(run.selection_votes, 50), EstimationVotes(run.estimation_votes, 2_000)
    with pytest.raises(InvalidParameterError, match="`selection_votes`, `estimation_votes`"):
        graycert.certify_votes(selection, estimation, bounds_of(data))
    unchecked = certify_counts(selection, estimation, np.asarray(bounds_of(data)), alpha=0.01, rule="sound")
    assert np.minimum(unchecked.radius, run.num_eligible).tolist() == run.radius.tolist()


def test_what_was_stored_keeps_its_origin(run, data, tmp_path):
    loaded = graycert.Certificates.load(run.save(tmp_path / "run"))
    assert [votes.origin for votes in loaded.votes] == [votes.origin for votes in run.votes]
    assert loaded.votes[0].origin == bounds_of(data).origin
