"""What is written down about a run, so that another group can repeat it."""

import hashlib
from typing import Any


def weights_sha256(module: Any) -> str:
    """Return the hash of the weights as `save_model` writes them."""
    from safetensors.torch import save

    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in module.state_dict().items()}
    return hashlib.sha256(save(tensors)).hexdigest()
