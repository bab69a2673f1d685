"""Who may change the graph itself: nodes deleted, nodes inserted, edges deleted (end of §5 of the paper)."""

from dataclasses import dataclass

from graycert._parameters import parameter
from graycert._types import BoolArray
from graycert._validation import check_choice, check_integer
from graycert.errors import UnsoundSetupError
from graycert.threats.node_features import NodeFeatureThreat
from graycert.threats.threat import Threat, any_of

CONVOLUTIONS = ("local", "degree-normalised")
"""What a message may depend on: the state of its sender, or also the in-degree of the sender in the drawn graph."""

_FAMILIES = {
    # graycert's architectures; GCN and SMA weigh messages by 1/sqrt(d_w d_u) with the in-degrees that survive
    "gcn": "degree-normalised",
    "sma": "degree-normalised",
    "gat": "local",
    "gatv2": "local",
    # layers of PyTorch Geometric
    "GCNConv": "degree-normalised",
    "SGConv": "degree-normalised",
    "TAGConv": "degree-normalised",
    "APPNP": "degree-normalised",
    "GATConv": "local",
    "GATv2Conv": "local",
    "SAGEConv": "local",
    "GINConv": "local",
}


def convolution_family(name: str) -> str:
    """Return which of ``CONVOLUTIONS`` an architecture of graycert or a layer of PyTorch Geometric is.

    A model with layers of both families is degree-normalised.

    Args:
        name: An architecture ("gcn", "gat", "gatv2", "sma") or the class name of a layer ("GCNConv", ...).

    Raises:
        UnsoundSetupError: ``unknown-convolution``, if nothing is known about it. ChebConv, for example, normalises by
            the *out*-degree of the sender, which no family covers.

    Example:
        >>> convolution_family("gcn"), convolution_family("gat")
        ('degree-normalised', 'local')

    References:
        docs/proofs/structural_threats.md, "Families of convolutions".
    """
    if name not in _FAMILIES:
        raise UnsoundSetupError(
            "unknown-convolution",
            f"`name` must be one of {', '.join(_FAMILIES)}, got {name!r}: how far a removed node or edge is noticed "
            "depends on the convolution. If you know what its messages depend on, pass one of "
            f"{', '.join(CONVOLUTIONS)} as `convolution`.",
        )
    return _FAMILIES[name]


@dataclass(frozen=True, kw_only=True, eq=False)
class StructuralThreat(Threat):
    """An adversary who changes the graph. The target itself always stays.

    Args:
        convolution: "local" if the message of a node depends on nothing but its state, "degree-normalised" if also on
            its in-degree in the drawn graph; see ``convolution_family``. None leaves it to the audit, which knows it of
            graycert's own models and of chains of well-known layers, and asks for it otherwise.
        min_distance: Smallest number of edges >= 1 from what the adversary changes to the target.

    Raises:
        InvalidParameterError: If ``convolution`` is another word or ``min_distance`` < 1.
    """

    convolution: str | None = parameter(
        default=None, option=str, help="What the model's messages depend on: local or degree-normalised."
    )
    min_distance: int = parameter(default=1, option=int, help="Changes are at least that many edges away.")

    def __post_init__(self) -> None:
        """Check the domains."""
        if self.convolution is not None:
            check_choice(
                "convolution", self.convolution, CONVOLUTIONS, hint="convolution_family says which one a model has."
            )
        distance = check_integer(
            "min_distance", self.min_distance, at_least=1, hint="The target itself is neither deleted nor inserted."
        )
        object.__setattr__(self, "min_distance", distance)

    @property
    def includes_target(self) -> bool:
        """Never: the target itself always stays."""
        return False

    def reach(self, num_layers: int) -> int:
        """Return over how many edges a model of ``num_layers`` steps can notice the change.

        One more for degree-normalised convolutions: a node ``num_layers`` hops away sends along its own in-degree,
        which its in-neighbours determine.

        Raises:
            UnsoundSetupError: ``unknown-convolution``, if ``convolution`` is None.

        Example:
            >>> NodeDeletionThreat(convolution="degree-normalised").reach(2)
            3
        """
        num_layers = check_integer("num_layers", num_layers, at_least=1)
        if self.convolution is None:
            raise UnsoundSetupError(
                "unknown-convolution",
                f"`convolution` must be given, one of {', '.join(CONVOLUTIONS)}, because the model is not one whose "
                "convolutions are known for certain, and how far a removed node or edge is noticed depends on them. "
                "Pass it to the threat, if you know what the model's messages depend on.",
            )
        return num_layers + (self.convolution == "degree-normalised")


