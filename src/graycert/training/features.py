"""The features of a graph as training needs them: some rows, sparse, with dropout on what is not zero."""

import warnings
from functools import cached_property
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from graycert.training.sparse_product import SparsePattern, times

_DENSE_ABOVE = 0.25  # share of non-zeros from which a dense product is as fast


class Features:
    """Hands out rows of the features.

    Dropout acts on non-zero entries alone, which has the same distribution as dropout on all entries and costs as
    much as there are non-zeros (2 % for bags of words).

    Args:
        x: Features, shape (num_nodes, num_features).
    """

    def __init__(self, x: Tensor) -> None:
        self._x = x
        self._sparse: Tensor | None = None
        if int(torch.count_nonzero(x)) <= _DENSE_ABOVE * x.numel():
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
                self._sparse = x.to_sparse_csr()

    def through(self, layer: nn.Linear, *, drop: float = 0.0) -> Tensor:
        """Return what a linear layer makes of all rows, shape (num_nodes, width).

        Args:
            layer: Takes rows of features.
            drop: Probability that an entry is set to zero; the others are divided by 1 - ``drop``.
        """
        if self._sparse is None:
            return cast("Tensor", layer(dropout(self._x, p=drop)))
        values = self._sparse.values()
        if drop:
            values = values * torch.rand_like(values).ge_(drop).div_(1 - drop)
        return times(self._pattern, values, layer.weight.t()) + layer.bias

    @cached_property
    def _pattern(self) -> SparsePattern:
        return SparsePattern.of(self._x.to_sparse().coalesce())

    def rows(self, nodes: Tensor, *, drop: float = 0.0) -> Tensor:
        """Return the rows of ``nodes``, sparse (CSR) if the features are.

        Args:
            nodes: int64 (num_rows,).
            drop: Probability that an entry is set to zero; the others are divided by 1 - ``drop``.
        """
        if self._sparse is None:
            return dropout(self._x[nodes], p=drop)
        start = self._sparse.crow_indices()
        length = (start[1:] - start[:-1])[nodes]
        row = torch.repeat_interleave(length)
        entry = torch.arange(row.numel()) + (start[nodes] - length.cumsum(0) + length)[row]
        values = self._sparse.values()[entry]
        if drop:
            kept = torch.rand(row.numel()) >= drop
            row, entry, values = row[kept], entry[kept], values[kept] / (1 - drop)
        ends = torch.bincount(row, minlength=nodes.numel()).cumsum(0)
        return torch.sparse_csr_tensor(
            torch.cat([ends.new_zeros(1), ends]),
            self._sparse.col_indices()[entry],
            values,
            (nodes.numel(), self._x.size(1)),
            check_invariants=False,  # taken from a pattern that torch built itself
        )
