"""The votes of a run, drawn again with its model."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from graycert.graph import smoothing_from_stored_order
from graycert.certificates import NodeCertificates
from graycert.runs.verify.findings import VerificationCheck

if TYPE_CHECKING:  # models and engines are loaded only where votes are drawn again
    from torch import Tensor, nn


def redraw(
    stored: NodeCertificates, graph: Any, model: "nn.Module", ablation_token: "Tensor | None"
) -> Iterator[VerificationCheck]:
    """Audit the model again and compare its votes with the stored ones."""
    from graycert.certification import certify

    again = certify(
        model,
        graph,
        smoothing=smoothing_from_stored_order(graph, stored.smoothing),
        targets=stored.targets,
        threat=stored.threat,
        num_selection=stored.num_selection,
        num_estimation=stored.num_estimation,
        num_layers=stored.num_layers,
        alpha=stored.alpha,
        simultaneous=stored.simultaneous,
        rule=stored.rule,
        method=stored.method,
        max_radius=stored.max_radius,
        seed=stored.seed,
        ablation_token=ablation_token,
        engine="torch" if stored.engine.startswith("torch") else "auto",
    )
    detail = f"the model passes the audit with {again.num_layers} propagation steps"
    yield VerificationCheck(name="model audit", passed=True, detail=detail)
    names = ["selection_votes", "estimation_votes"]
    if stored.estimation_predictions is not None:
        names.append("estimation_predictions")
    for name in names:
        ours, theirs = getattr(again, name), getattr(stored, name)
        rows = np.flatnonzero((ours != theirs).any(axis=1)) if ours.shape == theirs.shape else np.arange(len(stored))
        if rows.size == 0:
            detail = "drawn again, equal"
        elif ours.shape != theirs.shape:
            detail = f"the model tells {ours.shape[1]} classes apart, the run {theirs.shape[1]}"
        else:
            row = int(rows[0])
            detail = (
                f"node {stored.targets[row]}: stored {theirs[row].tolist()}, drawn again {ours[row].tolist()}; "
                f"{rows.size:,} of {len(stored):,} targets differ (stored by {stored.engine}, again by "
                f"{again.engine}; single votes, where two classes tie up to rounding, may differ between machines "
                "and engines)"
            )
        yield VerificationCheck(name=name, passed=rows.size == 0, detail=detail)
