"""Products with a sparse matrix of a fixed pattern, whose gradient needs no search for the transposed one."""

import warnings
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class SparsePattern:
    """Places of the entries of a sparse matrix, row by row and column by column.

    Args:
        row_ends: Number of entries before each row and in all, int64, shape (num_rows + 1,).
        columns: Column of each entry, int64, shape (num_entries,).
        column_ends: Number of entries before each column and in all, int64, shape (num_columns + 1,).
        rows: Row of each entry, column by column, int64, shape (num_entries,).
        by_column: Which entry each of these is, int64, shape (num_entries,).
    """

    row_ends: Tensor
    columns: Tensor
    column_ends: Tensor
    rows: Tensor
    by_column: Tensor

    @classmethod
    def of(cls, matrix: Tensor) -> "SparsePattern":
        """Look at a coalesced sparse matrix (COO)."""
        rows, columns = matrix.indices()
        by_column = columns.argsort(stable=True)
        return cls(
            row_ends=_ends(rows, matrix.size(0)),
            columns=columns,
            column_ends=_ends(columns, matrix.size(1)),
            rows=rows[by_column],
            by_column=by_column,
        )

    def filled(self, values: Tensor) -> Tensor:
        """Return the matrix with these values, shape (num_rows, num_columns)."""
        shape = self.row_ends.numel() - 1, self.column_ends.numel() - 1
        return _compressed(self.row_ends, self.columns, values, shape)

    def transposed(self, values: Tensor) -> Tensor:
        """Return the transposed matrix with these values, shape (num_columns, num_rows)."""
        shape = self.column_ends.numel() - 1, self.row_ends.numel() - 1
        return _compressed(self.column_ends, self.rows, values[self.by_column], shape)


def times(pattern: SparsePattern, values: Tensor, factor: Tensor) -> Tensor:
    """Multiply a sparse matrix by a dense one, to which gradients go; ``values`` gets none.

    Args:
        pattern: Where the sparse matrix has entries.
        values: These entries, shape (num_entries,).
        factor: The dense matrix, same type, shape (num_columns, width).

    Returns:
        Dense, shape (num_rows, width).
    """
    return cast("Tensor", _Times.apply(factor, pattern, values))  # type: ignore[no-untyped-call]


class _Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, factor: Tensor, pattern: SparsePattern, values: Tensor) -> Tensor:
        ctx.pattern, ctx.values = pattern, values
        return pattern.filled(values) @ factor

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.pattern.transposed(ctx.values) @ gradient, None, None


def _ends(places: Tensor, size: int) -> Tensor:
    ends = torch.bincount(places, minlength=size).cumsum(0)
    return torch.cat([ends.new_zeros(1), ends])


def _compressed(ends: Tensor, places: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(ends, places, values, shape, check_invariants=False)
