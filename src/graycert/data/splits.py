"""Training, validation and test nodes, and the graph that each of them is seen in."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from graycert._validation import check_integer, check_mask
from graycert.data.checks import count_nodes, validate_data
from graycert.data.preparation import select_nodes
from graycert.errors import InvalidParameterError


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
    draw = _draw_nodes(data, seed=seed, per_class=per_class, test_fraction=test_fraction)
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
    draw = _draw_nodes(data, seed=seed, per_class=per_class, test_fraction=test_fraction)
    return TransductiveSplit(
        train=_whole_part(data, draw.train),
        validation=_whole_part(data, draw.validation),
        test=_whole_part(data, draw.test),
        seed=seed,
        per_class=None if seed is None else per_class,
        test_fraction=draw.test_fraction,
    )


@dataclass(frozen=True, kw_only=True)
class _Draw:
    """Disjoint masks, bool, shape (num_nodes,)."""

    train: NDArray[np.bool_]
    validation: NDArray[np.bool_]
    test: NDArray[np.bool_]
    test_fraction: Fraction | None


MASKS = ("train_mask", "val_mask", "test_mask")


def has_masks(data: Data) -> bool:
    """Whether the graph says itself which nodes are for training, validation and testing."""
    return all(data.get(name) is not None for name in MASKS)


def _masked_nodes(data: Data) -> _Draw:
    validate_data(data, need_features=False, need_labels=True)
    missing = [name for name in MASKS if data.get(name) is None]
    if missing:
        raise InvalidParameterError(
            f"`data.{missing[0]}` must mark nodes if there is no `seed`, got none. Set the three masks (for tables: "
            "`split_column`), or pass a seed to draw the nodes."
        )
    parts = [check_mask(f"data.{name}", data[name].cpu().numpy(), num_nodes=count_nodes(data)) for name in MASKS]
    labelled = data.y.cpu().numpy() >= 0
    for name, part in zip(MASKS, parts, strict=True):
        if not part.any():
            raise InvalidParameterError(f"`data.{name}` must mark at least one node, got none.")
        unlabelled = int((part & ~labelled).sum())
        if unlabelled and name != "test_mask":
            raise InvalidParameterError(
                f"`data.{name}` must mark nodes with labels, got {unlabelled:,} without. Unmark these."
            )
    twice = np.flatnonzero(np.sum(parts, axis=0) > 1)
    if twice.size:
        raise InvalidParameterError(
            f"the masks must not overlap, got node {int(twice[0])} in several ({twice.size:,} such nodes): a model "
            "must not be tested on what it was trained on."
        )
    train, validation, test = parts
    return _Draw(train=train, validation=validation, test=test, test_fraction=None)


def _draw_nodes(data: Data, *, seed: int | None, per_class: int, test_fraction: str | float | Fraction) -> _Draw:
    if seed is None:
        return _masked_nodes(data)
    seed = check_integer("seed", seed, at_least=0)
    per_class = check_integer("per_class", per_class, at_least=1)
    fraction = _exact_fraction(test_fraction)
    validate_data(data, need_features=False, need_labels=True)
    labels = data.y.cpu().numpy()
    # Raw 64-bit words of a bit generator are stable across NumPy versions; permutations of a Generator are
    # not.
    words = np.random.PCG64(seed)
    order = np.argsort(words.random_raw(labels.size), kind="stable")
    train, validation, test = (np.zeros(labels.size, dtype=np.bool_) for _ in range(3))
    for label in np.unique(labels[labels >= 0]):
        members = order[labels[order] == label]
        if members.size < 2 * per_class:
            raise InvalidParameterError(_too_few(data, int(label), members.size, per_class))
        train[members[:per_class]] = True
        validation[members[per_class : 2 * per_class]] = True
    num_test = int(fraction * int((labels >= 0).sum()))
    # A second, independent order: the first one, cut at 2·per_class nodes of each class, has few nodes of the
    # small classes left at its front, so its front is no uniform draw from the rest.
    again = np.argsort(words.random_raw(labels.size), kind="stable")
    rest = again[(labels >= 0)[again] & ~train[again] & ~validation[again]]
    if not 1 <= num_test <= rest.size:
        raise InvalidParameterError(
            f"`test_fraction` must leave between 1 and {rest.size} test nodes, got {num_test} ({fraction} "
            f"of {int((labels >= 0).sum())} labelled nodes, of which {rest.size} are neither training nor "
            "validation nodes). Change `test_fraction` or `per_class`."
        )
    test[rest[:num_test]] = True
    return _Draw(train=train, validation=validation, test=test, test_fraction=fraction)


def _exact_fraction(value: str | float | Fraction) -> Fraction:
    """Read 0.1 as one tenth: 0.35 * 20 in floats is not 7."""
    try:
        fraction = Fraction(value if isinstance(value, Fraction) else str(value))
    except (ValueError, ZeroDivisionError):
        fraction = Fraction(-1)
    if not 0 < fraction < 1:
        raise InvalidParameterError(
            f"`test_fraction` must be a number in (0, 1), got {value!r}. It is the share of labelled nodes to test on."
        )
    return fraction


def _too_few(data: Data, label: int, count: int, per_class: int) -> str:
    names = data.get("class_names")
    name = f"class {label}" if names is None else f"class {label} ({names[label]!r})"
    return (
        f"`per_class` must leave enough nodes in every class: {name} has {count} labelled nodes, but "
        f"{2 * per_class} are needed, {per_class} for training and {per_class} for validation. Lower "
        "`per_class`, or set the labels of small classes to -1."
    )


def _whole_part(data: Data, chosen: NDArray[np.bool_]) -> SplitPart:
    device = data.edge_index.device
    nodes = torch.from_numpy(np.flatnonzero(chosen)).to(device)
    return SplitPart(data=data, nodes=nodes, original=torch.arange(count_nodes(data), device=device))


def _induced_part(data: Data, chosen: NDArray[np.bool_], kept: NDArray[np.bool_]) -> SplitPart:
    device = data.edge_index.device
    original = torch.from_numpy(np.flatnonzero(kept)).to(device)
    nodes = torch.from_numpy(np.flatnonzero(chosen[kept])).to(device)
    return SplitPart(data=select_nodes(data, original), nodes=nodes, original=original)
