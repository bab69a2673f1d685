"""What jobs share within a process: graphs, splits and trained models."""

import hashlib
import time
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

from graycert._files import write_atomically
from graycert.errors import InvalidFileError
from graycert.models.names import is_own
from graycert.models.one_thread import one_thread
from graycert.reproduction.job import Job
from graycert.reproduction.recipes import read_model, trained, write_model
from graycert.reproduction.results import Arrays, Results
from graycert.reproduction.settings import ModelSettings, SplitSettings, TrainedModel, settings_hash


class Lab:
    """Computes what was not computed before, and keeps it under one folder.

    Args:
        folder: Where results and trained models are kept.
        data_root: Folder with graph files; None takes GRAYCERT_DATA.
    """

    def __init__(self, folder: Path, *, data_root: str | None = None) -> None:
        self.folder = Path(folder)
        self.data_root = data_root
        self.results = Results(self.folder / "results")
        self.graph = lru_cache(maxsize=8)(self._load)
        self._split = lru_cache(maxsize=16)(self._make_split)
        self.audited = lru_cache(maxsize=16)(self._audited)

    def do(self, job: Job) -> Arrays:
        """Return the result of a job, from its file if it was done, and the ``seconds`` that it took."""
        if job not in self.results:
            started = time.perf_counter()
            with one_thread() if job.one_thread else nullcontext():
                found = job.run(self)
            self.results.write(job, {**found, "seconds": time.perf_counter() - started})
        return self.results[job]

    def split(self, settings: SplitSettings) -> Any:
        """Return the split of the graph (of a `TrainedModel` too: its training does not matter here)."""
        return self._split(settings.graph, settings.split, settings.seed, settings.per_class)

    def model(self, settings: TrainedModel) -> Any:
        """Return the trained model, in evaluation mode, from its files if it was trained before."""
        from filelock import FileLock

        self.refuse_changed_class(settings)
        file = self._model_file(settings)
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_suffix(".lock")):  # two workers that need one model train it once
            try:
                return read_model(settings, file, lambda: self.split(settings))
            except InvalidFileError:  # not there, or cut off by a crash of the machine
                return self._train(settings, file)

    def _audited(self, settings: TrainedModel, part: str) -> tuple[Any, Any]:
        """Return a trained model, and what its audit says on a part of its split, for all that is certified there.

        Returns:
            The very model that was audited, since modules may keep notes of how they were made, and the report, or None
            of a model whose state cannot be hashed, which has to be audited each time.
        """
        from graycert.audit import audit_model

        model, found = self.model(settings), getattr(self.split(settings), part)
        report = audit_model(model, found.data, num_layers=settings.num_layers, targets=found.nodes.numpy())
        return model, report if report.about.get("model") else None

    def refuse_changed_class(self, settings: TrainedModel) -> None:
        """Results are known by the name of the user's class, so behind a name there must always be the same class.

        Raises:
            InvalidFileError: If the file that the class is written in is another than when a model was trained here.
        """
        from graycert.models.by_name import source_of

        name, kept = self._kept_class(settings)
        if kept is not None and kept.is_file() and kept.read_bytes() != source_of(name):
            raise InvalidFileError(
                f"{name} is another than the results in {self.folder} were computed with: {kept} is how it was. "
                "Choose another folder for the results, or give the class another name."
            )

    def forget_model(self, settings: TrainedModel) -> None:
        """Remove the files of a trained model that nothing else will need."""
        file = self._model_file(settings)
        for suffix in (".safetensors", ".json", ".lock"):
            file.with_suffix(suffix).unlink(missing_ok=True)

    def _model_file(self, settings: TrainedModel) -> Path:
        return self.folder / "models" / f"{settings.key}.safetensors"

    def _kept_class(self, settings: TrainedModel) -> tuple[str, Path | None]:
        """Return the name of a model, and where the file of its class is kept; graycert's own are not."""
        name = settings.architecture if isinstance(settings, ModelSettings) else ""
        return name, self.folder / "classes" / f"{name.partition(':')[0]}.py" if is_own(name) else None

    def _train(self, settings: TrainedModel, file: Path) -> Any:
        from graycert.models.by_name import source_of

        name, kept = self._kept_class(settings)
        source = b"" if kept is None else source_of(name)
        model, record = trained(settings, self.split(settings))
        write_model(model, file, {"settings": settings.model_dump(mode="json"), "training": record})
        if kept is not None:
            write_atomically(kept, lambda path: path.write_bytes(source))
        return read_model(settings, file, lambda: self.split(settings))

    def _load(self, name: str) -> Any:
        from graycert.data import load_graph
        from graycert.data.description import is_description

        own = self.folder / name  # a description that is kept here, whatever folder one works in
        data = load_graph(own if is_description(name) and own.is_file() else name, data_root=self.data_root)
        self._refuse_changed_graph(name, data)
        return data

    def _refuse_changed_graph(self, name: str, data: Any) -> None:
        """Results are known by the graph's name, so behind a name there must always be the same graph."""
        from graycert.graph import graph_fingerprint

        digest = hashlib.sha256(data.y.cpu().numpy().tobytes() if data.get("y") is not None else b"")
        features = None if data.get("x") is None else data.x.numpy()
        found = f"{graph_fingerprint(data.edge_index.numpy(), data.num_nodes, features)} {digest.hexdigest()}"
        file = self.folder / "graphs" / f"{settings_hash('graph', {'name': name})}.txt"
        if not file.exists():
            write_atomically(file, lambda path: path.write_text(f"{name}\n{found}\n", encoding="utf-8"))
        elif file.read_text(encoding="utf-8").splitlines()[-1] != found:
            raise InvalidFileError(
                f"{name} is another graph than the one that the results in {self.folder} were computed on. Choose "
                "another folder for the results, or give the graph another name."
            )

    def _make_split(self, graph: str, kind: str, seed: int, per_class: int) -> Any:
        from graycert.data import inductive_split, transductive_split
        from graycert.data.split_nodes import has_masks

        make, data = inductive_split if kind == "inductive" else transductive_split, self.graph(graph)
        return make(data) if has_masks(data) else make(data, seed=seed, per_class=per_class)
