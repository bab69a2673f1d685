"""The audit as every smoothing asks for it."""

from typing import TYPE_CHECKING

from graycert.audit import AuditReport
from graycert.audit.handed_on import accept_report
from graycert.audit.model_audit import examine_model
from graycert.audit.question import Question
from graycert.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor


def audited(
    problem: Problem, *, ablation_token: "Tensor | None" = None, features_matter: bool = True, local: bool = True
) -> tuple[Problem, AuditReport]:
    """Audit the model of a problem; return the problem with what is now known of its depth, and the report.

    Args:
        problem: What is asked for.
        ablation_token: Features of an ablated node, where the smoothing ablates.
        features_matter: Whether a model that ignores features is refused.
        local: Whether the proof needs Lemma 1; else the model need only be a function of features and edges, and no
            steps are counted.

    Raises:
        UnsoundSetupError: With the slug of the first failed check.
    """
    asked = Question(
        model=problem.model,
        data=problem.data,
        num_layers=problem.setup.num_layers,
        ablation_token=ablation_token,
        edge_inputs=problem.setup.edge_inputs,
        targets=problem.targets,
        features_matter=features_matter,
        local=local,
    )
    with problem.phases("audit"):
        if problem.audit is None:
            report = examine_model(asked, seed=problem.setup.seed)
        else:
            report = accept_report(problem.audit, asked, fingerprint=problem.setup.graph_fingerprint)
    report.require()
    if not local:
        return problem.with_setup(num_layers=None), report
    return problem.with_setup(num_layers=report.num_layers, num_layers_assumed=report.assumed), report
