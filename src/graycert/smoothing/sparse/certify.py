r"""Sparse smoothing of attributes (Bojchevski, Klicpera and Günnemann 2020), and the naive conversion to nodes.

Every draw deletes each 1 of the binary attributes with probability $p_-$ and sets each 0 with probability $p_+$. The
prediction is the class with most votes; the regions certificate says how many flipped attributes it withstands.

Threat model: the adversary knows everything but the draws and flips up to $r_a$ zeros and up to $r_d$ ones among the
binary attributes of the entire graph: of any nodes, the target included. The budget ρ̃ counts attributes, not nodes,
so a hostile node that rewrites all of its features is only covered as far as its number of attributes goes
(`naive_certified_nodes`). The structure is fixed. The guarantee is probabilistic: it holds per target with probability
at least 1 - α over the draws. It needs no locality and no knowledge of the model: a black-box certificate.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import nn

from graycert._types import FloatArray, IntArray
from graycert._validation import (
    check_integer,
    check_integer_array,
    check_open_unit,
    check_probability,
    check_seed,
    check_targets,
)
from graycert.data import validate_data
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models.protocol import has_skip
from graycert.rules import binary_bounds, intersection_union_bounds
from graycert.sampling import Purpose
from graycert.smoothing.sparse.regions import certified_deletions
from graycert.smoothing.sparse.sampling import build_sparse_smoothing_engine
from graycert.statistics import EstimationVotes

_COIN_BITS = 62  # coins of graycert.sampling.streams show multiples of this power of two exactly


@dataclass(frozen=True, kw_only=True)
class SparseSmoothing:
    """Flip each binary attribute on its own, zeros and ones with different probabilities; change no edge.

    Both are rounded up to a multiple of 2^-62, which alters none from 2^-9 on: so the certificate is about exactly
    the probabilities that the coins have.

    Args:
        p_plus: Probability of setting a 0 to 1, in [0, 1].
        p_minus: Probability of setting a 1 to 0, in [0, 1].

    Raises:
        InvalidParameterError: If a probability is out of range.

    Example:
        >>> SparseSmoothing(p_plus=0, p_minus=0.6)
        SparseSmoothing(p_plus=0.0, p_minus=0.6)

    References:
        Bojchevski, Klicpera and Günnemann (2020), Section 3.
    """

    p_plus: float
    p_minus: float

    def __post_init__(self) -> None:
        """Check the domains."""
        for name, hint in (("p_plus", "setting a 0 to 1"), ("p_minus", "setting a 1 to 0")):
            value = check_probability(name, getattr(self, name), hint=f"It is the chance of {hint}.")
            object.__setattr__(self, name, math.ldexp(math.ceil(math.ldexp(value, _COIN_BITS)), -_COIN_BITS))


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseSmoothingCertificates:
    """Certificates of all targets, and the numbers that they rest on, in the order of the targets.

    Attributes:
        targets: Node index of each target, shape (num_targets,).
        prediction: The reported class; where the classifier abstains only the one with most selection votes.
        p_lower: Lower bound on the probability of the reported class.
        p_upper: Upper bound on the probability of every other class.
        deletions: Deletions that the prediction withstands together with 0, 1, ... additions, shape (num_targets,
            max_additions + 1); -1 if it does not even withstand the additions, or abstains. Column 0 is ρ̃ for
            deletions alone.
        smoothing: What was drawn from.
        alpha: Failure probability per target; all entries of a target hold jointly.
        selection_votes: n0 votes per class, shape (num_targets, num_classes).
        estimation_votes: n1 votes per class, same shape.
    """

    targets: IntArray
    prediction: IntArray
    p_lower: FloatArray
    p_upper: FloatArray
    deletions: IntArray
    smoothing: SparseSmoothing
    alpha: float
    selection_votes: IntArray
    estimation_votes: IntArray

    @property
    def certified_deletions(self) -> IntArray:
        """Largest number ρ̃ of deletions alone, -1 where the classifier abstains, shape (num_targets,)."""
        return self.deletions[:, 0]

    @property
    def certified_additions(self) -> IntArray:
        """Largest number of additions alone, -1 where the classifier abstains, shape (num_targets,)."""
        withstood: IntArray = (self.deletions >= 0).sum(axis=1, dtype=np.int64)
        return withstood - 1


def certify_sparse_smoothing(
    model: nn.Module,
    data: Any,
    *,
    smoothing: SparseSmoothing,
    targets: ArrayLike,
    num_selection: int = 1_000,
    num_estimation: int = 100_000,
    alpha: float = 0.01,
    max_deletions: int = 50,
    max_additions: int = 0,
    seed: int = 0,
    progress: bool = False,
) -> SparseSmoothingCertificates:
    r"""Say for every target how many flipped attributes, anywhere in the graph, cannot change its prediction.

    The class has most selection votes. Estimation votes bound its probability from below and that of every other
    class from above, by the rule "sound" of `certify_votes`; the regions certificate carries both bounds over to the
    worst perturbed input.

    Guarantee:
        For each target on its own, with probability at least ``1 - alpha`` over the draws: if ``deletions[t, a]`` is
        d >= 0, no setting of up to a zeros and deletion of up to d ones changes the predicted class of the classifier
        smoothed by ``smoothing`` (all entries of a target hold together). The graph structure is fixed. Regions are
        computed and compared exactly, confidence bounds are rounded outward.

    Args:
        model: ``forward(x, edge_index)`` -> class scores (num_nodes, num_classes); no skip connection. Models from
            `build_model` are evaluated on receptive fields, others on the whole graph.
        data: Graph (`torch_geometric.data.Data`) with ``x`` of zeros and ones, and ``edge_index``.
        smoothing: Probabilities of flips.
        targets: Distinct node indices, shape (num_targets,).
        num_selection: Draws n0 that pick the class, >= 1.
        num_estimation: Draws n1 that bound its margin, >= 1.
        alpha: Failure probability per target, in (0, 1).
        max_deletions: Largest number of deletions looked at, >= 1; results are capped there.
        max_additions: Largest number of additions looked at, >= 0.
        seed: Seeds all draws.
        progress: Show a progress bar on standard error if it is a terminal.

    Returns:
        One certificate per target, in the order of ``targets``.

    Raises:
        InvalidParameterError: If an argument is out of its domain, or ``x`` is not binary.
        UnsoundSetupError: If a certificate for this set-up would not hold (``skip-not-smoothed``,
            ``not-deterministic``).

    References:
        Bojchevski, Klicpera and Günnemann (2020); Scholten et al. (2022), Fig. 3c; docs/proofs/sparse_smoothing.md.
    """
    _check_setup(smoothing, model, data)
    check_integer("num_selection", num_selection, at_least=1)
    check_integer("num_estimation", num_estimation, at_least=1)
    check_integer("max_deletions", max_deletions, at_least=1)
    check_integer("max_additions", max_additions, at_least=0)
    check_open_unit("alpha", alpha, hint="It is a failure probability, e.g. 0.01.")
    check_seed(seed)
    nodes = check_targets(targets, num_nodes=data.num_nodes)
    engine = build_sparse_smoothing_engine(model, data, nodes, p_plus=smoothing.p_plus, p_minus=smoothing.p_minus)
    selection = engine.votes(seed, Purpose.SELECTION, num_samples=num_selection, progress=progress)
    estimation = engine.votes(seed, Purpose.ESTIMATION, num_samples=num_estimation, progress=progress)
    majority = selection.argmax(axis=1)
    bounds = binary_bounds if engine.num_classes == 2 else intersection_union_bounds
    p_lower, p_upper = bounds(EstimationVotes(estimation, num_estimation), majority, alpha=alpha)
    deletions = certified_deletions(
        p_lower,
        p_upper,
        p_plus=smoothing.p_plus,
        p_minus=smoothing.p_minus,
        max_deletions=max_deletions,
        max_additions=max_additions,
    )
    return SparseSmoothingCertificates(
        targets=nodes,
        prediction=majority,
        p_lower=p_lower,
        p_upper=p_upper,
        deletions=deletions,
        smoothing=smoothing,
        alpha=alpha,
        selection_votes=selection,
        estimation_votes=estimation,
    )


def naive_certified_nodes(certified_attributes: ArrayLike, num_attributes: int) -> IntArray:
    r"""Convert certified attributes to certified whole nodes, as if each node had ``num_attributes`` of them.

    $$\rho = \lfloor \tilde\rho / d \rfloor$$

    Guarantee:
        If the prediction withstands ρ̃ flips of attributes and a hostile node can flip at most d of them, it
        withstands ρ hostile nodes. For deletions alone, d is the number of ones of a node; for arbitrary features it
        is their dimension, and flips in both directions must be certified.

    Args:
        certified_attributes: ρ̃ per target, -1 where the classifier abstains, shape (num_targets,).
        num_attributes: Number d of attributes per node, >= 1.

    Returns:
        ρ per target; -1 stays -1.

    Raises:
        InvalidParameterError: If an argument is out of its domain.

    Example:
        >>> naive_certified_nodes([7, 1, -1], 2).tolist()
        [3, 0, -1]

    References:
        Scholten et al. (2022), Section 7, "First certificate for stronger adversaries".
    """
    attributes = check_integer_array("certified_attributes", certified_attributes, ndim=1, at_least=-1)
    return attributes // check_integer("num_attributes", num_attributes, at_least=1)


def naive_certified_ratio(certified_attributes: ArrayLike, num_attributes: int, *, radii: ArrayLike) -> FloatArray:
    r"""Return the share of targets with ρ̃ / d >= ρ, for real ρ, as the paper draws the baseline.

    The curve falls at ρ = ρ̃ / d, so that it can be compared for different d; only its values at integers ρ are about
    whole nodes, and there it agrees with `naive_certified_nodes`.

    Args:
        certified_attributes: ρ̃ per target, -1 where the classifier abstains, shape (num_targets,), not empty.
        num_attributes: Number d of attributes per node, >= 1.
        radii: Numbers ρ >= 0 of nodes, shape (num_radii,); targets that abstain count nowhere.

    Returns:
        Shares in [0, 1], shape (num_radii,).

    Raises:
        InvalidParameterError: If an argument is out of its domain.

    Example:
        >>> naive_certified_ratio([7, 1, -1, 4], 2, radii=[0, 0.5, 2, 3.5]).tolist()
        [0.75, 0.75, 0.5, 0.25]

    References:
        Scholten et al. (2022), Fig. 3c.
    """
    attributes = check_integer_array("certified_attributes", certified_attributes, ndim=1, at_least=-1)
    check_integer("num_attributes", num_attributes, at_least=1)
    steps = np.asarray(radii, dtype=np.float64)
    if attributes.size == 0 or steps.ndim != 1 or not (steps >= 0).all():
        raise InvalidParameterError(
            "`certified_attributes` must have at least one target and `radii` must be a list of numbers >= 0, got "
            f"{attributes.size} targets and radii of shape {steps.shape}."
        )
    return np.asarray((attributes[None, :] >= steps[:, None] * num_attributes).mean(axis=1), dtype=np.float64)


def _check_setup(smoothing: object, model: nn.Module, data: Any) -> None:
    if not isinstance(smoothing, SparseSmoothing):
        raise InvalidParameterError(
            f"`smoothing` must be a SparseSmoothing, got {type(smoothing).__name__}. For InterceptionSmoothing use "
            "graycert.certify."
        )
    validate_data(data)
    if has_skip(model):
        raise UnsoundSetupError(
            "skip-not-smoothed",
            "`model` must not have a skip connection, because it shows the target's own attributes before they are "
            "drawn, and this adversary may flip those, too. Build it with skip=False.",
        )
