from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.bounds import multiplicative_bound, single_source_bounds
from graycert.bounds.tree import tree_arrival_probability, tree_delta
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import Adjacency, bottleneck_graph, count_simple_paths, path_graph, shared_edge_graph, star_graph
from support.enumeration import arrival_law, arrival_probability
from support.random_graphs import to_adjacency
from support.tree_oracles import (
    Tree,
    brute_force_delta,
    greedy_set,
    knapsack_delta,
    listed_miss_probability,
    miss_probability,
    random_tree,
)

FEW_OR_MANY = [400, pytest.param(4_000, marks=pytest.mark.slow)]


class Embedded:
    """A tree as the receptive field of one target of a larger graph with shuffled node names."""

    def __init__(self, rng: np.random.Generator, tree: Tree, num_layers: int):
        size, depths = len(tree.parents), [tree.depth(node) for node in range(len(tree.parents))]
        edges = {(node, tree.parents[node]) for node in range(1, size)}
        edges |= {(end, source) for source, end in edges if rng.random() < 0.5}  # undirected edges change nothing
        outermost = [node for node in range(size) if depths[node] == num_layers]
        for node in outermost:  # nor does what lies beyond k edges
            edges |= {(other, node) for other in [*outermost, size, size + 1] if other != node and rng.random() < 0.3}
        edges |= {(int(rng.integers(size)), size), (size, size + 1)}
        self.names = rng.permutation(size + 2)
        self.graph = to_adjacency([(int(self.names[a]), int(self.names[b])) for a, b in edges], size + 2)
        self.target, self.num_layers, self.size = int(self.names[0]), num_layers, size
        self.p_ablate = rng.random(size + 2)
        self.p_ablate[self.names[:size]] = [float(p) for p in tree.p_ablate]
        place = {int(name): node for node, name in enumerate(self.names)}
        self.p_delete = rng.random(self.graph.num_edges)
        for index, (source, end) in enumerate(zip(self.graph.sources, self.graph.targets, strict=True)):
            node = place[int(source)]
            if node < size and tree.parents[node] == place[int(end)]:
                self.p_delete[index] = float(tree.p_delete[node])

    def delta(self, eligible, max_radius):
        mask = np.zeros(self.graph.num_nodes, dtype=bool)
        mask[self.names[list(eligible)]] = True
        mask[self.names[self.size :]] = True  # eligible, but not in the field
        return tree_delta(
            self.graph,
            self.target,
            p_delete=self.p_delete,
            p_ablate=self.p_ablate,
            eligible=mask,
            num_layers=self.num_layers,
            max_radius=max_radius,
        )

    def arrival(self, attackers):
        return tree_arrival_probability(
            self.graph,
            self.target,
            self.names[list(attackers)],
            p_delete=self.p_delete,
            p_ablate=self.p_ablate,
            num_layers=self.num_layers,
        )

    def nodes(self, names):
        place = {int(name): node for node, name in enumerate(self.names)}
        return [place[int(name)] for name in names]


def draw(rng, *, most_nodes=12):
    """A tree, the number of layers, and an eligible set, with or without the target, sometimes empty."""
    num_layers = int(rng.integers(1, 5))
    tree = random_tree(rng, int(rng.integers(1, most_nodes + 1)), num_layers)
    eligible = np.flatnonzero(rng.random(len(tree.parents)) < rng.choice([0.3, 0.7, 1.0])).tolist()
    return tree, num_layers, eligible


def allowance(num_layers, radius):
    return ((6 * num_layers + 3) * radius + 9 * num_layers + 9) * 2.0**-53


def check_delta(rng, tree, num_layers, eligible, max_radius=6):
    exact = knapsack_delta(tree, eligible, max_radius)
    embedded = Embedded(rng, tree, num_layers)
    worst = embedded.delta(eligible, max_radius)
    attackers = embedded.nodes(worst.attackers)
    assert len(set(attackers)) == len(attackers) == min(max_radius, len(eligible))
    assert set(attackers) <= set(eligible)
    for radius, (bound, true) in enumerate(zip(worst.delta_upper.tolist(), exact, strict=True), start=1):
        assert true <= Fraction(bound) <= 1
        assert bound - true <= allowance(num_layers, radius)
        attained = 1 - miss_probability(tree, attackers[:radius])
        assert Fraction(bound) - attained <= allowance(num_layers, radius)
    assert (np.diff(worst.delta_upper) >= 0).all()


