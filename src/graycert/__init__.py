"""graycert: prove which predictions of a graph neural network cannot change.

Even if an adversary controls all features of ρ whole nodes. Implements Scholten et al., "Randomized
Message-Interception Smoothing: Gray-box Certificates for Graph Neural Networks" (NeurIPS 2022), and
tighter certificates for the same adversary.

Public names are imported on first use, so that the mathematical core works, and ``graycert --help`` answers,
without loading torch.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.audit import audit_model as audit_model
    from graycert.bounds.evaluation import delta_bounds as delta_bounds
    from graycert.bounds.structural_deltas import structural_delta_bounds as structural_delta_bounds
    from graycert.certificates import NodeCertificates as NodeCertificates
    from graycert.certification import certify as certify
    from graycert.certification.again import certify_again as certify_again
    from graycert.certification.by_retention import certify_by_retention as certify_by_retention
    from graycert.certification.collective import certify_collectively as certify_collectively
    from graycert.certification.possible_labels import possible_labels as possible_labels
    from graycert.certification.randomized_ablation import certify_randomized_ablation as certify_randomized_ablation
    from graycert.certification.sequential import certify_sequentially as certify_sequentially
    from graycert.data import inductive_split as inductive_split
    from graycert.data import load_graph as load_graph
    from graycert.data import prepare_graph as prepare_graph
    from graycert.data import transductive_split as transductive_split
    from graycert.errors import GraycertError as GraycertError
    from graycert.errors import InvalidFileError as InvalidFileError
    from graycert.errors import InvalidParameterError as InvalidParameterError
    from graycert.errors import UnsoundSetupError as UnsoundSetupError
    from graycert.errors import VerificationError as VerificationError
    from graycert.models import build_model as build_model
    from graycert.models import load_model as load_model
    from graycert.models import save_model as save_model
    from graycert.rules import certify_votes as certify_votes
    from graycert.runs.verify import verify as verify
    from graycert.smoothing.interception.parameters import InterceptionSmoothing as InterceptionSmoothing
    from graycert.smoothing.randomized_ablation.parameters import RandomizedAblation as RandomizedAblation
    from graycert.smoothing.retention.parameters import UniformRetention as UniformRetention
    from graycert.threats.node_features import NodeFeatureThreat as NodeFeatureThreat
    from graycert.threats.structural import EdgeDeletionThreat as EdgeDeletionThreat
    from graycert.threats.structural import NodeDeletionThreat as NodeDeletionThreat
    from graycert.threats.structural import NodeInsertionThreat as NodeInsertionThreat
    from graycert.training import train as train

__version__ = "0.1.0"

_HOME = {
    "EdgeDeletionThreat": "graycert.threats.structural",
    "GraycertError": "graycert.errors",
    "InterceptionSmoothing": "graycert.smoothing.interception.parameters",
    "InvalidFileError": "graycert.errors",
    "InvalidParameterError": "graycert.errors",
    "NodeCertificates": "graycert.certificates",
    "NodeDeletionThreat": "graycert.threats.structural",
    "NodeFeatureThreat": "graycert.threats.node_features",
    "NodeInsertionThreat": "graycert.threats.structural",
    "RandomizedAblation": "graycert.smoothing.randomized_ablation.parameters",
    "UniformRetention": "graycert.smoothing.retention.parameters",
    "UnsoundSetupError": "graycert.errors",
    "VerificationError": "graycert.errors",
    "audit_model": "graycert.audit",
    "build_model": "graycert.models",
    "certify": "graycert.certification",
    "certify_again": "graycert.certification.again",
    "certify_by_retention": "graycert.certification.by_retention",
    "certify_collectively": "graycert.certification.collective",
    "certify_randomized_ablation": "graycert.certification.randomized_ablation",
    "certify_sequentially": "graycert.certification.sequential",
    "certify_votes": "graycert.rules",
    "delta_bounds": "graycert.bounds.evaluation",
    "inductive_split": "graycert.data",
    "load_graph": "graycert.data",
    "load_model": "graycert.models",
    "possible_labels": "graycert.certification.possible_labels",
    "prepare_graph": "graycert.data",
    "save_model": "graycert.models",
    "structural_delta_bounds": "graycert.bounds.structural_deltas",
    "train": "graycert.training",
    "transductive_split": "graycert.data",
    "verify": "graycert.runs.verify",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
__all__ += ["__version__"]
