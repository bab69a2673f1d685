"""The journal of a sweep: which process runs which trial, and what came out.

The journal is Optuna's, one line of text per change. A trial of the sweep has an index; the last Optuna trial with
this index speaks for it. It is

- finished (COMPLETE), under way (RUNNING), or failed (FAIL with the reason in ``error``);
- free, if there is none, or if it was lost with its process (FAIL without a reason).

Every change is made under one lock of the operating system, which a killed process gives back. So whoever holds the
lock sees no half-made change but one that a killed process has left.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.reproduction.sweep.design import AdaptiveDesign, Design
from graycert.reproduction.sweep.lock import JournalLock
from graycert.reproduction.sweep.owner import lives, this_process

try:
    import optuna
    from optuna.distributions import FloatDistribution
    from optuna.storages.journal import JournalFileBackend
    from optuna.trial import FrozenTrial, TrialState, create_trial
except ModuleNotFoundError as error:
    raise InvalidParameterError(f'sweeps need {error.name}: pip install "graycert[sweep]".') from error

JOURNAL = "sweep.journal"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A trial that this process runs.

    Attributes:
        number: Number of the trial in Optuna's study.
        index: Index in the sweep.
        params: Value of each parameter.
    """

    number: int
    index: int
    params: dict[str, float]


class Journal:
    """The trials of a sweep directory.

    Args:
        directory: Folder of the sweep.
        name: Name of the study.
        directions: "maximize" or "minimize" per objective value.
        design: Where trials lie; None reads only.

    Raises:
        InvalidFileError: If the journal is damaged, or has no such study and ``design`` is None.
    """

    def __init__(
        self, directory: Path, *, name: str, directions: Mapping[str, str], design: Design | None = None
    ) -> None:
        file = directory / JOURNAL
        self.lock = JournalLock(file)
        self._directions = directions
        self._design = design
        with self.lock:
            try:
                backend = JournalFileBackend(str(file), lock_obj=cast(Any, self.lock))  # their base class is private
                self._storage = optuna.storages.JournalStorage(backend)
                self._study = self._open(name, create=design is not None)
            except (ValueError, AssertionError, KeyError) as error:
                raise InvalidFileError(
                    f"{file} is damaged or holds no study {name!r} ({type(error).__name__}: {error}). "
                    "Restore it, or start the sweep in another folder."
                ) from error
            self._study_id = self._storage.get_study_id_from_name(name)

    def latest(self) -> dict[int, FrozenTrial]:
        """Return the trial that speaks for each index, in order of the indices."""
        trials = self._study.get_trials(deepcopy=False)
        last = {trial.user_attrs["index"]: trial for trial in trials if "index" in trial.user_attrs}
        return dict(sorted(last.items()))

    def claim(self, *, limit: int | None) -> Claim | None:
        """Take the first free trial for this process; None if all trials below ``limit`` are taken."""
        with self.lock:
            latest = self.latest()
            index = first_free(latest)
            if limit is not None and index >= limit:
                return None
            lost = latest.get(index)
            if lost is None and isinstance(self._design, AdaptiveDesign):
                self._ask(self._design, index)
            else:
                self._add(index, TrialState.RUNNING, lost, {"worker": this_process()})
            trial = self._study.get_trials(deepcopy=False)[-1]
            return Claim(number=trial.number, index=index, params=dict(trial.params))

    def finish(self, claim: Claim, results: Mapping[str, float], *, seconds: float) -> bool:
        """Keep the results of a trial; False if it was taken from this process.

        Args:
            claim: The trial.
            results: Objective values, finite, and further numbers, which may be NaN.
            seconds: How long it took.
        """
        values = [results[name] for name in self._directions]
        further = {name: _plain(value) for name, value in results.items() if name not in self._directions}
        with self.lock:
            if not self._is_mine(claim):
                return False
            self._note(claim.number, numbers=further, seconds=seconds)
            self._study.tell(claim.number, values)
            return True

    def fail(self, claim: Claim, error: Mapping[str, str]) -> bool:
        """Keep why a trial failed; False if it was taken from this process."""
        with self.lock:
            if not self._is_mine(claim):
                return False
            self._note(claim.number, error=dict(error))
            self._study.tell(claim.number, state=TrialState.FAIL)
            return True

    def release_lost(self) -> list[int]:
        """Free the trials whose process is dead; return their indices."""
        with self.lock:
            running = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
            lost = [trial for trial in running if not _owner_lives(trial)]
            for trial in lost:
                self._study.tell(trial.number, state=TrialState.FAIL)
            return [trial.user_attrs["index"] for trial in lost if "index" in trial.user_attrs]

    def give_up(self, index: int, error: Mapping[str, str]) -> None:
        """Count a free trial as failed."""
        with self.lock:
            self._add(index, TrialState.FAIL, self.latest()[index], {"error": dict(error)})

    def retry_failed(self) -> None:
        """Free the trials that failed."""
        with self.lock:
            for index, trial in self.latest().items():
                if is_failed(trial):
                    self._add(index, TrialState.FAIL, trial, {})

    def sign(self) -> None:
        """Note that this process drives the sweep."""
        with self.lock:
            self._storage.set_study_user_attr(self._study_id, "driver", this_process())

    def signed(self) -> dict[str, Any] | None:
        """Return the process that drove the sweep last."""
        return self._study.user_attrs.get("driver")

    def _open(self, name: str, *, create: bool) -> optuna.Study:
        sampler = optuna.samplers.RandomSampler()  # never asked: see `_ask`
        names = [study.study_name for study in self._storage.get_all_studies()]
        if name in names or not create:  # creating it again would write a line each time
            return optuna.load_study(study_name=name, storage=self._storage, sampler=sampler)
        level = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            return optuna.create_study(
                study_name=name,
                storage=self._storage,
                sampler=sampler,
                directions=cast(Any, list(self._directions.values())),
            )
        finally:
            optuna.logging.set_verbosity(level)

    def _add(self, index: int, state: TrialState, earlier: FrozenTrial | None, attributes: Mapping[str, Any]) -> None:
        """Write a trial, index and all, as one line."""
        assert self._design is not None
        if earlier is None:
            assert not isinstance(self._design, AdaptiveDesign)
            params, system = self._design.point(index), {}
        else:
            params, system = earlier.params, earlier.system_attrs  # the latter: what the sampler keeps with a trial
        self._study.add_trial(
            create_trial(
                state=state,
                params=params,
                distributions=_distributions(self._design),
                user_attrs={"index": index, **attributes},
                system_attrs=system,
            )
        )

    def _ask(self, design: AdaptiveDesign, index: int) -> None:
        # a sampler of its own for each trial: one that starts with the same seed in each process would repeat itself
        seed = int(np.random.SeedSequence(design.seed, spawn_key=(index,)).generate_state(1)[0])
        self._study.sampler = (
            optuna.samplers.NSGAIISampler(seed=seed)
            if design.sampler == "nsga2"
            else optuna.samplers.TPESampler(seed=seed)
        )
        trial = self._study.ask(_distributions(design))
        trial.set_user_attr("worker", this_process())
        trial.set_user_attr("index", index)  # the last step: without an index, the trial was never there

    def _is_mine(self, claim: Claim) -> bool:
        trial = self._study.get_trials(deepcopy=False)[claim.number]
        return trial.state == TrialState.RUNNING and trial.user_attrs.get("worker") == this_process()

    def _note(self, number: int, **attributes: Any) -> None:
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(self._study_id, number)
        for name, value in attributes.items():
            self._storage.set_trial_user_attr(trial_id, name, value)


