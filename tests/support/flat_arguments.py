"""certify() with numbers of draws and ways to execute among the other arguments, so that a test changes just one."""

import dataclasses
from typing import Any

import graycert

_EXECUTION = tuple(field.name for field in dataclasses.fields(graycert.Execution))


def certify_flat(model: Any, data: Any, *, until_decided: bool = False, **arguments: Any) -> graycert.Certificates:
    """Certify; what is a parameter of `Draws`, of `UntilDecided` if asked for, or of `Execution`, goes there."""
    kind = graycert.UntilDecided if until_decided else graycert.Draws
    drawn = {field.name: arguments.pop(field.name) for field in dataclasses.fields(kind) if field.name in arguments}
    placed = {name: arguments.pop(name) for name in _EXECUTION if name in arguments}
    if drawn or until_decided:
        arguments["draws"] = kind(**drawn)
    return graycert.certify(model, data, execution=graycert.Execution(**placed), **arguments)
