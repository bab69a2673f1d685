"""Planning without a model: how many nodes could be certified, over a grid of p_d and p_a."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graycert._progress import progress_bar
from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer
from graycert.bounds.certifiable_limit import largest_certifiable_radius
from graycert.bounds.evaluation import delta_bounds
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats import Threat

P_DELETE = (0.0, 0.15, 0.31, 0.5, 0.7)
P_ABLATE = (0.0, 0.5, 0.6, 0.7, 0.794, 0.9)


@dataclass(frozen=True, kw_only=True)
class GridPoint:
    """One pair of probabilities.

    Attributes:
        p_delete: Chance of deleting an edge.
        p_ablate: Chance of ablating a node.
        certifiable: Nodes that could be certified at the radius asked for.
        arrives: (1 - p_d)(1 - p_a), the chance that a neighbour's features arrive.
    """

    p_delete: float
    p_ablate: float
    certifiable: int
    arrives: float


@dataclass(frozen=True, kw_only=True, eq=False)
class SettingsGrid:
    """How many nodes any model could certify, for each p_d, p_a and radius.

    Attributes:
        p_delete: Values of p_d, rising, shape (num_p_delete,).
        p_ablate: Values of p_a, rising, shape (num_p_ablate,).
        certifiable: Nodes with Δ̄(1), ..., Δ̄(ρ) < 1/2 that at least ρ nodes could attack, shape (num_p_delete,
            num_p_ablate, max_radius); entry [..., ρ - 1] is of radius ρ.
        or_whole_field: The same, with the nodes that fewer than ρ could attack and that could hold against all of
            them.
        num_targets: All nodes that were looked at.
        threat: The adversary.
        num_layers: Message-passing steps of the models that this is about.
        bound: How Δ was to be bounded, e.g. "auto".
    """

    p_delete: FloatArray
    p_ablate: FloatArray
    certifiable: IntArray
    or_whole_field: IntArray
    num_targets: int
    threat: Threat
    num_layers: int
    bound: str

    def points(self, radius: int) -> list[GridPoint]:
        """Return every pair of probabilities with its count at a radius in 1..max_radius, p_d first."""
        counts = self.certifiable[:, :, self.column(radius)]
        return [
            GridPoint(p_delete=p_d, p_ablate=p_a, certifiable=count, arrives=round((1 - p_d) * (1 - p_a), 12))
            for p_d, row in zip(self.p_delete.tolist(), counts.tolist(), strict=True)
            for p_a, count in zip(self.p_ablate.tolist(), row, strict=True)
        ]

    def best(self, radius: int) -> tuple[GridPoint, ...]:
        """Return the pairs worth trying for a wanted radius, the most certifiable nodes first.

        A pair is left out if another one lets as much of a neighbour's features arrive and could certify more nodes,
        or the same number while more arrives. What arrives is what a model has to decide by; how accurate one is at
        these pairs is not said, `graycert.tune` measures it.

        Args:
            radius: Number of hostile nodes wanted, in 1..max_radius.

        Raises:
            InvalidParameterError: If the radius was not looked at.
        """
        front: list[GridPoint] = []
        order = sorted(self.points(radius), key=lambda each: (-each.certifiable, -each.arrives, each.p_delete))
        for each in order:
            if each.certifiable and (not front or each.arrives > front[-1].arrives):
                front.append(each)
        return tuple(front)

    def column(self, radius: int) -> int:
        """Return where counts of a radius are.

        Raises:
            InvalidParameterError: If the radius was not looked at.
        """
        return check_integer("radius", radius, at_least=1, at_most=self.certifiable.shape[2]) - 1


def settings_grid(
    data_or_adjacency: Any,
    targets: ArrayLike,
    *,
    threat: Threat,
    num_layers: int,
    p_delete: ArrayLike = P_DELETE,
    p_ablate: ArrayLike = P_ABLATE,
    max_radius: int = 10,
    bound: str = "auto",
    num_threads: int = 1,
    progress: bool = True,
) -> SettingsGrid:
    """Choose p_d and p_a without a model: count the nodes that any model could certify, over a grid of both.

    A node is counted at ρ if Δ̄(1), ..., Δ̄(ρ) are below 1/2 and at least ρ nodes could attack it. The count is an
    upper limit of what `certify` reaches with the same bound, not a certificate: votes decide how much of it is
    reached. Where nothing can be certified, at p_d = 0 against changes of the structure, no node is counted.

    Args:
        data_or_adjacency: The graph, as `delta_bounds` takes it.
        targets: Distinct node indices, or names in ``data.node_ids``, shape (num_targets,).
        threat: The adversary: on features, or on the structure.
        num_layers: Message-passing steps k of the model that you have in mind, >= 1.
        p_delete: Chances of deleting an edge to try, each in [0, 1], at least one.
        p_ablate: Chances of ablating a node to try, each in [0, 1], at least one.
        max_radius: Largest radius counted, >= 1.
        bound: See `delta_bounds`.
        num_threads: See `delta_bounds`.
        progress: Show a progress bar where it is seen: on a terminal, or in a notebook.

    Returns:
        Counts for each pair and radius; ``.best(radius)`` names the pairs worth trying.

    Raises:
        InvalidParameterError: If an argument is malformed or out of range.
        UnsoundSetupError: See `delta_bounds`.

    Example:
        >>> from graycert.graph import star_graph
        >>> from graycert.threats import NodeFeatureThreat
        >>> found = settings_grid(
        ...     star_graph(9), [0], threat=NodeFeatureThreat(min_distance=1), num_layers=1, p_delete=(0.0, 0.5),
        ...     p_ablate=(0.6, 0.8), max_radius=4,
        ... )
        >>> found.certifiable[:, :, 2].tolist()
        [[0, 1], [1, 1]]
        >>> [(each.p_delete, each.p_ablate) for each in found.best(radius=3)]
        [(0.0, 0.8)]

    References:
        Scholten et al. (2022), Corollary 1 and App. I.
    """
    deletions, ablations = _values("p_delete", p_delete), _values("p_ablate", p_ablate)
    radii = np.arange(1, check_integer("max_radius", max_radius, at_least=1) + 1)
    shape = (deletions.size, ablations.size, radii.size)
    certifiable, whole = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    with progress_bar("bounding", total=deletions.size * ablations.size, unit="settings", shown=progress) as advance:
        for row, column in np.ndindex(deletions.size, ablations.size):
            smoothing = InterceptionSmoothing(p_delete=float(deletions[row]), p_ablate=float(ablations[column]))
            try:
                found = delta_bounds(
                    data_or_adjacency,
                    targets,
                    smoothing=smoothing,
                    threat=threat,
                    num_layers=num_layers,
                    max_radius=max_radius,
                    bound=bound,
                    num_threads=num_threads,
                )
            except UnsoundSetupError as refused:
                if refused.slug != "ablation-cannot-certify-structure":
                    raise
            else:
                below = largest_certifiable_radius(found.delta_upper)[:, None] >= radii
                certifiable[row, column] = np.count_nonzero(below & (found.num_eligible[:, None] >= radii), axis=0)
                whole[row, column] = np.count_nonzero(below, axis=0)
            advance(1)
    return SettingsGrid(
        p_delete=deletions,
        p_ablate=ablations,
        certifiable=certifiable,
        or_whole_field=whole,
        num_targets=int(np.size(targets)),
        threat=threat,
        num_layers=num_layers,
        bound=bound,
    )


def _values(name: str, values: ArrayLike) -> FloatArray:
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if array.ndim != 1 or not array.size or not ((array >= 0) & (array <= 1)).all():
        raise InvalidParameterError(
            f"`{name}` must be one or more chances in [0, 1], got {values!r}. Pass for instance (0, 0.3, 0.6)."
        )
    return np.unique(array)
