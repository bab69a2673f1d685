"""Bounded votes end to end: the classifier of the formula, its modes, refusals and what follows."""

import dataclasses
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models.row_probabilities import row_probabilities
from graycert.runs.shares import percent
from graycert.runs.words import summary_record
from graycert.smoothing.bounded_votes.ballots import ONE, ballots
from support.certified_groups import OTHERS, TARGETS, RowClassifier, three_groups, trained_model, trained_row_classifier

ANYBODY = graycert.NodeFeatureThreat()
LABELS = np.where(np.arange(42) < 15, np.arange(42) % 3, -1)


def certified(threat=OTHERS, *, model=None, data=None, targets=TARGETS, **parameters):
    return graycert.certify(
        trained_row_classifier() if model is None else model,
        three_groups() if data is None else data,
        targets=targets,
        smoothing=graycert.BoundedVotes(**{"num_voters": 9, "gate": None, **parameters}),
        threat=threat,
    )


def spread_labels(labels=LABELS):
    """Twenty steps of label propagation with dense matrices."""
    looped = np.eye(42)
    sources, receivers = three_groups().edge_index.numpy()
    looped[receivers, sources] = 1.0
    scale = 1 / np.sqrt(looped.sum(axis=1))
    start = np.where(labels[:, None] == np.arange(3), 1.0, 0.0)
    spread = start
    for _ in range(20):
        spread = 0.9 * (scale[:, None] * looped * scale) @ spread + 0.1 * start
    spread += 1e-12
    return spread / spread.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("threat", [OTHERS, ANYBODY])
def test_scores_are_those_of_the_formula(threat, labels):
    found = certified(threat, **({"label_propagation": LABELS} if labels else {}))
    s = row_probabilities(trained_row_classifier(), three_groups().x)
    q = s**2 / (s**2).sum(axis=1, keepdims=True)
    gamma = 1.0 if labels else 2.0
    for row, target in enumerate(found.targets):
        voters = found.voters[row][found.voters[row] >= 0]
        assert 0 < voters.size <= 9
        assert target not in voters
        own = 0.5 * np.log(spread_labels()[target] + 0.02) if labels else np.zeros(3)
        if threat is OTHERS:
            expected = own + np.log(s[target] + 1e-6) + gamma / voters.size * q[voters].sum(axis=0)
            unit = gamma / voters.size / ONE
        else:
            expected, unit = own + q[target] + q[voters].sum(axis=0), 1 / ONE
        np.testing.assert_allclose(found.scores[row] * unit, expected, atol=12 * unit)
    assert found.setup.smoothing.target_votes is (threat is ANYBODY)
    assert found.num_eligible.tolist() == [9 + (threat is ANYBODY)] * len(found)
    assert found.receptive_field_size.tolist() == [10] * len(found)
    assert ("own_probabilities" in found.adds) is (threat is OTHERS)


def attacked(data, nodes, generator):
    changed = data.clone()
    changed.x = data.x.clone()
    for node in nodes:
        changed.x[node] = torch.tensor(generator.choice([-9.0, 0.0, 3.0, 40.0], 3))
    return changed


@pytest.mark.deep
@pytest.mark.parametrize(
    ("threat", "parameters"),
    [
        (OTHERS, {"gamma": 20.0}),
        (ANYBODY, {"vote": "one-hot"}),
        (graycert.NodeFeatureThreat(min_distance=2), {"gamma": 50.0, "label_propagation": LABELS}),
        (
            graycert.NodeFeatureThreat(trusted=np.arange(42) % 2 == 0),
            {"voters": "pagerank", "label_propagation": LABELS},
        ),
    ],
)
def test_no_attack_on_features_breaks_a_certificate(threat, parameters):
    data, generator = three_groups(), np.random.default_rng(0)
    found = certified(threat, **parameters)
    assert found.radius.max() > 0
    eligible = eligible_nodes_of(found, threat)
    changed = 0
    for _ in range(25):
        row = int(generator.integers(len(found)))
        radius = int(found.radius[row])
        pool = eligible[row]
        assert found.num_eligible[row] == sum(node in set(found.voters[row]) | {found.targets[row]} for node in pool)
        nodes = generator.permutation(pool)[: len(pool) if found.whole_field[row] else radius]
        again = certified(threat, data=attacked(data, nodes, generator), targets=[found.targets[row]], **parameters)
        assert again.prediction[0] == found.prediction[row]
        changed += not np.array_equal(again.scores[0], found.scores[row])
    assert changed > 8


def nodes_at_distance(least, target):
    """Nodes at least so many hops away, by breadth-first search on the edge list."""
    pairs = three_groups().edge_index.T.tolist()
    near = set() if least == 0 else {target}
    for _ in range(least - 1):
        near |= {source for source, receiver in pairs if receiver in near}
    return [node for node in range(42) if node not in near]


