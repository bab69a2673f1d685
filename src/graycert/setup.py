"""What certificates were made from: one set-up of smoothing, threat, draws, rule and graph, all of it stored."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from graycert._plain import plain_mapping
from graycert._validation import check_choice, check_integer, check_open_unit, check_seed
from graycert.draws import AnyDraws, Draws, UntilDecided
from graycert.errors import InvalidParameterError
from graycert.graph.values_per_edge import edge_input_names
from graycert.rules import Rule, rule_named
from graycert.smoothing import Smoothing
from graycert.threats import CONVOLUTIONS, Threat, refuse_another_convolution

_ASKED = (
    "threat",
    "draws",
    "rule",
    "bound",
    "alpha",
    "simultaneous",
    "max_radius",
    "seed",
    "num_layers",
    "edge_inputs",
)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What certificates were made from; all of it is stored.

    Attributes:
        smoothing: What the classifier is smoothed over. Values per edge are in the order of edges sorted by (target,
            source), self-loops included (`graycert.graph.CanonicalGraph`), whatever the order of ``edge_index``.
        threat: Who may do what.
        draws: How much was drawn; None where nothing is.
        rule: How votes were concluded from, see `graycert.rules.RULES`; "paper" is NOT SOUND.
        bound: How Δ̄ was to be bounded, e.g. "auto".
        alpha: Failure probability, per target or of all of them, see ``simultaneous``; all radii of a target hold
            jointly.
        simultaneous: Whether ``alpha`` is the chance that any of the targets is wrong, rather than each.
        max_radius: Largest radius that was looked at; None where all are known.
        seed: Seed of all that is drawn or hashed.
        num_layers: Message-passing steps k of the model; None where nothing is assumed of it.
        num_layers_assumed: Whether k is what the user said of a model that moves messages by means that cannot be
            counted: no influence beyond k hops was seen, and the statement holds if there is none.
        convolution: What the model's messages depend on, where it is known or was said; see `StructuralThreat`.
        engine: What drew the samples, or evaluated the model.
        memory_budget: Bytes that drawing was to keep to; None where it was not planned.
        memory_planned: Bytes that drawing was planned to take; as the budget it makes no two set-ups different.
        num_classes: Number of classes of the model.
        graph_fingerprint: Hash of the edges and features of the graph that was certified.
        edges_fingerprint: Hash of its edges alone, self-loops left out.
        num_nodes: Nodes of the graph.
        num_edges: Directed edges of the graph, self-loops included.
        class_names: Name per class, or None.
        edge_inputs: Names of the values per edge that the model was given, as `edge_input_names` returns them; None
            where nobody had to choose any.
        provenance: Where graph, split and model come from: nested plain values with text keys.
    """

    smoothing: Smoothing
    threat: Threat
    draws: AnyDraws | None
    rule: str
    bound: str = "auto"
    alpha: float = 0.01
    simultaneous: bool = False
    max_radius: int | None = 20
    seed: int = 0
    num_layers: int | None = None
    num_layers_assumed: bool = False
    convolution: str | None = None
    engine: str = "none"
    memory_budget: int | None = field(default=None, compare=False)
    memory_planned: int | None = field(default=None, compare=False)
    num_classes: int = 2
    graph_fingerprint: str = ""
    edges_fingerprint: str = ""
    num_nodes: int = 1
    num_edges: int = 0
    class_names: tuple[str, ...] | None = None
    edge_inputs: tuple[str, ...] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every value on its own."""
        for name, kinds in (("smoothing", Smoothing), ("threat", Threat)):
            if not isinstance(getattr(self, name), kinds):
                raise InvalidParameterError(
                    f"`{name}` must be a {kinds.__name__.lower()} of graycert, got {getattr(self, name)!r}."
                )
        if self.draws is not None and not isinstance(self.draws, Draws | UntilDecided):
            raise InvalidParameterError(f"`draws` must be graycert.Draws or UntilDecided, got {self.draws!r}.")
        checked: dict[str, Any] = {
            "rule": rule_named(self.rule).name,
            "alpha": check_open_unit("alpha", self.alpha, hint="It is a failure probability, e.g. 0.01."),
            "seed": check_seed(self.seed),
            "num_classes": check_integer("num_classes", self.num_classes, at_least=2),
            "num_nodes": check_integer("num_nodes", self.num_nodes, at_least=1),
            "num_edges": check_integer("num_edges", self.num_edges, at_least=0),
            "provenance": MappingProxyType(plain_mapping("provenance", self.provenance)),
        }
        for name in ("max_radius", "num_layers", "memory_budget", "memory_planned"):
            if getattr(self, name) is not None:
                checked[name] = check_integer(name, getattr(self, name), at_least=1)
        for name in ("simultaneous", "num_layers_assumed"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidParameterError(f"`{name}` must be True or False, got {getattr(self, name)!r}.")
        for name in ("bound", "engine", "graph_fingerprint", "edges_fingerprint"):
            if not isinstance(getattr(self, name), str) or (name in ("bound", "engine") and not getattr(self, name)):
                raise InvalidParameterError(f"`{name}` must be a text, got {getattr(self, name)!r}.")
        if self.convolution is not None:
            check_choice("convolution", self.convolution, CONVOLUTIONS)
            refuse_another_convolution(self.threat, known=self.convolution)
        if self.class_names is not None:
            names = tuple(self.class_names)
            if len(names) != self.num_classes or not all(isinstance(name, str) for name in names):
                raise InvalidParameterError(
                    f"`class_names` must hold one text per class ({self.num_classes}), got {names!r}."
                )
            if len(set(names)) < len(names):
                raise InvalidParameterError(f"`class_names` must be distinct, got {', '.join(names)}.")
            checked["class_names"] = names
        if self.edge_inputs is not None:
            checked["edge_inputs"] = edge_input_names(self.edge_inputs)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def allows_parallel_edges(self) -> bool:
        """Whether several edges may join two nodes: where no edge has a coin of its own, or all of them share one."""
        return self.smoothing.allows_parallel_edges or bool(self.edge_inputs)

    @property
    def the_rule(self) -> Rule:
        """The rule itself."""
        return rule_named(self.rule)

    def arguments(self, in_columns: Callable[[NDArray[Any]], NDArray[Any]]) -> dict[str, Any]:
        """Return the arguments of `graycert.certify` that make certificates of this set-up again.

        Args:
            in_columns: Puts values per edge into the order of a graph's ``edge_index``, see `CanonicalGraph`.
        """
        asked = {each: getattr(self, each) for each in _ASKED}
        return {**asked, "smoothing": self.smoothing.with_canonical_edges(in_columns)}

    def replace(self, **changes: Any) -> "Setup":
        """Return the set-up with some values changed."""
        return dataclasses.replace(self, **changes)
