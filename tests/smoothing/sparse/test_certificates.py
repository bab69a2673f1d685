"""certify() with sparse smoothing, from model and graph to certificates, against every attack; the naive conversion."""

import math

import numpy as np
import pytest
import torch

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models import build_model
from graycert.rules import binary_bounds, intersection_union_bounds
from graycert.sampling import Purpose
from graycert.smoothing.sparse.conversion import naive_certified_nodes, naive_certified_ratio
from graycert.smoothing.sparse.parameters import SparseSmoothing
from graycert.smoothing.sparse.regions import certified_deletions
from graycert.smoothing.sparse.sampling import build_sparse_smoothing_engine
from graycert.smoothing.sparse.training import train_sparse_smoothing
from graycert.statistics import EstimationVotes
from graycert.threats import AttributeFlipThreat
from support.binary_graphs import binary_graph, every_pattern, smoothed_probabilities
from support.flat_arguments import certify_flat
from support.known_models import with_biases

SMOOTHING = SparseSmoothing(p_plus=0.1, p_minus=0.6)


def certified(model, data, **changes):
    threat = AttributeFlipThreat(max_additions=changes.pop("max_additions", 0))
    arguments = {"targets": [9, 2, 13, 4], "num_selection": 20, "num_estimation": 300, "max_radius": 6}
    return certify_flat(model, data, **{"smoothing": SMOOTHING, "threat": threat, **arguments, **changes})


def certified_additions(found):
    """Largest number of additions alone, -1 where the classifier abstains."""
    return (found.deletions >= 0).sum(axis=1) - 1


@pytest.mark.few(1)
@pytest.mark.parametrize("num_classes", [2, 3])
def test_is_the_composition_of_its_parts(num_classes):
    data = binary_graph(num_classes=num_classes)
    model = with_biases(build_model("gat", data, seed=1))
    found = certified(model, data, alpha=0.05, seed=3, max_additions=2)
    engine = build_sparse_smoothing_engine(model, data, found.targets, p_plus=0.1, p_minus=0.6)
    np.testing.assert_array_equal(found.selection_votes, engine.votes(3, Purpose.SELECTION, num_samples=20))
    np.testing.assert_array_equal(found.estimation_votes, engine.votes(3, Purpose.ESTIMATION, num_samples=300))
    np.testing.assert_array_equal(found.prediction, found.selection_votes.argmax(axis=1))
    rule = binary_bounds if num_classes == 2 else intersection_union_bounds
    p_lower, p_upper = rule(EstimationVotes(found.estimation_votes, 300), found.prediction, alpha=0.05)
    np.testing.assert_array_equal(found.p_lower, p_lower)
    np.testing.assert_array_equal(found.p_upper, p_upper)
    expected = certified_deletions(p_lower, p_upper, p_plus=0.1, p_minus=0.6, max_deletions=6, max_additions=2)
    np.testing.assert_array_equal(found.deletions, expected)
    np.testing.assert_array_equal(found.radius, expected[:, 0])
    for row, additions in zip(expected, certified_additions(found), strict=True):
        assert additions == max((a for a in range(3) if row[a] >= 0), default=-1)
    assert found.targets.tolist() == [9, 2, 13, 4]


def classes_of_all(model, patterns, edge_index):
    """Class of every node in every pattern, from one graph of disjoint copies: (num_patterns, num_nodes)."""
    num_patterns, num_nodes, _ = patterns.shape
    first = num_nodes * torch.arange(num_patterns)
    edges = (edge_index[:, None, :] + first[None, :, None]).flatten(1)
    with torch.inference_mode():
        return model(patterns.flatten(0, 1), edges).argmax(dim=1).reshape(num_patterns, num_nodes)


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize(("p_plus", "p_minus"), [(0.2, 0.7), (0.0, 0.9), (0.05, 0.9)])
def test_certified_classes_stand_every_attack(p_plus, p_minus):
    """Exact smoothed classes under all 1,024 inputs; alpha 1e-8 for each of 18 certificates."""
    smoothing, attacks = SparseSmoothing(p_plus=p_plus, p_minus=p_minus), 0
    patterns = every_pattern(5, 2)
    for seed in range(2):
        data = binary_graph(num_nodes=5, num_pairs=8, num_features=2, seed=seed, dtype=torch.float64, density=0.6)
        model = with_biases(build_model("gcn", data, seed=seed)).double().eval()
        found = certify_flat(
            model,
            data,
            threat=AttributeFlipThreat(max_additions=5),
            smoothing=smoothing,
            targets=[0, 1, 2],
            num_selection=100,
            num_estimation=1_500,
            alpha=1e-8,
            max_radius=5,
            seed=seed,
        )
        classes = classes_of_all(model, patterns, data.edge_index)
        flips = patterns != data.x
        additions = (flips & (data.x == 0)).sum(dim=(1, 2)).numpy()
        deletions = (flips & (data.x == 1)).sum(dim=(1, 2)).numpy()
        for target in range(3):
            within = (additions <= 5) & (deletions <= 5)
            within[within] = deletions[within] <= found.deletions[target, additions[within]]
            for attacked in patterns[torch.from_numpy(within)]:
                probabilities = smoothed_probabilities(
                    attacked, patterns, classes[:, target], 3, p_plus=p_plus, p_minus=p_minus
                )
                assert probabilities.argmax() == found.prediction[target]
                attacks += 1
    assert attacks > 40


