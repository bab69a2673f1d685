"""App. C: the exact probability of an arrival for a fixed set of hostile nodes, on small graphs."""

import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction

from graycert._rounding import fraction_up
from graycert._validation import check_probability
from graycert.errors import InvalidParameterError

MAX_EXPLICIT_PATHS = 20


def inclusion_exclusion(paths: Iterable[Sequence[int]], *, p_delete: float, p_ablate: float) -> float:
    r"""Return p(E(B)), the probability that a message arrives along at least one of the given paths.

    $$p(E(B)) = \sum_{\emptyset\ne I\subseteq\mathcal{P}} (-1)^{|I|-1}(1-p_d)^{a(I)}(1-p_a)^{b(I)}$$

    with a(I) the number of distinct edges on the paths in I and b(I) the number of distinct sources.

    Guarantee:
        Exact if ``paths`` are all simple paths from B to the target within the layers of the model, and edges and
        features are dropped independently. Evaluated in rational numbers, rounded upward to the next float64.

    Args:
        paths: Each path as its nodes, source first, target last, from ``explicit_simple_paths``; ``(target,)`` if the
            target is hostile. At most 20 paths, since the sum has 2^num_paths terms.
        p_delete: Probability p_d of deleting an edge, in [0, 1].
        p_ablate: Probability p_a of ablating a node's features, in [0, 1].

    Returns:
        The probability, in [0, 1]; 0 without paths.

    Raises:
        InvalidParameterError: If there are more than 20 paths, an empty path, or a probability is out of range.

    Example:
        >>> inclusion_exclusion([(2, 1, 0), (3, 1, 0)], p_delete=0.5, p_ablate=0.0)
        0.375

    References:
        Scholten et al. (2022), App. C.
    """
    kept = 1 - Fraction(check_probability("p_delete", p_delete))
    shown = 1 - Fraction(check_probability("p_ablate", p_ablate))
    listed = [tuple(path) for path in paths]
    if len(listed) > MAX_EXPLICIT_PATHS or not all(listed):
        raise InvalidParameterError(
            f"`paths` must be at most {MAX_EXPLICIT_PATHS} paths of one node or more, got {len(listed)} paths. "
            "Use multiplicative_bound for larger fields."
        )
    signed = _signed_unions(listed)
    by_size: dict[tuple[int, int], int] = {}
    for (edges, sources), sign in signed.items():
        size = (edges.bit_count(), sources.bit_count())
        by_size[size] = by_size.get(size, 0) + sign
    nothing_arrives = sum((sign * kept**a * shown**b for (a, b), sign in by_size.items()), start=Fraction(0))
    return fraction_up(1 - nothing_arrives)


def _signed_unions(paths: list[tuple[int, ...]]) -> dict[tuple[int, int], int]:
    """Return, for each union of edges and sources, the sum of (-1)^|I| over the subsets I of paths with that union.

    Sets are bit masks. Subsets with the same union are merged, so shared edges keep the number of entries small.
    """
    edge_bit: dict[tuple[int, int], int] = {}
    source_bit: dict[int, int] = {}
    signed = {(0, 0): 1}
    for path in paths:
        edges = 0
        for edge in itertools.pairwise(path):
            edges |= 1 << edge_bit.setdefault(edge, len(edge_bit))
        source = 1 << source_bit.setdefault(path[0], len(source_bit))
        for (seen_edges, seen_sources), sign in list(signed.items()):
            union = (seen_edges | edges, seen_sources | source)
            signed[union] = signed.get(union, 0) - sign
    return signed
