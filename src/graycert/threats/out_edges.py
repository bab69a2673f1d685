"""Hostile nodes that also choose where their messages go: what votes of subgraphs withstand."""

from dataclasses import dataclass

from graycert.threats.threat import Threat, any_of


@dataclass(frozen=True, kw_only=True, eq=False)
class FeaturesAndOutEdgesThreat(Threat):
    """The adversary sets all features of up to ρ nodes other than the target, and adds and removes edges from them.

    Edges that start at other nodes stay. Nodes keep their numbers.

    Example:
        >>> FeaturesAndOutEdgesThreat().describe()
        'other than the target, with the edges that start at them'

    References:
        Li and Wang (2025), AGNNCert; docs/proofs/subgraph_voting.md.
    """

    name = "features-and-out-edges"
    within_field = False

    @property
    def includes_target(self) -> bool:
        """Never: the target is trusted."""
        return False

    def describe(self) -> str:
        """Return the threat in words, to follow "hostile nodes"."""
        return "other than the target, with the edges that start at them"

    @property
    def statement(self) -> str:
        """What a certificate of radius ρ says, to follow "the classifier keeps its prediction for a target"."""
        return (
            "whatever the features of up to ρ hostile nodes (other than the target) are set to, and whatever edges "
            "that start at them are added or removed. All other edges are fixed."
        )

    def against(self, budget: int) -> str:
        """Say what a prediction that is certified at a budget withstands, to follow "keep their prediction"."""
        who, them = any_of(budget, "other node", "other nodes"), "it" if budget == 1 else "them"
        return (
            f"whatever the features of {who} and the edges that start at {them} are; all other edges are taken as given"
        )