def eligible_nodes_of(found, threat):
    """Nodes that may be hostile to each target."""
    trusted = np.zeros(42, dtype=bool) if threat.trusted is None else threat.trusted
    lists = [nodes_at_distance(threat.min_distance, target) for target in found.targets.tolist()]
    return [[node for node in nodes if not trusted[node]] for nodes in lists]


@pytest.mark.deep
def test_a_worst_attack_with_whole_votes_changes_the_prediction():
    """One hot rows give a whole vote, so that one node more than the radius is enough."""
    parameters = {"vote": "one-hot", "gamma": 20.0}
    found, data = certified(**parameters), three_groups()
    rows_of = [int(row) for row in row_probabilities(trained_row_classifier(), data.x).argmax(axis=1).tolist()]
    of_class = [rows_of.index(each) for each in range(3)]
    broken = 0
    for row in np.flatnonzero(~found.whole_field):
        nodes = found.attackers[row][found.attackers[row] >= 0]
        assert nodes.size == found.radius[row] + 1
        predictions = set()
        for given in range(3):
            changed = data.clone()
            changed.x = data.x.clone()
            changed.x[nodes] = data.x[of_class[given]]
            again = certified(data=changed, targets=[found.targets[row]], **parameters)
            predictions.add(int(again.prediction[0]))
        assert predictions - {int(found.prediction[row])}
        assert predictions <= set(np.flatnonzero(found.possible_labels(int(found.radius[row]) + 1)[row]).tolist())
        broken += 1
    assert broken >= 6


def test_rows_that_are_no_numbers_vote_for_all_alike():
    x = torch.tensor([[float("nan"), 0.0, 0.0], [float("inf")] * 3, [3e38, -3e38, 3e38]])
    shares = row_probabilities(trained_row_classifier(), x)
    assert shares[:2].tolist() == [[1 / 3] * 3] * 2
    assert ballots(shares, sharpen=2.0, one_hot=False)[:2].tolist() == [[349525] * 3] * 2
    assert ballots(shares, sharpen=2.0, one_hot=True)[:2].tolist() == [[ONE, 0, 0]] * 2


def test_a_gate_closes_on_votes():
    found = certified(gate=0.75)
    sure = found.own_probabilities.max(axis=1) >= 0.75
    assert 0 < sure.sum() < len(found)
    assert found.whole_field[sure].all()
    assert (found.prediction == found.own_probabilities.argmax(axis=1))[sure].all()
    assert not found.whole_field[~sure].any()
    assert "at least 0.75 sure" in found.summary()


def test_isolated_targets_keep_what_they_say():
    data = Data(x=three_groups().x, y=three_groups().y, edge_index=torch.tensor([[1, 2], [2, 1]]))
    trusted = certified(data=data, targets=[0, 1])
    assert (trusted.num_eligible.tolist(), trusted.whole_field.tolist()) == ([0, 1], [True, False])
    assert trusted.prediction[0] == trusted.own_probabilities[0].argmax()
    hostile = certified(ANYBODY, data=data, targets=[0, 1])
    assert hostile.num_eligible.tolist() == [1, 2]
    assert hostile.radius[0] == 0
    half = certified(graycert.NodeFeatureThreat(trusted=np.arange(42) == 0), data=data, targets=[0, 1])
    assert (half.num_eligible.tolist(), half.radius.tolist()) == ([0, 2], [0, 0])
    assert half.setup.smoothing.target_votes  # target 1 may be hostile


def test_who_votes_follows_from_who_may_be_hostile():
    trusted = np.zeros(42, dtype=bool)
    trusted[TARGETS] = True
    assert not certified(graycert.NodeFeatureThreat(trusted=trusted)).setup.smoothing.target_votes
    trusted[TARGETS[0]] = False
    assert certified(graycert.NodeFeatureThreat(trusted=trusted)).setup.smoothing.target_votes
    with pytest.raises(UnsoundSetupError, match="hostile-target-in-full"):
        certified(ANYBODY, target_votes=False)
    assert certified(target_votes=True).num_eligible.tolist() == [9] * len(TARGETS)


def test_again_is_about_the_same_classifier():
    found = certified(ANYBODY)
    again = found.again(three_groups(), threat=OTHERS)
    assert again.scores.tolist() == found.scores.tolist()
    assert again.setup.smoothing == found.setup.smoothing
    assert (again.radius >= found.radius).all()
    assert (again.num_eligible < found.num_eligible).all()
    assert (again.class_radius >= np.minimum(found.class_radius, 9)).all()
    assert again.radius.tolist() == certified(target_votes=True).radius.tolist()
    with pytest.raises(InvalidParameterError, match="no wider"):
        certified().again(three_groups(), threat=ANYBODY)
    predicted = found.classifier(trained_row_classifier()).predict(three_groups(), TARGETS)
    assert predicted.tolist() == found.prediction.tolist()


