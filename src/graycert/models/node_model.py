"""A classifier of nodes by their own features alone: an ensemble of small networks that sees one row at a time."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from graycert._validation import check_integer, check_probability
from graycert.errors import InvalidParameterError
from graycert.models.names import PER_NODE
from graycert.models.one_thread import one_thread
from graycert.models.row_scaling import RowScaling

_BLOCK = 32  # rows of one matrix product, whatever the number of rows: products of another shape may round otherwise


@dataclass(frozen=True, kw_only=True)
class NodeModelConfig:
    """Everything needed to build a `NodeModel` again.

    Args:
        num_features: Number d of input features, >= 1.
        num_classes: Number C of classes, >= 2.
        hidden_channels: Width of the hidden layer, >= 1.
        members: Networks whose probabilities are averaged, >= 1.
        input_dropout: Training-time dropout on the scaled features, in [0, 1).
        dropout: Training-time dropout on the hidden layer, in [0, 1).
        architecture: Always "per-node".
    """

    num_features: int
    num_classes: int
    hidden_channels: int
    members: int
    input_dropout: float
    dropout: float
    architecture: str = PER_NODE

    def __post_init__(self) -> None:
        """Check the domains."""
        check_integer("num_features", self.num_features, at_least=1)
        check_integer("num_classes", self.num_classes, at_least=2, hint="One class leaves nothing to certify.")
        check_integer("hidden_channels", self.hidden_channels, at_least=1)
        check_integer("members", self.members, at_least=1)
        for name in ("input_dropout", "dropout"):
            if check_probability(name, getattr(self, name)) == 1.0:
                raise InvalidParameterError(f"`{name}` must be in [0, 1), got 1. It would erase everything.")
        if self.architecture != PER_NODE:
            raise InvalidParameterError(f"`architecture` must be {PER_NODE!r}, got {self.architecture!r}.")

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a plain dictionary."""
        return asdict(self)

    def new_member(self) -> "RowNetwork":
        """Return one network, with weights from the global generator of torch."""
        return RowNetwork(self.num_features, self.hidden_channels, self.num_classes, dropout=self.dropout)


def finite_rows(x: Tensor) -> Tensor:
    """Return which rows hold neither NaN nor infinity, bool (num_rows,)."""
    return torch.isfinite(torch.amax(x, dim=1)) & torch.isfinite(torch.amin(x, dim=1))


class RowNetwork(nn.Module):
    """A network with one hidden layer, from scaled features to class scores.

    Args:
        num_features: Number of features, >= 1.
        hidden_channels: Width of the hidden layer, >= 1.
        num_classes: Number of classes.
        dropout: On the hidden layer while training.
    """

    def __init__(self, num_features: int, hidden_channels: int, num_classes: int, *, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(num_features, hidden_channels)
        self.second = nn.Linear(hidden_channels, num_classes)
        self.dropout = nn.Dropout(dropout)
        nn.init.xavier_uniform_(self.first.weight)
        nn.init.zeros_(self.first.bias)

    def forward(self, rows: Tensor) -> Tensor:
        """Return class scores, shape (num_rows, num_classes)."""
        return self.after_first(self.first(rows))

    def after_first(self, hidden: Tensor) -> Tensor:
        """Return class scores from what the first layer returns."""
        scores: Tensor = self.second(self.dropout(torch.relu(hidden)))
        return scores


class NodeModel(nn.Module):
    """A per-node model: class probabilities from a node's own features, without any message.

    Nothing that is done to other nodes or to edges can change what it says of a node, so its accuracy is certified at
    every ρ wherever the target itself is not hostile: the floor that messages have to beat. `graycert.distill` trains
    one; `graycert.save_model` and `graycert.load_model` keep it.

    Guarantee:
        Row v of the output is a function of row v of ``x``. In evaluation mode one thread computes rows in blocks of a
        fixed size, so that its last bits do not depend on how many other rows or threads there are. A row that holds
        NaN or infinity, or leads to them, has equal probabilities.

    Args:
        config: What is built.
        scaling: What is done to features first; by default nothing.
        members: The networks; by default new ones, whose weights are to be filled.

    Attributes:
        num_layers: Number of message-passing layers: 0.
        skip: Whether there is a skip connection around messages: no, there are none.
        class_names: Names of the outputs, in their order, where they are known; a graph must number them alike.

    References:
        Zhang et al. (2022), "Graph-less Neural Networks: Teaching Old MLPs New Tricks via Distillation" (ICLR).
    """

    num_layers: ClassVar[int] = 0
    skip: ClassVar[bool] = False
    class_names: tuple[str, ...] | None = None

    def __init__(
        self,
        config: NodeModelConfig,
        *,
        scaling: RowScaling | None = None,
        members: Sequence[RowNetwork] | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.scaling = RowScaling(config.num_features) if scaling is None else scaling
        if members is None:
            with torch.random.fork_rng(devices=[]):
                members = [config.new_member() for _ in range(config.members)]
        self.members = nn.ModuleList(members)
        self.input_dropout = nn.Dropout(config.input_dropout)

    def forward(self, x: Tensor, edge_index: Tensor | None = None) -> Tensor:
        """Return log-probabilities, shape (num_nodes, num_classes); ``edge_index`` is not looked at."""
        del edge_index
        if self.training:
            return self.of_rows(x)
        with one_thread():
            blocks = [self._of_block(block) for block in torch.split(x, _BLOCK)]
        return torch.cat(blocks) if x.size(0) else x.new_empty(0, self.config.num_classes)

    def _of_block(self, rows: Tensor) -> Tensor:
        padded = nn.functional.pad(rows, (0, 0, 0, _BLOCK - rows.size(0)))
        return self.of_rows(padded)[: rows.size(0)]

    def of_rows(self, x: Tensor) -> Tensor:
        """Return log-probabilities of rows that are computed at once, whose last bits may depend on their number."""
        rows = self.input_dropout(self.scaling(x))
        each = torch.stack([member(rows).log_softmax(dim=1) for member in self.members])
        mean = each.logsumexp(dim=0) - math.log(len(self.members))
        usable = finite_rows(x) & finite_rows(mean)
        return torch.where(usable.unsqueeze(1), mean, -math.log(self.config.num_classes))
