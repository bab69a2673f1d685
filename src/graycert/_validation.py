"""One check per rule, so that the same rule always has the same message."""

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert.errors import InvalidParameterError


def check_probability(name: str, value: object, *, hint: str = "") -> float:
    """Return ``value`` as a float in [0, 1]."""
    number = _real(name, value)
    if not 0.0 <= number <= 1.0:  # also refuses NaN
        raise InvalidParameterError(_sentence(f"`{name}` must be in [0, 1], got {value!r}.", hint))
    return number


def check_open_unit(name: str, value: object, *, hint: str = "") -> float:
    """Return ``value`` as a float in (0, 1)."""
    number = _real(name, value)
    if not 0.0 < number < 1.0:
        raise InvalidParameterError(_sentence(f"`{name}` must be in (0, 1), got {value!r}.", hint))
    return number


def check_positive(name: str, value: object, *, hint: str = "") -> float:
    """Return ``value`` as a finite float > 0."""
    number = _real(name, value)
    if not 0.0 < number < math.inf:
        raise InvalidParameterError(_sentence(f"`{name}` must be finite and > 0, got {value!r}.", hint))
    return number


def check_integer(name: str, value: object, *, at_least: int, at_most: int | None = None, hint: str = "") -> int:
    """Return ``value`` as an int in [at_least, at_most]."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise InvalidParameterError(_sentence(f"`{name}` must be an integer, got {value!r}.", hint))
    number = int(value)
    if number < at_least or (at_most is not None and number > at_most):
        rule = f">= {at_least}" if at_most is None else f"in [{at_least}, {at_most}]"
        raise InvalidParameterError(_sentence(f"`{name}` must be {rule}, got {number}.", hint))
    return number


def check_seed(value: object) -> int:
    """Return ``value`` as a seed that PyTorch's generators take, too: an int in [0, 2^64)."""
    number = check_integer("seed", value, at_least=0)
    if number >= 2**64:
        raise InvalidParameterError(f"`seed` must be < 2**64, got {number}.")
    return number


def check_choice(name: str, value: object, choices: Sequence[str], *, hint: str = "") -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameterError(_sentence(f"`{name}` must be one of {allowed}, got {value!r}.", hint))
    return value


def check_integer_array(
    name: str,
    values: ArrayLike,
    *,
    ndim: int,
    at_least: int | None = None,
    less_than: int | None = None,
    hint: str = "",
) -> NDArray[np.int64]:
    """Return ``values`` as a C-contiguous int64 array with ``ndim`` axes and entries in [at_least, less_than)."""
    array = np.asarray(values)
    if array.size == 0 and array.dtype == np.float64:  # [] has no dtype of its own
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidParameterError(_sentence(f"`{name}` must hold integers, got dtype {array.dtype}.", hint))
    if array.ndim != ndim:
        raise InvalidParameterError(_sentence(f"`{name}` must have {ndim} axes, got shape {array.shape}.", hint))
    if array.size:
        low, high = int(array.min()), int(array.max())
        if at_least is not None and low < at_least:
            raise InvalidParameterError(_sentence(f"`{name}` must be >= {at_least}, got {low}.", hint))
        if less_than is not None and high >= less_than:
            raise InvalidParameterError(_sentence(f"`{name}` must be < {less_than}, got {high}.", hint))
        if high > np.iinfo(np.int64).max:
            raise InvalidParameterError(_sentence(f"`{name}` must be < 2**63, got {high}.", hint))
    return np.ascontiguousarray(array, dtype=np.int64)


def check_targets(targets: ArrayLike, *, num_nodes: int) -> NDArray[np.int64]:
    """Return ``targets`` as distinct node indices, shape (num_targets,), at least one."""
    array = check_integer_array(
        "targets",
        targets,
        ndim=1,
        at_least=0,
        less_than=num_nodes,
        hint=f"Targets are node indices of a graph with {num_nodes} nodes.",
    )
    if array.size == 0:
        raise InvalidParameterError(
            "`targets` must name at least one node, got an empty set. Pass node indices, e.g. the test nodes."
        )
    unique, counts = np.unique(array, return_counts=True)
    if unique.size < array.size:
        raise InvalidParameterError(
            f"`targets` must be distinct, got node {int(unique[counts > 1][0])} more than once. "
            "Remove the duplicates, e.g. with numpy.unique."
        )
    return array


def check_mask(name: str, values: ArrayLike, *, num_nodes: int, hint: str = "") -> NDArray[np.bool_]:
    """Return ``values`` as a boolean array of shape (num_nodes,)."""
    array = np.asarray(values)
    if array.dtype != np.bool_ or array.shape != (num_nodes,):
        raise InvalidParameterError(
            _sentence(
                f"`{name}` must be a boolean array of shape ({num_nodes},), "
                f"got dtype {array.dtype} and shape {array.shape}.",
                hint,
            )
        )
    return array.astype(np.bool_)


def check_probabilities(name: str, values: ArrayLike, *, size: int, per: str) -> NDArray[np.float64]:
    """Return ``values``, a number in [0, 1] or one per ``per`` ("edge", "node"), as float64 of shape (size,)."""
    array = np.asarray(values)
    if array.size == 0 and array.shape == (size,):  # [] has no dtype of its own
        return np.empty(0)
    if array.dtype.kind not in "iuf" or array.shape not in ((), (size,)):
        raise InvalidParameterError(
            f"`{name}` must be a number or one number per {per}, shape ({size},), got dtype {array.dtype} and shape "
            f"{array.shape}. Pass the same probability once, or one per {per} in the order of the graph."
        )
    refused = array[~((array >= 0) & (array <= 1))]  # NaN, too
    if refused.size:
        raise InvalidParameterError(f"`{name}` must be in [0, 1], got {refused[0]}. Pass one probability per {per}.")
    return np.broadcast_to(array.astype(np.float64), (size,))


def _real(name: str, value: object) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise InvalidParameterError(f"`{name}` must be a number, got {value!r}.")
    return float(value)


def _sentence(*parts: Any) -> str:
    return " ".join(part for part in parts if part)
