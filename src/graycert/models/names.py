"""What models are called, known without loading torch."""

import difflib

from graycert.errors import InvalidParameterError

ARCHITECTURES = ("gcn", "gat", "gatv2", "sma")

PER_NODE = "per-node"
"""What stands for a model of single nodes where other models of graycert have the name of an architecture."""

DEFAULT_TEACHER = "appnp"
"""The model that is distilled where no other is named, see `graycert.training.default_teacher`."""


def is_own(name: str) -> bool:
    """Whether a name is that of a class or function of the user, package.module:Class."""
    module, _, attribute = name.partition(":")
    return bool(module and attribute)


def check_new_model(name: str, *, also: tuple[str, ...] = ()) -> str:
    """Return the name of a model that can be made: an architecture, or a class of the user.

    Args:
        name: Its name.
        also: What else the name may be, in words.

    Raises:
        InvalidParameterError: If it is neither.
    """
    if name in ARCHITECTURES or is_own(name):
        return name
    close = difflib.get_close_matches(name.lower(), ARCHITECTURES, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    *most, last = (*ARCHITECTURES, "package.module:Class", *also)
    raise InvalidParameterError(f"`model` must be {', '.join(most)} or {last}, got {name!r}.{hint}")
