"""Δ̄ moves in the direction that the theory says, on graphs that Hypothesis makes up."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graycert import InterceptionSmoothing, NodeFeatureThreat, delta_bounds
from graycert.bounds import multiplicative_bound, single_source_bounds, union_bound
from graycert.graph import Adjacency, count_simple_paths, tree_shaped

# Values that are equal in exact arithmetic may be rounded up by different amounts (docs/proofs/rounding.md).
ROUNDING = 1e-13
NUM_NODES = 6

probabilities = st.one_of(st.sampled_from([0.0, 1.0, 0.31, 0.794]), st.floats(0.0, 1.0))
edges = st.sets(
    st.tuples(st.integers(0, NUM_NODES - 1), st.integers(0, NUM_NODES - 1)).filter(lambda pair: pair[0] != pair[1]),
    max_size=18,
)
layers = st.integers(1, 5)
threats = st.builds(
    NodeFeatureThreat,
    min_distance=st.integers(0, 2),
    trusted=st.one_of(st.none(), st.lists(st.booleans(), min_size=NUM_NODES, max_size=NUM_NODES).map(np.array)),
)
count_rows = st.lists(st.integers(0, 50), min_size=3, max_size=3)


def adjacency(pairs):
    return Adjacency.from_edge_index(np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T, num_nodes=NUM_NODES)


def all_bounds(pairs, p_delete, p_ablate, threat, num_layers, bound="multiplicative"):
    smoothing = InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)
    return delta_bounds(
        adjacency(pairs), [0, 3], smoothing=smoothing, threat=threat, num_layers=num_layers, max_radius=7, bound=bound
    )


def bounds(*arguments, **options):
    return np.asarray(all_bounds(*arguments, **options))


@given(edges, probabilities, probabilities, threats, layers)
def test_bounds_are_probabilities_that_never_fall_with_the_radius(pairs, p_delete, p_ablate, threat, num_layers):
    multiplicative = bounds(pairs, p_delete, p_ablate, threat, num_layers)
    union = bounds(pairs, p_delete, p_ablate, threat, num_layers, bound="union")
    for values in (multiplicative, union):
        assert ((values >= 0.0) & (values <= 1.0)).all()
        assert (np.diff(values, axis=1) >= 0.0).all()
    assert (multiplicative <= union).all()


@given(edges, probabilities, probabilities, threats, st.integers(1, 4))
def test_bounds_are_ordered(pairs, p_delete, p_ablate, threat, num_layers):
    """exact <= surrogate <= multiplicative <= union, on a tree exact = tree <= surrogate; up to what is rounded up."""
    surrogate = bounds(pairs, p_delete, p_ablate, threat, num_layers, bound="surrogate")
    multiplicative = bounds(pairs, p_delete, p_ablate, threat, num_layers)
    automatic_bounds = all_bounds(pairs, p_delete, p_ablate, threat, num_layers, bound="auto")
    automatic = np.asarray(automatic_bounds)
    assert (automatic <= surrogate + 1e-12).all()
    assert (surrogate <= multiplicative + 1e-12).all()
    assert (np.diff(automatic, axis=1) >= 0.0).all()
    if num_layers <= 2:
        np.testing.assert_array_equal(automatic, bounds(pairs, p_delete, p_ablate, threat, num_layers, bound="exact"))
    if tree_shaped(adjacency(pairs), [0, 3], num_layers=num_layers).all():
        on_tree = bounds(pairs, p_delete, p_ablate, threat, num_layers, bound="tree")
        assert (on_tree <= automatic + 1e-12).all()
        proved = automatic_bounds.proved
        np.testing.assert_allclose(on_tree[proved], automatic[proved], rtol=0, atol=1e-12)
        asked_for = np.pad(on_tree, ((0, 0), (1, 0)))[:, :-1] < 0.5  # up to the first Δ >= 1/2
        assert proved[asked_for & (automatic_bounds.methods != "prefix")[:, None]].all() or num_layers > 2


@given(edges, edges, probabilities, probabilities, st.integers(0, 1), layers)
def test_bounds_rise_with_added_edges(pairs, more, p_delete, p_ablate, min_distance, num_layers):
    # Only for min_distance <= 1: a new edge can bring a node closer than distance 2, which makes it ineligible.
    threat = NodeFeatureThreat(min_distance=min_distance)
    before = bounds(pairs, p_delete, p_ablate, threat, num_layers)
    after = bounds(pairs | more, p_delete, p_ablate, threat, num_layers)
    assert (after >= before - ROUNDING).all()


@given(edges, probabilities, probabilities, probabilities, threats, layers)
def test_bounds_fall_with_both_probabilities(pairs, first, second, other, threat, num_layers):
    low, high = sorted([first, second])
    assert (
        bounds(pairs, high, other, threat, num_layers) <= bounds(pairs, low, other, threat, num_layers) + ROUNDING
    ).all()
    assert (
        bounds(pairs, other, high, threat, num_layers) <= bounds(pairs, other, low, threat, num_layers) + ROUNDING
    ).all()


@given(edges, probabilities, probabilities, layers)
def test_bounds_fall_when_the_adversary_loses_nodes(pairs, p_delete, p_ablate, num_layers):
    everyone, others, distant = (
        bounds(pairs, p_delete, p_ablate, NodeFeatureThreat(min_distance=distance), num_layers)
        for distance in (0, 1, 2)
    )
    assert (everyone >= others).all()
    assert (others >= distant).all()


@given(count_rows, count_rows, probabilities, probabilities)
def test_a_single_source_bound_rises_with_added_paths(counts, more, p_delete, p_ablate):
    both = np.array([counts, np.add(counts, more)])
    fewer, greater = single_source_bounds(both, p_delete=p_delete, p_ablate=p_ablate)
    assert greater >= fewer - ROUNDING


@given(st.lists(probabilities, max_size=12), probabilities)
def test_one_more_eligible_node_never_lowers_a_bound(values, another):
    for bound in (multiplicative_bound, union_bound):
        assert (bound([*values, another], max_radius=8) >= bound(values, max_radius=8)).all()


@given(edges, layers, st.integers(1, 40))
@settings(max_examples=60)
def test_counts_over_the_cap_are_never_smaller(pairs, num_layers, max_paths):
    exact = count_simple_paths(adjacency(pairs), [0, 3], num_layers=num_layers)
    capped = count_simple_paths(adjacency(pairs), [0, 3], num_layers=num_layers, max_paths=max_paths)
    assert (capped.counts >= exact.counts).all()
