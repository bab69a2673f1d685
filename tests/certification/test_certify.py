"""certify() from model and graph to certificates: composition, edge cases, and every refusal."""

import numpy as np
import pytest
import torch
from torch import nn

import graycert
from graycert.bounds import delta_bounds
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import graph_fingerprint
from graycert.models import build_model
from graycert.rules import certify_votes, status_of
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat
from support import foreign_models as foreign
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph
from support.flat_arguments import certify_flat

SMOOTHING = InterceptionSmoothing(p_delete=0.3, p_ablate=0.7)
OTHERS = NodeFeatureThreat(min_distance=1)
FEW = {"num_selection": 20, "num_estimation": 60, "max_radius": 4}


def certified(model=None, data=None, **changes):
    data = data if data is not None else random_graph()
    model = model if model is not None else build_model("gcn", data)
    return certify_flat(model, data, **{"smoothing": SMOOTHING, "threat": OTHERS, **FEW, **changes})


def test_is_the_composition_of_its_parts_and_echoes_its_arguments():
    data = random_graph()
    data.node_ids = [f"node {i}" for i in range(14)]
    data.class_names = ["a", "b", "c"]
    trusted = np.zeros(14, dtype=bool)
    trusted[5] = True
    threat = NodeFeatureThreat(min_distance=1, trusted=trusted)
    model = build_model("gat", data, skip=True)
    found = certified(
        model, data, targets=[9, 2, 13], threat=threat, alpha=0.05, seed=8, bound="union", provenance={"who": "test"}
    )
    deltas = delta_bounds(
        data, [9, 2, 13], smoothing=SMOOTHING, threat=threat, num_layers=2, max_radius=4, bound="union"
    )
    np.testing.assert_array_equal(found.delta_upper, deltas)
    again = certify_votes(*found.votes, deltas, alpha=0.05)
    for name in ("prediction", "p_lower", "p_upper"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
    np.testing.assert_array_equal(found.radius, np.minimum(again.radius, found.num_eligible))
    np.testing.assert_array_equal(found.status, status_of(found.radius))
    assert found.targets.tolist() == [9, 2, 13]
    assert found.node_ids.tolist() == ["node 9", "node 2", "node 13"]
    assert found.labels.tolist() == data.y[[9, 2, 13]].tolist()
    setup = found.setup
    assert setup.class_names == ("a", "b", "c")
    assert (setup.draws.num_selection, setup.draws.num_estimation) == (20, 60)
    assert (setup.max_radius, setup.num_layers, setup.num_classes) == (4, 2, 3)
    assert (setup.alpha, setup.seed, setup.rule, setup.bound) == (0.05, 8, "sound", "union")
    assert (setup.smoothing, setup.threat) == (SMOOTHING, threat)
    assert (setup.num_nodes, setup.num_edges) == (14, data.edge_index.size(1))
    assert setup.graph_fingerprint == graph_fingerprint(data.edge_index.numpy(), 14, data.x.numpy())
    assert dict(setup.provenance) == {"who": "test"}
    assert setup.engine.startswith("compiled kernels (")


@pytest.mark.deep
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_same_seed_same_votes_whatever_the_batch(architecture):
    data = random_graph()
    model = build_model(architecture, data)
    first = certified(model, data, seed=1, batch_size=1)
    for batch_size in (7, None):
        again = certified(model, data, seed=1, batch_size=batch_size)
        np.testing.assert_array_equal(again.estimation_votes, first.estimation_votes)
        np.testing.assert_array_equal(again.selection_votes, first.selection_votes)
    other = certified(model, data, seed=2)
    assert (other.estimation_votes != first.estimation_votes).any()
    assert first.targets.tolist() == list(range(14))


def test_selection_and_estimation_do_not_share_draws():
    found = certified(build_model("gat", random_graph()), num_selection=60)
    assert (found.selection_votes != found.estimation_votes).any()


def test_targets_as_tensor_and_from_an_earlier_result():
    found = certified(targets=torch.tensor([3, 1]))
    assert certified(targets=found.targets).targets.tolist() == [3, 1]


def test_skip_connection_exposes_the_target_unless_it_is_trusted():
    data = random_graph()
    model = build_model("gat", data, skip=True)
    everyone = NodeFeatureThreat()
    with pytest.raises(UnsoundSetupError) as caught:
        certified(model, data, threat=everyone)
    assert caught.value.slug == "skip-exposes-target"
    trusted = np.zeros(14, dtype=bool)
    trusted[[2, 3]] = True
    some = NodeFeatureThreat(trusted=trusted)
    assert certified(model, data, threat=some, targets=[3, 2]).targets.tolist() == [3, 2]
    with pytest.raises(UnsoundSetupError):
        certified(model, data, threat=some, targets=[2, 4])
    assert certified(build_model("gat", data), data, threat=everyone).setup.num_layers == 2


@pytest.mark.deep
def test_isolated_nodes_and_graphs_without_edges_work():
    data = random_graph()
    found = certified(build_model("gat", data), data, targets=[13], num_estimation=300)
    assert found.receptive_field_size.tolist() == [1]
    assert found.num_eligible.tolist() == [0]
    assert (found.delta_upper == 0).all()
    assert found.radius[0] in (-1, 0)
    data.edge_index = torch.empty(2, 0, dtype=torch.long)
    for architecture in ARCHITECTURE_NAMES:
        lonely = certified(build_model(architecture, data, skip=True), data)
        assert set(lonely.radius.tolist()) <= {-1, 0}  # no other node can send anything
        np.testing.assert_array_equal(lonely.whole_field, lonely.radius == 0)
        assert lonely.whole_field.any()
    exposed = certified(build_model("gcn", data), data, threat=NodeFeatureThreat())
    np.testing.assert_allclose(exposed.delta_upper, 0.3, atol=1e-12)


def test_unlabelled_and_partly_labelled_graphs_work():
    data = random_graph()
    model = build_model("gcn", data)
    data.y[3:] = -1
    assert certified(model, data).labels[4] == -1
    data.y = None
    assert certified(model, data).labels is None


def test_self_loops_in_the_graph_work():
    data = random_graph()
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[1, 2], [1, 2]])], dim=1)
    assert certified(build_model("gcn", data), data).setup.num_edges == data.edge_index.size(1)


