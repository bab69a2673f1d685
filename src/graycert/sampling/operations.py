"""What a known model does to the rows of x: aggregations over the edges, and row-wise operations around them."""

from dataclasses import dataclass
from typing import ClassVar

from graycert._types import Float32Array


class UnknownModelError(Exception):
    """Why a model is not one that the compiled engine knows; the message ends "because the model ..."."""


@dataclass(frozen=True, eq=False)
class Linear:
    """x -> W x + bias; weight (width_out, width), bias (width_out,)."""

    weight: Float32Array
    bias: Float32Array


@dataclass(frozen=True, eq=False)
class Affine:
    """x -> scale ∘ x + shift, both (width,)."""

    scale: Float32Array
    shift: Float32Array


@dataclass(frozen=True)
class Activation:
    """A function of each entry: "relu", "elu" or "leaky_relu", with the factor of its negative side."""

    kind: str
    slope: float = 1.0


@dataclass(frozen=True)
class NormalisedSum:
    """GCNConv: Σ x_w / sqrt(d_w d_u), the node itself included; ``weighted``: with weights of edges."""

    weighted: bool = False
    label = "GCN"


@dataclass(frozen=True, eq=False)
class Attention:
    """GATConv and GATv2Conv.

    Args:
        channels: Per head.
        slope: Negative slope of the LeakyReLU.
        mean: Whether heads are averaged.
        sender: GATConv: (heads, channels); GATv2Conv: None.
        receiver: GATConv: (heads, channels); GATv2Conv: None.
        both: GATv2Conv: (heads, channels); GATConv: None.
    """

    channels: int
    slope: float
    mean: bool
    sender: Float32Array | None = None
    receiver: Float32Array | None = None
    both: Float32Array | None = None
    weighted: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """Name of the convolution."""
        return "GAT" if self.both is None else "GATv2"

    @property
    def heads(self) -> int:
        """Number of heads."""
        weights = self.sender if self.both is None else self.both
        return 0 if weights is None else int(weights.shape[0])


@dataclass(frozen=True)
class PlainSum:
    """SAGEConv, GraphConv and GINConv.

    The sum or mean of the first ``width`` columns of the in-neighbours, each times the weight of its edge if
    ``weighted``, plus ``own_factor`` times the last ``width`` columns of the node's own row.
    """

    label: str
    width: int
    mean: bool
    own_factor: float
    weighted: bool = False


@dataclass(frozen=True)
class SoftMedoid:
    """SMA: soft medoid of at most ``limit`` points at a temperature."""

    limit: int
    temperature: float
    label = "SMA"
    weighted: ClassVar[bool] = False


RowwiseOperation = Linear | Affine | Activation
Aggregation = NormalisedSum | Attention | PlainSum | SoftMedoid
Operation = RowwiseOperation | Aggregation
