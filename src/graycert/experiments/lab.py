"""What jobs share within a process: graphs, splits and trained models."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from graycert.errors import InvalidFileError
from graycert.experiments.job import Job
from graycert.experiments.results import Arrays, Results
from graycert.experiments.settings import SplitSettings, TrainingSettings


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

    def do(self, job: Job) -> Arrays:
        """Return the result of a job, from its file if it was done."""
        if job not in self.results:
            self.results.write(job, job.run(self))
        return self.results[job]

    def split(self, settings: SplitSettings) -> Any:
        """Return the split of the graph (of a `TrainingSettings` too: its training does not matter here)."""
        return self._split(settings.graph, settings.split, settings.seed, settings.per_class)

    def model(self, settings: TrainingSettings) -> Any:
        """Return the trained model, in evaluation mode, from its files if it was trained before."""
        import graycert as gc

        file = self.folder / "models" / f"{settings.key}.safetensors"
        try:
            return gc.load_model(file)
        except InvalidFileError:  # not there, or cut off by a crash of the machine
            pass
        split = self.split(settings)
        model = gc.build_model(
            settings.architecture, split, num_layers=settings.num_layers, skip=settings.skip, seed=settings.seed
        )
        record = gc.train(
            model,
            split,
            smoothing=gc.InterceptionSmoothing(p_delete=settings.p_delete, p_ablate=settings.p_ablate),
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            max_epochs=settings.max_epochs,
            patience=settings.patience,
            seed=settings.seed,
        )
        gc.save_model(model, file, notes={"settings": settings.model_dump(mode="json"), "training": record.as_dict()})
        return gc.load_model(file)

    def _load(self, name: str) -> Any:
        from graycert.data import load_graph

        return load_graph(name, data_root=self.data_root)

    def _make_split(self, graph: str, kind: str, seed: int, per_class: int) -> Any:
        from graycert.data import inductive_split, transductive_split

        make = inductive_split if kind == "inductive" else transductive_split
        return make(self.graph(graph), seed=seed, per_class=per_class)
