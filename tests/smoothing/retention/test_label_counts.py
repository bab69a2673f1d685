from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.graph import path_graph, star_graph
from graycert.graph.reduced_representatives import reduced_representatives
from graycert.smoothing.retention.label_counts import count_labels, retention_delta
from graycert.smoothing.retention.maximum_coverage import CoverageBounds
from support.kept_sets import arrival_law, connected_part, exact_delta, kept_sets, random_setting
from support.random_graphs import to_adjacency


def enumerated(rng, *, limit=100_000):
    """A random setting with its classes; any-length or hop-limited."""
    edges, num_nodes, num_layers, num_kept = random_setting(rng, max_nodes=8)
    hops = None if rng.integers(2) else num_layers
    found = reduced_representatives(
        to_adjacency(edges, num_nodes),
        0,
        num_layers=num_layers,
        num_kept=num_kept,
        hops=hops,
        max_representatives=limit,
    )
    return edges, num_layers, num_kept, hops, found


def labels_of(found, table) -> list[int]:
    sets = np.split(found.nodes[found.members], found.indptr[1:-1])
    return [table[frozenset(nodes.tolist())] for nodes in sets]


def random_labels(rng, edges, num_layers, num_kept, hops, num_classes):
    """A base classifier that reads the connected part of every kept set."""
    kept = kept_sets(edges, 0, num_layers, num_kept)
    parts = [connected_part(edges, nodes, 0, hops) for nodes in kept]
    table = {part: int(rng.integers(num_classes)) for part in sorted(set(parts), key=sorted)}
    return table, [table[part] for part in parts]


def test_label_probabilities_are_those_of_all_kept_sets():
    rng = np.random.default_rng(0)
    for _ in range(100):
        edges, num_layers, num_kept, hops, found = enumerated(rng)
        table, every_label = random_labels(rng, edges, num_layers, num_kept, hops, 3)
        counted = count_labels(found, labels_of(found, table), num_classes=3)
        assert counted.counts == tuple(np.bincount(every_label, minlength=3).tolist())
        assert counted.p_lower == counted.p_upper
        assert counted.p_lower == tuple(Fraction(count, len(every_label)) for count in counted.counts)


def test_a_stopped_enumeration_brackets_them():
    rng = np.random.default_rng(1)
    stopped = 0
    for _ in range(100):
        edges, num_layers, num_kept, hops, found = enumerated(rng, limit=2)
        table, every_label = random_labels(rng, edges, num_layers, num_kept, hops, 3)
        counted = count_labels(found, labels_of(found, table), num_classes=3)
        for label in range(3):
            truth = Fraction(every_label.count(label), len(every_label))
            assert counted.p_lower[label] <= truth <= counted.p_upper[label]
        stopped += not found.is_complete
    assert stopped > 10


def check_delta(num_graphs, seed, limit=100_000):
    rng = np.random.default_rng(seed)
    for _ in range(num_graphs):
        edges, num_layers, num_kept, _, found = enumerated(rng, limit=limit)
        eligible = rng.random(found.nodes.size) < 0.7
        hostile = found.nodes[eligible].tolist()
        law = arrival_law(edges, 0, num_layers, num_kept)
        deltas = retention_delta(found, eligible=eligible, num_layers=num_layers, max_radius=4)
        stopped = retention_delta(found, eligible=eligible, num_layers=num_layers, max_radius=4, max_steps=1)
        for radius in range(1, 5):
            truth = exact_delta(law, hostile, radius)
            assert Fraction(stopped[radius - 1]) >= Fraction(deltas[radius - 1]) >= truth
            if found.is_complete:
                assert deltas[radius - 1] - float(truth) <= 1.2e-16
            if 0 in hostile:
                assert deltas[radius - 1] == 1.0
        assert np.all(np.diff(deltas) >= 0)


def test_delta_is_exact():
    check_delta(80, seed=2)


def test_delta_of_a_stopped_enumeration_is_an_upper_bound():
    check_delta(60, seed=3, limit=2)


@pytest.mark.slow
def test_delta_is_exact_on_many_graphs():
    check_delta(2_000, seed=4)
    check_delta(500, seed=5, limit=2)


def test_delta_of_a_star_is_hypergeometric():
    found = reduced_representatives(star_graph(12), 0, num_layers=1, num_kept=5)
    deltas = retention_delta(found, eligible=found.nodes > 0, num_layers=1, max_radius=8)
    expected = [1 - np.prod([(7 - i) / (12 - i) for i in range(radius)]) for radius in range(1, 9)]
    np.testing.assert_allclose(deltas, expected, rtol=0, atol=1e-15)


def test_an_unfinished_search_counts_as_its_upper_bound(monkeypatch):
    found = reduced_representatives(star_graph(12), 0, num_layers=1, num_kept=5)
    module = "graycert.smoothing.retention.label_counts.maximum_coverage"
    monkeypatch.setattr(module, lambda *_, **__: CoverageBounds(lower=330, upper=396, nodes=()))
    assert retention_delta(found, eligible=found.nodes > 0, num_layers=1, max_radius=2).tolist()[1] == 0.5


def test_nobody_is_hostile():
    found = reduced_representatives(star_graph(5), 0, num_layers=1, num_kept=3, max_representatives=1)
    assert not found.is_complete
    assert retention_delta(found, eligible=np.zeros(6, bool), num_layers=1, max_radius=2).tolist() == [0.0, 0.0]


def test_weights_beyond_64_bits():
    found = reduced_representatives(path_graph(301), 0, num_layers=300, num_kept=150)
    delta = retention_delta(found, eligible=found.nodes == 1, num_layers=300, max_radius=1)
    assert delta.tolist() == [0.5]
    assert sum(count_labels(found, [0] * 151, num_classes=2).p_lower) == 1


@given(st.integers(0, 2**32 - 1))
def test_delta_never_falls_as_more_nodes_become_eligible(seed):
    rng = np.random.default_rng(seed)
    *_, num_layers, _, _, found = enumerated(rng)
    few = rng.random(found.nodes.size) < 0.5
    more = few | (rng.random(found.nodes.size) < 0.5)
    options = {"num_layers": num_layers, "max_radius": 3}
    assert np.all(retention_delta(found, eligible=few, **options) <= retention_delta(found, eligible=more, **options))


def test_arguments_are_checked():
    found = reduced_representatives(star_graph(2), 0, num_layers=1, num_kept=1)
    for labels in ([0], [0, 2], [[0, 0]]):
        with pytest.raises(InvalidParameterError, match="`labels` must"):
            count_labels(found, labels, num_classes=2)
    with pytest.raises(InvalidParameterError, match="`num_classes` must be"):
        count_labels(found, [0, 0], num_classes=1)
    options = {"eligible": np.ones(3, bool), "num_layers": 1, "max_radius": 1}
    for name, value in (("eligible", [1, 1, 1]), ("eligible", np.ones(2, bool)), ("num_layers", 0), ("max_radius", 0)):
        with pytest.raises(InvalidParameterError, match=f"`{name}` must be"):
            retention_delta(found, **(options | {name: value}))
