"""The adversary of sparse smoothing: single binary attributes, anywhere in the graph."""

from dataclasses import dataclass

from graycert._parameters import parameter
from graycert._validation import check_integer
from graycert.threats.threat import Threat, any_of


@dataclass(frozen=True, kw_only=True, eq=False)
class AttributeFlipThreat(Threat):
    """The adversary deletes up to ρ ones and sets some zeros among the binary attributes of all nodes.

    The budget counts attributes, not nodes; any nodes, the target included. A hostile node that rewrites all of its
    features is only covered as far as its number of attributes goes.

    Args:
        max_additions: Largest number of zeros that are set besides, >= 0; the certificate has a table for 0, 1, ... of
            them, and the radius is that for none.

    Raises:
        InvalidParameterError: If ``max_additions`` is no integer >= 0.

    Example:
        >>> AttributeFlipThreat().describe()
        'deleting attributes of any nodes, the target included'

    References:
        Bojchevski, Klicpera and Günnemann (2020), Section 2; docs/proofs/sparse_smoothing.md.
    """

    name = "attribute-flips"
    unit = "attributes"
    within_field = False

    max_additions: int = parameter(default=0, option=int, help="Largest number of attributes that are set besides.")

    def __post_init__(self) -> None:
        """Check the domain."""
        object.__setattr__(self, "max_additions", check_integer("max_additions", self.max_additions, at_least=0))

    @property
    def includes_target(self) -> bool:
        """Always: the target's attributes are attributes like others."""
        return True

    def describe(self) -> str:
        """Return what is done, in words."""
        besides = f", and setting up to {self.max_additions:,} others" if self.max_additions else ""
        return f"deleting attributes{besides} of any nodes, the target included"

    @property
    def statement(self) -> str:
        """What a certificate of radius ρ says, to follow "the classifier keeps its prediction for a target"."""
        table = (
            f" The table says how many deletions it withstands together with 0 to {self.max_additions:,} additions."
            if self.max_additions
            else ""
        )
        return (
            "if up to ρ binary attributes that are set, of any nodes, the target included, are deleted. The graph "
            f"structure is fixed.{table}"
        )

    def against(self, budget: int) -> str:
        """Say what a prediction that is certified at a budget withstands, to follow "keep their prediction"."""
        which = any_of(budget, "attribute that is set is deleted", "attributes that are set are deleted")
        return f"if {which}, of whichever nodes; the graph structure is taken as given"
