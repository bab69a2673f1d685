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
    from graycert.certificates import certify_votes as certify_votes
    from graycert.certification import certify as certify
    from graycert.certification.again import certify_again as certify_again
    from graycert.certification.by_retention import certify_by_retention as certify_by_retention
    from graycert.certification.collective import certify_collectively as certify_collectively
    from graycert.certification.randomized_ablation import certify_randomized_ablation as certify_randomized_ablation
    from graycert.certification.sequential import certify_sequentially as certify_sequentially
    from graycert.data import inductive_split as inductive_split
    from graycert.data import load_graph as load_graph
    from graycert.data import prepare_graph as prepare_graph
    from graycert.data import transductive_split as transductive_split
    from graycert.deltas import delta_bounds as delta_bounds
    from graycert.errors import GraycertError as GraycertError
    from graycert.errors import InvalidFileError as InvalidFileError
    from graycert.errors import InvalidParameterError as InvalidParameterError
    from graycert.errors import UnsoundSetupError as UnsoundSetupError
    from graycert.errors import VerificationError as VerificationError
    from graycert.models import build_model as build_model
    from graycert.models import load_model as load_model
    from graycert.models import save_model as save_model
    from graycert.randomized_ablation import RandomizedAblation as RandomizedAblation
    from graycert.results import NodeCertificates as NodeCertificates
    from graycert.results.possible_labels import possible_labels as possible_labels
    from graycert.retention import UniformRetention as UniformRetention
    from graycert.smoothing import InterceptionSmoothing as InterceptionSmoothing
    from graycert.structural_certification import structural_delta_bounds as structural_delta_bounds
    from graycert.structural_threats import EdgeDeletionThreat as EdgeDeletionThreat
    from graycert.structural_threats import NodeDeletionThreat as NodeDeletionThreat
    from graycert.structural_threats import NodeInsertionThreat as NodeInsertionThreat
    from graycert.threat import NodeFeatureThreat as NodeFeatureThreat
    from graycert.training import train as train
    from graycert.verification import verify as verify

__version__ = "0.1.0"

_HOME = {
    "EdgeDeletionThreat": "graycert.structural_threats",
    "GraycertError": "graycert.errors",
    "InterceptionSmoothing": "graycert.smoothing",
    "InvalidFileError": "graycert.errors",
    "InvalidParameterError": "graycert.errors",
    "NodeCertificates": "graycert.results",
    "NodeDeletionThreat": "graycert.structural_threats",
    "NodeFeatureThreat": "graycert.threat",
    "NodeInsertionThreat": "graycert.structural_threats",
    "RandomizedAblation": "graycert.randomized_ablation",
    "UniformRetention": "graycert.retention",
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
    "certify_votes": "graycert.certificates",
    "delta_bounds": "graycert.deltas",
    "inductive_split": "graycert.data",
    "load_graph": "graycert.data",
    "load_model": "graycert.models",
    "possible_labels": "graycert.results.possible_labels",
    "prepare_graph": "graycert.data",
    "save_model": "graycert.models",
    "structural_delta_bounds": "graycert.structural_certification",
    "train": "graycert.training",
    "transductive_split": "graycert.data",
    "verify": "graycert.verification",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
__all__ += ["__version__"]
