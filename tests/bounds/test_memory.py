"""CASES F11: as far as a certificate can go, on a hub with 20,000 leaves, in bounded memory."""

import tracemalloc

import numpy as np
import pytest

from graycert import InterceptionSmoothing, NodeFeatureThreat, delta_bounds
from graycert.bounds.block import memory_limits
from graycert.graph.toy_graphs import star_graph


@pytest.mark.deep
@pytest.mark.parametrize("bound", ["multiplicative", "auto"])
def test_a_hub_with_20_000_leaves(bound):
    tracemalloc.start()
    try:
        found = delta_bounds(
            star_graph(20_000),
            [0, 1, 2],
            smoothing=InterceptionSmoothing(p_delete=1 - 1e-6, p_ablate=0.9),
            threat=NodeFeatureThreat(min_distance=1),
            num_layers=2,
            max_radius=None,
            bound=bound,
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 600 * 2**20
    assert found.delta_upper.shape[1] <= 2_048
    assert (np.diff(found.delta_upper, axis=1) >= 0).all()
    assert found.worst_set(0, 3).size == 3


@pytest.mark.deep
@pytest.mark.parametrize("bound", ["multiplicative", "auto"])
def test_a_hub_with_a_million_leaves(bound):
    arguments = {
        "smoothing": InterceptionSmoothing(p_delete=0.31, p_ablate=0.794),
        "threat": NodeFeatureThreat(min_distance=1),
        "num_layers": 2,
        "max_radius": None,
        "bound": bound,
    }
    delta_bounds(star_graph(4), [0, 1], **arguments)  # compiles
    graph = star_graph(10**6)
    tracemalloc.start()
    try:
        found = delta_bounds(graph, [0, 1, 2], **arguments, num_threads=2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 400 * 2**20  # the graph has 16 MB
    assert (found.delta_upper[:, -1] >= 0.5).all()
    assert (np.diff(found.delta_upper, axis=1) >= 0).all()


def test_limits_shrink_with_the_number_of_targets_but_not_below_the_default_radius():
    assert memory_limits(10**7) == {"farthest": 20, "most_sets": 20}
    assert memory_limits(1)["farthest"] == 2_048


def test_more_steps_than_nodes_change_nothing():
    arguments = {
        "smoothing": InterceptionSmoothing(p_delete=0.4, p_ablate=0.3),
        "threat": NodeFeatureThreat(min_distance=1),
        "max_radius": 3,
        "bound": "multiplicative",
    }
    few, many = (np.asarray(delta_bounds(star_graph(4), [0, 2], num_layers=k, **arguments)) for k in (4, 10**9))
    np.testing.assert_array_equal(few, many)
