"""What a way to smooth and certify consists of: its parameters and claims here, without torch; its work in a `Method`.

A new one is a folder with a subclass of `Smoothing` and a `Method`, and an entry in ``graycert.smoothing.SMOOTHINGS``:
the command line, files, tables, reports, verification and experiments follow from what it declares.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from numpy.typing import NDArray

from graycert._fields import Field
from graycert._parameters import Parameters
from graycert._types import BoolArray, FloatArray, IntArray
from graycert._validation import check_choice
from graycert.draws import AnyDraws, Draws, UntilDecided
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.threats.threat import Threat

if TYPE_CHECKING:
    from graycert.certificates import Certificates
    from graycert.problem import Problem
    from graycert.rules import CollectiveCertificate
    from graycert.setup import Setup

Follows = Literal["again", "early stopping", "possible labels", "one adversary"]
FOLLOWS: tuple[Follows, ...] = ("again", "early stopping", "possible labels", "one adversary")
"""What can be concluded beyond a certificate per target."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What is proved of a smoothing against one threat.

    Args:
        threat: Name of the threat (`Threat.claimed_as`).
        proofs: Page of docs/proofs for each rule, by its name, the default first; empty for a rule that proves nothing
            and only compares with published numbers.
        follows: Page of docs/proofs for what else follows from votes, by its name.
    """

    threat: str
    proofs: Mapping[str, str]
    follows: Mapping[Follows, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Whether a combination of smoothing, threat, rule and conclusion is certified.

    Attributes:
        status: "proved", "compared" (computed, but it proves nothing: rule "paper") or "refused".
        proof: Page of docs/proofs, if proved.
        slug: Entry of docs/messages.md, if refused.
        reason: Why it is refused, and what to do instead.
    """

    status: Literal["proved", "compared", "refused"]
    proof: str = ""
    slug: str = ""
    reason: str = ""

    def require(self) -> None:
        """Raise if it is refused.

        Raises:
            UnsoundSetupError: With the slug.
        """
        if self.status == "refused":
            raise UnsoundSetupError(self.slug, self.reason)


@dataclass(frozen=True, kw_only=True, eq=False)
class FromGraph:
    """What a method computes of the graph alone.

    Attributes:
        arrays: Arrays of stage "graph" by name; ``num_eligible`` and ``receptive_field_size`` at least.
        worst_set: Called with the position of a target and a number of nodes: those that harm it most, as far as is
            known; None if nothing is.
    """

    arrays: Arrays
    worst_set: Callable[[int, int], IntArray] | None = None


class Method(ABC):
    """The work of a smoothing, in the steps that `graycert.certification` goes through."""

    def refuse(self, problem: "Problem") -> None:
        """Refuse what the form of the model, the threat and the targets rule out: known before a model is trained."""
        del problem

    @abstractmethod
    def prepare(self, problem: "Problem") -> "Problem":
        """Refuse a model that cannot be certified; return the problem with what was found of it in the set-up."""

    @abstractmethod
    def from_graph(self, problem: "Problem") -> FromGraph:
        """Compute what the graph alone says; ``problem.model`` may be None."""

    @abstractmethod
    def draw(self, problem: "Problem", found: FromGraph) -> tuple["Setup", Arrays]:
        """Draw votes, or evaluate the model; return the set-up with engine and classes, and arrays of stage "drawn".

        ``prediction_as_trained`` among them, if it is not left to one pass of the model over the graph.
        """

    @abstractmethod
    def conclude(self, problem: "Problem", found: FromGraph, drawn: Mapping[str, NDArray[Any]]) -> Arrays:
        """Return arrays of stage "concluded": prediction and radius at least. Nothing is drawn.

        ``problem.graph`` is None where the smoothing does not need the graph and it is not at hand.
        """

    def single_sources(self, problem: "Problem") -> Any:
        """Return how much each node can do to each target, in [0, 1], sparse (num_targets, num_nodes), to be shown.

        None where nothing is known of single nodes.
        """
        del problem

    def against_one_adversary(
        self, problem: "Problem", certificates: "Certificates", *, budgets: IntArray, **options: Any
    ) -> "CollectiveCertificate":
        """Count the targets that survive the same ρ hostile nodes, for each of the ``budgets``; nothing is drawn.

        Args:
            problem: Set-up, targets and graph of the certificates; no model.
            certificates: What was concluded for each target on its own.
            budgets: Numbers ρ of hostile nodes, rising, >= 1.
            options: ``groups``, ``group_budgets``, ``method`` and ``time_limit``, see
                `graycert.Certificates.against_one_adversary`.

        Raises:
            UnsoundSetupError: ``no-proof``, where the smoothing claims nothing about that.
        """
        del certificates, budgets, options
        raise UnsoundSetupError(
            "no-proof",
            f"The smoothing '{problem.smoothing.name}' has no certificate against one adversary for all targets.",
        )


