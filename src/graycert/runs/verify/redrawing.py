"""What a run holds of its model, drawn or evaluated again."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from graycert.certificates import Certificates
from graycert.data.as_data import as_data
from graycert.errors import GraycertError
from graycert.graph import CanonicalGraph
from graycert.problem import Execution
from graycert.runs.verify.findings import VerificationCheck

if TYPE_CHECKING:  # models and engines are loaded only where votes are drawn again
    from torch import Tensor, nn

_ELSEWHERE = ("prediction_of_floor",)  # of another model, which is compared on its own


def redraw(
    stored: Certificates, graph: Any, model: "nn.Module", ablation_token: "Tensor | None"
) -> Iterator[VerificationCheck]:
    """Audit the model again and compare what it gives with what is stored; a refusal is a difference."""
    try:
        yield from _drawn_again(stored, graph, model, ablation_token)
    except GraycertError as error:
        yield VerificationCheck(name="model audit", passed=False, detail=f"the model is refused: {error}")


def _drawn_again(
    stored: Certificates, graph: Any, model: "nn.Module", ablation_token: "Tensor | None"
) -> Iterator[VerificationCheck]:
    from graycert.certification import certify

    s = stored.setup
    columns = CanonicalGraph.of(graph, merge_parallel=s.allows_parallel_edges).in_columns
    again = certify(
        model,
        as_data(graph),
        targets=stored.targets,
        ablation_token=ablation_token,
        **s.arguments(columns),
        execution=Execution(engine="torch" if s.engine.startswith("torch") else "auto", say=_silent),
    )
    steps = "" if again.setup.num_layers is None else f" with {again.setup.num_layers} propagation steps"
    yield VerificationCheck(name="model audit", passed=True, detail=f"the model passes the audit{steps}")
    if again.setup.convolution != s.convolution:
        detail = f"stored {s.convolution!r}, found {again.setup.convolution!r}"
        yield VerificationCheck(name="convolution", passed=False, detail=detail)
    for name, (spec, theirs) in stored.every_array().items():
        if spec.stage == "drawn" and name not in _ELSEWHERE:
            yield _compare(name, theirs, again, stored)


def _compare(name: str, theirs: Any, again: Certificates, stored: Certificates) -> VerificationCheck:
    found = again.every_array().get(name)
    ours = None if found is None else found[1]
    if ours is not None and np.array_equal(ours, theirs):
        return VerificationCheck(name=name, passed=True, detail="drawn again, equal")
    if ours is None or ours.shape != theirs.shape or ours.shape[:1] != stored.targets.shape:
        ours_shape = "nothing" if ours is None else f"shape {ours.shape}"
        detail = f"stored with shape {theirs.shape}, drawn again with {ours_shape}"
        return VerificationCheck(name=name, passed=False, detail=detail)
    rows = np.flatnonzero((ours != theirs).reshape(len(stored), -1).any(axis=1))
    row = int(rows[0])
    detail = (
        f"node {stored.targets[row]}: stored {_short(theirs[row])}, drawn again {_short(ours[row])}; {rows.size:,} of "
        f"{len(stored):,} targets differ (stored by {stored.setup.engine}, again by {again.setup.engine}; single "
        "votes, where two classes tie up to rounding, may differ between machines and engines)"
    )
    return VerificationCheck(name=name, passed=False, detail=detail)


def _short(values: Any, limit: int = 160) -> str:
    text = str(values.tolist())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _silent(message: str) -> None:
    """Say nothing: what can be certified at best was said when the run was made."""
    del message
