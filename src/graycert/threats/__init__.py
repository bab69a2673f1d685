"""Who may do what: the adversaries that certificates are about."""

from graycert.threats.node_features import NodeFeatureThreat
from graycert.threats.structural import (
    CONVOLUTIONS,
    EdgeDeletionThreat,
    NodeDeletionThreat,
    NodeInsertionThreat,
    NodeThreat,
    StructuralThreat,
    convolution_family,
)

__all__ = [
    "CONVOLUTIONS",
    "EdgeDeletionThreat",
    "NodeDeletionThreat",
    "NodeFeatureThreat",
    "NodeInsertionThreat",
    "NodeThreat",
    "StructuralThreat",
    "convolution_family",
]
