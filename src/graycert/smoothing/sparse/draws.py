"""Draws of binary attributes: each 1 is deleted with one probability, each 0 set with another."""

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graycert._compilation import kernel
from graycert._types import BoolArray, IntArray
from graycert.errors import InvalidParameterError
from graycert.sampling.kernels.coins import CoinKeys, id_keys, is_intercepted, sample_key
from graycert.sampling.streams import CoinStream, interception_thresholds


@dataclass(frozen=True, eq=False)
class AttributeDraws:
    """Draws the attributes of some nodes, one sample number at a time, as sparse rows.

    The coin of an attribute is a hash of (seed, stream, sample, node, attribute), so a draw does not depend on which
    other nodes are drawn. Attributes that no coin can turn on have none: with p_plus = 0 the cost is that of the ones.

    Args:
        starts: Where each node's attributes with a coin begin, int64 (num_nodes + 1,).
        columns: Attribute per coin, int64 (num_coins,).
        is_one: Whether the attribute is set in the input, bool (num_coins,).
        coins: Keys of the coins.
        num_features: Number of attributes of a node.
        dtype: Of the drawn rows.
    """

    starts: IntArray
    columns: IntArray
    is_one: BoolArray
    coins: CoinKeys
    num_features: int
    dtype: torch.dtype

    @classmethod
    def of(cls, x: Tensor, nodes: Tensor, *, p_plus: float, p_minus: float, stream: CoinStream) -> "AttributeDraws":
        """Prepare draws of the rows ``nodes`` of ``x``.

        Args:
            x: Attributes, 0 or 1, shape (num_nodes, num_features).
            nodes: Which rows are drawn, int64 (num_rows,).
            p_plus: Probability of setting a 0 to 1.
            p_minus: Probability of setting a 1 to 0.
            stream: Where the coins come from.

        Raises:
            InvalidParameterError: If an attribute is neither 0 nor 1.
        """
        rows = x.cpu()[nodes.cpu()]
        ones = rows != 0
        if not bool((rows[ones] == 1).all()):
            raise InvalidParameterError(
                f"`data.x` must hold zeros and ones, got the value {float(rows[ones & (rows != 1)][0])}. Sparse "
                "smoothing flips binary attributes: use data.x = (data.x > 0).float(), without normalising rows."
            )
        row, column = (ones if p_plus == 0 else torch.ones_like(ones)).nonzero(as_tuple=True)
        is_one = ones[row, column].numpy()
        ids = nodes.cpu()[row] * x.size(1) + column
        starts = np.zeros(nodes.numel() + 1, dtype=np.int64)
        np.cumsum(torch.bincount(row, minlength=nodes.numel()).numpy(), out=starts[1:])
        coins = CoinKeys(
            stream.key("attribute", "sample"),
            id_keys(ids.numpy(), stream.key("attribute", "id")),
            interception_thresholds(np.where(is_one, p_minus, p_plus)),
        )
        return cls(starts, column.numpy(), is_one, coins, x.size(1), x.dtype)

    def draw(self, sample: int) -> Tensor:
        """Return the attributes in one sample, sparse (CSR), shape (num_nodes, num_features)."""
        starts, columns = np.empty_like(self.starts), np.empty_like(self.columns)
        _draw(sample, self.coins, self.starts, self.columns, self.is_one, starts, columns)
        set_columns = torch.from_numpy(columns[: starts[-1]])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            return torch.sparse_csr_tensor(
                torch.from_numpy(starts),
                set_columns,
                torch.ones(set_columns.numel(), dtype=self.dtype),
                (starts.size - 1, self.num_features),
                check_invariants=False,  # the kernel writes rows and columns in ascending order
            )


@kernel
def _draw(
    sample: int,
    coins: CoinKeys,
    starts: IntArray,
    columns: IntArray,
    is_one: BoolArray,
    starts_drawn: IntArray,
    columns_drawn: IntArray,
) -> None:
    """Write the attributes that are set after the draw."""
    key = sample_key(sample, coins[0])
    count = 0
    for row in range(starts.size - 1):
        starts_drawn[row] = count
        for place in range(starts[row], starts[row + 1]):
            flips = is_intercepted(key, coins[1][place], coins[2][place])
            columns_drawn[count] = columns[place]
            count += is_one[place] != flips
    starts_drawn[starts.size - 1] = count
