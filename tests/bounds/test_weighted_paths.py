"""Theorem 2 with a probability per edge and node: against every outcome of every coin, and the uniform function."""

import decimal
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graycert.bounds import multiplicative_bound, single_source_bounds, target_bound
from graycert.bounds.weighted_paths import ablate_sources, weighted_single_source_bounds
from graycert.errors import InvalidParameterError
from graycert.graph import count_simple_paths, explicit_simple_paths, path_graph, receptive_fields
from support import enumeration
from support.heterogeneous_enumeration import arrival_law, arrival_probability
from support.random_graphs import random_edges, to_adjacency

TIGHT = Fraction(1, 10**12)


def draw_probabilities(rng, size):
    """Some certain outcomes among general ones."""
    return np.where(rng.random(size) < 0.25, rng.choice([0.0, 1.0, 0.31], size), rng.random(size))


def draw_case(rng, *, directed, most_edges=9):
    """A graph on 3 to 6 nodes with a probability per edge, in the order of its Adjacency, and per node."""
    while True:
        num_nodes = int(rng.integers(3, 7))
        edges = random_edges(rng, num_nodes, rng.uniform(0.15, 0.8), directed=directed)
        if 0 < len(edges) <= most_edges:
            graph = to_adjacency(edges, num_nodes)
            return graph, draw_probabilities(rng, graph.num_edges), draw_probabilities(rng, num_nodes)


def bounds_of(graph, p_delete, p_ablate, *, num_layers, targets=(0,), **options):
    field = receptive_fields(graph, list(targets), num_layers=num_layers)
    values, exact = weighted_single_source_bounds(
        graph, field, p_delete=p_delete, p_ablate=p_ablate, num_layers=num_layers, **options
    )
    return field, values, exact


def exact_values(graph, p_delete, p_ablate, *, num_layers):
    """Law of arrival at node 0, with rational probabilities."""
    edges = zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)
    law = arrival_law(dict(zip(edges, map(Fraction, p_delete.tolist()), strict=True)), 0, num_layers)
    return law, [Fraction(p) for p in p_ablate.tolist()]


def check_against_enumeration(rng, *, directed, num_layers, num_graphs):
    """Enumeration, and Theorem 3 on top for every set of at most three nodes."""
    gap = Fraction(0)
    for _ in range(num_graphs):
        graph, p_delete, p_ablate = draw_case(rng, directed=directed)
        law, hidden = exact_values(graph, p_delete, p_ablate, num_layers=num_layers)
        for limit in (10**6, 1):
            field, values, _ = bounds_of(graph, p_delete, p_ablate, num_layers=num_layers, max_paths=limit)
            single = dict(zip(field.nodes.tolist(), values.tolist(), strict=True))
            for node, value in single.items():
                exact = arrival_probability(law, [node], hidden)
                assert exact <= Fraction(value) <= 1 - hidden[node] + TIGHT
                if limit > 1 and num_layers <= 2:
                    gap = max(gap, Fraction(value) - exact)
            for size in (2, 3):
                for subset in itertools.combinations(sorted(single), size):
                    joint = multiplicative_bound([single[w] for w in subset], max_radius=size)[-1]
                    assert Fraction(float(joint)) >= arrival_probability(law, subset, hidden)
    assert gap <= TIGHT


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
@pytest.mark.parametrize("directed", [True, False])
def test_covers_every_outcome_and_is_exact_for_two_layers(directed, num_layers):
    rng = np.random.default_rng([7, directed, num_layers])
    check_against_enumeration(rng, directed=directed, num_layers=num_layers, num_graphs=12)


@pytest.mark.slow
@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
@pytest.mark.parametrize("directed", [True, False])
def test_covers_every_outcome_on_many_graphs(directed, num_layers):
    """Eight times 260 graphs."""
    rng = np.random.default_rng([8, directed, num_layers])
    check_against_enumeration(rng, directed=directed, num_layers=num_layers, num_graphs=260)


def path_formula(graph, source, p_delete, p_ablate, num_layers):
    """The formula of the docstring, path by path, in rational numbers, and the number of paths."""
    keep = {
        (w, u): 1 - Fraction(p)
        for w, u, p in zip(graph.sources.tolist(), graph.targets.tolist(), p_delete.tolist(), strict=True)
    }
    blocked, num_paths = Fraction(1), 0
    for path in explicit_simple_paths(graph, 0, [source], num_layers=num_layers):
        survive = Fraction(1)
        for edge in itertools.pairwise(path):
            survive *= keep[edge]
        blocked *= 1 - survive
        num_paths += 1
    return (1 - Fraction(float(p_ablate[source]))) * (1 - blocked), num_paths


