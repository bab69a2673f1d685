"""A trial: one setting, certified on the validation nodes; and the bench, which holds what all trials share."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from graycert._types import IntArray
from graycert.reproduction.job import Job
from graycert.smoothing.interception.parameters import InterceptionSmoothing

if TYPE_CHECKING:
    from torch import nn

    from graycert.audit import AuditReport
    from graycert.reproduction.lab import Lab

Train = Callable[[InterceptionSmoothing], "nn.Module"]

TRAINING = ("train_p_delete", "train_p_ablate")
CERTIFYING = "certify_seconds"


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """What trials share in this process: the graph, models, and what the audit found of each, once.

    Args:
        question: Names all that the results depend on, besides the setting.
        model: The model, or a function that trains one under a smoothing.
        data: The graph.
        nodes: Validation nodes, shape (num_nodes,).
        terms: Further arguments of `certify`, the same for all trials.
        rarest: Name of the class with fewest validation nodes.
    """

    question: str
    model: "nn.Module | Train"
    data: Any
    nodes: IntArray
    terms: Mapping[str, Any]
    rarest: str
    _ready: "dict[Any, tuple[nn.Module, AuditReport]]" = field(default_factory=dict, init=False)

    def ready(self, point: Mapping[str, float]) -> "tuple[nn.Module, AuditReport]":
        """Return the model of a setting, trained and audited the first time that it is asked for.

        Raises:
            UnsoundSetupError: If the audit refuses it.
        """
        from graycert.audit import audit_model

        training = tuple(point[name] for name in TRAINING if name in point)
        if training not in self._ready:
            model = self.model
            if training:
                model = cast("Train", model)(InterceptionSmoothing(p_delete=training[0], p_ablate=training[1]))
            asked = {name: self.terms[name] for name in ("num_layers", "ablation_token", "edge_inputs")}
            report = audit_model(cast("nn.Module", model), self.data, targets=self.nodes, **asked)
            report.require()
            self._ready[training] = cast("nn.Module", model), report
        return self._ready[training]

    def certified(self, point: Mapping[str, float]) -> dict[str, Any]:
        """Certify the validation nodes under a setting."""
        from graycert.certification import certify

        model, report = self.ready(point)
        started = time.perf_counter()
        found = certify(
            model,
            self.data,
            targets=self.nodes,
            smoothing=InterceptionSmoothing(p_delete=point["p_delete"], p_ablate=point["p_ablate"]),
            audit=report if report.about.get("model") else None,
            **self.terms,
        )
        names = ("prediction", "radius", "num_eligible", "labels")
        return {**{name: getattr(found, name) for name in names}, CERTIFYING: time.perf_counter() - started}


_OPEN: dict[str, Bench] = {}


@contextmanager
def opened(bench: Bench) -> Iterator[None]:
    """Let the trials of a question find its bench while the block runs."""
    _OPEN[bench.question] = bench
    try:
        yield
    finally:
        del _OPEN[bench.question]


class TuneJob(Job):
    """One setting on the validation nodes of a bench of this process.

    Args:
        question: That of the bench.
        p_delete: p_d at inference.
        p_ablate: p_a at inference.
        train_p_delete: p_d in training, where models are trained.
        train_p_ablate: p_a in training.
    """

    job: ClassVar[str] = "tune"

    question: str
    p_delete: float
    p_ablate: float
    train_p_delete: float | None = None
    train_p_ablate: float | None = None

    @property
    def graphs(self) -> tuple[str, ...]:
        """None by name: the graph is on the bench."""
        return ()

    def run(self, lab: "Lab") -> dict[str, Any]:
        """Certify the validation nodes."""
        del lab
        return _OPEN[self.question].certified(self.model_dump(exclude={"question"}, exclude_none=True))
