import itertools
from fractions import Fraction

import numpy as np
import pytest

import graycert
from graycert.bounds import settings_grid
from graycert.errors import InvalidParameterError
from support.enumeration import arrival_law, exact_delta, nodes_that_reach
from support.random_graphs import random_edges, to_adjacency

OTHERS = graycert.NodeFeatureThreat(min_distance=1)
P_DELETE, P_ABLATE = (Fraction(0), Fraction(1, 2)), (Fraction(1, 2), Fraction(3, 4))


def grid_of(edges, num_nodes, **options):
    return settings_grid(
        to_adjacency(edges, num_nodes),
        np.arange(num_nodes),
        threat=options.pop("threat", OTHERS),
        num_layers=2,
        p_delete=[float(each) for each in P_DELETE],
        p_ablate=[float(each) for each in P_ABLATE],
        max_radius=3,
        **options,
    )


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_every_outcome_and_every_hostile_set(seed):
    edges = random_edges(np.random.default_rng(seed), 5, 0.4, directed=True)
    found = grid_of(edges, 5)
    for (row, p_d), (column, p_a) in itertools.product(enumerate(P_DELETE), enumerate(P_ABLATE)):
        certifiable, whole = [0, 0, 0], [0, 0, 0]
        for target in range(5):
            law = arrival_law(edges, target, 2, p_d)
            eligible = nodes_that_reach(edges, target, 2) - {target}
            below = [exact_delta(law, eligible, radius, p_a) < Fraction(1, 2) for radius in (1, 2, 3)]
            for index, radius in enumerate((1, 2, 3)):
                whole[index] += all(below[:radius])
                certifiable[index] += all(below[:radius]) and len(eligible) >= radius
        assert found.certifiable[row, column].tolist() == certifiable
        assert found.or_whole_field[row, column].tolist() == whole
    assert found.num_targets == 5


def test_the_best_pairs_are_those_that_no_other_pair_beats():
    edges = random_edges(np.random.default_rng(7), 30, 0.1, directed=False)
    found = settings_grid(
        to_adjacency(edges, 30), np.arange(30), threat=OTHERS, num_layers=2, p_delete=(0, 0.2, 0.4, 0.6), max_radius=4
    )
    for radius, at_least in ((1, 1), (4, 2)):
        points = found.points(radius)
        assert len(points) == found.certifiable[:, :, 0].size
        front = found.best(radius)
        kept = {(each.certifiable, each.arrives) for each in front}
        assert len(kept) == len(front) >= at_least
        for each in points:
            beaten = any(
                other.certifiable >= each.certifiable
                and other.arrives >= each.arrives
                and (other.certifiable, other.arrives) != (each.certifiable, each.arrives)
                for other in points
            )
            assert ((each.certifiable, each.arrives) in kept) == (not beaten and each.certifiable > 0)


def test_changes_of_the_structure_count_nothing_where_no_edge_is_deleted():
    edges = random_edges(np.random.default_rng(1), 6, 0.4, directed=False)
    threat = graycert.NodeDeletionThreat(min_distance=1, convolution="local")
    found = settings_grid(to_adjacency(edges, 6), range(6), threat=threat, num_layers=2, p_delete=(0, 0.8))
    assert not found.certifiable[0].any()
    assert found.certifiable[1].any()
    assert all(each.p_delete > 0 for each in found.best(1))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"p_delete": ()}, "`p_delete`"), ({"p_ablate": (0.5, 1.5)}, "`p_ablate`"), ({"max_radius": 0}, "`max_radius`")],
)
def test_what_is_no_grid_is_refused(options, words):
    with pytest.raises(InvalidParameterError, match=words):
        settings_grid(to_adjacency([(0, 1)], 2), [1], threat=OTHERS, num_layers=1, **options)


def test_a_radius_that_was_not_counted_is_refused():
    found = grid_of([(0, 1)], 2)
    for radius in (0, 4):
        with pytest.raises(InvalidParameterError, match="`radius`"):
            found.best(radius)
