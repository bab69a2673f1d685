"""A trial: one setting, certified on the validation nodes; and the bench, which holds what all trials share."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import PrivateAttr

from graycert._files import write_atomically
from graycert._types import IntArray
from graycert.errors import InvalidParameterError
from graycert.models.one_thread import one_thread
from graycert.reproduction.job import Job, silent
from graycert.reproduction.settings import settings_hash
from graycert.smoothing.interception.parameters import InterceptionSmoothing

if TYPE_CHECKING:
    from torch import nn

    from graycert.audit import AuditReport
    from graycert.reproduction.lab import Lab

Train = Callable[[InterceptionSmoothing], "nn.Module"]

TRAINING = ("train_p_delete", "train_p_ablate")
CERTIFYING = "certify_seconds"
_BENCH = "bench"


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
        shared: Folder where models are kept that were trained, for other processes; None where there are none.
    """

    question: str
    model: "nn.Module | Train"
    data: Any
    nodes: IntArray
    terms: Mapping[str, Any]
    rarest: str
    shared: Path | None = None
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
                model = self._trained(InterceptionSmoothing(p_delete=training[0], p_ablate=training[1]))
            asked = {name: self.terms[name] for name in ("num_layers", "ablation_token", "edge_inputs")}
            report = audit_model(cast("nn.Module", model), self.data, targets=self.nodes, **asked)
            report.require()
            self._ready[training] = cast("nn.Module", model), report
        return self._ready[training]

    def _trained(self, smoothing: InterceptionSmoothing) -> "nn.Module":
        """Train a model; of several processes one does."""
        from cloudpickle import dumps, loads
        from filelock import FileLock

        train = cast("Train", self.model)
        if self.shared is None:
            return train(smoothing)
        file = self.shared / f"{settings_hash('tuned', smoothing.stored()[0])}.model"
        with FileLock(file.with_suffix(".lock")):
            if not file.is_file():
                content = dumps(train(smoothing))
                write_atomically(file, lambda path: path.write_bytes(content))
            model: nn.Module = loads(file.read_bytes())
        return model

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


@contextmanager
def sent(bench: Bench, folder: Path) -> Iterator[Bench]:
    """Leave a bench for other processes in a folder while the block runs.

    What is left is pickled, and read by nobody but the workers of this call.

    Args:
        bench: The bench.
        folder: That they see.

    Returns:
        The bench as this process has to use it.

    Raises:
        InvalidParameterError: If it cannot be sent.
    """
    from cloudpickle import dumps

    with tempfile.TemporaryDirectory(prefix=".sent-", dir=folder, ignore_cleanup_errors=True) as place:
        here = replace(bench, shared=Path(place).absolute())
        here._ready.update(bench._ready)
        quiet = replace(bench.terms["execution"], say=silent, progress=False)
        try:
            content = dumps(replace(here, terms={**bench.terms, "execution": quiet}))
        except Exception as error:
            raise InvalidParameterError(
                f'`backend` must be "threads" for this model, which cannot be sent to another process '
                f"({type(error).__name__}: {error}). Leave it out."
            ) from error
        (Path(place) / _BENCH).write_bytes(content)
        yield here


@lru_cache(maxsize=1)
def _received(place: str) -> Bench:
    from cloudpickle import loads

    bench: Bench = loads((Path(place) / _BENCH).read_bytes())
    return bench


class TuneJob(Job):
    """One setting on the validation nodes of a bench of this process, or of the one that asks.

    Args:
        question: That of the bench.
        p_delete: p_d at inference.
        p_ablate: p_a at inference.
        train_p_delete: p_d in training, where models are trained.
        train_p_ablate: p_a in training.
    """

    job: ClassVar[str] = "tune"
    one_thread: ClassVar[bool] = False  # here

    question: str
    p_delete: float
    p_ablate: float
    train_p_delete: float | None = None
    train_p_ablate: float | None = None
    _place: str = PrivateAttr("")

    @classmethod
    def on(cls, bench: Bench, point: Mapping[str, float]) -> "TuneJob":
        """Return the job of a setting, wherever it will be done."""
        job = cls(question=bench.question, **point)
        job._place = "" if bench.shared is None else str(bench.shared)
        return job

    @property
    def graphs(self) -> tuple[str, ...]:
        """None by name: the graph is on the bench."""
        return ()

    def run(self, lab: "Lab") -> dict[str, Any]:
        """Certify the validation nodes."""
        del lab
        here = _OPEN.get(self.question)
        point = self.model_dump(exclude={"question"}, exclude_none=True)
        if here is not None:
            return here.certified(point)
        with one_thread():
            return _received(self._place).certified(point)
