"""Values per edge of a graph, by name and as arrays; and their rows, told apart bit by bit."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._types import IntArray
from graycert.errors import InvalidParameterError
from graycert.graph.conversion import as_array

EdgeInputNames = Sequence[str] | Mapping[str, str]
"""Names of values per edge, or argument of ``forward`` -> attribute of the graph where these differ."""


def edge_input_names(said: EdgeInputNames) -> tuple[str, ...]:
    """Return one text per value, as it is stored: its name, or "argument=attribute" where those differ.

    Raises:
        InvalidParameterError: If these are no distinct names.

    Example:
        >>> edge_input_names({"edge_weight": "amount"}), edge_input_names(("edge_weight", "edge_type=kind"))
        (('edge_weight=amount',), ('edge_weight', 'edge_type=kind'))
    """
    if isinstance(said, str):
        raise InvalidParameterError(
            f'`edge_inputs` must be a tuple of names, got {said!r}. Write edge_inputs=("{said}",).'
        )
    pairs = list(said.items()) if isinstance(said, Mapping) else [argument_and_attribute(name) for name in said]
    arguments = [argument for argument, _ in pairs]
    if len(set(arguments)) != len(pairs) or not all(isinstance(each, str) and each for pair in pairs for each in pair):
        raise InvalidParameterError(
            "`edge_inputs` must be distinct names of tensors of `data`, or a mapping {argument of forward: tensor of "
            f"`data`}}, got {said!r}."
        )
    return tuple(argument if argument == attribute else f"{argument}={attribute}" for argument, attribute in pairs)


def argument_and_attribute(name: Any) -> tuple[Any, Any]:
    """Return the argument of ``forward``, and the attribute of the graph, of a text of `edge_input_names`."""
    argument, equals, attribute = name.partition("=") if isinstance(name, str) else (name, "", "")
    return argument, attribute if equals else argument


def values_per_edge(data: Any, names: EdgeInputNames) -> dict[str, NDArray[Any]]:
    """Return the values per edge of a graph by argument of ``forward``, each of shape (num_edges, ...).

    Args:
        data: Graph with ``edge_index`` and an attribute per name.
        names: At least one.

    Raises:
        InvalidParameterError: If there is no edge, or a name is not that of finite numbers with a row per edge.
    """
    pairs = [argument_and_attribute(name) for name in edge_input_names(names)]
    num_edges = int(data.edge_index.shape[1])
    if num_edges == 0:
        raise InvalidParameterError(
            f"`edge_inputs` must be () for a graph without edges, got {names!r}. There are no values to follow edges."
        )
    return {argument: _checked(name, getattr(data, name, None), num_edges) for argument, name in pairs}


def distinct_rows(values: Mapping[str, NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """Number rows so that equal ones have the same number, whatever the order that they come in.

    Args:
        values: At least one array of numbers per name, each of shape (num_rows, ...); a row is a row of all of them.

    Returns:
        A place at which each number occurs, shape (num_distinct,), and the number of each row, shape (num_rows,).

    Example:
        >>> distinct_rows({"weight": np.array([2.0, 1.0, 2.0])})[1].tolist() in ([1, 0, 1], [0, 1, 0])
        True
    """
    octets = np.concatenate(
        [
            np.ascontiguousarray(each, dtype=each.dtype.newbyteorder("<")).reshape(len(each), -1).view(np.uint8)
            for each in values.values()
        ],
        axis=1,
    )
    rows = np.ascontiguousarray(octets).view(np.dtype((np.void, octets.shape[1])))[:, 0]
    _, first, numbers = np.unique(rows, return_index=True, return_inverse=True)
    return first.astype(np.int64), numbers.reshape(-1).astype(np.int64)


def _checked(name: str, value: Any, num_edges: int) -> NDArray[Any]:
    shape = tuple(getattr(value, "shape", ()))
    if name in ("x", "edge_index") or not hasattr(value, "detach") or shape[:1] != (num_edges,) or 0 in shape:
        found = f"shape {shape}" if shape else "nothing" if value is None else type(value).__name__
        raise InvalidParameterError(
            f"`edge_inputs` must name tensors of the graph with a row for each of its {num_edges:,} edges, got "
            f"{name!r}, which is {found}."
        )
    try:
        array = as_array(value)
    except (TypeError, RuntimeError):  # sparse, or a type that NumPy lacks
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise InvalidParameterError(
            f"`data.{name}` must be a dense tensor of floats, integers or booleans, got {value.dtype}. Convert it: "
            f"data.{name} = data.{name}.float()."
        )
    if not np.isfinite(array).all():
        raise InvalidParameterError(
            f"`data.{name}` must be finite, got NaN or infinity. Replace missing values before certifying."
        )
    return array
