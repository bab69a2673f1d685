"""Sparse smoothing of binary attributes: each 1 is deleted, each 0 set, with a probability of its own."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graycert._fields import Field
from graycert._parameters import parameter
from graycert._validation import check_probability
from graycert.draws import AnyDraws, Draws
from graycert.smoothing.protocol import Claim, Smoothing

if TYPE_CHECKING:
    from graycert.setup import Setup

_COIN_BITS = 62  # coins of graycert.sampling.streams show multiples of this power of two exactly


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseSmoothing(Smoothing):
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

    name = "sparse"
    claims = (Claim(threat="attribute-flips", proofs={"sound": "sparse_smoothing"}),)
    adds = (
        Field(
            "deletions",
            "int",
            ("targets", "additions"),
            "Deletions that the prediction withstands together with 0, 1, ... additions; -1 if it does not even "
            "withstand the additions, or abstains.",
            stage="concluded",
            at_least=-1,
            column="deletions_with_additions_",
            first=0,
        ),
    )
    method_home = "graycert.smoothing.sparse.method"
    in_plain_words = "the majority of its answers when attributes are set and deleted at random"
    allows_parallel_edges = True

    p_plus: float = parameter(help="Chance of setting a 0 to 1.", label="Attribute addition p_plus", option=float)
    p_minus: float = parameter(help="Chance of setting a 1 to 0.", label="Attribute deletion p_minus", option=float)

    def axes(self, setup: "Setup") -> dict[str, int]:
        """Return how many numbers of additions the table has: 0, 1, ... as many as the threat allows."""
        return {"additions": getattr(setup.threat, "max_additions", 0) + 1}

    def __post_init__(self) -> None:
        """Check the domains."""
        for name, hint in (("p_plus", "setting a 0 to 1"), ("p_minus", "setting a 1 to 0")):
            value = check_probability(name, getattr(self, name), hint=f"It is the chance of {hint}.")
            object.__setattr__(self, name, math.ldexp(math.ceil(math.ldexp(value, _COIN_BITS)), -_COIN_BITS))

    def default_draws(self) -> AnyDraws:
        """Return 100,000 estimation draws: attributes are many, and each needs a smaller interval."""
        return Draws(num_estimation=100_000)

    def classifier(self, setup: "Setup") -> str:
        """Say what is certified, to follow "the classifier"."""
        del setup
        return (
            "is the majority vote of the model over graphs in which each attribute that is set is deleted with "
            f"probability {self.p_minus} and each other attribute is set with probability {self.p_plus}; nothing is "
            "said about the model without smoothing. The radius counts attributes, not nodes."
        )

    def bound_in_words(self, setup: "Setup") -> str:
        """Say that regions are exact."""
        del setup
        return "Radii are lower bounds: regions of constant likelihood ratio are computed exactly, votes are bounded."
