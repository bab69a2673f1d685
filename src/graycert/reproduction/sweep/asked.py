"""Points that a sampler of Optuna chose, kept in the order in which it was asked, so that it can be asked on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graycert._files import write_atomically
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.reproduction.sweep.definition import remove_rests
from graycert.reproduction.sweep.design import AdaptiveDesign

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

ASKED = "asked.json"


class Asked:
    """A study of Optuna in memory, and a file with all points that were asked for.

    A point is in the file before its trial starts, and what came of the trial is in the store of results. So a process
    that is killed at any moment leaves all that is needed to make the same study again.

    Args:
        folder: Folder of the sweep; written to by one process at a time.
        directions: "maximize" or "minimize" per objective value.
        design: What the sampler is asked for.

    Raises:
        InvalidParameterError: If Optuna is not installed.
        InvalidFileError: If the file is damaged.
    """

    def __init__(self, folder: Path, *, directions: Mapping[str, str], design: AdaptiveDesign) -> None:
        self._file = folder / ASKED
        self._directions = directions
        self._design = design
        self._study = _new_study(directions)
        try:
            for point in json.loads(self._file.read_text(encoding="utf-8")) if self._file.is_file() else []:
                self._add(point)
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidFileError(
                f"{self._file} is damaged ({type(error).__name__}: {error}). Restore it, or start the sweep in "
                "another folder."
            ) from error

    def __len__(self) -> int:
        """Return how many points were asked for."""
        return len(self._trials())

    def point(self, index: int) -> dict[str, float]:
        """Return the parameters of trial ``index``, at most the number of points: then the sampler is asked."""
        if index == len(self):
            self._ask(index)
        return dict(self._trials()[index].params)

    def tell(self, index: int, numbers: Mapping[str, float] | None) -> None:
        """Tell the sampler what came of a trial; None if it failed."""
        from optuna.trial import TrialState

        if numbers is None:
            self._study.tell(index, state=TrialState.FAIL)
        else:
            self._study.tell(index, [numbers[name] for name in self._directions])

    def _ask(self, index: int) -> None:
        import optuna

        # a sampler of its own for each trial: one that starts with the same seed after a restart would repeat itself
        seed = int(np.random.SeedSequence(self._design.seed, spawn_key=(index,)).generate_state(1)[0])
        samplers = {"nsga2": optuna.samplers.NSGAIISampler, "tpe": optuna.samplers.TPESampler}
        self._study.sampler = samplers[self._design.sampler](seed=seed)
        self._study.ask(self._distributions())
        points = [{"params": trial.params, "sampler": trial.system_attrs} for trial in self._trials()]
        text = "[\n" + ",\n".join(map(json.dumps, points)) + "\n]\n"
        remove_rests(self._file)
        write_atomically(self._file, lambda path: path.write_text(text, encoding="utf-8"))

    def _add(self, point: Mapping[str, Any]) -> None:
        from optuna.trial import TrialState, create_trial

        trial = create_trial(
            state=TrialState.RUNNING,
            params=point["params"],
            distributions=self._distributions(),
            system_attrs=point["sampler"],  # what the sampler keeps with a trial, e.g. its generation
        )
        self._study.add_trial(trial)

    def _trials(self) -> "list[FrozenTrial]":
        return self._study.get_trials(deepcopy=False)

    def _distributions(self) -> dict[str, Any]:
        from optuna.distributions import FloatDistribution

        return {name: FloatDistribution(low, high) for name, (low, high) in self._design.ranges.items()}


def _new_study(directions: Mapping[str, str]) -> "Study":
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise InvalidParameterError(f'adaptive sweeps need {error.name}: pip install "graycert[sweep]".') from error
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(directions=cast(Any, list(directions.values())))
    finally:
        optuna.logging.set_verbosity(level)
