"""Go on with a certification from what its folder says."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graycert.blocks.folder import ASKED, CONFIG, SETTINGS
from graycert.certificates import Certificates
from graycert.data.as_data import as_data
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.graph import CanonicalGraph
from graycert.problem import Execution
from graycert.runs.verify.graph_again import rebuild_graph
from graycert.runs.verify.model_beside import model_beside
from graycert.runs.votes_file import readable
from graycert.setup_file import read_config, stored_setup

if TYPE_CHECKING:
    from torch import nn


def resume(
    folder: str | Path,
    *,
    data: Any = None,
    model: "nn.Module | None" = None,
    floor: "nn.Module | None" = None,
    execution: Execution | None = None,
) -> Certificates:
    """Do the work of `Certificates.resume`."""
    from graycert.certification import certify
    from graycert.heterogeneous import is_heterogeneous

    place = Path(folder).expanduser().resolve()
    if not (place / SETTINGS).is_file():
        raise InvalidFileError(
            f"{place} is no folder of an unfinished certification: it has no {SETTINGS}. Give what was "
            "`Execution(folder=...)`, or RUN.unfinished of `graycert certify --out RUN`."
        )
    with readable(place / SETTINGS, "JSON"):
        settings = json.loads((place / SETTINGS).read_text(encoding="utf-8"))
    with readable(place / ASKED, "a NumPy archive"), np.load(place / ASKED, allow_pickle=False) as archive:
        asked = {name: archive[name] for name in archive.files}
    s = stored_setup(place / CONFIG, read_config(place / CONFIG), {k: v for k, v in asked.items() if "." in k})
    data = as_data(rebuild_graph(s) if data is None else data)
    if is_heterogeneous(data):
        raise InvalidParameterError(
            "`data` must be one graph, got a HeteroData. Call graycert.certify again as before, with the same folder."
        )
    model = model_beside(place) if model is None else model
    if model is None:
        raise InvalidParameterError(
            f"`model` must be given, because {place} does not keep it: graycert stores only models that it builds."
        )
    if floor is None and s.provenance.get("floor"):
        raise InvalidParameterError(
            f"`floor` must be given, because the result of {place} is compared with one, which the folder does not "
            "keep. It is the model that was certify's `floor`."
        )
    token = asked.get("ablation_token")
    if token is not None:
        import torch

        token = torch.from_numpy(token)
    device = settings.get("execution.device")
    execution = dataclasses.replace(
        execution or Execution(),
        folder=place,
        engine=settings.get("execution.engine", "auto"),
        device=None if device == "cpu" else device,
    )
    columns = CanonicalGraph.of(data, merge_parallel=s.allows_parallel_edges).in_columns
    return certify(
        model,
        data,
        targets=asked["targets"],
        ablation_token=token,
        floor=floor,
        **s.arguments(columns),
        execution=execution,
        provenance=s.provenance,
    )