@pytest.mark.parametrize("num_layers", [1, 2, 3, 5])
def test_equals_the_formula_over_explicit_paths(num_layers):
    rng = np.random.default_rng(num_layers)
    for directed in (True, False):
        for _ in range(15):
            graph, p_delete, p_ablate = draw_case(rng, directed=directed, most_edges=30)
            field, values, exact = bounds_of(graph, p_delete, p_ablate, num_layers=num_layers)
            assert exact.all()
            for node, value in zip(field.nodes.tolist(), values.tolist(), strict=True):
                formula, num_paths = path_formula(graph, node, p_delete, p_ablate, num_layers)
                rounding = Fraction(5 * num_layers + 12 + 4 * num_paths, 2**53)
                assert formula <= Fraction(value) <= formula + rounding


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("p_delete", [0.0, 0.31, 0.9, 1.0])
def test_constant_arrays_equal_the_uniform_function(num_layers, p_delete):
    rng = np.random.default_rng(num_layers)
    for directed in (True, False):
        num_nodes = 12
        graph = to_adjacency(random_edges(rng, num_nodes, 0.25, directed=directed), num_nodes)
        paths = count_simple_paths(graph, np.arange(num_nodes), num_layers=num_layers)
        uniform = single_source_bounds(paths.counts, p_delete=p_delete, p_ablate=0.3)
        uniform[paths.indptr[:-1]] = target_bound(p_ablate=0.3)
        field, values, exact = bounds_of(
            graph,
            np.full(graph.num_edges, p_delete),
            np.full(num_nodes, 0.3),
            num_layers=num_layers,
            targets=range(num_nodes),
        )
        np.testing.assert_array_equal(field.nodes, paths.sources)
        np.testing.assert_allclose(values, uniform, rtol=0, atol=1e-12)
        assert exact.all()


@pytest.mark.deep
@pytest.mark.parametrize("num_layers", [3, 4])
def test_walks_stand_in_where_there_are_too_many_paths(num_layers):
    """For constant arrays they are as good as counted walks; targets with few paths stay exact."""
    num_nodes = 9
    edges = [*random_edges(np.random.default_rng(0), num_nodes - 2, 0.7, directed=True), (8, 7)]
    graph = to_adjacency(edges, num_nodes)
    weights = {"num_layers": num_layers, "targets": (0, 7), "max_paths": 20}
    p_delete, p_ablate = np.full(graph.num_edges, 0.6), np.full(num_nodes, 0.2)
    field, values, exact = bounds_of(graph, p_delete, p_ablate, **weights)
    assert exact.tolist() == [False, True]
    assert values[-2:].tolist() == pytest.approx([0.8, 0.8 * 0.4], abs=1e-14)
    step = graph.to_csr().toarray().astype(np.int64)
    walks, counts = np.eye(num_nodes, dtype=np.int64)[:, 0], []
    for _ in range(num_layers):
        walks = step @ walks
        walks[0] = 0
        counts.append(walks)
    expected = single_source_bounds(np.stack(counts, axis=1), p_delete=0.6, p_ablate=0.2)
    np.testing.assert_allclose(values[1 : field.indptr[1]], expected[field.nodes[1 : field.indptr[1]]], atol=1e-12)
    followed = bounds_of(graph, p_delete, p_ablate, **{**weights, "max_paths": 10**6})[1]
    assert (values >= followed - 1e-12).all()
    assert (values[1:-2] > followed[1:-2] + 1e-3).any()


def test_two_layers_are_exact_whatever_the_limit():
    graph = to_adjacency(random_edges(np.random.default_rng(0), 12, 0.6, directed=False), 12)
    p_delete = np.random.default_rng(1).random(graph.num_edges)
    options = {"num_layers": 2, "targets": range(12)}
    few, many = (bounds_of(graph, p_delete, np.zeros(12), max_paths=limit, **options) for limit in (1, 10**9))
    assert few[2].all()
    np.testing.assert_array_equal(few[1], many[1])


