"""The floor: a classifier that looks at the target's own features and at no other node."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graycert._fields import Field
from graycert._types import NO_CLASS
from graycert.smoothing.protocol import Claim, Smoothing

if TYPE_CHECKING:
    from graycert.certificates import Certificates
    from graycert.setup import Setup

_PROOF = {"exact": "features_only"}


@dataclass(frozen=True, kw_only=True, eq=False)
class FeaturesOnly(Smoothing):
    """Show the model each target alone, without any edge: what other nodes do cannot matter.

    Whoever trusts the target and fears only other nodes has certified robustness at every ρ for free. A certified
    accuracy below this floor does not pay for the graph. Any MLP is such a classifier.

    Example:
        >>> FeaturesOnly()
        FeaturesOnly()

    References:
        docs/proofs/features_only.md.
    """

    name = "features-only"
    claims = tuple(
        Claim(threat=threat, proofs=_PROOF)
        for threat in (
            "node-features",
            "node-deletion",
            "node-insertion",
            "edge-deletion",
            "features-and-out-edges",
            "node-takeover",
        )
    )
    draws_allowed = ()
    adds = (
        Field(
            "own_prediction",
            "int",
            ("targets",),
            "The class of each target, from its own features; -1 where the scores single out none.",
            stage="drawn",
            at_least=NO_CLASS,
            at_most="classes",
        ),
    )
    method_home = "graycert.smoothing.features_only.method"
    in_plain_words = "its answer when it is shown the target alone: nothing else is looked at, and nothing is drawn"
    allows_parallel_edges = True
    needs_graph = True
    reads_structure = False
    shows_target = True
    sees_single_nodes = True
    examines_all_radii = True

    def classifier(self, setup: "Setup") -> str:
        """Say what is certified, to follow "the classifier"."""
        del setup
        return "is the model that is shown the target alone, with its own features and without any edge."

    def chance(self, certificates: "Certificates") -> str:
        """Say that it is certain."""
        del certificates
        return "Nothing is drawn: these statements hold with certainty."

    def bound_in_words(self, setup: "Setup") -> str:
        """Say what the radius is."""
        del setup
        return (
            "The radius is the number of eligible nodes: all of them together can do nothing. Where the target itself "
            "may be hostile it is 0."
        )
