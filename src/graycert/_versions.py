"""The versions that a result was computed with."""

import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = {"graycert": "graycert", "torch": "torch", "pyg": "torch-geometric", "numpy": "numpy", "scipy": "scipy"}


def versions() -> dict[str, str]:
    """Return the versions of graycert, Python and the libraries that compute."""
    found = {"python": platform.python_version()}
    for name, package in _PACKAGES.items():
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