def test_probabilities_are_those_that_coins_can_show():
    assert SparseSmoothing(p_plus=0.1, p_minus=0.6) == SMOOTHING
    assert (SMOOTHING.p_plus, SMOOTHING.p_minus) == (0.1, 0.6)
    tiny = SparseSmoothing(p_plus=1e-30, p_minus=1e-5)
    assert tiny.p_plus == 2.0**-62
    assert 0 <= tiny.p_minus - 1e-5 < 2.0**-62
    assert SparseSmoothing(p_plus=0, p_minus=1) == SparseSmoothing(p_plus=0.0, p_minus=1.0)


def test_extreme_probabilities():
    data = binary_graph()
    model = with_biases(build_model("gat", data))
    everything_gone = certified(model, data, smoothing=SparseSmoothing(p_plus=0, p_minus=1))
    assert everything_gone.radius.tolist() == [6] * 4  # the votes do not depend on the attributes
    nothing_drawn = certified(model, data, smoothing=SparseSmoothing(p_plus=0, p_minus=0), max_additions=1)
    assert nothing_drawn.deletions.tolist() == [[0, -1]] * 4
    with torch.inference_mode():
        clean = model.eval()(data.x, data.edge_index)[[9, 2, 13, 4]].argmax(dim=1)
    assert nothing_drawn.prediction.tolist() == clean.tolist()


def test_refuses_a_skip_connection_and_wrong_arguments():
    data = binary_graph()
    with pytest.raises(UnsoundSetupError) as caught:
        certified(build_model("gat", data, skip=True), data)
    assert caught.value.slug == "skip-not-smoothed"
    model = build_model("gat", data)
    for changes, name in [
        ({"smoothing": (0.1, 0.6)}, "smoothing"),
        ({"targets": [3, 3]}, "targets"),
        ({"alpha": 0.0}, "alpha"),
        ({"num_estimation": 0}, "num_estimation"),
        ({"max_radius": 0}, "max_radius"),
        ({"max_additions": -1}, "max_additions"),
        ({"seed": -1}, "seed"),
    ]:
        with pytest.raises(InvalidParameterError, match=f"`{name}`"):
            certified(model, data, **changes)
    with pytest.raises(InvalidParameterError, match="`p_minus` must be in"):
        SparseSmoothing(p_plus=0, p_minus=1.2)


def test_the_naive_conversion_rounds_down_and_its_curve_agrees_at_integers():
    attributes = np.array([17, 8, 5, 0, -1])
    assert naive_certified_nodes(attributes, 1).tolist() == [17, 8, 5, 0, -1]
    assert naive_certified_nodes(attributes, 6).tolist() == [2, 1, 0, 0, -1]
    for num_attributes in (1, 2, 3, 6, 50):
        nodes = naive_certified_nodes(attributes, num_attributes)
        curve = naive_certified_ratio(attributes, num_attributes, radii=range(20))
        assert curve.tolist() == [(nodes >= radius).mean() for radius in range(20)]
    assert naive_certified_ratio([5], 2, radii=[2.5, 2.6]).tolist() == [1.0, 0.0]
    for arguments in (([1], 0), ([-2], 1), ([0.5], 1)):
        with pytest.raises(InvalidParameterError):
            naive_certified_nodes(*arguments)
    for attributes, radii in (([], [1]), ([1], [-1]), ([1], [float("nan")]), ([1], 1)):
        with pytest.raises(InvalidParameterError):
            naive_certified_ratio(attributes, 1, radii=radii)


@pytest.mark.end_to_end
@pytest.mark.slow
def test_cora_ml_in_the_papers_setting(data_root):
    split = graycert.inductive_split(graycert.load_graph("cora_ml", data_root=data_root), seed=13)
    model = build_model("gat", split, hidden_channels=8)
    smoothing = SparseSmoothing(p_plus=0, p_minus=0.6)
    train_sparse_smoothing(model, split, smoothing=smoothing, learning_rate=0.01, max_epochs=150, seed=13)
    targets, labels = split.test.nodes.numpy(), split.test.data.y[split.test.nodes].numpy()
    found = certify_flat(
        model,
        split.test.data,
        smoothing=smoothing,
        threat=AttributeFlipThreat(),
        targets=targets,
        num_selection=100,
        num_estimation=400,
        max_radius=50,
    )
    best = 0.005 ** (1 / 400)
    limit = math.floor(math.log(2 - 2 * best) / math.log(0.6))  # p_lower - p_upper > 1 - 0.6^r, all votes equal
    assert found.radius.max() == limit == 7
    assert (found.prediction == labels).mean() > 0.75
    assert (found.radius >= 1).mean() > 0.6
    assert naive_certified_nodes(found.radius, 8).max() == 0