def test_possible_labels_shrink_to_the_prediction_within_the_radius():
    found = certified(gamma=20.0)
    for budget in range(11):
        possible = found.possible_labels(budget)
        assert possible[np.arange(len(found)), found.prediction].all()
        alone = possible.sum(axis=1) == 1
        assert (alone == (found.radius >= np.minimum(budget, found.num_eligible))).all()
    with pytest.raises(InvalidParameterError, match="`radius`"):
        found.possible_labels(-1)


def test_models_that_read_other_nodes_are_refused():
    class ByHand(torch.nn.Module):
        def forward(self, x, edge_index):
            return torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])

    class OverTheNodes(torch.nn.Module):
        def forward(self, x, edge_index):
            return x - x.mean(dim=0)

    with pytest.raises(UnsoundSetupError, match="not-per-node") as caught:
        certified(model=trained_model())
    assert "graycert.distill" in str(caught.value)
    with pytest.raises(UnsoundSetupError, match="unknown-depth"):
        certified(model=ByHand())
    with pytest.raises(UnsoundSetupError):
        certified(model=OverTheNodes())


def test_a_number_of_layers_of_the_users_does_not_help():
    class ByHand(torch.nn.Module):
        def forward(self, x, edge_index):
            return torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])

    arguments = {"smoothing": graycert.BoundedVotes(), "threat": OTHERS, "num_layers": 1}
    with pytest.raises(UnsoundSetupError, match="not-per-node"):
        graycert.certify(ByHand(), three_groups(), **arguments)
    found = graycert.certify(trained_row_classifier(), three_groups(), **arguments)
    assert found.setup.num_layers is None


@pytest.mark.parametrize("threat", [graycert.NodeDeletionThreat(), graycert.FeaturesAndOutEdgesThreat()])
def test_nothing_is_claimed_of_other_threats(threat):
    with pytest.raises(UnsoundSetupError, match="no-proof"):
        certified(threat)


@pytest.mark.parametrize("threat", [OTHERS, ANYBODY])
def test_labels_of_a_large_weight_decide_alone_at_every_radius(threat):
    found = certified(threat, label_propagation=LABELS, label_weight=1e6)
    shares = spread_labels()[found.targets]
    second, first = np.sort(shares, axis=1)[:, -2:].T
    clear = first - second > 1e-3
    assert np.count_nonzero(clear) > len(found) // 2
    assert (found.prediction == shares.argmax(axis=1))[clear].all()
    assert (found.radius == found.num_eligible)[clear].all()


@pytest.mark.few(1)
@pytest.mark.parametrize("threat", [OTHERS, ANYBODY])
def test_labels_alone_are_a_floor_beside_every_result_that_spreads_some(threat, tmp_path):
    two_classes = np.where(LABELS == 2, -1, LABELS)
    found = certified(threat, label_propagation=two_classes)
    expected = spread_labels(two_classes)[found.targets].argmax(axis=1)
    assert found.adds["prediction_of_labels"].tolist() == expected.tolist()
    right = int(np.count_nonzero(expected == found.labels))
    assert 0 < right < len(found)
    certified_at = [
        int(
            np.count_nonzero((found.prediction == found.labels) & (found.radius >= np.minimum(rho, found.num_eligible)))
        )
        for rho in range(found.radius.max() + 1)
    ]
    beats_from = next((rho for rho, count in enumerate(certified_at) if count < right), None)
    record = summary_record(found)["floor"]["labels_alone"]
    assert record == {"correct": right, "targets": len(found), "beats_from": beats_from}
    assert f"(the floor with a memory), {percent(right, len(found))} of the targets" in found.summary()
    assert (
        "correct from the labels of training nodes alone" in (found.save(tmp_path / "run") / "report.html").read_text()
    )
    assert graycert.verify(tmp_path / "run", data=three_groups(), model=trained_row_classifier()).passed
    other = {"prediction_of_labels": (found.adds["prediction_of_labels"] + 1) % 3}
    found.replace(**other).save(tmp_path / "other")
    assert not graycert.verify(tmp_path / "other", data=three_groups()).passed
    without = certified(threat)
    assert "prediction_of_labels" not in without.adds
    assert "memory" not in without.summary()


def test_labels_come_from_a_split_and_are_checked():
    data = three_groups()
    split = graycert.inductive_split(data, seed=3, per_class=2)
    smoothing = graycert.BoundedVotes(label_propagation=split)
    known = np.flatnonzero(smoothing.label_propagation >= 0)
    assert set(known.tolist()) == set(split.train.original[split.train.nodes].tolist())
    assert smoothing.label_propagation[known].tolist() == data.y[known].tolist()
    assert certified(label_propagation=split).summary().count("the labels of 6 training nodes") == 1
    wrong = LABELS.copy()
    wrong[3] = 1
    with pytest.raises(InvalidParameterError, match="got 1 for node 3, whose label is 0"):
        certified(label_propagation=wrong)
    with pytest.raises(InvalidParameterError, match=r"one label per node of the graph \(42\)"):
        certified(label_propagation=LABELS[:40])


