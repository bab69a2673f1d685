"""From certificates to the classifier that they are about: which model was it?"""

from typing import TYPE_CHECKING

from graycert.deployment.classifier import SmoothedClassifier
from graycert.errors import InvalidParameterError
from graycert.models import weights_sha256
from graycert.models.private_copy import private_copy

if TYPE_CHECKING:
    from torch import Tensor, nn

    from graycert.certificates import Certificates


def classifier_of(
    certificates: "Certificates", model: "nn.Module | None", ablation_token: "Tensor | None"
) -> SmoothedClassifier:
    """Do the work of `Certificates.classifier`."""
    known = certificates.model
    given, token = (known, certificates.ablation_token) if model is None else (model, ablation_token)
    if given is None:
        raise InvalidParameterError(
            "`model` must be given for certificates that were loaded, got None: a run holds votes. Pass the model that "
            'was certified, e.g. graycert.load_model("RUN/model.safetensors").'
        )
    copied = private_copy(given).eval()
    record = certificates.setup.provenance.get("model") or {}
    expected = record.get("weights_sha256") if known is None else weights_sha256(known)
    found = weights_sha256(copied)
    if expected and found != expected:
        raise InvalidParameterError(
            f"`model` must be the one that was certified, whose weights have the hash {expected[:16]}..., got "
            f"{found[:16]}... Load the weights of the run."
        )
    return SmoothedClassifier(
        setup=certificates.setup, model=copied, ablation_token=None if token is None else token.detach().clone()
    )