def test_foreign_models_are_certified():
    model = foreign.TwoLiner()
    found = certified(model)
    assert found.setup.num_layers == 1
    assert found.setup.engine == "compiled kernels (GCN)"
    other = certified(model, engine="torch")
    assert other.setup.engine.startswith("torch")
    np.testing.assert_array_equal(other.estimation_votes, found.estimation_votes)
    numbered = certified(foreign.NumbersNodes(14), num_layers=1)
    assert "full graph" in numbered.setup.engine
    deeper = certified(foreign.TwoLiner(), num_layers=2)
    assert deeper.setup.num_layers == 2
    assert (deeper.delta_upper >= found.delta_upper).all()


def test_training_mode_is_restored():
    data = random_graph()
    model = foreign.Sandwich(nn.BatchNorm1d(8)).train()
    first = certified(model, data)
    assert model.training
    assert model.middle.training
    np.testing.assert_array_equal(certified(model.eval(), data).estimation_votes, first.estimation_votes)


def test_features_that_require_gradients_work():
    data = random_graph()
    data.x.requires_grad_(True)
    assert certified(build_model("gcn", data), data).setup.num_nodes == 14


def test_remarks_are_said_and_progress_stays_off_the_terminal(capsys):
    heard = []
    certified(say=heard.append, progress=True)
    remarks = [text for text in heard if "ompil" not in text]  # the first run on a machine compiles, and says so
    assert len(remarks) == 1
    assert "certified" in remarks[0]
    assert capsys.readouterr() == ("", "")


def test_parallel_edges_are_refused():
    data = random_graph()
    data.edge_index = torch.cat([data.edge_index, data.edge_index[:, :1]], dim=1)
    with pytest.raises(UnsoundSetupError) as caught:
        certified(build_model("gcn", random_graph()), data)
    assert caught.value.slug == "parallel-edges"


def test_a_failed_audit_is_raised_before_any_draw():
    with pytest.raises(UnsoundSetupError) as caught:
        certified(foreign.GlobalMean(), num_layers=2, num_estimation=2**24)
    assert caught.value.slug == "message-leak"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": None}, "`data.x` must hold the node features"),
        ({"x": torch.full((14, 5), float("nan"))}, "finite, got nan"),
        ({"x": torch.full((14, 5), float("inf"))}, "finite, got inf"),
        ({"x": torch.zeros(14, 5, dtype=torch.long)}, "must hold floats"),
        ({"x": torch.zeros(14)}, "must have shape"),
        ({"x": torch.zeros(14, 4)}, "`model` must accept|`ablation_token`"),
        ({"x": torch.zeros(14, 5, dtype=torch.float64)}, "`model` must accept"),
        ({"edge_index": torch.zeros(2, 3)}, "must be int64"),
        ({"edge_index": torch.zeros(3, 2, dtype=torch.long)}, "int64 of shape"),
        ({"edge_index": torch.tensor([[0], [14]])}, "got 14"),
        ({"edge_index": torch.tensor([[-1], [0]])}, "got -1"),
        ({"edge_index": None}, "edge_index"),
        ({"y": torch.zeros(14)}, "`data.y` must be int64"),
        ({"y": torch.zeros(13, dtype=torch.long)}, "`data.y` must be int64"),
        ({"class_names": ["a", "b", "c", "d"]}, "class_names"),
        ({"node_ids": ["a"] * 14}, "node_ids"),
    ],
)
def test_bad_graphs_are_refused(changes, words):
    data = random_graph()
    model = build_model("gcn", data)
    for name, value in changes.items():
        data[name] = value
    with pytest.raises(InvalidParameterError, match=words):
        certified(model, data, num_estimation=2**24 if "class_names" in changes else 10)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"targets": []}, "at least one node"),
        ({"targets": [1, 1]}, "distinct, got node 1"),
        ({"targets": [14]}, "got 14"),
        ({"targets": [-1]}, "got -1"),
        ({"targets": [0.5]}, "integers"),
        ({"targets": [[1]]}, "axes"),
        ({"targets": np.ones(13, dtype=bool)}, "integers"),
        ({"alpha": 0}, "`alpha`"),
        ({"alpha": 1.0}, "`alpha`"),
        ({"alpha": float("nan")}, "`alpha`"),
        ({"alpha": "0.01"}, "`alpha`"),
        ({"num_selection": 0}, "`num_selection`"),
        ({"num_estimation": 0}, "`num_estimation`"),
        ({"num_estimation": 10.0}, "`num_estimation`"),
        ({"rule": "plain"}, "`rule`"),
        ({"bound": "exactly"}, "`bound`"),
        ({"max_radius": 0}, "`max_radius`"),
        ({"seed": -1}, "`seed`"),
        ({"seed": 2**64}, "`seed`"),
        ({"seed": None}, "`seed`"),
        ({"batch_size": 0}, "`batch_size`"),
        ({"num_layers": 0}, "`num_layers`"),
        ({"device": "cuda:99"}, "`device`"),
        ({"device": "warp"}, "`device`"),
        ({"smoothing": 0.3}, "`smoothing`"),
        ({"threat": 1}, "`threat`"),
        ({"threat": NodeFeatureThreat(trusted=np.zeros(3, dtype=bool))}, "`trusted`"),
        ({"ablation_token": torch.zeros(4)}, "`ablation_token`"),
        ({"ablation_token": torch.full((5,), float("inf"))}, "`ablation_token`"),
    ],
)
def test_bad_arguments_are_refused(changes, words):
    with pytest.raises(InvalidParameterError, match=words):
        certified(**changes)


