"""The formulae of Theorems 2 and 3 in rational numbers, straight from the paper."""

from collections.abc import Iterable, Sequence
from fractions import Fraction


def exact_single_source(counts: Sequence[int], p_delete: float, p_ablate: float) -> Fraction:
    """Return Theorem 2 for ``counts[l - 1]`` paths of l edges."""
    keep, blocked = 1 - Fraction(p_delete), Fraction(1)
    for length, count in enumerate(counts, start=1):
        blocked *= (1 - keep**length) ** int(count)
    return (1 - Fraction(p_ablate)) * (1 - blocked)


def exact_multiplicative(delta_sources: Iterable[Fraction], radius: int) -> Fraction:
    """Return Theorem 3 for the ``radius`` largest values."""
    none_arrives = Fraction(1)
    for delta in sorted(delta_sources, reverse=True)[:radius]:
        none_arrives *= 1 - delta
    return 1 - none_arrives
