"""Train (or take) a model, draw votes once, and conclude from them in several ways."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from graycert._types import IntArray
from graycert.reproduction.job import Job, silent
from graycert.reproduction.lab import Lab
from graycert.reproduction.settings import AnyTraining, Conclusion, Count, DrawSettings, SmoothingSettings

if TYPE_CHECKING:
    from graycert.certificates import Certificates

TestGraph = Literal["as it is", "diffusion", "trees"]


class CertifyJob(Job):
    """One model, smoothed in one way.

    Args:
        model: The model.
        part: Which nodes of the split are certified, in the graph that they are seen in.
        smoothing: What it is smoothed over.
        conclusions: What is concluded from the same votes, one of each name. All must exclude the target if one of
            them does because of a skip connection.
        draws: How much is drawn; None takes what is usual for the smoothing.
        test_graph: "as it is", or sparsified by "diffusion" (GDC) or to "trees" (App. D) before it is attacked.
        num_targets: Certify so many of the nodes, drawn by the seed; None takes all.
        max_radius: Largest radius looked at.
        seed: Seed of the draws; None takes that of the model.

    The result has ``targets``, ``labels`` (num_targets,), and for each conclusion, by its name, ``NAME/radius``,
    ``NAME/num_eligible``, ``NAME/prediction``, where there are bounds of probabilities ``NAME/p_lower`` and
    ``NAME/p_upper``, and what tables show of what the smoothing adds, e.g. ``NAME/evaluation`` (num_targets,); for
    budgets of one adversary also ``NAME/together``, the targets that keep their prediction (num_budgets,).
    """

    job: ClassVar[str] = "certify"
    model: AnyTraining
    part: Literal["validation", "test"] = "test"
    smoothing: SmoothingSettings
    conclusions: Annotated[tuple[Conclusion, ...], Field(min_length=1)] = (Conclusion(),)
    draws: DrawSettings | None = None
    test_graph: TestGraph = "as it is"
    num_targets: Count | None = None
    max_radius: Count = 40
    seed: int | None = None

    @field_validator("conclusions")
    @classmethod
    def _have_names(cls, conclusions: tuple[Conclusion, ...]) -> tuple[Conclusion, ...]:
        if len({each.name for each in conclusions}) < len(conclusions):
            raise ValueError("each of the conclusions must have a name of its own")
        return conclusions

    @property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs that it needs."""
        return (self.model.graph,)

    def run(self, lab: Lab) -> dict[str, Any]:
        """Certify against the widest threat by the rule that needs most, and conclude in every way asked for."""
        import graycert
        from graycert.rules import RULES

        part = getattr(lab.split(self.model), self.part)
        targets = chosen_targets(part.nodes.numpy(), self.num_targets, seed=self.model.seed)
        data = _sparsified(part.data, self.test_graph, targets, self.model)
        widest = min(self.conclusions, key=lambda each: each.min_distance)
        neediest = max(self.conclusions, key=lambda each: RULES[each.rule].needs == "predictions")
        model, audit = self._audited(lab)
        certificates = graycert.certify(
            model,
            data,
            targets=targets,
            smoothing=self._smoothing(lab),
            threat=widest.adversary(),
            draws=None if self.draws is None else self.draws.made(),
            max_radius=self.max_radius,
            seed=self.model.seed if self.seed is None else self.seed,
            num_layers=self.model.num_layers,
            audit=audit,
            execution=graycert.Execution(say=silent),  # a setting that certifies nothing is a result, not a warning
            **neediest.terms(),
        )
        arrays: dict[str, Any] = {"targets": certificates.targets, "labels": certificates.labels}
        for each in self.conclusions:
            found = certificates
            if (each.adversary(), each.terms()) != (widest.adversary(), neediest.terms()):
                found = certificates.again(data, threat=each.adversary(), **each.terms())
            values = _told(found) | {"num_eligible": self._num_eligible(found, data, each)}
            if each.budgets:
                values["together"] = found.against_one_adversary(data, each.budgets).num_robust
            arrays |= {f"{each.name}/{name}": value for name, value in values.items()}
        return arrays

    def _audited(self, lab: Lab) -> tuple[Any, Any]:
        """Return the model, and a report that others of it share; None where `graycert.certify` audits by itself."""
        usual = self.smoothing.name == "interception" and self.test_graph == "as it is"
        return lab.audited(self.model, self.part) if usual else (lab.model(self.model), None)

    def _smoothing(self, lab: Lab) -> Any:
        """Return what the model is smoothed over."""
        del lab
        return self.smoothing.made()

    def _num_eligible(self, found: "Certificates", data: Any, conclusion: Conclusion) -> IntArray:
        """Count whole nodes that could send to the target, so that curves of all methods compare.

        That is what most certificates count themselves. It is not what they count if nothing is assumed of the model,
        so that nodes beyond its reach count too, nor if the budget is one of attributes, or of nodes that add edges.
        """
        from graycert.graph.eligible_nodes import eligible_nodes
        from graycert.threats import NodeFeatureThreat

        threat = found.setup.threat
        if found.setup.num_layers is not None and (threat.within_field or threat.unit == "edges"):
            return found.num_eligible
        hostile = NodeFeatureThreat(min_distance=conclusion.min_distance)
        return eligible_nodes(data, found.targets, hostile, num_layers=self.model.steps).counts


def chosen_targets(nodes: IntArray, num_targets: int | None, *, seed: int) -> IntArray:
    """Return ``num_targets`` of the nodes, ascending; the same for all methods that are compared.

    Args:
        nodes: Test nodes, shape (num_nodes,).
        num_targets: How many; None, or as many as there are, takes all, as they are.
        seed: Seeds the choice.

    Example:
        >>> few, more = (chosen_targets(np.arange(100), number, seed=13) for number in (5, 10))
        >>> bool(np.isin(few, more).all()), few.size
        (True, 5)
    """
    if num_targets is None or num_targets >= nodes.size:
        return nodes
    order = np.argsort(np.random.PCG64(seed).random_raw(nodes.size), kind="stable")
    return np.sort(nodes[order[:num_targets]])


def _told(found: "Certificates") -> dict[str, Any]:
    """Return what figures can show of each target."""
    values = {name: getattr(found, name) for name in ("radius", "prediction", "p_lower", "p_upper")}
    shown = [spec.name for spec in found.setup.smoothing.adds if spec.column and spec.shape == ("targets",)]
    added = {name: found.adds[name] for name in shown if name in found.adds}
    return {name: value for name, value in (values | added).items() if value is not None}


def _sparsified(data: Any, how: TestGraph, targets: IntArray, model: AnyTraining) -> Any:
    """Return the graph that is attacked."""
    if how == "as it is":
        return data
    if how == "diffusion":
        from graycert.data.diffusion import sparsify_by_diffusion

        return sparsify_by_diffusion(data)
    import torch

    from graycert.graph import as_adjacency
    from graycert.graph.trees import sparsify_to_trees

    adjacency = as_adjacency(data)
    kept = sparsify_to_trees(adjacency, targets, num_layers=model.steps)
    thinner = data.clone()
    edges = np.stack([adjacency.sources[kept], adjacency.targets[kept]]).astype(np.int64)
    thinner.edge_index = torch.from_numpy(edges)
    return thinner
