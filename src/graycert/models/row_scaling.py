"""Features scaled row by row, by statistics of the training graph that never change again."""

import torch
from torch import Tensor, nn

_SPARSE_BELOW = 0.5  # share of non-zeros up to which features without negative values count as a bag of words


class RowScaling(nn.Module):
    """Scales features: inverse document frequency and unit length for bags of words, z-scores for measurements.

    Every statistic is frozen, so that a scaled row depends on no other row of the graph it stands in.

    Args:
        num_features: Number d of features, >= 1.

    Attributes:
        shift: What is subtracted of each column, float32 (num_features,).
        weight: What each column is multiplied by, float32 (num_features,).
        unit_length: Whether rows are then divided by their Euclidean length, a Boolean tensor without axes.

    References:
        Spärck Jones (1972), "A statistical interpretation of term specificity and its application in retrieval".
    """

    shift: Tensor
    weight: Tensor
    unit_length: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("shift", torch.zeros(num_features))
        self.register_buffer("weight", torch.ones(num_features))
        self.register_buffer("unit_length", torch.tensor(False))

    @classmethod
    def of(cls, x: Tensor) -> "RowScaling":
        """Return the scaling that the features of a training graph suggest.

        Features without negative values, at most half of them non-zero, are a bag of words: column j is weighted by
        log((1 + n) / (1 + n_j)) where n_j of n rows are not zero, and rows get length 1. Other columns get mean 0 and
        standard deviation 1; a constant column becomes 0.

        Args:
            x: Features of the training graph, shape (num_nodes, num_features).
        """
        scaling, x = cls(x.size(1)), x.detach().cpu()
        present = torch.count_nonzero(x, dim=0).double()
        if bool((x >= 0).all()) and float(present.sum()) <= _SPARSE_BELOW * x.numel():
            scaling.weight.copy_(torch.log((1 + x.size(0)) / (1 + present)))
            scaling.unit_length.fill_(True)
            return scaling
        x = x.double()
        deviation = x.std(dim=0, correction=0)
        constant = deviation <= 1e-9 * x.abs().amax(dim=0)
        scaling.shift.copy_(x.mean(dim=0))
        scaling.weight.copy_(torch.where(constant, 0.0, 1 / deviation.clamp(min=torch.finfo(torch.float64).tiny)))
        return scaling

    def forward(self, x: Tensor) -> Tensor:
        """Return the scaled rows, shape (num_rows, num_features); a row of zeros keeps its length."""
        scaled = (x - self.shift) * self.weight
        if not bool(self.unit_length):
            return scaled
        length = scaled.square().sum(dim=1, keepdim=True).sqrt()
        return scaled / torch.where(length == 0, 1.0, length)
