"""Workers of other versions, whose votes might differ, are refused by name."""

from collections.abc import Mapping

from graycert._versions import versions
from graycert.errors import InvalidParameterError


def refuse_other_versions(found: Mapping[str, Mapping[str, str]], here: Mapping[str, str] | None = None) -> None:
    """Refuse workers whose votes might differ.

    Args:
        found: Versions by name, of each worker.
        here: Those of the process that asks; by default this one.

    Raises:
        InvalidParameterError: If one has others than the process that asks; they are named.
    """
    here = versions() if here is None else here
    for worker, there in found.items():
        others = [f"{name} {there.get(name)} ({here[name]} here)" for name in here if there.get(name) != here[name]]
        if others:
            raise InvalidParameterError(
                f"Workers must have the versions of the process that asks, got {worker} with {', '.join(others)}: "
                "their votes might differ. Install the same ones."
            )