def first_free(latest: Mapping[int, FrozenTrial]) -> int:
    """Return the smallest index that nothing speaks for, or a lost trial."""
    index = 0
    while index in latest and not is_lost(latest[index]):
        index += 1
    return index


def is_finished(trial: FrozenTrial) -> bool:
    """Return whether a trial has results."""
    return trial.state == TrialState.COMPLETE


def is_running(trial: FrozenTrial) -> bool:
    """Return whether a trial is under way."""
    return trial.state == TrialState.RUNNING


def is_failed(trial: FrozenTrial) -> bool:
    """Return whether a trial failed and is not to be run again."""
    return trial.state == TrialState.FAIL and "error" in trial.user_attrs


def is_lost(trial: FrozenTrial) -> bool:
    """Return whether a trial was lost with its process, and is to be run again."""
    return trial.state == TrialState.FAIL and "error" not in trial.user_attrs


def _owner_lives(trial: FrozenTrial) -> bool:
    # under the lock, a trial has no worker only if its process was killed between the two steps of claiming it
    return "worker" in trial.user_attrs and lives(trial.user_attrs["worker"])


def _distributions(design: Design) -> dict[str, Any]:
    return {name: FloatDistribution(low, high) for name, (low, high) in design.ranges.items()}


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value  # JSON has no NaN
