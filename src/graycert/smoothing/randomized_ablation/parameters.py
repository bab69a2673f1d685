"""The smoothing distribution of Levine and Feizi (2020), on nodes: exactly k keep their features (App. B)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from graycert._fields import Field
from graycert._parameters import parameter
from graycert._validation import check_choice, check_integer, check_probability
from graycert.errors import InvalidParameterError
from graycert.smoothing.protocol import Claim, Smoothing

if TYPE_CHECKING:
    from graycert.setup import Setup

SCOPES = ("global", "local")

_ABLATE_HINT = "It is the chance of replacing a node's features, not of keeping them."


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomizedAblation(Smoothing):
    """Keep the features of exactly k nodes, drawn uniformly, and replace all others by the token; delete no edge.

    Scope "global" draws from all n nodes of the graph, once for all targets. Scope "local" draws, for each target
    anew, from the n nodes of its receptive field, the target included, and ablates everything outside.

    Args:
        scope: "global" or "local".
        num_kept: Number k of nodes to keep, >= 0; with fewer nodes than k all of them are kept.
        p_ablate: Instead of ``num_kept``: keep as many as independent ablation with this probability keeps in
            expectation, see `matched_num_kept`; in [0, 1].

    Raises:
        InvalidParameterError: If an argument is out of its domain, or not exactly one of ``num_kept`` and
            ``p_ablate`` is given.

    Example:
        >>> RandomizedAblation(scope="local", p_ablate=0.72).num_kept_among(21)
        6

    References:
        Levine and Feizi (2020); Scholten et al. (2022), App. B.
    """

    name = "randomized-ablation"
    claims = (Claim(threat="node-features", proofs={"sound": "levine"}),)
    adds = (
        Field(
            "num_candidates",
            "int",
            ("targets",),
            "Number n of nodes that draws choose from.",
            stage="graph",
            at_least=0,
            column="num_candidates",
        ),
        Field(
            "num_shown",
            "int",
            ("targets",),
            "Number k of them that keep their features.",
            stage="graph",
            at_least=0,
            column="num_shown",
        ),
    )
    method_home = "graycert.smoothing.randomized_ablation.method"
    in_plain_words = "the majority of its answers when the features of nodes, drawn at random, are hidden from it"
    allows_parallel_edges = True

    scope: str = parameter(default="global", help="Nodes are drawn from: global or local.", label="Scope", option=str)
    num_kept: int | None = parameter(
        default=None, help="Nodes that keep their features.", label="Nodes kept k", option=int
    )
    p_ablate: float | None = parameter(
        default=None,
        help="Chance of ablating a node's features.",
        label="Node ablation p_a that k matches",
        option=float,
    )

    def __post_init__(self) -> None:
        """Check the domains."""
        check_choice("scope", self.scope, SCOPES, hint="'local' draws from each receptive field on its own.")
        if (self.num_kept is None) == (self.p_ablate is None):
            raise InvalidParameterError(
                "Exactly one of `num_kept` and `p_ablate` must be given, got "
                f"num_kept={self.num_kept!r} and p_ablate={self.p_ablate!r}. Pass the number of nodes to keep, or the "
                "ablation probability that it is to match."
            )
        if self.num_kept is not None:
            kept = check_integer("num_kept", self.num_kept, at_least=0, hint="It counts nodes that keep features.")
            object.__setattr__(self, "num_kept", kept)
        else:
            ablate = check_probability("p_ablate", self.p_ablate, hint=_ABLATE_HINT)
            object.__setattr__(self, "p_ablate", ablate)

    def classifier(self, setup: "Setup") -> str:
        """Say what is certified, to follow "the classifier"."""
        kept = f"{self.num_kept:,}" if self.p_ablate is None else f"a share of {1 - self.p_ablate:g}, rounded up,"
        if self.scope == "global":
            where = "of all nodes of the graph"
            model = "the model, whatever it does with its arguments,"
        else:
            where = "of the nodes of the target's receptive field"
            model = f"the {setup.num_layers}-step model"
        return (
            f"is the majority vote of {model} over graphs in which {kept} {where}, drawn at random, keep their "
            "features and all others are ablated; nothing is said about the model without smoothing."
        )

    def num_kept_among(self, num_nodes: int) -> int:
        """Return how many of ``num_nodes`` nodes keep their features.

        Raises:
            InvalidParameterError: If ``num_nodes`` is no integer >= 0.
        """
        if self.p_ablate is not None:
            return matched_num_kept(num_nodes=num_nodes, p_ablate=self.p_ablate)
        num_nodes = check_integer("num_nodes", num_nodes, at_least=0)
        return num_nodes if self.num_kept is None else min(self.num_kept, num_nodes)


def matched_num_kept(*, num_nodes: int, p_ablate: float) -> int:
    r"""Return how many nodes to keep so that Levine's distribution matches independent ablation.

    $$k = \lceil n(1-p_a) \rceil,\qquad\text{the smallest } k \text{ with } 1-\tfrac{k}{n} \le p_a$$

    The comparison of App. B sets $p_a = 1-k/n$, so k is the number of *kept* nodes. The caption of its figure calls
    $\lfloor (n-1)p_a \rfloor$ the number "not to ablate"; that is about the number to ablate, and ablating so many of
    n - 1 nodes keeps $\lceil (n-1)(1-p_a) \rceil$ of them, as here.

    Guarantee:
        Exact: ``p_ablate`` is read as the decimal number that it prints as, so 0.7 of 10 nodes keeps 3, not 4. With
        this k, $1-p_a^\rho \le \Delta^L(\rho)$ for all ρ <= n, strictly if 0 < k < n and ρ > 1. Rounded the other way
        (fewer nodes kept), that fails.

    Args:
        num_nodes: Number n of nodes to draw from, >= 0.
        p_ablate: Probability p_a of ablating a node's features, in [0, 1].

    Returns:
        k in 0..num_nodes.

    Raises:
        InvalidParameterError: If an argument is out of range.

    Example:
        >>> matched_num_kept(num_nodes=10, p_ablate=0.9)
        1

    References:
        Scholten et al. (2022), App. B, "Tighter guarantees"; docs/proofs/levine.md.
    """
    num_nodes = check_integer("num_nodes", num_nodes, at_least=0)
    ablated = Fraction(repr(check_probability("p_ablate", p_ablate, hint=_ABLATE_HINT)))
    kept = num_nodes * (1 - ablated)
    return -(-kept.numerator // kept.denominator)
