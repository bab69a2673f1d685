"""The caller's model, data and random state stay as they are: everything works on copies."""

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from graycert.errors import InvalidParameterError


def private_copy(model: Any) -> nn.Module:
    """Return a deep copy of a model that is called with copies of its inputs.

    Whatever is done with it (traced, moved, put into another mode, called with a first step that works in place)
    leaves the caller's model and data alone. State that a deep copy shares, in classes and module globals, is shared.

    Args:
        model: Any ``torch.nn.Module``; a copy of a copy is a copy.

    Raises:
        InvalidParameterError: If it is no module, cannot be copied, or has parameters without values.
    """
    if not isinstance(model, nn.Module):
        parts = list(model) if isinstance(model, tuple | list) else []
        line = "Of a function, pass the modules that it calls: graycert.as_node_classifier(modules, call=function)."
        if parts and all(isinstance(each, nn.Module) for each in parts):
            line = "Write: model = graycert.as_node_classifier(model)"
        raise InvalidParameterError(
            f"`model` must be a torch.nn.Module with forward(x, edge_index), got {type(model).__name__}. {line}"
        )
    if isinstance(model, torch.jit.ScriptModule):
        raise InvalidParameterError(
            f"`model` must be written in Python, got {type(model).__name__}, which TorchScript runs and which takes no "
            "hooks. Pass the module that it was made from, or write: model = graycert.as_node_classifier(model)"
        )
    _refuse_lazy_parameters(model)
    try:
        copied = copy.deepcopy(model)
    except Exception as error:
        raise InvalidParameterError(
            f"`model` must allow copy.deepcopy, because graycert works on a copy, got {one_line(error)}. Does it keep "
            "a result of an earlier call as an attribute?"
        ) from error
    _refuse_other_class(model, copied)
    copied = _uncompiled(copied)
    if give_copies not in copied._forward_pre_hooks.values():
        copied.register_forward_pre_hook(give_copies, prepend=True, with_kwargs=True)
    return copied


def _uncompiled(model: nn.Module) -> nn.Module:
    """Return a copy as it was before ``torch.compile``: compiled code hides its steps, and may call the original."""
    if _is_compiled(model):
        model = cast("nn.Module", model._orig_mod)
    for module in list(model.modules()):
        for name, child in list(module._modules.items()):
            if child is not None and _is_compiled(child):
                module._modules[name] = cast("nn.Module", child._orig_mod)
        compiled = getattr(vars(module).get("forward"), "_torchdynamo_orig_callable", None)
        if compiled is not None and getattr(compiled, "__func__", None) is type(module).forward:
            del module.forward
    return model


def _is_compiled(model: nn.Module) -> bool:
    return type(model).__module__.startswith("torch._dynamo") and hasattr(model, "_orig_mod")  # importing it takes long


def give_copies(
    module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Replace tensors among the inputs of a module by copies (a forward pre-hook)."""
    del module
    return tuple(_copied(value) for value in inputs), {name: _copied(value) for name, value in named.items()}


def _copied(value: Any) -> Any:
    return value.clone() if type(value) is Tensor else value


def one_line(error: BaseException) -> str:
    """Return kind and first line of an error."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"


def _refuse_lazy_parameters(model: nn.Module) -> None:
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        if is_lazy(value):
            raise InvalidParameterError(
                f"`model` must have values for all its parameters, got `{name}`, which is made at the first call. Call "
                "model(data.x, data.edge_index), of a HeteroData model(data.x_dict, data.edge_index_dict), once, then "
                "train it or load its weights."
            )


def _refuse_other_class(model: nn.Module, copied: Any) -> None:
    copies = dict(copied.named_modules()) if isinstance(copied, nn.Module) else {}
    for name, module in model.named_modules():
        found = copies.get(name)
        scripted = isinstance(module, torch.jit.ScriptModule) and isinstance(found, torch.jit.ScriptModule)
        if (type(found) is not type(module) and not scripted and not _both_traced(module, found)) or found is module:
            raise InvalidParameterError(
                "`model` must allow copy.deepcopy, because graycert works on a copy, but the copy of "
                f"`{name or 'model'}`, a {type(module).__name__}, is the same object or of another class. Remove its "
                "__deepcopy__ or __reduce__."
            )


def _both_traced(module: nn.Module, found: Any) -> bool:
    """Return whether both were traced by torch.fx, as by `to_hetero`: each such object has a class of its own."""
    both = isinstance(module, torch.fx.GraphModule) and isinstance(found, torch.fx.GraphModule)
    return both and type(module).__mro__[1:] == type(found).__mro__[1:]


@contextmanager
def undisturbed() -> Iterator[None]:
    """Leave the global random generators (torch, NumPy, Python), gradient mode and default type as they were."""
    generators = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002 (models may use it)
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_rng_state(generators[0])
        np.random.set_state(generators[1])  # noqa: NPY002
        random.setstate(generators[2])
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