@pytest.mark.parametrize("max_paths", [1, 10**6])
@pytest.mark.parametrize("num_layers", [1, 3, 6])
def test_certain_outcomes_are_exact(num_layers, max_paths):
    """Edges and nodes at 0 or 1: a message arrives surely, or never."""
    rng = np.random.default_rng(num_layers)
    for _ in range(20):
        graph = to_adjacency(random_edges(rng, 7, 0.5, directed=True), 7)
        p_delete, p_ablate = (rng.integers(0, 2, size).astype(float) for size in (graph.num_edges, 7))
        field, values, _ = bounds_of(graph, p_delete, p_ablate, num_layers=num_layers, max_paths=max_paths)
        edges = zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)
        kept = [edge for edge, gone in zip(edges, p_delete, strict=True) if not gone]
        reached = enumeration.nodes_that_reach(kept, 0, num_layers)
        assert values.tolist() == [float(w in reached and not p_ablate[w]) for w in field.nodes.tolist()]


def test_small_probabilities_keep_their_accuracy():
    graph = path_graph(4)
    p_delete = np.full(graph.num_edges, np.nextafter(1.0, 0.0))  # an edge survives with probability 2^-53
    field, values, _ = bounds_of(graph, p_delete, np.zeros(4), num_layers=3)
    for node, value in zip(field.nodes.tolist(), values.tolist(), strict=True):
        exact = Fraction(1, 2 ** (53 * node))
        assert exact <= Fraction(value) <= exact * (1 + Fraction(1, 10**13))
    graph = path_graph(22)  # the product leaves the range of float64
    values = bounds_of(graph, np.full(graph.num_edges, np.nextafter(1.0, 0.0)), np.zeros(22), num_layers=21)[1]
    assert 0.0 < values[-1] <= 1e-300


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), num_layers=st.integers(1, 4))
def test_falls_where_a_probability_rises(seed, num_layers):
    rng = np.random.default_rng(seed)
    graph, p_delete, p_ablate = draw_case(rng, directed=bool(rng.integers(2)), most_edges=30)
    before = bounds_of(graph, p_delete, p_ablate, num_layers=num_layers)[1]
    p_delete[rng.integers(p_delete.size)] = 1.0
    p_ablate[rng.integers(p_ablate.size)] = 1.0
    after = bounds_of(graph, p_delete, p_ablate, num_layers=num_layers)[1]
    assert (after <= before).all()


def test_the_logarithm_is_as_accurate_as_assumed():
    """numpy.log1p within four units in the last place of the exact value, 20,000 arguments."""
    rng = np.random.default_rng(0)
    arguments = np.concatenate(
        [rng.random(10_000), 10.0 ** rng.uniform(-17, 0, 9_000), 1 - 10.0 ** rng.uniform(-16, 0, 1_000)]
    )
    arguments = arguments[(arguments > 0) & (arguments < 1)]
    found = -np.log1p(-arguments)
    context = decimal.Context(prec=50)
    for argument, value in zip(arguments.tolist(), found.tolist(), strict=True):
        exact = -context.ln(context.subtract(decimal.Decimal(1), decimal.Decimal(argument)))
        assert abs(decimal.Decimal(value) - exact) <= 4 * decimal.Decimal(float(np.spacing(value)))


def test_ablation_alone():
    np.testing.assert_array_equal(ablate_sources([1.0, 0.5, 0.0], [0.25, 1.0, 0.0]), [0.75, 0.0, 0.0])
    paths = count_simple_paths(path_graph(5), [2], num_layers=3)
    arrive = single_source_bounds(paths.counts, p_delete=0.3, p_ablate=0.0)
    np.testing.assert_allclose(
        ablate_sources(arrive, np.full(arrive.size, 0.4)),
        single_source_bounds(paths.counts, p_delete=0.3, p_ablate=0.4),
        rtol=0,
        atol=1e-15,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p_delete": [0.5]}, r"`p_delete` must be a number or one number per edge, shape \(4,\)"),
        ({"p_delete": [0.5, 0.5, 0.5, 1.5]}, r"`p_delete` must be in \[0, 1\], got 1.5"),
        ({"p_ablate": [0.5, np.nan, 0.5]}, r"`p_ablate` must be in \[0, 1\], got nan"),
        ({"num_layers": 0}, "`num_layers`"),
        ({"max_paths": 0, "num_layers": 3}, "`max_paths`"),
    ],
)
def test_malformed_arguments_are_refused(change, message):
    graph = path_graph(3)
    arguments = {"p_delete": np.full(4, 0.5), "p_ablate": np.full(3, 0.5), "num_layers": 2} | change
    with pytest.raises(InvalidParameterError, match=message):
        weighted_single_source_bounds(graph, receptive_fields(graph, [0], num_layers=2), **arguments)
