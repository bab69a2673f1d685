"""Who may do what: the adversaries that certificates are about."""

from graycert.threats.attribute_flips import AttributeFlipThreat
from graycert.threats.node_features import NodeFeatureThreat
from graycert.threats.out_edges import FeaturesAndOutEdgesThreat
from graycert.threats.structural import (
    CONVOLUTIONS,
    EdgeDeletionThreat,
    NodeDeletionThreat,
    NodeInsertionThreat,
    NodeThreat,
    StructuralThreat,
    convolution_family,
    refuse_another_convolution,
)
from graycert.threats.takeover import NodeTakeoverThreat
from graycert.threats.threat import Threat

THREATS: dict[str, type[Threat]] = {
    threat.name: threat
    for threat in (
        NodeFeatureThreat,
        NodeDeletionThreat,
        NodeInsertionThreat,
        EdgeDeletionThreat,
        FeaturesAndOutEdgesThreat,
        NodeTakeoverThreat,
        AttributeFlipThreat,
    )
}
"""All threats by name."""

__all__ = [
    "CONVOLUTIONS",
    "THREATS",
    "AttributeFlipThreat",
    "EdgeDeletionThreat",
    "FeaturesAndOutEdgesThreat",
    "NodeDeletionThreat",
    "NodeFeatureThreat",
    "NodeInsertionThreat",
    "NodeTakeoverThreat",
    "NodeThreat",
    "StructuralThreat",
    "Threat",
    "convolution_family",
    "refuse_another_convolution",
]
