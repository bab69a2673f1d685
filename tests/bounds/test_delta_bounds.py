"""Bounds know what they belong to, and nobody's number of layers is guessed."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graycert import (
    EdgeDeletionThreat,
    InterceptionSmoothing,
    NodeDeletionThreat,
    NodeFeatureThreat,
    delta_bounds,
)
from graycert.bounds import DeltaBounds, evaluate_bounds, evaluate_deltas
from graycert.bounds.structural_deltas import structural_deltas
from graycert.graph import CanonicalGraph, as_adjacency, path_graph, star_graph

SMOOTHING = InterceptionSmoothing(p_delete=0.3, p_ablate=0.6)
THREATS = [
    NodeFeatureThreat(min_distance=1),
    NodeDeletionThreat(convolution="local"),
    EdgeDeletionThreat(convolution="degree-normalised"),
]


@pytest.mark.parametrize("threat", THREATS)
def test_what_bounds_know(threat):
    graph = star_graph(4)
    found = delta_bounds(graph, [0, 2], smoothing=SMOOTHING, threat=threat, num_layers=3, max_radius=5)
    assert isinstance(found, DeltaBounds)
    assert (found.num_layers, found.threat, found.smoothing, found.bound) == (3, threat, SMOOTHING, "auto")
    assert found.graph == CanonicalGraph.of(graph).fingerprint
    assert found.targets.tolist() == [0, 2]
    assert found.delta_upper.shape == found.proved.shape == (2, 5)
    for name in ("methods", "num_eligible", "receptive_field_size", "path_counts_exact"):
        assert getattr(found, name).shape == (2,)
    assert len(found.attackers) == 2


def test_as_an_array_it_is_delta():
    found = delta_bounds(star_graph(4), [0], smoothing=SMOOTHING, threat=THREATS[0], num_layers=1, max_radius=3)
    array = np.asarray(found)
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, found.delta_upper)
    assert np.asarray(found, dtype=np.float32).dtype == np.float32
    mine = np.array(found)
    mine[:] = 0.0
    assert (found.delta_upper > 0.0).all()
    assert (2.0 * np.asarray(found)).tolist() == (2.0 * found.delta_upper).tolist()


@pytest.mark.parametrize("missing", ["num_layers", "threat", "smoothing"])
@pytest.mark.parametrize("function", [delta_bounds, evaluate_bounds, evaluate_deltas])
def test_number_of_layers_threat_and_smoothing_have_no_default(function, missing):
    arguments = {"smoothing": SMOOTHING, "threat": THREATS[0], "num_layers": 2}
    assert function(path_graph(3), [0], **arguments).num_layers == 2
    del arguments[missing]
    with pytest.raises(TypeError, match=missing):
        function(path_graph(3), [0], **arguments)


@pytest.mark.parametrize("threat", THREATS[1:])
def test_number_of_layers_has_no_default_for_structural_threats_either(threat):
    for function in (delta_bounds, evaluate_bounds, structural_deltas):
        with pytest.raises(TypeError, match="num_layers"):
            function(path_graph(3), [0], smoothing=SMOOTHING, threat=threat)


def test_three_layers_hear_what_two_do_not():
    """On a path of six nodes the node three hops away is heard by a model of three steps: Δ is .9 ** 3 * .9, not 0."""
    smoothing = InterceptionSmoothing(p_delete=0.1, p_ablate=0.1)
    threat = NodeFeatureThreat(min_distance=3)
    bounds = {
        num_layers: delta_bounds(path_graph(6), [0], smoothing=smoothing, threat=threat, num_layers=num_layers)
        for num_layers in (2, 3)
    }
    assert np.asarray(bounds[3]) == pytest.approx(0.6561, abs=1e-12)
    assert (np.asarray(bounds[3]) >= 0.6561).all()
    assert not np.asarray(bounds[2]).any()  # true of two layers, and of no others
    assert bounds[2].origin.differences(bounds[3].origin) == ["number of layers (2 and 3)"]


def test_the_origin_does_not_know_the_order_of_columns_and_form_of_the_graph():
    rng = np.random.default_rng(0)
    edges = torch.tensor([[0, 1, 2, 3, 1, 1], [1, 0, 1, 2, 3, 1]])  # with a self-loop
    p_delete = rng.random(6)
    columns = rng.permutation(6)
    arguments = {"threat": THREATS[0], "num_layers": 2, "max_radius": 3}
    plain, shuffled = (
        delta_bounds(
            Data(edge_index=edges[:, order], num_nodes=4),
            [1, 3],
            smoothing=InterceptionSmoothing(p_delete=p_delete[order], p_ablate=0.2),
            **arguments,
        )
        for order in (np.arange(6), columns)
    )
    np.testing.assert_array_equal(plain, shuffled)
    assert plain.origin == shuffled.origin
    data = Data(edge_index=edges, num_nodes=4)
    forms = [
        delta_bounds(form, [1, 3], smoothing=SMOOTHING, **arguments)
        for form in (data, as_adjacency(data), as_adjacency(data).to_csr())
    ]
    assert len({each.origin for each in forms}) == 1


def test_threat_and_bound_are_no_part_of_the_origin_because_votes_do_not_depend_on_them():
    arguments = {"smoothing": SMOOTHING, "num_layers": 2}
    origins = {
        delta_bounds(star_graph(4), [0], threat=threat, bound=bound, **arguments).origin
        for threat in THREATS
        for bound in ("auto", "multiplicative")
    }
    assert len(origins) == 1
