"""Which setting is recommended, by what is wanted."""

from typing import TYPE_CHECKING

from graycert.metrics.pareto import within_accuracy
from graycert.tuning.want import LOSS, Want

if TYPE_CHECKING:
    import pandas as pd


def recommended(trials: "pd.DataFrame", want: Want, *, prefix: str) -> tuple[int, bool]:
    """Return the row to recommend, and whether it reaches what is wanted; else no setting does, and it is the closest.

    Of several settings that reach an accuracy the one with most certified and correct nodes is taken, at radius 1, then
    3, then 5; of several that reach a radius the most accurate one; of several that come equally close the same.

    Args:
        trials: A row per setting, with the columns of `Measures`.
        want: What is wanted.
        prefix: "balanced_" where the choice goes by averages over classes.
    """
    accuracy = trials[f"{prefix}accuracy"]
    certified = [f"{prefix}correct_{radius}" for radius in (1, 3, 5)]
    if want.measure == "radius":
        name = f"correct_{want.radius} of {want.of}" if want.of else f"correct_{want.radius}"
        reached, closeness = trials[name] > 0.5, trials[name]
        order = [f"{prefix}accuracy", *certified]
    elif want.measure:
        closeness = trials[want.measure.replace(" ", "_")]
        reached = closeness >= want.share
        order = [*certified, f"{prefix}accuracy"]
    else:
        closeness, order = accuracy, [*certified, f"{prefix}accuracy"]
        reached = accuracy.copy().astype(bool)
        reached[:] = within_accuracy(accuracy.to_numpy(), margin=LOSS)
    among = reached if reached.any() else closeness == closeness.max()
    best = trials[among].sort_values(order, ascending=False, kind="stable")
    return int(best.index[0]), bool(reached.any())
