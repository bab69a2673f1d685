"""What the messages of a model depend on, where that is known for certain."""

import copy
from typing import Any

from graycert.sampling import evaluation_mode
from graycert.sampling.operations import Aggregation, NormalisedSum, SoftMedoid, UnknownModelError
from graycert.sampling.recognition import recognise


def convolution_of(model: Any) -> str | None:
    """Return "local" or "degree-normalised" for a model that is known for certain, else None.

    Known are graycert's own models, and chains of well-known layers that the compiled engine recognises; of any other
    module nobody can tell what its ``forward`` computes from the edges.

    References:
        docs/proofs/structural_threats.md, "Families of convolutions".
    """
    known = copy.deepcopy(model).cpu().float()
    try:
        with evaluation_mode(known):
            operations = recognise(known)
    except UnknownModelError:
        return None
    aggregations = [each for each in operations if isinstance(each, Aggregation)]
    normalised = any(isinstance(each, NormalisedSum | SoftMedoid) for each in aggregations)
    return "degree-normalised" if normalised else "local"
