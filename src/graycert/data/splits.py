"""Training, validation and test nodes, and the graph that each of them is seen in."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from graycert._types import BoolArray
from graycert.data.checks import count_nodes
from graycert.data.preparation import select_nodes
from graycert.data.split_nodes import split_nodes


@dataclass(frozen=True, kw_only=True)
class SplitPart:
    """Some nodes and the graph they are seen in.

    Attributes:
        data: The graph of this part.
        nodes: Indices into ``data``, int64, shape (num_part,), ascending.
        original: The index in the whole graph of every node of ``data``, int64, shape (data.num_nodes,).
    """

    data: Data
    nodes: Tensor
    original: Tensor

    def __repr__(self) -> str:
        """Say how many nodes, of how many."""
        return f"SplitPart({self.nodes.numel():,} of {self.data.num_nodes:,} nodes)"


@dataclass(frozen=True, kw_only=True)
class InductiveSplit:
    """Graphs that grow: the training graph lacks validation and test nodes, the validation graph test nodes.

    The test graph is the whole graph in its own node order, so ``test.nodes`` are the user's node numbers.
    """

    train: SplitPart
    validation: SplitPart
    test: SplitPart
    seed: int | None
    per_class: int | None
    test_fraction: Fraction | None


@dataclass(frozen=True, kw_only=True)
class TransductiveSplit:
    """The same nodes as an :class:`InductiveSplit` of the same seed, all of them in the whole graph."""

    train: SplitPart
    validation: SplitPart
    test: SplitPart
    seed: int | None
    per_class: int | None
    test_fraction: Fraction | None


def inductive_split(
    data: Data, *, seed: int | None = None, per_class: int = 20, test_fraction: str | float | Fraction = "0.1"
) -> InductiveSplit:
    """Split the nodes as the paper does: models are trained without ever seeing the nodes they are tested on.

    Of each class, ``per_class`` nodes are drawn for training and as many for validation. Then
    ``floor(test_fraction * num_labelled)`` test nodes are drawn from the other labelled nodes. All remaining
    nodes, and those with the label -1, which are never drawn, stay in the training graph without being used
    as examples. The draw depends on the seed, the labels and the number of nodes only: it is the same on
    every platform. Without a seed nothing is drawn: the nodes are those of ``data.train_mask``, ``data.val_mask`` and
    ``data.test_mask``.

    Args:
        data: A graph with labels.
        seed: Seed of the draw, >= 0; None takes the masks.
        per_class: Training nodes, and validation nodes, of each class, >= 1.
        test_fraction: Share of the labelled nodes in (0, 1); read as a decimal number, so 0.1 is exactly one
            tenth.

    Raises:
        InvalidParameterError: If labels are missing, a class has fewer than ``2 * per_class`` nodes, the nodes do not
            suffice for the test nodes, or masks are missing, empty or overlap.

    References:
        Scholten et al. (2022), Section 7 (experimental setup).
    """
    draw = split_nodes(data, seed=seed, per_class=per_class, test_fraction=test_fraction)
    validation_graph = ~draw.test
    train_graph = validation_graph & ~draw.validation
    return InductiveSplit(
        train=_induced_part(data, draw.train, train_graph),
        validation=_induced_part(data, draw.validation, validation_graph),
        test=_whole_part(data, draw.test),
        seed=seed,
        per_class=None if seed is None else per_class,
        test_fraction=draw.test_fraction,
    )


def transductive_split(
    data: Data, *, seed: int | None = None, per_class: int = 20, test_fraction: str | float | Fraction = "0.1"
) -> TransductiveSplit:
    """Split the nodes as :func:`inductive_split` does, with the whole graph in every part.

    Raises:
        InvalidParameterError: As :func:`inductive_split`.

    References:
        Scholten et al. (2022), Appendix with the transductive results.
    """
    draw = split_nodes(data, seed=seed, per_class=per_class, test_fraction=test_fraction)
    return TransductiveSplit(
        train=_whole_part(data, draw.train),
        validation=_whole_part(data, draw.validation),
        test=_whole_part(data, draw.test),
        seed=seed,
        per_class=None if seed is None else per_class,
        test_fraction=draw.test_fraction,
    )


def _whole_part(data: Data, chosen: BoolArray) -> SplitPart:
    device = data.edge_index.device
    nodes = torch.from_numpy(np.flatnonzero(chosen)).to(device)
    return SplitPart(data=data, nodes=nodes, original=torch.arange(count_nodes(data), device=device))


def _induced_part(data: Data, chosen: BoolArray, kept: BoolArray) -> SplitPart:
    device = data.edge_index.device
    original = torch.from_numpy(np.flatnonzero(kept)).to(device)
    nodes = torch.from_numpy(np.flatnonzero(chosen[kept])).to(device)
    return SplitPart(data=select_nodes(data, original), nodes=nodes, original=original)
