"""Votes of T subgraphs that a hash of each edge's source divides the graph into: deterministic, nothing is drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graycert._fields import Field
from graycert._parameters import parameter
from graycert._types import NO_CLASS
from graycert._validation import check_integer
from graycert.smoothing.protocol import Claim, Smoothing

if TYPE_CHECKING:
    from graycert.certificates import Certificates
    from graycert.setup import Setup

MOST_SUBGRAPHS = 2**20


@dataclass(frozen=True, kw_only=True, eq=False)
class SubgraphVoting(Smoothing):
    """Divide the directed edges among T subgraphs by a hash of their source; each classifies every node, majority wins.

    Every subgraph has all nodes with their features, so the target itself must be trusted. The hash is seeded by
    ``seed``, and knows only the number of a node.

    Args:
        num_subgraphs: Number T of subgraphs, in [1, 2^20].

    Raises:
        InvalidParameterError: If ``num_subgraphs`` is no integer in that range.

    Example:
        >>> SubgraphVoting(num_subgraphs=50)
        SubgraphVoting(num_subgraphs=50)

    References:
        Li and Wang (2025), AGNNCert (node-centred division); docs/proofs/subgraph_voting.md.
    """

    name = "subgraphs"
    claims = (
        Claim(threat="node-features", proofs={"exact": "subgraph_voting"}),
        Claim(threat="features-and-out-edges", proofs={"exact": "subgraph_voting"}),
        Claim(threat="node-takeover", proofs={"exact": "takeover"}),
    )
    draws_allowed = ()
    adds = (
        Field(
            "subgraph_predictions",
            "int",
            ("targets", "subgraphs"),
            "The class that each subgraph votes for; -1 where its scores single out none.",
            stage="drawn",
            at_least=NO_CLASS,
            at_most="classes",
            dtype="int32",
        ),
        Field(
            "num_attackable",
            "int",
            ("targets",),
            "Subgraphs in which a node that may be hostile has a path to the target; all if it may add edges.",
            stage="concluded",
            at_least=0,
            column="num_attackable",
        ),
    )
    method_home = "graycert.smoothing.subgraphs.method"
    in_plain_words = (
        "the majority of its answers on parts of the graph, each of which has some of the edges: nothing is drawn"
    )
    allows_parallel_edges = True
    needs_graph = True
    shows_target = True
    examines_all_radii = True

    num_subgraphs: int = parameter(help="Number of subgraphs that vote.", label="Subgraphs T", option=int)

    def axes(self, setup: "Setup") -> dict[str, int]:
        """Return how many subgraphs vote."""
        del setup
        return {"subgraphs": self.num_subgraphs}

    def __post_init__(self) -> None:
        """Check the domain."""
        number = check_integer("num_subgraphs", self.num_subgraphs, at_least=1, at_most=MOST_SUBGRAPHS)
        object.__setattr__(self, "num_subgraphs", number)

    @property
    def sizes(self) -> Mapping[str, int]:
        """One vote per subgraph."""
        return {"subgraphs": self.num_subgraphs}

    def classifier(self, setup: "Setup") -> str:
        """Say what is certified, to follow "the classifier"."""
        return (
            f"is the majority vote of the {setup.num_layers}-step model over {self.num_subgraphs:,} subgraphs, into "
            "which a hash of its source puts each edge; nothing is said about the model on the whole graph."
        )

    def chance(self, certificates: "Certificates") -> str:
        """Say that it is certain."""
        del certificates
        return (
            "Nothing is drawn: these statements hold with certainty, up to how floating point breaks near-ties of "
            "scores."
        )

    def bound_in_words(self, setup: "Setup") -> str:
        """Say when the radius is tight."""
        del setup
        return (
            "Radii count votes, exactly: if all subgraphs that hostile nodes reach can vote for anything, none is "
            "larger."
        )
