"""Sweeps: many trials on several processes, which survive a kill at any moment.

Each trial is a job, whose result is in the lab's store, whole and once. Beside it, in the folder of the sweep:

sweep.toml       what the sweep is; sweep.lock is held by the process that runs it
asked.jsonl      the points that a sampler of Optuna chose, if one was asked
trials.parquet   the finished trials; failed.parquet those that failed, if any

Names are imported on first use; only an `AdaptiveDesign` needs Optuna.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.reproduction.sweep.budget import Budget as Budget
    from graycert.reproduction.sweep.definition import Sweep as Sweep
    from graycert.reproduction.sweep.design import AdaptiveDesign as AdaptiveDesign
    from graycert.reproduction.sweep.design import Design as Design
    from graycert.reproduction.sweep.design import RandomDesign as RandomDesign
    from graycert.reproduction.sweep.run import FailedTrial as FailedTrial
    from graycert.reproduction.sweep.run import SweepResult as SweepResult
    from graycert.reproduction.sweep.run import run_sweep as run_sweep
    from graycert.reproduction.sweep.run import run_sweeps as run_sweeps

_HOME = {
    "AdaptiveDesign": "graycert.reproduction.sweep.design",
    "Budget": "graycert.reproduction.sweep.budget",
    "Design": "graycert.reproduction.sweep.design",
    "FailedTrial": "graycert.reproduction.sweep.run",
    "RandomDesign": "graycert.reproduction.sweep.design",
    "Sweep": "graycert.reproduction.sweep.definition",
    "SweepResult": "graycert.reproduction.sweep.run",
    "run_sweep": "graycert.reproduction.sweep.run",
    "run_sweeps": "graycert.reproduction.sweep.run",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
