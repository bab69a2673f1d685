"""One adversary against all test nodes at once, and one against each."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from graycert.reproduction.job import silent
from graycert.reproduction.lab import Lab
from graycert.reproduction.model_job import ModelJob
from graycert.reproduction.settings import Count, Probability


class CollectiveJob(ModelJob):
    """How many test nodes keep their prediction under each number of hostile nodes, at level alpha for all together.

    Args:
        training: The model.
        p_delete: p_d at inference.
        p_ablate: p_a at inference.
        budgets: Numbers ρ of hostile nodes, rising.
        num_selection: n0.
        num_estimation: n1.
        alpha: Failure probability for all test nodes together.

    The result has ``num_targets``, ``num_predicted`` (those that do not abstain), and counts per budget: ``together``
    for one adversary whose ρ nodes are chosen once, and which also takes any target that it controls; ``theorem_3`` and
    ``exact`` for certificates one by one, each about an adversary that does not control the target.
    """

    job: ClassVar[str] = "collective"

    p_delete: Probability
    p_ablate: Probability
    budgets: Annotated[tuple[Count, ...], Field(min_length=1)]
    num_selection: Count = 1_000
    num_estimation: Count = 3_000
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.01

    def run(self, lab: Lab) -> dict[str, Any]:
        """Certify all test nodes, and count in three ways from the same votes."""
        import graycert as gc
        from graycert.certification.again import certify_again
        from graycert.metrics import certified_ratio

        split = lab.split(self.training)
        exact = gc.certify(
            lab.model(self.training),
            split.test.data,
            smoothing=gc.InterceptionSmoothing(p_delete=self.p_delete, p_ablate=self.p_ablate),
            targets=split.test.nodes.numpy(),
            threat=gc.NodeFeatureThreat(min_distance=1),
            num_selection=self.num_selection,
            num_estimation=self.num_estimation,
            alpha=self.alpha,
            simultaneous=True,
            method="exact",
            max_radius=max(self.budgets),
            seed=self.training.seed,
            say=silent,
        )
        together = gc.certify_collectively(exact, split.test.data, budgets=self.budgets)
        runs = {"exact": exact, "theorem_3": certify_again(exact, split.test.data, method="multiplicative")}
        alone = {
            name: certified_ratio(
                run.radius, run.num_eligible, max_radius=max(self.budgets), denominator="whole_field"
            ).counts[list(self.budgets)]
            for name, run in runs.items()
        }
        return {
            "num_targets": len(exact),
            "num_predicted": int((exact.radius >= 0).sum()),
            "together": together.num_robust,
            **alone,
        }