class Smoothing(Parameters, ABC):
    """A family of graphs that a classifier is smoothed over, and what is known of it.

    Attributes:
        claims: What is proved, the default threat first. Everything else is refused.
        draws_allowed: What `certify` may be told to draw, the default first; nothing if nothing is drawn.
        bounds: Names of its bounds on Δ, the default first.
        adds: Arrays that its results have besides those of every result.
        method_home: Module of its `Method`, which is called ``METHOD``.
        needs_graph: Whether a conclusion from stored votes needs the graph, beyond what the result holds of it.
        allows_parallel_edges: Whether a column of ``edge_index`` may come twice: where no edge has a coin of its own.
        examines_all_radii: Whether every radius is known, so that ``max_radius`` has no meaning.
        edge_inputs_proofs: Page of docs/proofs for models that are given values per edge, by the name of the threat.
        remedy: What to do where the smoothed classifier has lost a class, as a sentence.
        shows_target: Whether the target's own features are always shown, so that only a target that is not hostile can
            be certified.
        evaluates_quickly: Whether evaluating the model again costs so little that `verify` does it whenever it has the
            model.
        sees_single_nodes: Whether it is made of a model of single nodes, so that what this one says is the floor.
        reads_structure: Whether anything but the target's own features decides.
        in_plain_words: What the answer of the smoothed classifier is, to follow "not one answer of the model, but".
        learns_by: How the command line trains a model for it: under "interception", or by "distillation" into one of
            single nodes.
    """

    claims: ClassVar[tuple[Claim, ...]]
    draws_allowed: ClassVar[tuple[type[AnyDraws], ...]] = (Draws,)
    bounds: ClassVar[tuple[str, ...]] = ("auto",)
    adds: ClassVar[tuple[Field, ...]] = ()
    method_home: ClassVar[str]
    needs_graph: ClassVar[bool] = False
    allows_parallel_edges: ClassVar[bool] = False
    examines_all_radii: ClassVar[bool] = False
    edge_inputs_proofs: ClassVar[Mapping[str, str]] = {}
    remedy: ClassVar[str] = "Train the model under smoothing (graycert.train(..., smoothing=...)), or smooth less."
    shows_target: ClassVar[bool] = False
    evaluates_quickly: ClassVar[bool] = False
    sees_single_nodes: ClassVar[bool] = False
    reads_structure: ClassVar[bool] = True
    in_plain_words: ClassVar[str] = "what the smoothing makes of its answers"
    learns_by: ClassVar[str] = "interception"

    @abstractmethod
    def classifier(self, setup: "Setup") -> str:
        """Say what is certified, to follow "the classifier", as a whole sentence or two."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Sizes of axes of what it adds, by name, where its parameters say them."""
        return {}

    def idle(self, threat: Threat) -> Mapping[str, str]:
        """Return the parameters that have no effect against a threat, with what they belong to, as options say it."""
        del threat
        return {}

    def default_draws(self) -> AnyDraws | None:
        """Return what is drawn if nothing else is said."""
        return self.draws_allowed[0]() if self.draws_allowed else None

    def chance(self, certificates: "Certificates") -> str | None:
        """Say how surely the statements hold; None for the sentence that fits the rule and the failure probability."""
        del certificates
        return None

    def bound_in_words(self, setup: "Setup") -> str:
        """Say what Δ̄ comes from and what that means for the radii."""
        return (
            "Radii are lower bounds: Δ̄(ρ), the probability that a hostile message arrives, is bounded from above "
            f"(bound '{setup.bound}'), so a prediction may hold further than stated."
        )

    def nothing_shown(self, receptive_field_size: IntArray) -> FloatArray | None:
        """Return a lower bound on the share of draws in which no node in a field shows its features.

        What a skip connection shows of the target itself, past the smoothing, does not count. None where nothing is
        known.
        """
        del receptive_field_size
        return None

    def possible_labels(self, certificates: "Certificates", radius: int) -> BoolArray | None:
        """Return the classes that ``radius`` hostile nodes could force, (num_targets, num_classes), from a result.

        None where they follow from votes that were drawn.
        """
        del certificates, radius
        return None

    def heard(self, certificates: "Certificates", rows: IntArray) -> tuple[IntArray, FloatArray] | None:
        """Return who is heard on some targets, padded with -1, and how much each could do, as shares in [0, 1].

        Both have the shape (rows.size, most heard). None where messages along edges say who is heard.
        """
        del certificates, rows
        return None

    def exact_votes(self, certificates: "Certificates", row: int) -> list[tuple[int, str, str]]:
        """Return of each class its score, and how much of the adversary's budget cannot make it win; none if sampled.

        Args:
            certificates: Certificates of this smoothing.
            row: Position of a target.
        """
        del certificates, row
        return []

    def shows_trusted(self, trusted: BoolArray) -> bool:
        """Return whether features of these nodes are never hidden, so that more of them make another smoothing."""
        del trusted
        return False

    @property
    def method(self) -> Method:
        """The code that does the work; torch is loaded where it calls a model."""
        return cast("Method", import_module(self.method_home).METHOD)

    def with_canonical_edges(self, reorder: Callable[[NDArray[Any]], NDArray[Any]]) -> "Smoothing":
        """Return the smoothing with values per edge in another order; most have none."""
        del reorder
        return self

    def axes(self, setup: "Setup") -> Mapping[str, int]:
        """Return the sizes of axes of what it adds that follow from the set-up, by name."""
        del setup
        return {}

    def check_graph(self, *, num_edges: int, num_nodes: int) -> None:
        """Refuse parameters that are not of a graph with so many edges and nodes."""

    @classmethod
    def default_rule(cls, threat: Threat, draws: AnyDraws | None) -> str:
        """Return the rule if none is asked for."""
        if isinstance(draws, UntilDecided):
            return "sequential"
        found = next((claim for claim in cls.claims if claim.threat == threat.claimed_as), cls.claims[0])
        return next(iter(found.proofs))

    @classmethod
    def cell(cls, threat: str, rule: str, follows: Follows | None = None) -> Cell:
        """Say whether a combination is certified.

        Args:
            threat: Name of a threat.
            rule: Name of a rule.
            follows: What else is to follow; None for the certificate per target.
        """
        claim = next((claim for claim in cls.claims if claim.threat == threat), None)
        known = ", ".join(claim.threat for claim in cls.claims)
        if claim is None:
            reason = (
                f"Nothing is proved about the smoothing '{cls.name}' against the threat '{threat}'. It is certified "
                f"against: {known}."
            )
            return cls.refusal(threat) or Cell(status="refused", slug="no-proof", reason=reason)
        if rule not in claim.proofs:
            return Cell(
                status="refused",
                slug="no-proof",
                reason=f"Nothing is proved about the smoothing '{cls.name}' by the rule '{rule}' against the threat "
                f"'{threat}'. Rules with a proof: {', '.join(name for name, page in claim.proofs.items() if page)}.",
            )
        page = claim.proofs[rule]
        if follows is None or follows == "again":
            return Cell(status="proved", proof=page) if page else Cell(status="compared")
        if not page:
            return Cell(
                status="refused",
                slug="unsound-rule",
                reason=f"`rule` must be a sound one for this, got {rule!r}, whose margins and radii are not proved. "
                "Certify with rule 'sound'.",
            )
        if follows == "early stopping":
            if rule == "sequential":
                return Cell(status="proved", proof=page)
            reason = (
                "Sampling that stops when the votes decide is certified by the rule 'sequential' alone, got rule "
                f"'{rule}'. Only bets may be looked at while votes come in. Leave `rule` out, or draw a fixed number."
            )
            return Cell(status="refused", slug="no-proof", reason=reason)
        if follows not in claim.follows or rule == "sequential":
            reason = (
                f"Nothing is proved about {_IN_WORDS[follows]} with the smoothing '{cls.name}', the threat '{threat}' "
                f"and the rule '{rule}'."
            )
            return Cell(status="refused", slug="no-proof", reason=reason)
        return Cell(status="proved", proof=claim.follows[follows])

    @classmethod
    def edge_inputs_cell(cls, threat: Threat) -> Cell:
        """Say whether models that are given values per edge are certified against a threat."""
        page = cls.edge_inputs_proofs.get(threat.claimed_as)
        if page is not None:
            return Cell(status="proved", proof=page)
        return Cell(
            status="refused",
            slug="no-proof",
            reason=f"Nothing is proved about values per edge with the smoothing '{cls.name}' and the threat "
            f"'{threat.claimed_as}'. Certify the model without them, edge_inputs=(), or with another smoothing, "
            "such as InterceptionSmoothing against NodeFeatureThreat.",
        )

    @classmethod
    def refusal(cls, threat: str) -> Cell | None:
        """Return a reason of its own why a threat is refused."""
        if threat != "node-takeover":
            return None
        reason = (
            f"Nothing is proved about the smoothing '{cls.name}' against hostile nodes that choose their edges, "
            f"'{threat}': a single one between a target and others brings any number of honest messages with it, which "
            "no bound of this smoothing counts. Use BoundedVotes, SubgraphVoting or FeaturesOnly, or leave edges alone "
            "(NodeFeatureThreat)."
        )
        return Cell(status="refused", slug="hostile-edges", reason=reason)

    def check(self, *, threat: Threat, rule: str, draws: AnyDraws | None, bound: str) -> None:
        """Refuse what is not proved, and arguments that mean nothing here.

        Raises:
            InvalidParameterError: If ``draws`` or ``bound`` do not belong to this smoothing.
            UnsoundSetupError: If nothing is proved of the combination.
        """
        check_choice("bound", bound, self.bounds, hint=f"These are the bounds of the smoothing '{self.name}'.")
        if isinstance(draws, UntilDecided):
            self.cell(threat.claimed_as, rule, "early stopping").require()
        allowed = " or ".join(f"graycert.{each.__name__}" for each in self.draws_allowed)
        if self.draws_allowed and not isinstance(draws, self.draws_allowed):
            raise InvalidParameterError(
                f"`draws` must be {allowed} for the smoothing '{self.name}', got {draws!r}. Leave it out for the "
                "default."
            )
        if not self.draws_allowed and draws is not None:
            raise InvalidParameterError(
                f"`draws` must be None for the smoothing '{self.name}', because nothing is drawn, got {draws!r}. Leave "
                "it out."
            )
        self.cell(threat.claimed_as, rule).require()
        if rule == "sequential" and not isinstance(draws, UntilDecided):
            raise InvalidParameterError(
                f"`draws` must be graycert.UntilDecided for the rule 'sequential', got {draws!r}. It needs votes batch "
                "by batch. Leave `rule` out for fixed draws."
            )


_IN_WORDS: dict[str, str] = {
    "possible labels": "the labels that hostile nodes could force",
    "one adversary": "one adversary against all targets",
}
