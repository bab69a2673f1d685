"""Bounded votes against hostile nodes that choose their edges, end to end; and one adversary against all targets."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graycert
from graycert.errors import UnsoundSetupError
from graycert.models.row_probabilities import row_probabilities
from graycert.smoothing.bounded_votes.ballots import ONE, ballots
from support.certified_groups import OTHERS, TARGETS, three_groups, trained_row_classifier

TAKEOVER = graycert.NodeTakeoverThreat()
OUT = graycert.NodeTakeoverThreat(chosen_edges="out", min_distance=0)


def certified(threat=TAKEOVER, *, data=None, targets=TARGETS, **parameters):
    return graycert.certify(
        trained_row_classifier(),
        three_groups() if data is None else data,
        targets=targets,
        smoothing=graycert.BoundedVotes(**parameters),
        threat=threat,
    )


def classes(data, targets, *, gamma=2.0, gate=np.inf, target_votes=False, sharpen=2.0):
    """The classifier by its definition, in real numbers: own log-probabilities beside the mean vote."""
    probabilities = row_probabilities(trained_row_classifier(), data.x)
    votes = ballots(probabilities, sharpen=sharpen, one_hot=False) / ONE
    sources, ends = data.edge_index.numpy()
    found = []
    for target in targets:
        voters = np.unique(sources[ends == target])
        voters = voters[voters != target]
        own = probabilities[target]
        if target_votes:
            scores = votes[target] + votes[voters].sum(axis=0)
        elif own.max() >= gate:
            scores = own
        else:
            scores = np.log(own + 1e-6) + gamma * votes[voters].sum(axis=0) / (voters.size + 1)
        found.append(int(scores.argmax()))
    return np.array(found)


@pytest.mark.parametrize("gate", [None, 0.6])
def test_it_is_the_classifier_of_the_formula(gate):
    found = certified(gate=gate, gamma=3.0)
    assert found.setup.smoothing.voters == "in-neighbours"
    expected = classes(three_groups(), TARGETS, gamma=3.0, gate=np.inf if gate is None else gate)
    assert found.prediction.tolist() == expected.tolist()
    assert certified(OUT).prediction.tolist() == classes(three_groups(), TARGETS, target_votes=True).tolist()
    again = found.again(three_groups(), threat=OTHERS)  # the same classifier, an adversary without edges
    assert again.prediction.tolist() == found.prediction.tolist()
    assert (again.radius[again.radius < again.num_eligible] >= found.radius[again.radius < again.num_eligible]).all()


def attacked(data, hostile, num_nodes, rng, *, out_only):
    """Random rows of hostile nodes, and random edges wherever they touch one; new nodes come last."""
    sources, ends = data.edge_index.numpy()
    honest = ~np.isin(sources, hostile) & (out_only | ~np.isin(ends, hostile))
    out = np.array([(h, u) for h in hostile for u in range(num_nodes) if rng.random() < 0.5]).reshape(-1, 2)
    into = np.array([(u, h) for h in hostile for u in range(num_nodes) if rng.random() < 0.5]).reshape(-1, 2)
    added = out if out_only else np.concatenate([out, into])
    x = torch.zeros(num_nodes, data.x.size(1))
    x[: data.num_nodes] = data.x
    x[list(hostile)] = torch.from_numpy(20 * rng.normal(size=(len(hostile), x.size(1)))).to(torch.float32)
    edges = np.concatenate([data.edge_index.numpy()[:, honest], added.T], axis=1)
    return Data(x=x, edge_index=torch.from_numpy(edges))


@pytest.mark.few(1)
@pytest.mark.parametrize("threat", [TAKEOVER, OUT], ids=["all", "out"])
def test_no_attack_within_the_radius_changes_a_prediction(threat):
    data, rng = three_groups(), np.random.default_rng(0)
    target_votes = threat.includes_target
    found = certified(threat, gate=None, targets=np.arange(42))
    assert found.prediction.tolist() == classes(data, range(42), target_votes=target_votes).tolist()
    changed = held = 0
    for _ in range(120):
        hostile = np.sort(rng.choice(44, size=int(rng.integers(1, 4)), replace=False))
        after = classes(attacked(data, hostile, 44, rng, out_only=target_votes), range(42), target_votes=target_votes)
        safe = found.radius >= hostile.size
        if not target_votes:
            safe &= ~np.isin(np.arange(42), hostile)
        assert (after == found.prediction)[safe].all()
        held += int(safe.sum())
        changed += int((after != found.prediction).sum())
    assert changed > 30
    assert held > 500


def test_parallel_edges_and_loops_are_no_further_votes():
    data = three_groups().clone()
    loops = torch.arange(42).repeat(2, 1)
    data.edge_index = torch.cat([data.edge_index, data.edge_index[:, :40], loops], dim=1)
    once, twice = certified(), certified(data=data)
    assert once.radius.tolist() == twice.radius.tolist()
    assert once.scores.tolist() == twice.scores.tolist()


def test_new_nodes_are_counted():
    few, any_number = certified(graycert.NodeTakeoverThreat(max_injected=0)), certified()
    assert (few.num_eligible == 41).all()
    assert (any_number.num_eligible == 41 + 2**20).all()
    assert (few.radius >= np.minimum(any_number.radius, 41)).all()
    assert few.possible_labels(1).tolist() == any_number.possible_labels(1).tolist()


@pytest.mark.parametrize(
    ("parameters", "slug"),
    [
        ({"num_voters": 50}, "takeover-voters"),
        ({"voters": "walks"}, "takeover-voters"),
        ({"voters": "pagerank"}, "takeover-voters"),
        ({"walk_length": 2}, "takeover-voters"),
        ({"decay": 0.5}, "takeover-voters"),
        ({"tolerance": 0.1}, "takeover-voters"),
        ({"voters": torch.eye(42).roll(1, 0).to_sparse()}, "takeover-voters"),
        ({"label_propagation": np.where(np.arange(42) < 15, np.arange(42) % 3, -1)}, "takeover-labels"),
    ],
)
def test_what_hostile_edges_would_change_is_refused(parameters, slug):
    if "tolerance" not in parameters and not isinstance(parameters.get("voters", ""), str):
        from scipy.sparse import csr_array

        parameters = {"voters": csr_array(parameters["voters"].to_dense().numpy().astype(np.float64))}
    with pytest.raises(UnsoundSetupError) as caught:
        certified(**parameters)
    assert caught.value.slug == slug


def test_a_target_that_counts_in_full_must_not_be_hostile():
    with pytest.raises(UnsoundSetupError) as caught:
        certified(OUT, target_votes=False)
    assert caught.value.slug == "hostile-target-in-full"


def test_reduced_and_undirected_graphs_are_refused():
    reduced = graycert.prepare_graph(three_groups(), largest_component=True)
    with pytest.raises(UnsoundSetupError) as caught:
        certified(data=reduced)
    assert caught.value.slug == "prepared-as-a-whole"
    undirected = graycert.prepare_graph(three_groups(), undirected=True)
    assert certified(data=undirected).radius.size == 12
    with pytest.raises(UnsoundSetupError) as caught:
        certified(OUT, data=undirected)
    assert caught.value.slug == "out-edges-undirected"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("threat", "parameters"),
    [
        (OTHERS, {"gate": None, "num_voters": 6}),
        (OTHERS, {"gate": 0.7, "vote": "one-hot"}),
        (graycert.NodeFeatureThreat(), {"vote": "one-hot", "num_voters": 5}),
        (graycert.NodeFeatureThreat(min_distance=2, trusted=np.arange(42) % 5 == 0), {"gate": None}),
    ],
)
def test_one_adversary_with_one_vote_each_makes_no_more_targets_fall(threat, parameters):
    data = three_groups()
    found = certified(threat, targets=np.arange(42), **parameters)
    counts = {
        method: found.against_one_adversary(data, (1, 2, 3), method=method, time_limit=20.0)
        for method in ("lp", "milp")
    }
    assert counts["lp"].num_active == 42
    assert (counts["lp"].num_robust >= counts["lp"].num_robust_naive).all()
    assert (counts["milp"].num_robust >= counts["lp"].num_robust).all()
    kept = found.replace(collective=counts["lp"])
    assert "with certainty, at least" in kept.summary()
    worst = fallen(found, threat)
    assert counts["milp"].num_robust[0] <= 42 - worst
    if parameters.get("vote") == "one-hot":
        assert counts["milp"].num_robust[0] == 42 - worst


def fallen(found, threat):
    """The most targets that one hostile node with one whole vote makes fall, by trying each."""
    voters, votes = found.voters, found.ballots.astype(np.int64)
    counted = (
        (voters >= 0) & (found.own_probabilities.max(axis=1) < found.setup.smoothing.gate)[:, None]
        if (not found.setup.smoothing.target_votes)
        else voters >= 0
    )
    trusted = np.zeros(42, dtype=bool) if threat.trusted is None else threat.trusted
    near = np.zeros((42, 42), dtype=bool)
    near[np.arange(42), np.arange(42)] = threat.min_distance > 0
    if threat.min_distance > 1:
        sources, ends = three_groups().edge_index.numpy()
        near[ends, sources] = True
    worst = 0
    for node in np.flatnonzero(~trusted):
        for extreme in ONE * np.eye(votes.shape[1], dtype=np.int64):
            lost = 0
            for target in range(42):
                reads = bool((voters[target][counted[target]] == node).any()) or node == target
                if reads and near[target, node]:
                    lost += 1
                    continue
                if reads:
                    after = found.scores[target] - votes[node] + extreme
                    lost += int(after.argmax() != found.prediction[target])
            worst = max(worst, lost)
    return worst


def test_pairs_of_nodes_with_one_hot_votes_are_tried_too():
    found = certified(graycert.NodeFeatureThreat(), targets=np.arange(0, 42, 4), vote="one-hot", num_voters=4)
    data = three_groups()
    exact = found.against_one_adversary(data, (2,), method="milp").num_robust[0]
    votes, most = found.ballots.astype(np.int64), 0
    everyone = np.concatenate([found.targets[:, None], found.voters], axis=1)
    for pair in combinations(range(42), 2):
        for first in range(3):
            for second in range(3):
                after = found.scores.copy()
                for node, extreme in zip(pair, (first, second), strict=True):
                    after[(everyone == node).any(axis=1)] += ONE * np.eye(3, dtype=np.int64)[extreme] - votes[node]
                most = max(most, int((after.argmax(axis=1) != found.prediction).sum()))
    assert exact == len(found) - most


def test_one_adversary_that_chooses_edges_is_refused():
    with pytest.raises(UnsoundSetupError, match="no-proof"):
        certified().against_one_adversary(three_groups(), (1,))