@pytest.mark.parametrize("repetitions", FEW_OR_MANY)
def test_delta_is_exact_and_attained_by_the_nested_sets(repetitions):
    rng = np.random.default_rng(0)
    for _ in range(repetitions):
        check_delta(rng, *draw(rng))


@pytest.mark.slow
def test_delta_is_exact_on_many_larger_trees():
    rng = np.random.default_rng(1)
    for _ in range(2_000):
        check_delta(rng, *draw(rng, most_nodes=25), max_radius=10)


@pytest.mark.parametrize("repetitions", FEW_OR_MANY)
def test_arrival_probability_of_any_set_is_exact(repetitions):
    rng = np.random.default_rng(2)
    for _ in range(repetitions):
        tree, num_layers, attackers = draw(rng)
        exact = 1 - miss_probability(tree, attackers)
        bound = Embedded(rng, tree, num_layers).arrival([*attackers, len(tree.parents)])  # one beyond the field
        assert exact <= Fraction(bound) <= 1
        assert bound - exact <= (3 * len(tree.parents) + 12 * num_layers + 4) * 2.0**-53


def test_the_recursion_of_the_oracle_is_the_probability():
    rng = np.random.default_rng(3)
    for _ in range(60):
        tree, _, attackers = draw(rng, most_nodes=6)
        assert miss_probability(tree, attackers) == listed_miss_probability(tree, attackers)


@pytest.mark.parametrize("repetitions", FEW_OR_MANY)
def test_the_knapsack_of_the_oracle_is_the_maximum(repetitions):
    rng = np.random.default_rng(4)
    for _ in range(repetitions):
        tree, _, eligible = draw(rng, most_nodes=7)
        assert knapsack_delta(tree, eligible, 4) == brute_force_delta(tree, eligible, 4)


@pytest.mark.parametrize("repetitions", FEW_OR_MANY)
def test_any_greedy_adversary_is_worst(repetitions):
    rng = np.random.default_rng(5)
    for _ in range(repetitions):
        tree, _, eligible = draw(rng, most_nodes=8)
        exact = knapsack_delta(tree, eligible, 5)
        for last in (False, True):
            chosen = greedy_set(tree, eligible, 5, last_of_ties=last)
            assert [1 - miss_probability(tree, chosen[:radius]) for radius in range(1, 6)] == exact


def test_large_trees():
    rng = np.random.default_rng(6)
    for num_layers in (2, 3, 4):
        tree = random_tree(rng, 600, num_layers)
        p_delete, p_ablate = rng.random(600).tolist(), rng.random(600).tolist()
        tree = Tree(tree.parents, p_delete, p_ablate)
        exact = knapsack_delta(tree, range(20, 600), 40)
        found = Embedded(rng, tree, num_layers).delta(range(20, 600), 40).delta_upper
        assert found == pytest.approx([float(value) for value in exact], abs=1e-12)


@pytest.mark.parametrize("joint", [False, True])
def test_one_coin_or_two_for_an_undirected_edge(joint):
    rng = np.random.default_rng(7)
    for _ in range(30):
        num_layers = int(rng.integers(1, 4))
        parents = random_tree(rng, 5, num_layers).parents
        edges = [pair for node in range(1, 5) for pair in [(node, parents[node]), (parents[node], node)]]
        p_delete, p_ablate = Fraction(float(rng.random())), Fraction(float(rng.random()))
        attackers = np.flatnonzero(rng.random(5) < 0.6).tolist()
        law = arrival_law(edges, 0, num_layers, p_delete, joint=joint)
        bound = tree_arrival_probability(
            to_adjacency(edges, 5),
            0,
            attackers,
            p_delete=np.full(len(edges), float(p_delete)),
            p_ablate=np.full(5, float(p_ablate)),
            num_layers=num_layers,
        )
        exact = arrival_probability(law, attackers, p_ablate)
        assert exact <= Fraction(bound)
        assert bound - exact <= 1e-14


