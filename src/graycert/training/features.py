"""The features of a graph as training needs them: some rows, sparse, with dropout on what is not zero."""

import warnings

import torch
from torch import Tensor
from torch.nn.functional import dropout

_DENSE_ABOVE = 0.25  # share of non-zeros from which a dense product is as fast


class Features:
    """Hands out rows of the features.

    Dropout acts on non-zero entries alone, which has the same distribution as dropout on all entries and costs as
    much as there are non-zeros (2 % for bags of words); what is dropped is not stored.

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

    def whole(self, *, drop: float = 0.0) -> Tensor:
        """Return all rows, sparse (CSR) if the features are.

        Args:
            drop: Probability that an entry is set to zero; the others are divided by 1 - ``drop``.
        """
        if self._sparse is None:
            return dropout(self._x, p=drop)
        if not drop:
            return self._sparse
        kept = torch.rand(self._sparse.values().numel()) >= drop
        before = torch.cat([torch.zeros(1, dtype=torch.long), kept.cumsum(0)])
        return torch.sparse_csr_tensor(
            before[self._sparse.crow_indices()],
            self._sparse.col_indices()[kept],
            self._sparse.values()[kept] / (1 - drop),
            self._sparse.shape,
            check_invariants=False,  # taken from a pattern that torch built itself
        )

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
