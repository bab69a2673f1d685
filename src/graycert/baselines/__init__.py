"""What others offer against the same adversary, to compare with; each file says which threat model it covers.

Levine and Feizi's randomized ablation is `graycert.certify_randomized_ablation`. Names are imported on first use.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.baselines.mlp import MLPCertificates as MLPCertificates
    from graycert.baselines.mlp import certify_mlp as certify_mlp
    from graycert.baselines.mlp import mlp_predictions as mlp_predictions
    from graycert.baselines.mlp import train_mlp as train_mlp
    from graycert.baselines.sparse_smoothing import SparseSmoothing as SparseSmoothing
    from graycert.baselines.sparse_smoothing import SparseSmoothingCertificates as SparseSmoothingCertificates
    from graycert.baselines.sparse_smoothing import certify_sparse_smoothing as certify_sparse_smoothing
    from graycert.baselines.sparse_smoothing import naive_certified_nodes as naive_certified_nodes
    from graycert.baselines.sparse_smoothing import naive_certified_ratio as naive_certified_ratio
    from graycert.baselines.sparse_training import train_sparse_smoothing as train_sparse_smoothing
    from graycert.baselines.subgraph_voting import SubgraphVotingCertificates as SubgraphVotingCertificates
    from graycert.baselines.subgraph_voting import certify_subgraph_voting as certify_subgraph_voting
    from graycert.baselines.voting_training import training_smoothing as training_smoothing

_HOME = {
    "MLPCertificates": "graycert.baselines.mlp",
    "SparseSmoothing": "graycert.baselines.sparse_smoothing",
    "SparseSmoothingCertificates": "graycert.baselines.sparse_smoothing",
    "SubgraphVotingCertificates": "graycert.baselines.subgraph_voting",
    "certify_mlp": "graycert.baselines.mlp",
    "certify_sparse_smoothing": "graycert.baselines.sparse_smoothing",
    "certify_subgraph_voting": "graycert.baselines.subgraph_voting",
    "mlp_predictions": "graycert.baselines.mlp",
    "naive_certified_nodes": "graycert.baselines.sparse_smoothing",
    "naive_certified_ratio": "graycert.baselines.sparse_smoothing",
    "train_mlp": "graycert.baselines.mlp",
    "train_sparse_smoothing": "graycert.baselines.sparse_training",
    "training_smoothing": "graycert.baselines.voting_training",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
