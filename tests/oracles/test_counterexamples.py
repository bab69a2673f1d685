"""Statements that look true, or that the paper makes, and the small graphs on which they fail."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from graycert.bounds.hop_limited import arrival_probability
from support.enumeration import arrival_law
from support.enumeration import arrival_probability as enumerated_probability
from support.random_graphs import random_edges, to_adjacency


def enclosed_silence(edges, attackers, *, p_delete, p_ablate, num_layers):
    """Enclose g(B) = 1 - p(E(B)) at node 0 by the function under test, and check it by enumeration."""
    graph = to_adjacency(edges, 1 + max(max(edge) for edge in edges))
    smoothing = {"p_delete": p_delete, "p_ablate": p_ablate}
    result = arrival_probability(graph, 0, attackers, num_layers=num_layers, **smoothing)
    assert result.exact
    law = arrival_law(edges, 0, num_layers, Fraction(p_delete))
    exact = 1 - enumerated_probability(law, attackers, Fraction(p_ablate))
    low, high = 1 - Fraction(result.p_upper), 1 - Fraction(result.p_lower)
    assert low <= exact <= high
    return low, high


def test_conditioning_on_other_attackers_fails_from_three_layers_on():
    """No statement of the paper: it is the step from Theorem 3 to a tighter bound that suggests itself.

    For k <= 2, g(A + w + x) >= g(A + w) g(A + x) / g(A), the multiplicative bound given that A is silent. Not for
    k = 3: nodes 4 and 6 arrive over 1 -> 0 only, as the detour over node 2 is one hop too long; node 3 may take both.
    """
    edges = [(1, 0), (1, 2), (2, 0), (3, 1), (4, 3), (5, 1), (6, 5)]
    smoothing = {"p_delete": 0.15, "p_ablate": 0.0, "num_layers": 3}
    alone_low, alone_high = enclosed_silence(edges, [4], **smoothing)
    with_3, with_6, with_both = (enclosed_silence(edges, [4, *more], **smoothing) for more in ([3], [6], [3, 6]))
    gap_low = with_3[0] * with_6[0] - alone_high * with_both[1]
    gap_high = with_3[1] * with_6[1] - alone_low * with_both[0]
    assert gap_low > 0
    assert float(gap_low) == pytest.approx(0.0040, abs=5e-5)
    assert gap_high - gap_low < Fraction(1, 10**12)
    claimed = 1 - with_3[0] * with_6[0] / alone_high
    assert claimed < 1 - with_both[1]  # the "bound" lies below p(E({3, 4, 6}))


def test_shared_edges_need_not_make_silence_strictly_more_likely():
    """Scholten et al. (2022), App. E, Theorem on two sets of simple paths, case 2 of its proof: strict "<".

    The sets share the edge w -> u, yet the first path set is silent exactly if u -> v is deleted, a coin that the
    second set does not use. The theorem itself (<=) is not affected.
    """
    v, u, w, x = range(4)
    edges = [(u, v), (w, u), (u, x), (x, v)]
    first, second = [[(u, v)], [(w, u), (u, v)]], [[(w, u), (u, x), (x, v)]]
    assert set(itertools.chain(*first)) & set(itertools.chain(*second)) == {(w, u)}

    def silence(paths):
        keep, total = Fraction(6, 10), Fraction(0)
        for kept in itertools.product((True, False), repeat=len(edges)):
            left = set(itertools.compress(edges, kept))
            if not any(left.issuperset(path) for path in paths):
                total += keep ** len(left) * (1 - keep) ** (len(edges) - len(left))
        return total

    assert silence(first) * silence(second) == silence(first + second) == Fraction(3136, 10000)


def test_pairwise_covariances_do_not_make_variables_associated():
    """Scholten et al. (2022), App. E, Corollary "the random vector x is positively associated", its proof.

    It infers association, hence P(no X_i) >= prod P(not X_i), from non-negative covariances of all pairs. With two
    fair coins X1, X2 and X3 = XNOR(X1, X2) all covariances of pairs are zero, but the conclusion fails.
    """
    outcomes = [(first, second, int(first == second)) for first, second in itertools.product((0, 1), repeat=2)]

    def probability(event):
        return Fraction(sum(map(event, outcomes)), len(outcomes))

    for i, j in itertools.combinations(range(3), 2):
        together = probability(lambda x, i=i, j=j: x[i] * x[j])
        assert together - probability(lambda x, i=i: x[i]) * probability(lambda x, j=j: x[j]) == 0
    product = np.prod([probability(lambda x, i=i: 1 - x[i]) for i in range(3)])
    assert probability(lambda x: not any(x)) == 0 < product == Fraction(1, 8)


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_the_conclusion_holds_nevertheless(num_layers):
    """P(no message from B or C) >= P(none from B) P(none from C): both events fall with every independent coin.

    That is Harris' inequality; it covers ablation too, and any number of sets, which pairs do not.
    """
    rng = np.random.default_rng(num_layers)
    for _ in range(15):
        num_nodes = int(rng.integers(3, 6))
        edges = random_edges(rng, num_nodes, 0.5, directed=True)
        if not 0 < len(edges) <= 9:
            continue
        p_ablate = Fraction(float(rng.choice([0.0, rng.random()])))
        law = arrival_law(edges, 0, num_layers, Fraction(float(rng.random())))
        sets = [set(rng.permutation(num_nodes)[: int(rng.integers(1, 3))].tolist()) for _ in range(3)]
        product = np.prod([1 - enumerated_probability(law, attackers, p_ablate) for attackers in sets])
        assert 1 - enumerated_probability(law, set().union(*sets), p_ablate) >= product
