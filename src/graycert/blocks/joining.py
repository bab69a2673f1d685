"""Arrays of blocks, joined as the declarations of a result say."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._fields import Field
from graycert._types import IntArray
from graycert.blocks.work import Outcome
from graycert.certificates import ARRAYS
from graycert.errors import InvalidFileError
from graycert.setup import Setup

_ENDS = "ends of targets"  # an axis with the places where something of each target begins, and the last one ends

_NOT_SEVERAL = ("", "nodes", "targets", _ENDS)


def joined(blocks: Sequence[Outcome], order: IntArray | None = None) -> Outcome:
    """Return what was found of all targets.

    Where a target has fewer entries than another, it is filled up as where all targets are certified at once: with -1
    where -1 stands for nothing, else with zeros.

    Args:
        blocks: Blocks, one after the other.
        order: Position of each of their targets among all; default as they come.
    """
    known = {spec.name: spec for spec in (*ARRAYS, *blocks[0].setup.smoothing.adds)}
    names = dict.fromkeys(name for block in blocks for name in block.arrays)
    sizes = [block.arrays["num_eligible"].size for block in blocks]
    arrays = {name: _joined(known[name], [block.arrays.get(name) for block in blocks], sizes) for name in names}
    if order is not None:
        arrays = _put_back(arrays, known, np.argsort(order))
    seconds = {name: sum(block.seconds.get(name, 0.0) for block in blocks) for name in blocks[0].seconds}
    return Outcome(setup=_setup_of_all([block.setup for block in blocks]), arrays=arrays, seconds=seconds)


def _put_back(
    arrays: Mapping[str, NDArray[Any]], known: Mapping[str, Field], rows: IntArray
) -> dict[str, NDArray[Any]]:
    """Return arrays in the order of the targets; what a target has several of stays together."""
    kinds = {name: known[name].shape[0] if known[name].shape else "" for name in arrays}
    ends = next((arrays[name] for name, kind in kinds.items() if kind == _ENDS), None)
    found = {name: array[rows] if kinds[name] == "targets" else array for name, array in arrays.items()}
    if ends is None:
        return found
    counts = np.diff(ends)[rows]
    new = np.concatenate([ends[:1], ends[0] + np.cumsum(counts, dtype=ends.dtype)])
    pieces = np.repeat(ends[:-1][rows] - new[:-1], counts) + np.arange(ends[0], new[-1])
    several = {name: array[pieces] for name, array in arrays.items() if kinds[name] not in _NOT_SEVERAL}
    return {**found, **several, **{name: new for name, kind in kinds.items() if kind == _ENDS}}


def _joined(spec: Field, parts: Sequence[NDArray[Any] | None], sizes: Sequence[int]) -> NDArray[Any]:
    there = [part for part in parts if part is not None]
    if not spec.shape or spec.shape[0] == "nodes":  # of the whole graph
        if not all(np.array_equal(there[0], part, equal_nan=part.dtype.kind == "f") for part in there):
            raise InvalidFileError(
                f"`folder` must hold blocks of one model and graph, got blocks that differ in {spec.name!r}: something "
                "that a run does not store has changed since the first one. Choose another folder."
            )
        return there[0]
    if spec.shape[0] == _ENDS:
        starts = np.cumsum([0, *(int(part[-1]) for part in there[:-1])])
        return np.concatenate([there[0][:1], *(part[1:] + start for part, start in zip(there, starts, strict=True))])
    if spec.shape[0] != "targets":
        return np.concatenate(there)
    width = np.max([part.shape[1:] for part in there], axis=0)
    nothing = -1 if spec.at_least == -1 else 0
    filled = []
    for part, size in zip(parts, sizes, strict=True):
        if part is None:
            filled.append(np.full((size, *width), nothing, dtype=there[0].dtype))
        elif part.shape[1:] == tuple(width):
            filled.append(part)
        else:
            pad = [(0, 0), *((0, int(most) - has) for most, has in zip(width, part.shape[1:], strict=True))]
            filled.append(np.pad(part, pad, constant_values=nothing))
    return np.concatenate(filled)


def _setup_of_all(setups: Sequence[Setup]) -> Setup:
    """Return the set-up, with the engines of all blocks and the most memory that one of them planned."""
    engines = dict.fromkeys(setup.engine for setup in setups)
    most: dict[str, Any] = {}
    for name in ("memory_budget", "memory_planned"):
        planned = [value for setup in setups if (value := getattr(setup, name)) is not None]
        most[name] = max(planned, default=None)
    return setups[0].replace(engine="; ".join(engines), **most)