def refuse_another_convolution(threat: Threat, *, known: str) -> None:
    """Refuse a threat that says something else about the model's messages than what is known of them.

    Raises:
        UnsoundSetupError: ``unknown-convolution``.
    """
    said = getattr(threat, "convolution", None)
    if said not in (None, known):
        raise UnsoundSetupError(
            "unknown-convolution",
            f"`convolution` must be {known!r} for this model, whose layers are known, got {said!r}. Leave it out.",
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeThreat(StructuralThreat):
    """An adversary who chooses up to ρ nodes; see ``StructuralThreat`` for ``convolution`` and ``min_distance``.

    Args:
        trusted: Nodes that the adversary cannot choose: boolean, shape (num_nodes,), True where trusted; None trusts
            none.
    """

    trusted: BoolArray | None = parameter(default=None, option="nodes", per="node", help="Nodes that are never chosen.")

    def __post_init__(self) -> None:
        """Check the domains and freeze the mask."""
        super().__post_init__()
        object.__setattr__(self, "trusted", self.hostile_nodes().trusted)

    def hostile_nodes(self) -> NodeFeatureThreat:
        """Return the threat to features that may strike the same nodes."""
        return NodeFeatureThreat(min_distance=self.min_distance, trusted=self.trusted)


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeDeletionThreat(NodeThreat):
    """The adversary deletes up to ρ nodes of the graph at hand, with all their edges.

    The same bound holds if these nodes stay, and the adversary changes their features and deletes any of their edges.

    Example:
        >>> NodeDeletionThreat().describe()
        'deleting nodes at distance >= 1 from the target'

    References:
        Scholten et al. (2022), Section 5 "Threat model extensions"; docs/proofs/structural_threats.md.
    """

    name = "node-deletion"

    def describe(self) -> str:
        """Return what is done, in words."""
        return f"deleting nodes at distance >= {self.min_distance} from the target{_excepted(self.trusted)}"

    @property
    def statement(self) -> str:
        """What a certificate of radius ρ says, to follow "the classifier keeps its prediction for a target"."""
        return (
            f"if up to ρ nodes at distance >= {self.min_distance} from the target{_excepted(self.trusted)} are deleted "
            "with all their edges. The rest of the graph is fixed."
        )

    def against(self, budget: int) -> str:
        """Say what a prediction that is certified at a budget withstands, to follow "keep their prediction"."""
        deleted = "is deleted with its edges" if budget == 1 else "are deleted with their edges"
        return f"if {_nodes(self, budget)} {deleted}; the rest of the graph is taken as given"


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeInsertionThreat(NodeThreat):
    """Up to ρ nodes of the graph at hand were inserted by the adversary, with any features and any edges.

    The graph at hand is the perturbed one: its structure is known, which nodes are hostile is not. Insertion into a
    clean graph cannot be certified this way, since the edges of the new nodes are not known.

    Example:
        >>> NodeInsertionThreat().describe()
        'having inserted nodes at distance >= 1 from the target'

    References:
        Scholten et al. (2022), Section 5 "Threat model extensions"; docs/proofs/structural_threats.md.
    """

    name = "node-insertion"

    def describe(self) -> str:
        """Return what is done, in words."""
        return f"having inserted nodes at distance >= {self.min_distance} from the target{_excepted(self.trusted)}"

    @property
    def statement(self) -> str:
        """What a certificate of radius ρ says, to follow "the classifier keeps its prediction for a target"."""
        return (
            f"if up to ρ nodes at distance >= {self.min_distance} from the target{_excepted(self.trusted)} had not "
            "been inserted: the graph at hand is the perturbed one. The rest of the graph is fixed."
        )

    def against(self, budget: int) -> str:
        """Say what a prediction that is certified at a budget withstands, to follow "keep their prediction"."""
        return f"if {_nodes(self, budget)} had not been inserted; the rest of the graph is taken as given"


@dataclass(frozen=True, kw_only=True, eq=False)
class EdgeDeletionThreat(StructuralThreat):
    """The adversary deletes up to ρ directed edges of the graph at hand; an undirected edge counts as two.

    An edge into the target is at distance 1. Self-loops are never deleted. On a perturbed graph the same certificate
    says that the prediction was the same before up to ρ of its edges were inserted.

    Example:
        >>> EdgeDeletionThreat(min_distance=2).describe()
        'deleting edges at distance >= 2 from the target'

    References:
        Scholten et al. (2022), Section 5 "Threat model extensions" (a remark); docs/proofs/structural_threats.md.
    """

    name = "edge-deletion"
    unit = "edges"
    within_field = False

    def describe(self) -> str:
        """Return what is done, in words."""
        return f"deleting edges at distance >= {self.min_distance} from the target"

    @property
    def statement(self) -> str:
        """What a certificate of radius ρ says, to follow "the classifier keeps its prediction for a target"."""
        return (
            f"if up to ρ directed edges at distance >= {self.min_distance} from the target are deleted. The rest of "
            "the graph is fixed."
        )

    def against(self, budget: int) -> str:
        """Say what a prediction that is certified at a budget withstands, to follow "keep their prediction"."""
        where = "" if self.min_distance == 1 else f" at least {self.min_distance} steps away"
        edges = any_of(budget, f"directed edge{where} is", f"directed edges{where} are")
        return f"if {edges} deleted; the rest of the graph is taken as given"


def _nodes(threat: NodeThreat, budget: int) -> str:
    who = any_of(budget, "other node", "other nodes")
    where = "" if threat.min_distance == 1 else f" at least {threat.min_distance} hops away"
    return f"{who}{where}{'' if threat.trusted is None else ' that nobody said to trust'}"


def _excepted(trusted: BoolArray | None) -> str:
    if trusted is None:
        return ""
    number = trusted.size if trusted.dtype.kind == "U" else int(trusted.sum())  # names, or a mask
    return f" ({number:,} trusted nodes excepted)"