def test_other_objects_are_refused():
    with pytest.raises(InvalidParameterError, match="`data`"):
        graycert.certify(foreign.TwoLiner(), ["no graph"], smoothing=SMOOTHING, threat=OTHERS)
    with pytest.raises(InvalidParameterError, match="`model`"):
        certified(model=lambda x, edge_index: x)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: x[:, 0], "num_classes"),
        (lambda x: x[:, :1], "two classes"),
        (lambda x: x[:, :3] / 0, "finite"),
        (lambda x: None, "NoneType"),
    ],
)
def test_useless_models_are_refused(make, words):
    with pytest.raises(InvalidParameterError, match=words):
        certified(foreign.Returns(make))


def test_a_hopeless_setting_is_announced_before_sampling():
    """Without ablation and deletion every message arrives: nothing can be certified against a neighbour."""
    smoothing = InterceptionSmoothing(p_delete=0.0, p_ablate=0.0)
    with pytest.warns(UserWarning, match="certif"):
        found = certified(smoothing=smoothing, threat=NodeFeatureThreat(), targets=[0, 1])
    assert found.radius.max() <= 0
    said = []
    certified(smoothing=smoothing, threat=NodeFeatureThreat(), targets=[0, 1], say=said.append)
    assert len(said) == 1


def test_labels_that_the_model_does_not_know_are_refused():
    data = random_graph()
    model = build_model("gcn", data)
    data.y = data.y + 1
    with pytest.raises(InvalidParameterError, match=r"`data.y` must be < .* Number the classes from 0"):
        certified(model, data, targets=[int(data.y.argmax())])


def test_a_mask_names_targets():
    mask = torch.zeros(random_graph().num_nodes, dtype=torch.bool)
    mask[[2, 5]] = True
    assert certified(targets=mask).targets.tolist() == [2, 5]


@pytest.mark.deep
def test_the_memory_budget_is_stated_and_changes_no_vote(tmp_path):
    budgets = [256 * 2**20, 2**30, 2**32]
    data, model = random_graph(), build_model("gcn", random_graph())
    asked = {
        "smoothing": InterceptionSmoothing(p_delete=0.3, p_ablate=0.5),
        "threat": NodeFeatureThreat(min_distance=1),
        "draws": graycert.Draws(num_selection=40, num_estimation=60),
    }
    found = [
        graycert.certify(model, data, **asked, execution=graycert.Execution(memory=budget, engine="compiled"))
        for budget in budgets
    ]
    assert [each.setup.memory_budget for each in found] == budgets
    for each in found:
        assert 0 < each.setup.memory_planned < each.setup.memory_budget
        np.testing.assert_array_equal(each.estimation_votes, found[0].estimation_votes)
    found[0].save(tmp_path / "run")
    stored = graycert.Certificates.load(tmp_path / "run").setup
    assert (stored.memory_budget, stored.memory_planned) == (budgets[0], found[0].setup.memory_planned)
    with pytest.raises(InvalidParameterError, match="`memory` must be"):
        graycert.Execution(memory=0)
    least = graycert.Execution(memory=1, engine="compiled")
    with pytest.raises(InvalidParameterError, match=r"`memory` must be at least [\d,]+ bytes .*, got 1\."):
        graycert.certify(model, data, **asked, execution=least)
