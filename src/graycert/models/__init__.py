"""Base classifiers to smooth: the paper's architectures, the ablation token and the skip connection.

Names are imported on first use, so that the command line checks a model's name without loading torch.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.models.build import build_from_config as build_from_config
    from graycert.models.build import build_model as build_model
    from graycert.models.calling import as_node_classifier as as_node_classifier
    from graycert.models.interception_gnn import InterceptionGNN as InterceptionGNN
    from graycert.models.interception_gnn import ModelConfig as ModelConfig
    from graycert.models.names import ARCHITECTURES as ARCHITECTURES
    from graycert.models.node_model import NodeModel as NodeModel
    from graycert.models.protocol import NodeClassifier as NodeClassifier
    from graycert.models.protocol import RowwiseStart as RowwiseStart
    from graycert.models.weights import load_model as load_model
    from graycert.models.weights import load_weights as load_weights
    from graycert.models.weights import save_model as save_model
    from graycert.models.weights import weights_sha256 as weights_sha256

_HOME = {
    "ARCHITECTURES": "graycert.models.names",
    "InterceptionGNN": "graycert.models.interception_gnn",
    "ModelConfig": "graycert.models.interception_gnn",
    "NodeClassifier": "graycert.models.protocol",
    "NodeModel": "graycert.models.node_model",
    "RowwiseStart": "graycert.models.protocol",
    "as_node_classifier": "graycert.models.calling",
    "build_from_config": "graycert.models.build",
    "build_model": "graycert.models.build",
    "load_model": "graycert.models.weights",
    "load_weights": "graycert.models.weights",
    "save_model": "graycert.models.weights",
    "weights_sha256": "graycert.models.weights",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
