"""Sweeps: many trials on several processes, which survive a kill at any moment, with Optuna underneath.

sweep.toml       what the sweep is
sweep.journal    Optuna's journal: each trial, its worker, its results; *.lock beside it
trials.parquet   the finished trials; failed.parquet those that raised, if any

Names are imported on first use: only running and exporting need Optuna.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.experiments.sweep.budget import Budget as Budget
    from graycert.experiments.sweep.definition import Objective as Objective
    from graycert.experiments.sweep.definition import Sweep as Sweep
    from graycert.experiments.sweep.design import AdaptiveDesign as AdaptiveDesign
    from graycert.experiments.sweep.design import Design as Design
    from graycert.experiments.sweep.design import RandomDesign as RandomDesign
    from graycert.experiments.sweep.export import export_sweep as export_sweep
    from graycert.experiments.sweep.run import FailedTrial as FailedTrial
    from graycert.experiments.sweep.run import SweepResult as SweepResult
    from graycert.experiments.sweep.run import run_sweep as run_sweep
    from graycert.experiments.sweep.run import run_sweeps as run_sweeps

_HOME = {
    "AdaptiveDesign": "graycert.experiments.sweep.design",
    "Budget": "graycert.experiments.sweep.budget",
    "Design": "graycert.experiments.sweep.design",
    "FailedTrial": "graycert.experiments.sweep.run",
    "Objective": "graycert.experiments.sweep.definition",
    "RandomDesign": "graycert.experiments.sweep.design",
    "Sweep": "graycert.experiments.sweep.definition",
    "SweepResult": "graycert.experiments.sweep.run",
    "export_sweep": "graycert.experiments.sweep.export",
    "run_sweep": "graycert.experiments.sweep.run",
    "run_sweeps": "graycert.experiments.sweep.run",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
