"""Do model and features have floating-point types that go together? Asked before anything is drawn."""

from copy import deepcopy
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from graycert.errors import InvalidParameterError

_EXACT_ENOUGH = (torch.float32, torch.float64)


def check_precision(model: Any, data: Any, *, edges: Tensor | None = None, device: torch.device | None = None) -> None:
    """Refuse a model that cannot be run on the features as they are, naming the cast that mends it.

    Float32 and float64 go through if the model has no other type. Whatever else there is (half precision, or types that
    differ) is tried on a copy of the model, once, on the whole graph.

    Args:
        model: The model; left as it is. What is no module is let through: the audit refuses it.
        data: Graph with ``x`` and ``edge_index``.
        edges: What the model is called with instead of ``edge_index``, see `with_edge_inputs`.
        device: Where the model is to run; default where its parameters are.

    Raises:
        InvalidParameterError: If the model fails on these features.
    """
    if not isinstance(model, nn.Module):
        return
    parameters = [values for values in chain(model.parameters(), model.buffers()) if values.is_floating_point()]
    kinds = {values.dtype for values in parameters}
    if kinds <= {data.x.dtype} and data.x.dtype in _EXACT_ENOUGH:
        return
    where = device or next((values.device for values in parameters), torch.device("cpu"))
    edges = data.edge_index if edges is None else edges
    try:
        with torch.inference_mode():
            deepcopy(model).to(where).eval()(data.x.to(where, copy=True), edges.to(where, copy=True))
    except Exception as error:  # whatever it raises: the same model in one common type is what can be certified
        names = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds)) or "no numbers"
        if kinds <= {data.x.dtype}:
            cast = "Convert both with `model.float()` and `data.x = data.x.float()`."
        elif len(kinds) == 1:
            cast = f"Convert one of them: `data.x = data.x.to({next(iter(kinds))})`, or `model.to({data.x.dtype})`."
        else:
            cast = f"Convert the model to one type: `model.to({data.x.dtype})`."
        reason = (str(error) or type(error).__name__).splitlines()[0]
        found = str(data.x.dtype).removeprefix("torch.")
        raise InvalidParameterError(
            f"`model` must accept the type of `data.x`, {found}, but it holds {names} and raised: {reason}. {cast}"
        ) from error
