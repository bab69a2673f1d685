"""The audit as every smoothing asks for it."""

from typing import TYPE_CHECKING

from graycert.audit import AuditReport, audit_model
from graycert.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor


def audited(
    problem: Problem, *, ablation_token: "Tensor | None" = None, features_matter: bool = True
) -> tuple[Problem, AuditReport]:
    """Audit the model of a problem; return the problem with what is now known of its depth, and the report.

    Args:
        problem: What is asked for.
        ablation_token: Features of an ablated node, where the smoothing ablates.
        features_matter: Whether a model that ignores features is refused.

    Raises:
        UnsoundSetupError: With the slug of the first failed check.
    """
    report = audit_model(
        problem.model,
        problem.data,
        num_layers=problem.setup.num_layers,
        ablation_token=ablation_token,
        edge_inputs=problem.setup.edge_inputs,
        seed=problem.setup.seed,
        targets=problem.targets,
        features_matter=features_matter,
    )
    report.require()
    return problem.with_setup(num_layers=report.num_layers, num_layers_assumed=report.assumed), report
