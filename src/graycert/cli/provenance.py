"""What is written down about a run, so that another group can repeat it."""

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = {"torch": "torch", "pyg": "torch-geometric", "numpy": "numpy", "scipy": "scipy"}


def versions() -> dict[str, str]:
    """Return the versions of graycert, Python and the libraries that compute."""
    from graycert import __version__

    found = {"graycert": __version__, "python": platform.python_version()}
    for name, package in _PACKAGES.items():
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def weights_sha256(module: Any) -> str:
    """Return the hash of the weights as `save_model` writes them."""
    from safetensors.torch import save

    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in module.state_dict().items()}
    return hashlib.sha256(save(tensors)).hexdigest()
