"""Which nodes are for training, validation and testing: drawn, or as the graph says."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from graycert._types import BoolArray
from graycert._validation import check_integer, check_mask
from graycert.data.checks import count_nodes, validate_data
from graycert.errors import InvalidParameterError
from graycert.graph.conversion import as_array


@dataclass(frozen=True, kw_only=True)
class SplitNodes:
    """Disjoint masks, bool, shape (num_nodes,)."""

    train: BoolArray
    validation: BoolArray
    test: BoolArray
    test_fraction: Fraction | None


MASKS = ("train_mask", "val_mask", "test_mask")


def has_masks(data: Any) -> bool:
    """Whether the graph says itself which nodes are for training, validation and testing."""
    return all(data.get(name) is not None for name in MASKS)


def split_nodes(
    data: Any, *, seed: int | None = None, per_class: int = 20, test_fraction: str | float | Fraction = "0.1"
) -> SplitNodes:
    """Return the nodes of either kind of split of the same arguments, see `graycert.data.inductive_split`.

    Args:
        data: A graph with labels, of tensors or arrays.
        seed: See there.
        per_class: See there.
        test_fraction: See there.

    Raises:
        InvalidParameterError: As there.
    """
    if seed is None:
        return _masked_nodes(data)
    seed = check_integer("seed", seed, at_least=0)
    per_class = check_integer("per_class", per_class, at_least=1)
    fraction = _exact_fraction(test_fraction)
    validate_data(data, need_features=False, need_labels=True)
    labels = as_array(data.y)
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
    return SplitNodes(train=train, validation=validation, test=test, test_fraction=fraction)


def _masked_nodes(data: Any) -> SplitNodes:
    validate_data(data, need_features=False, need_labels=True)
    missing = [name for name in MASKS if data.get(name) is None]
    if missing:
        raise InvalidParameterError(
            f"`data.{missing[0]}` must mark nodes if there is no `seed`, got none. Set the three masks (for tables: "
            "`split_column`), or pass a seed to draw the nodes."
        )
    parts = [check_mask(f"data.{name}", as_array(data[name]), num_nodes=count_nodes(data)) for name in MASKS]
    labelled = as_array(data.y) >= 0
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
    return SplitNodes(train=train, validation=validation, test=test, test_fraction=None)


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


def _too_few(data: Any, label: int, count: int, per_class: int) -> str:
    names = data.get("class_names")
    name = f"class {label}" if names is None else f"class {label} ({names[label]!r})"
    return (
        f"`per_class` must leave enough nodes in every class: {name} has {count} labelled nodes, but "
        f"{2 * per_class} are needed, {per_class} for training and {per_class} for validation. Lower "
        "`per_class`, or set the labels of small classes to -1."
    )
