"""graycert: prove which predictions of a graph neural network cannot change.

Even if an adversary controls all features of ρ whole nodes. Implements Scholten et al., "Randomized
Message-Interception Smoothing: Gray-box Certificates for Graph Neural Networks" (NeurIPS 2022).

Public names are imported on first use, so that the mathematical core works, and ``graycert --help`` answers,
without loading torch.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.audit import audit_model as audit_model
    from graycert.certificates import certify_votes as certify_votes
    from graycert.certification import certify as certify
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
    from graycert.results import NodeCertificates as NodeCertificates
    from graycert.smoothing import InterceptionSmoothing as InterceptionSmoothing
    from graycert.threat import NodeFeatureThreat as NodeFeatureThreat
    from graycert.training import train as train
    from graycert.verification import verify as verify

__version__ = "0.1.0"

_HOME = {
    "GraycertError": "graycert.errors",
    "InterceptionSmoothing": "graycert.smoothing",
    "InvalidFileError": "graycert.errors",
    "InvalidParameterError": "graycert.errors",
    "NodeCertificates": "graycert.results",
    "NodeFeatureThreat": "graycert.threat",
    "UnsoundSetupError": "graycert.errors",
    "VerificationError": "graycert.errors",
    "audit_model": "graycert.audit",
    "build_model": "graycert.models",
    "certify": "graycert.certification",
    "certify_votes": "graycert.certificates",
    "delta_bounds": "graycert.deltas",
    "inductive_split": "graycert.data",
    "load_graph": "graycert.data",
    "load_model": "graycert.models",
    "prepare_graph": "graycert.data",
    "save_model": "graycert.models",
    "train": "graycert.training",
    "transductive_split": "graycert.data",
    "verify": "graycert.verification",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
__all__ += ["__version__"]
