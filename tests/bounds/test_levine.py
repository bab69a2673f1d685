"""Levine and Feizi's constant against subsets listed one by one, and against Proposition 2."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.bounds import ablation_only_delta, largest_ablation_only_radius
from graycert.bounds.levine import largest_levine_radius, levine_delta
from graycert.errors import InvalidParameterError
from graycert.smoothing.randomized_ablation.parameters import RandomizedAblation, matched_num_kept

HALF = Fraction(1, 2)


def exact(num_nodes, num_kept, num_hostile):
    """The paper's formula."""
    return 1 - Fraction(math.comb(num_nodes - num_hostile, num_kept), math.comb(num_nodes, num_kept))


def counted(num_nodes, num_kept, hostile):
    """The share of all sets of ``num_kept`` nodes that hold a hostile one."""
    outcomes = list(itertools.combinations(range(num_nodes), num_kept))
    return Fraction(sum(not hostile.isdisjoint(outcome) for outcome in outcomes), len(outcomes))


def test_known_answers():
    # golden/README.md and App. B: n = 10, k = 1, so p_a = 0.9.
    assert matched_num_kept(num_nodes=10, p_ablate=0.9) == 1
    assert largest_levine_radius(num_nodes=10, num_kept=1) == 4
    assert largest_ablation_only_radius(p_ablate=0.9) == 6
    assert levine_delta(num_nodes=10, num_kept=1, max_radius=5) == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5], abs=1e-15)
    assert levine_delta(num_nodes=4, num_kept=2, max_radius=4) == pytest.approx([1 / 2, 5 / 6, 1, 1], abs=1e-15)


@pytest.mark.parametrize("num_candidates", [20, 21])  # without and with the target
def test_the_figure_of_appendix_b_at_n_21(num_candidates):
    """p_a = 0.72. Ablating ⌊20·0.72⌋ = 14 nodes keeps 6; keeping 14, as the caption says, certifies nothing."""
    kept = matched_num_kept(num_nodes=num_candidates, p_ablate=0.72)
    assert kept == 6 == 20 - 14
    assert largest_levine_radius(num_nodes=num_candidates, num_kept=kept) == 1
    assert largest_levine_radius(num_nodes=num_candidates, num_kept=14) == 0
    assert largest_ablation_only_radius(p_ablate=0.72) == 2
    # Rounded the other way, Levine's smoothing keeps fewer nodes than ours does on average, and comes out level.
    assert largest_levine_radius(num_nodes=num_candidates, num_kept=5) == 2