def alike(parents, p_delete, p_ablate):
    size = len(parents)
    return Tree(parents, [Fraction(p_delete)] * size, [Fraction(p_ablate)] * size)


@pytest.mark.parametrize(
    ("num_leaves", "p_delete", "p_ablate", "min_distance", "radius", "worst", "closest_first"),
    [
        (5, "0.2", "0.3", 2, 5, 0.880814, 0.873048),
        (5, "0.2", "0.3", 1, 7, 0.939743, 0.936131),
        (14, "0.6", "0.5", 2, 11, 0.409067, 0.408486),  # a certificate could be issued: Δ is below 1/2
        (14, "0.6", "0.5", 2, 14, 0.432751, 0.427769),
    ],
)
def test_closer_nodes_first_is_wrong_for_three_layers(
    num_leaves, p_delete, p_ablate, min_distance, radius, worst, closest_first
):
    # 0 <- 1 <- many leaves, and a path 0 <- a <- b <- c: a second message through 1 is worth less than c's.
    first = num_leaves + 2
    tree = alike([-1, 0, *[1] * num_leaves, 0, first, first + 1], p_delete, p_ablate)
    eligible = [node for node in range(len(tree.parents)) if tree.depth(node) >= min_distance]
    by_distance = sorted(eligible, key=lambda node: (tree.depth(node), -node))  # ties: the path, the better branch
    believed = 1 - miss_probability(tree, by_distance[:radius])
    assert float(believed) == pytest.approx(closest_first, abs=1e-6)
    found = Embedded(np.random.default_rng(0), tree, 3).delta(eligible, radius).delta_upper[-1]
    assert found == pytest.approx(worst, abs=1e-6)
    assert found == pytest.approx(float(knapsack_delta(tree, eligible, radius)[-1]), abs=1e-12)
    assert found > believed


def test_different_branches_first_is_wrong_if_not_all_nodes_are_eligible():
    # 0 <- 1 <- {2, 3} and 0 <- 4 <- 5 <- 6.
    tree = alike([-1, 0, 1, 1, 0, 4, 5], "0.5", "0.6")
    assert 1 - miss_probability(tree, [2, 6]) == Fraction("0.145")
    embedded = Embedded(np.random.default_rng(0), tree, 3)
    worst = embedded.delta([2, 3, 6], 2)
    assert worst.delta_upper[1] == pytest.approx(0.18, abs=1e-14)
    assert sorted(embedded.nodes(worst.attackers)) == [2, 3]


def uniform(graph, target, eligible, *, p_delete, p_ablate, num_layers=2, max_radius=3):
    mask = np.isin(np.arange(graph.num_nodes), eligible)
    coins = {"p_delete": np.full(graph.num_edges, p_delete), "p_ablate": np.full(graph.num_nodes, p_ablate)}
    return tree_delta(graph, target, **coins, eligible=mask, num_layers=num_layers, max_radius=max_radius)


def test_certain_outcomes_are_exact():
    graph = bottleneck_graph(3)
    everyone = np.arange(5)
    assert uniform(graph, 0, everyone, p_delete=0.5, p_ablate=1.0).delta_upper.tolist() == [0.0] * 3
    assert uniform(graph, 0, everyone, p_delete=0.0, p_ablate=0.0).delta_upper.tolist() == [1.0] * 3
    assert uniform(graph, 0, everyone, p_delete=1.0, p_ablate=0.25).delta_upper.tolist() == [0.75] * 3
    assert uniform(graph, 0, everyone[1:], p_delete=1.0, p_ablate=0.25).delta_upper.tolist() == [0.0] * 3
    without = uniform(graph, 0, [], p_delete=0.5, p_ablate=0.25)
    assert without.delta_upper.tolist() == [0.0] * 3
    assert without.attackers.size == 0
    # The certain message of 1 makes those behind it useless, whatever they are.
    first, *later = uniform(graph, 0, everyone[1:], p_delete=0.5, p_ablate=0.0).delta_upper.tolist()
    assert first == pytest.approx(0.5, abs=1e-15)
    assert later == [first, first]


