"""Base classifiers to smooth: the paper's architectures, the ablation token and the skip connection."""

from graycert.models.build import ARCHITECTURES, build_from_config, build_model
from graycert.models.interception_gnn import InterceptionGNN, ModelConfig
from graycert.models.protocol import NodeClassifier, RowwiseStart
from graycert.models.weights import load_model, load_weights, save_model

__all__ = [
    "ARCHITECTURES",
    "InterceptionGNN",
    "ModelConfig",
    "NodeClassifier",
    "RowwiseStart",
    "build_from_config",
    "build_model",
    "load_model",
    "load_weights",
    "save_model",
]
