"""The floor of a run beside the model that it comes from."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graycert.certificates import Certificates
from graycert.data.as_data import as_data
from graycert.runs.store import FLOOR_FILES
from graycert.runs.verify.as_trained import disagreeing
from graycert.runs.verify.findings import VerificationCheck

if TYPE_CHECKING:  # loads torch
    from torch import nn

_NAME = "floor"


def compare_floor(
    folder: Path, stored: Certificates, graph: Any, floor: "nn.Module | None", not_redone: list[str]
) -> Iterator[VerificationCheck]:
    """Evaluate the floor that is given, or that the run keeps; one that is not there is added to ``not_redone``."""
    classes = stored.prediction_of_floor
    if classes is None:
        return
    if floor is None and not all((folder / name).is_file() for name in FLOOR_FILES):
        not_redone.append(
            "the floor: what it predicts is taken from the files. Its model can check it (`verify(..., floor=...)`)"
        )
        return
    from graycert.models import load_model, weights_sha256
    from graycert.sampling.floor import scores_of_floor

    model = load_model(folder / FLOOR_FILES[0]) if floor is None else floor
    record = stored.setup.provenance.get("floor")
    expected = record.get("weights_sha256") if isinstance(record, Mapping) else None
    found = weights_sha256(model)
    if expected is not None:
        detail = (
            "is the model of the run" if found == expected else f"its hash is {found}, the run was made with {expected}"
        )
        yield VerificationCheck(name=f"{_NAME}: weights", passed=found == expected, detail=detail)
    try:
        wrong = disagreeing(classes, scores_of_floor(model, as_data(graph).x, stored.targets))
    except Exception as error:  # whatever a model raises that is not the one of the run
        detail = f"the floor cannot be evaluated ({type(error).__name__}: {error})"
        yield VerificationCheck(name=_NAME, passed=False, detail=detail)
        return
    detail = f"predicts what the run says, {len(stored):,} targets"
    if wrong.size:
        detail = (
            f"node {stored.targets[wrong[0]]}: stored {classes[wrong[0]]}, the floor predicts another class; "
            f"{wrong.size:,} of {len(stored):,} targets differ"
        )
    yield VerificationCheck(name=_NAME, passed=not wrong.size, detail=detail)
