from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.errors import InvalidParameterError
from graycert.graph import path_graph, star_graph
from graycert.graph.reduced_representatives import count_reduced_representatives, reduced_representatives
from support.enumeration import nodes_that_reach
from support.kept_sets import class_sizes, induced, random_setting
from support.random_graphs import to_adjacency

# Like the figure of Appendix J: ten nodes, in-neighbours of {0, 1, 3} outside it are 2, 4, 5, 8, 9.
FIGURE = [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (3, 8), (3, 9), (2, 6), (2, 7)]


def listed(found) -> dict[frozenset[int], int]:
    sets = np.split(found.nodes[found.members], found.indptr[1:-1])
    as_dict = dict(zip((frozenset(nodes.tolist()) for nodes in sets), found.class_sizes, strict=True))
    assert len(as_dict) == found.num_classes  # each once
    return as_dict


def check_graph(edges, num_nodes, num_layers, num_kept):
    adjacency = to_adjacency(edges, num_nodes)
    for hops in (None, num_layers, num_layers + 1):
        options = {"num_layers": num_layers, "num_kept": num_kept, "hops": hops}
        found = reduced_representatives(adjacency, 0, **options)
        assert listed(found) == class_sizes(edges, 0, num_layers, num_kept, hops)
        assert found.is_complete
        assert count_reduced_representatives(adjacency, 0, **options) == found.num_classes
        rows = found.membership()
        for index in range(found.num_classes):
            members = found.members[found.indptr[index] : found.indptr[index + 1]]
            distances = found.distances[found.indptr[index] : found.indptr[index + 1]]
            assert members[0] == 0
            assert sorted(members.tolist()) == np.flatnonzero(rows[index]).tolist()
            inside = induced(edges, set(found.nodes[members].tolist()))
            for member, distance in zip(found.nodes[members].tolist(), distances.tolist(), strict=True):
                assert member in nodes_that_reach(inside, 0, distance)
                assert distance == 0 or member not in nodes_that_reach(inside, 0, distance - 1)


def test_every_class_once_with_its_size():
    rng = np.random.default_rng(0)
    for _ in range(60):
        check_graph(*random_setting(rng))


@pytest.mark.slow
def test_every_class_once_with_its_size_on_many_graphs():
    rng = np.random.default_rng(1)
    for _ in range(2_000):
        check_graph(*random_setting(rng))


def test_the_figure_of_the_paper():
    edges = FIGURE + [(end, source) for source, end in FIGURE]
    found = reduced_representatives(to_adjacency(edges, 10), 0, num_layers=2, num_kept=3)
    assert found.nodes.size == 10
    assert listed(found)[frozenset({0, 1, 3})] == 2
    assert sum(found.class_sizes) == comb(9, 3)


def test_in_neighbours_count_on_directed_graphs():
    found = reduced_representatives(to_adjacency([(1, 0), (2, 0), (1, 3), (3, 2)], 4), 0, num_layers=2, num_kept=1)
    assert listed(found) == {frozenset({0}): 1, frozenset({0, 1}): 1, frozenset({0, 2}): 1}  # 3 alone does not reach 0


def test_a_star_has_one_class_per_kept_set():
    found = reduced_representatives(star_graph(12), 0, num_layers=1, num_kept=5)
    assert found.num_classes == sum(found.class_sizes) == 792


@pytest.mark.parametrize("num_layers", [1, 3])
def test_an_isolated_target(num_layers):
    found = reduced_representatives(to_adjacency([(0, 1)], 2), 0, num_layers=num_layers, num_kept=0)
    assert listed(found) == {frozenset({0}): 1}


def test_class_sizes_of_any_magnitude():
    found = reduced_representatives(path_graph(301), 0, num_layers=300, num_kept=150)
    assert found.class_sizes[0] == comb(299, 150)
    assert sum(found.class_sizes) == comb(300, 150)
    assert found.num_classes == 151


def test_stopping_early_leaves_out_an_exact_number():
    rng = np.random.default_rng(2)
    for _ in range(60):
        edges, num_nodes, num_layers, num_kept = random_setting(rng)
        adjacency = to_adjacency(edges, num_nodes)
        truth = class_sizes(edges, 0, num_layers, num_kept, None)
        for limit in (1, 2, 5):
            options = {"num_layers": num_layers, "num_kept": num_kept, "max_representatives": limit}
            found = reduced_representatives(adjacency, 0, **options)
            assert listed(found).items() <= truth.items()
            assert found.num_classes == min(limit, len(truth))
            assert found.num_unlisted == sum(truth.values()) - sum(found.class_sizes)
            assert found.is_complete == (len(truth) <= limit)
            assert count_reduced_representatives(adjacency, 0, **options) == min(limit + 1, len(truth))


def test_stopping_early_is_fast_on_large_dense_fields():
    everyone = [(source, 0) for source in range(1, 2_000)]
    assert count_reduced_representatives(to_adjacency(everyone, 2_000), 0, num_layers=1, num_kept=600) == 100_001


@given(st.integers(0, 2**32 - 1))
def test_sizes_sum_to_the_number_of_kept_sets_and_hop_limits_merge_classes(seed):
    edges, num_nodes, num_layers, num_kept = random_setting(np.random.default_rng(seed), max_nodes=14)
    adjacency = to_adjacency(edges, num_nodes)
    fine = reduced_representatives(adjacency, 0, num_layers=num_layers, num_kept=num_kept)
    coarse = reduced_representatives(adjacency, 0, num_layers=num_layers, num_kept=num_kept, hops=num_layers)
    assert sum(fine.class_sizes) == sum(coarse.class_sizes) == comb(fine.nodes.size - 1, num_kept)
    assert coarse.num_classes <= fine.num_classes


@pytest.mark.parametrize(
    ("name", "value"),
    [("target", 3), ("num_layers", 0), ("num_kept", 3), ("num_kept", -1), ("hops", 1), ("max_representatives", 0)],
)
def test_arguments_are_checked(name, value):
    options = {"target": 0, "num_layers": 2, "num_kept": 1, "hops": 2} | {name: value}
    with pytest.raises(InvalidParameterError, match=f"`{name}` must be"):
        reduced_representatives(path_graph(3), **options)
