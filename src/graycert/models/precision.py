"""Do model and features have floating-point types that go together? Asked before anything is drawn."""

from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from itertools import chain, combinations
from typing import Any, NoReturn

import torch
from torch import nn

from graycert.errors import InvalidParameterError
from graycert.graph.values_per_edge import EdgeInputNames, argument_and_attribute, edge_input_names
from graycert.models.edge_inputs import with_edge_inputs
from graycert.models.outside_state import OutsideState

_EXACT_ENOUGH = (torch.float32, torch.float64)


def check_precision(
    model: Any,
    data: Any,
    *,
    edge_inputs: Sequence[str] | Mapping[str, str] | None = None,
    device: torch.device | None = None,
) -> None:
    """Refuse a model that cannot be run on the features as they are, naming the cast that mends it.

    Float32 and float64 go through if neither the model nor values per edge have another type. Whatever else there is
    (half precision, types that differ, integers per edge) is tried on a copy of the model, once, on the whole graph.

    Args:
        model: The model; left as it is. What is no module is let through: the audit refuses it.
        data: Graph with ``x`` and ``edge_index``.
        edge_inputs: Names of values per edge that the model is given.
        device: Where the model is to run; default where its parameters are.

    Raises:
        InvalidParameterError: If the model fails on these features, or on these values per edge.
    """
    if not isinstance(model, nn.Module):
        return
    parameters = [values for values in chain(model.parameters(), model.buffers()) if values.is_floating_point()]
    kinds = {values.dtype for values in parameters}
    others = _of_another_type(data, edge_inputs or ())
    if kinds <= {data.x.dtype} and data.x.dtype in _EXACT_ENOUGH and not others:
        return
    where = device or next((values.device for values in parameters), torch.device("cpu"))
    error = _failure(model, data, edge_inputs, where)
    if error is None:
        return
    for some in chain.from_iterable(combinations(others, number) for number in range(1, len(others) + 1)):
        if _failure(model, _converted(data, some), edge_inputs, where) is None:
            _refuse_values(data, some, error)
    names = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds)) or "no numbers"
    if kinds <= {data.x.dtype} and data.x.dtype in _EXACT_ENOUGH:
        return  # whatever fails, it is no type
    if kinds <= {data.x.dtype}:
        cast = "Convert both with `model.float()` and `data.x = data.x.float()`."
    elif len(kinds) == 1:
        cast = f"Convert one of them: `data.x = data.x.to({next(iter(kinds))})`, or `model.to({data.x.dtype})`."
    else:
        cast = f"Convert the model to one type: `model.to({data.x.dtype})`."
    found = str(data.x.dtype).removeprefix("torch.")
    raise InvalidParameterError(
        f"`model` must accept the type of `data.x`, {found}, but it holds {names} and raised: {_reason(error)}. {cast}"
    ) from error


def _failure(model: nn.Module, data: Any, edge_inputs: EdgeInputNames | None, where: torch.device) -> Exception | None:
    """Return what a copy of the model raises on the whole graph; of several types one common one can be certified."""
    given, edges = with_edge_inputs(model, data, edge_inputs)
    outside = OutsideState(model)
    try:
        with torch.inference_mode():
            deepcopy(given).to(where).eval()(data.x.to(where, copy=True), edges.to(where, copy=True))
    except Exception as error:
        return error
    finally:
        outside.restore()
    return None


def _of_another_type(data: Any, edge_inputs: EdgeInputNames) -> tuple[str, ...]:
    """Return the tensors per edge that are not of the features' type; relations are integers, and may be meant so."""
    names = [argument_and_attribute(name)[1] for name in edge_input_names(edge_inputs)]
    return tuple(name for name in names if data[name].dtype != data.x.dtype)


def _converted(data: Any, names: Sequence[str]) -> Any:
    changed = copy(data)
    for name in names:
        setattr(changed, name, data[name].to(data.x.dtype))
    return changed


def _refuse_values(data: Any, names: Sequence[str], error: Exception) -> NoReturn:
    found = ", ".join(f"`data.{name}` is {data[name].dtype}".replace("torch.", "") for name in names)
    cast = {torch.float32: "float()", torch.float64: "double()"}.get(data.x.dtype, f"to({data.x.dtype})")
    lines = ", ".join(f"`data.{name} = data.{name}.{cast}`" for name in names)
    kind = str(data.x.dtype).removeprefix("torch.")
    raise InvalidParameterError(
        f"`edge_inputs` must have the type that the model computes with, {kind}, but {found}, and the model raised: "
        f"{_reason(error)}. Write {lines}."
    ) from error


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