def two_hops(node):
    return set(range(42)) - set(nodes_at_distance(3, node))


def test_own_weights_choose_voters():
    weights = sp.lil_array((42, 42))
    weights[4, [30, 7, 4]] = [1.0, 3.0, 9.0]
    found = certified(voters=weights, targets=[4, 9])
    assert found.voters[:, :3].tolist() == [[7, 30, -1], [-1, -1, -1]]
    assert found.num_eligible.tolist() == [2, 0]
    assert "weights of the user" in found.summary()
    near = two_hops(4)
    far = certified(graycert.NodeFeatureThreat(min_distance=3), voters=weights, targets=[4, 9])
    assert far.num_eligible[0] == len({7, 30} - near)
    with pytest.raises(InvalidParameterError, match=r"shape \(42, 42\)"):
        certified(voters=sp.coo_array(([1.0], ([0], [50])), shape=(60, 60)))


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"num_voters": 0}, "`num_voters`"),
        ({"gamma": 0.0}, "`gamma`"),
        ({"gate": 1.5}, "`gate`"),
        ({"sharpen": -1.0}, "`sharpen`"),
        ({"vote": "loud"}, "`vote`"),
        ({"voters": "distance"}, "`voters`"),
        ({"voters": np.ones((3, 3))}, "`voters`"),
        ({"voters": -sp.eye_array(4)}, "`voters`"),
        ({"voters": sp.eye_array(4, 5)}, "square"),
        ({"walk_length": 0}, "`walk_length`"),
        ({"decay": 1.0}, "`decay`"),
        ({"tolerance": 0.0}, "`tolerance`"),
        ({"label_propagation": [0.5, 1.0]}, "`label_propagation`"),
        ({"label_propagation": [-1, -1]}, "at least one class"),
        ({"label_weight": 0.0}, "`label_weight`"),
        ({"target_votes": "yes"}, "`target_votes`"),
    ],
)
def test_domains(parameters, says):
    with pytest.raises(InvalidParameterError, match=says):
        graycert.BoundedVotes(**parameters)


def test_scores_that_do_not_fit_are_refused():
    with pytest.raises(UnsoundSetupError, match="votes-too-large"):
        certified(gamma=1e-12)


def test_what_has_no_effect_is_not_stored():
    hostile = graycert.BoundedVotes(target_votes=True, gate=0.3, gamma=7.0)
    assert hostile == graycert.BoundedVotes(target_votes=True)
    assert not {"gate", "gamma", "label_weight", "tolerance"} & set(hostile.stored()[0])
    for smoothing in (graycert.BoundedVotes(gate=None), graycert.BoundedVotes(voters=sp.eye_array(5), vote="one-hot")):
        assert graycert.BoundedVotes.restored(*smoothing.stored()) == smoothing
    assert graycert.BoundedVotes(gate=None) != graycert.BoundedVotes()


def test_the_model_beside_a_run_is_asked_again_without_being_told(tmp_path, monkeypatch):
    folder = certified().save(tmp_path / "run")
    alone = graycert.verify(folder, data=three_groups())
    assert alone.passed
    assert any("what was drawn or evaluated" in each for each in alone.not_redone)
    for model, passes in ((trained_row_classifier(), True), (RowClassifier().eval(), False)):
        monkeypatch.setattr(sys.modules["graycert.runs.verify.verify"], "model_beside", lambda _, model=model: model)
        found = graycert.verify(folder, data=three_groups())
        assert found.passed is passes
        if passes:
            assert {"ballots", "own_probabilities"} <= {check.name for check in found.checks}
            assert not any("what was drawn or evaluated" in each for each in found.not_redone)


def test_nothing_is_said_of_a_level(tmp_path):
    found = certified()
    folder = found.save(tmp_path / "run")
    assert "α" not in found.summary()
    assert "alpha" not in repr(found)
    assert '"alpha": null' in (folder / "summary.json").read_text()
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "none: nothing is drawn" in page
    assert "these statements hold with certainty" in page


def test_the_order_of_targets_is_none_of_their_business():
    found = certified(gamma=20.0)
    turned = certified(gamma=20.0, targets=TARGETS[::-1])
    for name in ("radius", "scores", "class_radius", "voters", "prediction", "num_eligible"):
        assert found.every_array()[name][1].tolist() == turned.every_array()[name][1][::-1].tolist()
    assert dataclasses.replace(found.setup.smoothing) == turned.setup.smoothing