def test_smallest_probabilities():
    tiny = float(np.nextafter(0.0, 1.0))
    for p_delete in (tiny, 1.0 - 2.0**-53):
        for p_ablate in (0.0, tiny, 1.0 - 2.0**-53):
            found = uniform(path_graph(4), 0, [1, 2, 3], p_delete=p_delete, p_ablate=p_ablate, num_layers=3).delta_upper
            tree = alike([-1, 0, 1, 2], p_delete, p_ablate)
            exact = knapsack_delta(tree, [1, 2, 3], 3)
            assert all(true <= Fraction(bound) for bound, true in zip(found.tolist(), exact, strict=True))
            assert found == pytest.approx([float(value) for value in exact], rel=1e-13)


def test_the_bottleneck_of_appendix_f_in_closed_form():
    found = uniform(bottleneck_graph(10), 0, np.arange(2, 12), p_delete=0.3, p_ablate=0.0, max_radius=12).delta_upper
    count = np.minimum(np.arange(1, 13), 10)
    assert found == pytest.approx(0.7 * (1 - 0.3**count), abs=1e-14)


def test_equal_gains_are_taken_from_the_root_outward():
    assert uniform(path_graph(4), 0, np.arange(4), p_delete=0.0, p_ablate=0.5).attackers.tolist() == [0, 1, 2]
    assert uniform(star_graph(4), 0, np.arange(1, 5), p_delete=0.1, p_ablate=0.5).attackers.tolist() == [1, 2, 3]


@given(seed=st.integers(0, 2**32 - 1), factor=st.floats(0.0, 1.0))
def test_between_exact_and_multiplicative_and_falling_with_every_probability(seed, factor):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(2, 30)), 3)
    size = len(tree.parents)
    graph = Adjacency.from_edge_index([np.arange(1, size), tree.parents[1:]], num_nodes=size)
    p_delete, p_ablate = rng.random(2)
    paths = count_simple_paths(graph, [0], num_layers=3)
    single = single_source_bounds(paths.counts, p_delete=p_delete, p_ablate=p_ablate)
    everyone = np.arange(1, size)
    found = uniform(graph, 0, everyone, p_delete=p_delete, p_ablate=p_ablate, num_layers=3, max_radius=9).delta_upper
    assert (found <= multiplicative_bound(single, max_radius=9) * (1 + 1e-13)).all()
    for less in ({"p_delete": p_delete * factor}, {"p_ablate": p_ablate * factor}):
        coins = {"p_delete": p_delete, "p_ablate": p_ablate} | less
        larger = uniform(graph, 0, everyone, **coins, num_layers=3, max_radius=9).delta_upper
        assert (found <= larger * (1 + 1e-13)).all()


def test_other_fields_are_refused():
    graph = shared_edge_graph()
    with pytest.raises(UnsoundSetupError, match="field-not-a-tree"):
        uniform(graph, 0, [4], p_delete=0.5, p_ablate=0.5, num_layers=3)
    with pytest.raises(UnsoundSetupError, match="field-not-a-tree"):
        tree_arrival_probability(graph, 0, [4], p_delete=np.full(5, 0.5), p_ablate=np.full(5, 0.5), num_layers=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p_delete", [0.5]),
        ("p_delete", 1.5),
        ("p_delete", [0.5, 0.5, np.nan, 0.5]),
        ("p_ablate", [0.5, 1.1, 0.5]),
        ("p_ablate", [0.5] * 4),
        ("eligible", [1, 0, 1]),
        ("eligible", [True]),
        ("num_layers", 0),
        ("max_radius", 0),
    ],
)
def test_arguments_are_checked(name, value):
    arguments = {
        "p_delete": [0.5] * 4,
        "p_ablate": [0.5] * 3,
        "eligible": [True] * 3,
        "num_layers": 2,
        "max_radius": 2,
    } | {name: value}
    with pytest.raises(InvalidParameterError, match=f"`{name}` must be|`{name}` must have"):
        tree_delta(path_graph(3), 0, **arguments)


@pytest.mark.parametrize("attackers", [[3], [-1], [0.5], 1])
def test_attackers_are_checked(attackers):
    with pytest.raises(InvalidParameterError, match="`attackers` must"):
        tree_arrival_probability(path_graph(3), 0, attackers, p_delete=[0.5] * 4, p_ablate=[0.5] * 3, num_layers=2)
