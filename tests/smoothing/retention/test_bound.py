from fractions import Fraction

import numpy as np
import pytest

from graycert.errors import InvalidParameterError
from graycert.graph import path_graph
from graycert.smoothing.retention.bound import retention_delta_bound, retention_source_bound
from support.kept_sets import arrival_law, exact_delta, random_setting
from support.random_graphs import to_adjacency


def check_graphs(num_graphs, seed):
    """Returns how often the bound is attained with one hostile node and at most two layers, and how often it is not."""
    rng = np.random.default_rng(seed)
    tight, loose = 0, 0
    for _ in range(num_graphs):
        edges, num_nodes, num_layers, num_kept = random_setting(rng, max_nodes=8)
        eligible = rng.random(num_nodes) < 0.7
        eligible[0] = False
        law = arrival_law(edges, 0, num_layers, num_kept)
        bounds = retention_delta_bound(
            to_adjacency(edges, num_nodes),
            0,
            num_layers=num_layers,
            num_kept=num_kept,
            eligible=eligible,
            max_radius=4,
        )
        truths = [exact_delta(law, np.flatnonzero(eligible).tolist(), radius) for radius in range(1, 5)]
        assert all(Fraction(bound) >= truth for bound, truth in zip(bounds.tolist(), truths, strict=True))
        assert np.all(np.diff(bounds) >= 0)
        if num_layers <= 2:
            tight += bounds[0] - float(truths[0]) <= 1e-15
            loose += bounds[0] - float(truths[0]) > 1e-15
    return tight, loose


def test_never_below_the_truth_and_exact_for_one_node_and_two_layers():
    tight, loose = check_graphs(120, seed=0)
    assert tight > 30
    assert loose == 0


@pytest.mark.slow
def test_never_below_the_truth_on_many_graphs():
    tight, loose = check_graphs(2_000, seed=1)
    assert tight > 500
    assert loose == 0


def test_a_target_that_may_be_hostile_is_always_seen():
    bounds = retention_delta_bound(path_graph(3), 0, num_layers=2, num_kept=1, eligible=np.ones(3, bool), max_radius=2)
    assert bounds.tolist() == [1.0, 1.0]


def test_keeping_nothing_or_everything():
    everyone = np.array([False, True, True])
    for kept, expected in ((0, 0.0), (2, 1.0)):
        bounds = retention_delta_bound(path_graph(3), 0, num_layers=2, num_kept=kept, eligible=everyone, max_radius=2)
        assert bounds.tolist() == [expected, expected]


def test_arguments_are_checked():
    with pytest.raises(InvalidParameterError, match="`num_gates` must be"):
        retention_source_bound(num_gates=4, num_others=4, num_kept=1)
    with pytest.raises(InvalidParameterError, match="`num_kept` must be"):
        retention_source_bound(num_gates=1, num_others=4, num_kept=5)
    options = {"num_layers": 2, "num_kept": 1, "eligible": np.ones(3, bool), "max_radius": 1}
    for name, value in (("num_kept", 3), ("eligible", np.ones(2, bool)), ("max_radius", 0)):
        with pytest.raises(InvalidParameterError, match=f"`{name}` must be"):
            retention_delta_bound(path_graph(3), 0, **(options | {name: value}))
