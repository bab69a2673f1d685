"""The features of a graph as training needs them: sparse, with dropout on what is not zero."""

import warnings

import torch
from torch import Tensor
from torch.nn.functional import dropout

from graycert.models import InterceptionGNN

_DENSE_ABOVE = 0.25  # share of non-zeros from which a dense product is as fast


class Features:
    """Projects features through a model's first layer.

    Dropout acts on non-zero entries alone, which has the same distribution as dropout on all entries and costs as
    much as there are non-zeros (2 % for bags of words).

    Args:
        x: Features, shape (num_nodes, num_features).
    """

    def __init__(self, x: Tensor) -> None:
        self._x = x
        self._sparse: Tensor | None = None
        if int((x != 0).sum()) <= _DENSE_ABOVE * x.numel():
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
                self._sparse = x.to_sparse_csr()

    def project(self, model: InterceptionGNN) -> Tensor:
        """Return the projected rows, shape (num_nodes, width); dropout applies in training mode."""
        if self._sparse is None:
            return model.project(self._x)
        values = dropout(self._sparse.values(), p=model.config.dropout, training=model.training)
        dropped = torch.sparse_csr_tensor(
            self._sparse.crow_indices(),
            self._sparse.col_indices(),
            values,
            self._sparse.shape,
            check_invariants=False,  # the pattern is that of a tensor that torch built itself
        )
        return model.first_layer.project(dropped)
