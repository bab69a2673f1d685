"""The smoothing distribution φ = (φ1, φ2): delete edges, ablate nodes (§3 of the paper)."""

from dataclasses import dataclass

from graycert._validation import check_probability


@dataclass(frozen=True, kw_only=True)
class InterceptionSmoothing:
    """Message-interception smoothing: φ1 deletes edges, φ2 replaces whole feature vectors by a token.

    Each directed entry of the adjacency matrix is deleted independently with probability ``p_delete``;
    the features of each node are replaced by the ablation token independently with ``p_ablate``.

    Args:
        p_delete: Probability of deleting an edge, in [0, 1].
        p_ablate: Probability of ablating a node's features, in [0, 1].

    Raises:
        InvalidParameterError: If a probability is not a number in [0, 1].

    Example:
        >>> InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
        InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)

    References:
        Scholten et al. (2022), Section 3.
    """

    p_delete: float
    p_ablate: float

    def __post_init__(self) -> None:
        """Check the domains."""
        delete = check_probability(
            "p_delete", self.p_delete, hint="It is the chance of deleting an edge, not of keeping it."
        )
        ablate = check_probability(
            "p_ablate", self.p_ablate, hint="It is the chance of replacing a node's features, not of keeping them."
        )
        object.__setattr__(self, "p_delete", delete)
        object.__setattr__(self, "p_ablate", ablate)
