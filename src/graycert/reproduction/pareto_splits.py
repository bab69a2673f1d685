"""Trials of the same distributions on several splits: their means, and what lines gain over others split by split."""

from typing import TYPE_CHECKING

from graycert.reproduction.over_seeds import over_seeds
from graycert.reproduction.smoothing_sweep import ROBUSTNESS

if TYPE_CHECKING:
    import pandas as pd

_PAIR = ["panel", "line", "other"]


def averaged(trials: "pd.DataFrame", *, num_splits: int) -> "pd.DataFrame":
    """Average the trials of each distribution over the splits.

    Args:
        trials: One row per panel, line, seed and trial.
        num_splits: Trials that were not done on so many splits are left out, so that all rest on the same ones.

    Returns:
        One row per panel, line and trial, without ``seed``; seconds are added up. With several splits, accuracy and
        robustness have their standard deviations beside them.
    """
    if num_splits == 1:
        return trials.drop(columns="seed")
    by = ["panel", "line", "trial"]
    whole = trials[trials.groupby(by)["seed"].transform("nunique") == num_splits]
    counts = ["seconds"]
    means = [name for name in whole.columns if name not in (*by, "seed", *counts)]
    found = over_seeds(whole, by=by, means=means, counts=counts)
    judged = {f"{name}_standard_deviation" for name in ("clean_accuracy", ROBUSTNESS)}
    return found[[name for name in found if not str(name).endswith("_standard_deviation") or name in judged]]


def gains_of_splits(comparisons: "pd.DataFrame") -> "pd.DataFrame":
    """Return what lines gain over others on each split: the mean, and its standard error.

    Args:
        comparisons: Of the fronts of single splits, one row per split, panel, line and other line.

    Returns:
        Columns panel, line, other, ``mean_of_splits`` and ``standard_error`` (standard deviation with n - 1, over the
        square root of n splits).
    """
    gains = comparisons.groupby(_PAIR, sort=False)["gain"]
    return gains.agg(mean_of_splits="mean", standard_error="sem").reset_index()
