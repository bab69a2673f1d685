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
    from graycert.bounds import DeltaBounds as DeltaBounds
    from graycert.bounds import delta_bounds as delta_bounds
    from graycert.certificates import Certificates as Certificates
    from graycert.certification import certify as certify
    from graycert.data import inductive_split as inductive_split
    from graycert.data import load_graph as load_graph
    from graycert.data import prepare_graph as prepare_graph
    from graycert.data import transductive_split as transductive_split
    from graycert.deployment import SmoothedClassifier as SmoothedClassifier
    from graycert.draws import Draws as Draws
    from graycert.draws import UntilDecided as UntilDecided
    from graycert.errors import GraycertError as GraycertError
    from graycert.errors import InvalidFileError as InvalidFileError
    from graycert.errors import InvalidParameterError as InvalidParameterError
    from graycert.errors import UnsoundSetupError as UnsoundSetupError
    from graycert.errors import VerificationError as VerificationError
    from graycert.models import NodeModel as NodeModel
    from graycert.models import as_node_classifier as as_node_classifier
    from graycert.models import build_model as build_model
    from graycert.models import load_model as load_model
    from graycert.models import save_model as save_model
    from graycert.problem import Execution as Execution
    from graycert.rules import certify_votes as certify_votes
    from graycert.runs.verify.verify import verify as verify
    from graycert.smoothing import BoundedVotes as BoundedVotes
    from graycert.smoothing import FeaturesOnly as FeaturesOnly
    from graycert.smoothing import InterceptionSmoothing as InterceptionSmoothing
    from graycert.smoothing import RandomizedAblation as RandomizedAblation
    from graycert.smoothing import SparseSmoothing as SparseSmoothing
    from graycert.smoothing import SubgraphVoting as SubgraphVoting
    from graycert.smoothing import UniformRetention as UniformRetention
    from graycert.threats import AttributeFlipThreat as AttributeFlipThreat
    from graycert.threats import EdgeDeletionThreat as EdgeDeletionThreat
    from graycert.threats import FeaturesAndOutEdgesThreat as FeaturesAndOutEdgesThreat
    from graycert.threats import NodeDeletionThreat as NodeDeletionThreat
    from graycert.threats import NodeFeatureThreat as NodeFeatureThreat
    from graycert.threats import NodeInsertionThreat as NodeInsertionThreat
    from graycert.threats import NodeTakeoverThreat as NodeTakeoverThreat
    from graycert.training import RandomInterception as RandomInterception
    from graycert.training import distill as distill
    from graycert.training import train as train
    from graycert.tuning import tune as tune
    from graycert.tuning import tune_votes as tune_votes

__version__ = "0.1.0"

_HOME = {
    "AttributeFlipThreat": "graycert.threats",
    "BoundedVotes": "graycert.smoothing",
    "Certificates": "graycert.certificates",
    "DeltaBounds": "graycert.bounds",
    "Draws": "graycert.draws",
    "EdgeDeletionThreat": "graycert.threats",
    "Execution": "graycert.problem",
    "FeaturesAndOutEdgesThreat": "graycert.threats",
    "FeaturesOnly": "graycert.smoothing",
    "GraycertError": "graycert.errors",
    "InterceptionSmoothing": "graycert.smoothing",
    "InvalidFileError": "graycert.errors",
    "InvalidParameterError": "graycert.errors",
    "NodeDeletionThreat": "graycert.threats",
    "NodeFeatureThreat": "graycert.threats",
    "NodeInsertionThreat": "graycert.threats",
    "NodeModel": "graycert.models",
    "NodeTakeoverThreat": "graycert.threats",
    "RandomInterception": "graycert.training",
    "RandomizedAblation": "graycert.smoothing",
    "SmoothedClassifier": "graycert.deployment",
    "SparseSmoothing": "graycert.smoothing",
    "SubgraphVoting": "graycert.smoothing",
    "UniformRetention": "graycert.smoothing",
    "UnsoundSetupError": "graycert.errors",
    "UntilDecided": "graycert.draws",
    "VerificationError": "graycert.errors",
    "as_node_classifier": "graycert.models",
    "audit_model": "graycert.audit",
    "build_model": "graycert.models",
    "certify": "graycert.certification",
    "certify_votes": "graycert.rules",
    "delta_bounds": "graycert.bounds",
    "distill": "graycert.training",
    "inductive_split": "graycert.data",
    "load_graph": "graycert.data",
    "load_model": "graycert.models",
    "prepare_graph": "graycert.data",
    "save_model": "graycert.models",
    "train": "graycert.training",
    "transductive_split": "graycert.data",
    "tune": "graycert.tuning",
    "tune_votes": "graycert.tuning",
    "verify": "graycert.runs.verify",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
__all__ += ["__version__"]
