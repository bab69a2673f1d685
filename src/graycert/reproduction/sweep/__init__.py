"""Sweeps: many trials on several processes, which survive a kill at any moment.

Each trial is a job, whose result is in the lab's store, whole and once. Beside it, in the folder of the sweep:

sweep.toml       what the sweep is; sweep.lock is held by the process that runs it
asked.json       the points that a sampler of Optuna chose, if one was asked; nothing else needs Optuna
trials.parquet   the finished trials; failed.parquet those that failed, if any
"""

from graycert.reproduction.sweep.budget import Budget
from graycert.reproduction.sweep.definition import Sweep
from graycert.reproduction.sweep.design import AdaptiveDesign, Design, ListedDesign, RandomDesign
from graycert.reproduction.sweep.run import FailedTrial, SweepResult, run_sweep

__all__ = [
    "AdaptiveDesign",
    "Budget",
    "Design",
    "FailedTrial",
    "ListedDesign",
    "RandomDesign",
    "Sweep",
    "SweepResult",
    "run_sweep",
]
