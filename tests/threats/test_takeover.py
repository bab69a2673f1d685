"""Hostile nodes that choose their edges: what the threat takes, says and refuses."""

import numpy as np
import pytest

import graycert
from graycert import FeaturesAndOutEdgesThreat, NodeFeatureThreat, NodeTakeoverThreat
from graycert.data.diffusion import sparsify_by_diffusion
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.threats.takeover import UNLIMITED_INJECTION
from support.certified_groups import three_groups, trained_model


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        ({"min_distance": 2}, "takeover-distance"),
        ({"min_distance": 3, "chosen_edges": "out"}, "takeover-distance"),
        ({"min_distance": 0}, "takeover-target"),
    ],
)
def test_what_no_certificate_covers_is_refused(arguments, slug):
    with pytest.raises(UnsoundSetupError) as caught:
        NodeTakeoverThreat(**arguments)
    assert caught.value.slug == slug


@pytest.mark.parametrize(
    "arguments",
    [
        {"chosen_edges": "in"},
        {"max_injected": -1},
        {"max_injected": 2**20 + 1},
        {"max_injected": 0.5},
        {"min_distance": -1},
        {"trusted": np.zeros(3)},
    ],
)
def test_other_values_are_refused(arguments):
    with pytest.raises(InvalidParameterError):
        NodeTakeoverThreat(**arguments)


def test_a_target_may_be_hostile_where_only_edges_from_nodes_are_chosen():
    threat = NodeTakeoverThreat(chosen_edges="out", min_distance=0)
    assert threat.includes_target
    assert not NodeTakeoverThreat().includes_target
    assert "the target included" in threat.statement
    assert "edges that start at them" in threat.statement
    assert "edges that touch them" in NodeTakeoverThreat().statement


def test_who_may_be_hostile_is_counted():
    trusted = np.array([True, False, False, True, False])
    threat = NodeTakeoverThreat(trusted=trusted, max_injected=2)
    assert threat.num_eligible(np.array([0, 1]), num_nodes=5).tolist() == [3 + 2, 2 + 2]
    itself = NodeTakeoverThreat(trusted=trusted, max_injected=0, chosen_edges="out", min_distance=0)
    assert itself.num_eligible(np.array([0, 1]), num_nodes=5).tolist() == [3, 3]
    assert NodeTakeoverThreat().num_eligible(np.array([0]), num_nodes=5).tolist() == [4 + UNLIMITED_INJECTION]


def test_narrower_threats_are_known():
    most = NodeTakeoverThreat()
    trusted = np.array([True, False])
    for narrower in (
        NodeTakeoverThreat(max_injected=3),
        NodeTakeoverThreat(trusted=trusted),
        NodeTakeoverThreat(chosen_edges="out"),
    ):
        assert narrower.is_no_wider_than(most)
        assert not most.is_no_wider_than(narrower)
    assert not NodeTakeoverThreat(chosen_edges="out", min_distance=0).is_no_wider_than(most)
    assert not most.is_no_wider_than(NodeFeatureThreat(min_distance=1))
    assert NodeFeatureThreat(min_distance=1).is_no_wider_than(most)


def test_it_is_stored_and_restored():
    threat = NodeTakeoverThreat(trusted=np.array([True, False]), chosen_edges="out", max_injected=4)
    assert NodeTakeoverThreat.restored(*threat.stored()) == threat


def certified(data, *, threat, smoothing=None, **arguments):
    smoothing = graycert.SubgraphVoting(num_subgraphs=5) if smoothing is None else smoothing
    return graycert.certify(
        trained_model(), data, smoothing=smoothing, threat=threat, targets=[0, 20], seed=1, **arguments
    )


def reduced():
    return graycert.prepare_graph(three_groups(), undirected=True, largest_component=True)


@pytest.mark.parametrize("threat", [NodeTakeoverThreat(), FeaturesAndOutEdgesThreat()])
def test_a_graph_that_was_reduced_as_a_whole_is_refused_although_nothing_was_left_out(threat):
    data = reduced()
    assert not any("largest component" in text for text in data.preparation)
    with pytest.raises(UnsoundSetupError, match="largest component") as caught:
        certified(data, threat=threat)
    assert caught.value.slug == "prepared-as-a-whole"
    votes = certified(data, threat=NodeFeatureThreat(min_distance=1))
    with pytest.raises(UnsoundSetupError, match="largest component"):
        votes.again(data, threat=FeaturesAndOutEdgesThreat())
    floor = certified(data, threat=threat, smoothing=graycert.FeaturesOnly())
    assert floor.whole_field.all()  # reads no edge


def test_steps_are_remembered_by_parts_of_a_split_and_by_further_preparation():
    data = graycert.load_graph(reduced())
    data.y = three_groups().y
    assert "largest_component" in data.steps_taken
    split = graycert.inductive_split(data, seed=0, per_class=2)
    assert "largest_component" in split.train.data.steps_taken
    sparser = sparsify_by_diffusion(graycert.prepare_graph(three_groups()))
    with pytest.raises(UnsoundSetupError, match="diffusion"):
        certified(sparser, threat=NodeTakeoverThreat())


def test_votes_for_fixed_edges_are_not_concluded_from_for_edges_that_are_chosen():
    data = three_groups()
    votes = certified(data, threat=NodeFeatureThreat(min_distance=1))
    with pytest.raises(InvalidParameterError, match="no wider"):
        votes.again(data, threat=NodeTakeoverThreat())
    assert certified(data, threat=NodeTakeoverThreat()).again(data, threat=NodeTakeoverThreat(max_injected=2))


@pytest.mark.parametrize(
    ("smoothing", "slug"),
    [
        (graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.5), "hostile-edges"),
        (graycert.UniformRetention(keep_ratio="1/3"), "hostile-edges"),
        (graycert.RandomizedAblation(scope="local", num_kept=2), "hostile-edges"),
        (graycert.SparseSmoothing(p_plus=0.01, p_minus=0.6), "hostile-edges"),
    ],
)
def test_other_smoothings_refuse_it_with_the_reason(smoothing, slug):
    with pytest.raises(UnsoundSetupError, match="honest messages") as caught:
        certified(three_groups(), threat=NodeTakeoverThreat(), smoothing=smoothing)
    assert caught.value.slug == slug