def test_the_receptive_fields_of_cora_ml(golden_root):
    """App. B's comparison at p_a = 0.72 and distance >= 1 hangs on how k is rounded."""
    sizes = np.load(golden_root / "deltas_cora_ml.npz")["sizes_dist012"]
    num_others = [int(size) for size in sizes[:, 1:].sum(axis=1)]

    def mean_radius(limit):
        return np.mean([n if limit(n) is None else limit(n) for n in num_others])

    ours = mean_radius(lambda n: largest_ablation_only_radius(p_ablate=0.72, num_eligible=n))
    matched = mean_radius(
        lambda n: largest_levine_radius(num_nodes=n, num_kept=matched_num_kept(num_nodes=n, p_ablate=0.72))
    )
    one_fewer = mean_radius(lambda n: largest_levine_radius(num_nodes=n, num_kept=n * 28 // 100))
    caption = mean_radius(lambda n: largest_levine_radius(num_nodes=n, num_kept=n * 72 // 100))
    assert [round(radius, 3) for radius in (ours, matched, one_fewer, caption)] == [2.0, 1.316, 2.024, 0.0]


def test_is_the_papers_formula_rounded_to_the_next_float():
    checked = 0
    for num_nodes in range(41):
        for num_kept in range(num_nodes + 1):
            values = levine_delta(num_nodes=num_nodes, num_kept=num_kept, max_radius=num_nodes + 2).tolist()
            for radius, value in enumerate(values, start=1):
                wanted = exact(num_nodes, num_kept, min(radius, num_nodes))
                assert Fraction(value) >= wanted
                assert wanted == 0 or Fraction(math.nextafter(value, 0)) < wanted
                checked += 1
    assert checked == 24_682


def test_is_the_largest_probability_over_sets_of_eligible_nodes():
    """Every set of hostile nodes, every outcome; fewer eligible nodes than ρ are all hostile."""
    checked = 0
    for num_nodes, num_eligible in itertools.product(range(7), range(7)):
        for num_kept in range(num_nodes + 1) if num_eligible <= num_nodes else ():
            options = {"num_nodes": num_nodes, "num_kept": num_kept, "num_eligible": num_eligible}
            for radius, value in enumerate(levine_delta(max_radius=7, **options).tolist(), start=1):
                sizes = range(min(radius, num_eligible) + 1)
                sets = (set(b) for size in sizes for b in itertools.combinations(range(num_eligible), size))
                wanted = max(counted(num_nodes, num_kept, hostile) for hostile in sets)
                assert math.nextafter(value, 0) < wanted <= Fraction(value) or value == wanted == 0
                checked += 1
    assert checked == 980


def test_proposition_2_is_never_looser_and_strictly_tighter_beyond_one_node():
    """App. B with p_a = 1 - k/n in exact rationals, all n <= 40; the paper omits k < n and ρ <= n."""
    strict = equal = 0
    for num_nodes in range(1, 41):
        for num_kept, radius in itertools.product(range(num_nodes + 1), range(1, num_nodes + 1)):
            ours = 1 - (1 - Fraction(num_kept, num_nodes)) ** radius
            theirs = exact(num_nodes, num_kept, radius)
            if 0 < num_kept < num_nodes and radius > 1:
                assert ours < theirs
                strict += 1
            else:
                assert ours == theirs
                equal += 1
    assert (strict, equal) == (20_540, 2_420)


def test_keeping_fewer_nodes_than_expected_would_not_be_a_fair_match():
    """Why `matched_num_kept` rounds up: n = 3, p_a = 0.5 keeps 1.5 nodes on average."""
    assert exact(3, 1, 2) < 1 - HALF**2 < exact(3, 2, 2)
    assert matched_num_kept(num_nodes=3, p_ablate=0.5) == 2


@given(st.integers(1, 60), st.integers(0, 1000), st.integers(2, 60))
def test_the_comparison_holds_for_the_matched_number(num_nodes, thousandths, max_radius):
    p_ablate = thousandths / 1000
    kept = matched_num_kept(num_nodes=num_nodes, p_ablate=p_ablate)
    assert kept == -(-num_nodes * (1000 - thousandths) // 1000)
    ours = ablation_only_delta(p_ablate=p_ablate, num_eligible=num_nodes, max_radius=max_radius)
    theirs = levine_delta(num_nodes=num_nodes, num_kept=kept, max_radius=max_radius)
    assert (ours <= theirs + 1e-15).all()
    radii = np.arange(1, max_radius + 1)
    if 0 < kept < num_nodes:
        assert (ours < theirs)[(radii > 1) & (radii <= num_nodes) & (ours < 1 - 1e-9)].all()


def test_decimals_are_read_as_they_are_written():
    # In binary, 10 · (1 - 0.7) lies above 3 and 50 · (1 - 0.86) above 7.
    assert matched_num_kept(num_nodes=10, p_ablate=0.7) == 3
    assert matched_num_kept(num_nodes=50, p_ablate=0.86) == 7
    assert matched_num_kept(num_nodes=50, p_ablate=np.float64(0.86)) == 7
    assert [matched_num_kept(num_nodes=7, p_ablate=p) for p in (0.0, 1e-20, 1.0)] == [7, 7, 0]
    assert matched_num_kept(num_nodes=0, p_ablate=0.3) == 0


def test_the_largest_radius_is_the_last_one_below_one_half():
    for num_nodes in range(1, 31):
        for num_kept in range(num_nodes + 1):
            below = [b for b in range(num_nodes + 1) if exact(num_nodes, num_kept, b) < HALF]
            for num_eligible in {0, 1, 2, num_nodes // 2, num_nodes - 1, num_nodes}:
                if num_eligible > num_nodes:
                    continue
                found = largest_levine_radius(num_nodes=num_nodes, num_kept=num_kept, num_eligible=num_eligible)
                assert found == (None if num_eligible <= below[-1] else below[-1])


def test_large_graphs_take_no_time():
    assert largest_levine_radius(num_nodes=10**8, num_kept=1) == 5 * 10**7 - 1
    assert largest_levine_radius(num_nodes=10**8, num_kept=2) == 29_289_321  # (1 - x)² > 1/2
    assert largest_levine_radius(num_nodes=10**6, num_kept=5 * 10**5) == 0
    assert largest_levine_radius(num_nodes=10**6, num_kept=499_999) == 1
    deltas = levine_delta(num_nodes=169_343, num_kept=matched_num_kept(num_nodes=169_343, p_ablate=0.8), max_radius=3)
    assert deltas == pytest.approx([0.2, 0.36, 0.488], abs=1e-5)
    assert (deltas >= [0.2, 0.36, 0.488]).all()


def test_certain_outcomes():
    assert levine_delta(num_nodes=5, num_kept=0, max_radius=2).tolist() == [0.0, 0.0]
    assert levine_delta(num_nodes=5, num_kept=5, max_radius=2).tolist() == [1.0, 1.0]
    assert levine_delta(num_nodes=5, num_kept=5, num_eligible=0, max_radius=2).tolist() == [0.0, 0.0]
    assert levine_delta(num_nodes=0, num_kept=0, max_radius=2).tolist() == [0.0, 0.0]
    assert largest_levine_radius(num_nodes=5, num_kept=0) is None
    assert largest_levine_radius(num_nodes=5, num_kept=5) == 0
    assert largest_levine_radius(num_nodes=5, num_kept=5, num_eligible=0) is None
    assert largest_levine_radius(num_nodes=0, num_kept=0) is None


def test_the_smoothing_keeps_a_number_or_a_share():
    fixed = RandomizedAblation(scope="global", num_kept=4)
    assert [fixed.num_kept_among(n) for n in (0, 3, 4, 9)] == [0, 3, 4, 4]
    share = RandomizedAblation(scope="local", p_ablate=0.72)
    assert [share.num_kept_among(n) for n in (0, 1, 20, 21, 100)] == [0, 1, 6, 6, 28]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scope": "both", "num_kept": 1}, "`scope` must be"),
        ({"scope": "local"}, "Exactly one of `num_kept` and `p_ablate`"),
        ({"scope": "local", "num_kept": 1, "p_ablate": 0.5}, "Exactly one of `num_kept` and `p_ablate`"),
        ({"scope": "local", "num_kept": -1}, "`num_kept` must be"),
        ({"scope": "local", "num_kept": 1.0}, "`num_kept` must be"),
        ({"scope": "local", "p_ablate": 1.5}, "`p_ablate` must be"),
    ],
)
def test_the_smoothing_is_checked(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        RandomizedAblation(**arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_nodes", -1),
        ("num_nodes", 2.0),
        ("num_kept", 6),
        ("num_kept", -1),
        ("num_eligible", 6),
        ("num_eligible", -1),
        ("max_radius", 0),
    ],
)
def test_arguments_are_checked(name, value):
    arguments = {"num_nodes": 5, "num_kept": 2, "num_eligible": 3, "max_radius": 2} | {name: value}
    with pytest.raises(InvalidParameterError, match=f"`{name}` must be"):
        levine_delta(**arguments)
    if name != "max_radius":
        del arguments["max_radius"]
        with pytest.raises(InvalidParameterError, match=f"`{name}` must be"):
            largest_levine_radius(**arguments)
