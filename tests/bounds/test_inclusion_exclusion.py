from fractions import Fraction

import pytest

from graycert.bounds import inclusion_exclusion
from graycert.errors import InvalidParameterError
from graycert.graph import bottleneck_graph, explicit_simple_paths


@pytest.mark.parametrize("radius", [1, 2, 5, 10])
@pytest.mark.parametrize("p_delete", [0.0, 0.31, 0.5, 1.0])
def test_the_bottleneck_of_appendix_f(radius, p_delete):
    paths = explicit_simple_paths(bottleneck_graph(10), 0, range(2, radius + 2), num_layers=2)
    exact = (1 - Fraction(p_delete)) * (1 - Fraction(p_delete) ** radius)
    value = Fraction(inclusion_exclusion(paths, p_delete=p_delete, p_ablate=0.0))
    assert exact <= value <= exact + Fraction(1, 2**52)


def test_a_hostile_target_needs_no_edge():
    assert inclusion_exclusion([(0,)], p_delete=0.9, p_ablate=0.25) == 0.75
    assert inclusion_exclusion([(0,), (1, 0)], p_delete=0.5, p_ablate=0.5) == 0.5 + 0.5 * 0.25


def test_no_path_gives_zero():
    assert inclusion_exclusion([], p_delete=0.0, p_ablate=0.0) == 0.0


def test_too_many_or_empty_paths_are_refused():
    with pytest.raises(InvalidParameterError, match="at most 20 paths"):
        inclusion_exclusion([(node, 0) for node in range(1, 22)], p_delete=0.5, p_ablate=0.5)
    with pytest.raises(InvalidParameterError, match="one node or more"):
        inclusion_exclusion([()], p_delete=0.5, p_ablate=0.5)
    assert inclusion_exclusion([(node, 0) for node in range(1, 21)], p_delete=0.5, p_ablate=0.0) == 1 - 0.5**20


@pytest.mark.parametrize("name", ["p_delete", "p_ablate"])
def test_probabilities_are_checked(name):
    with pytest.raises(InvalidParameterError, match=f"`{name}` must be"):
        inclusion_exclusion([(1, 0)], **({"p_delete": 0.5, "p_ablate": 0.5} | {name: 2}))
