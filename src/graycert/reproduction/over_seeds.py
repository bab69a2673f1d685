"""Means and standard deviations over the repetitions of an experiment."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def over_seeds(
    rows: "pd.DataFrame", *, by: Sequence[str], means: Sequence[str], counts: Sequence[str], ddof: int = 1
) -> "pd.DataFrame":
    """Summarise rows that differ in their seed alone.

    Args:
        rows: One per setting and seed.
        by: Columns that tell settings apart.
        means: Columns that are averaged; each gets a column ``NAME_standard_deviation`` beside it (with n - 1 in the
            denominator; 0 for one seed).
        counts: Columns that are added up.
        ddof: Takes the place of the 1 in n - 1.

    Returns:
        One row per setting, in the order of the rows.

    Example:
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"n": [1, 1, 2], "share": [0.5, 1.0, 1.0], "targets": [4, 4, 4]})
        >>> over_seeds(rows, by=["n"], means=["share"], counts=["targets"]).round(3).to_dict("list")
        {'n': [1, 2], 'share': [0.75, 1.0], 'share_standard_deviation': [0.354, 0.0], 'targets': [8, 4]}
    """
    groups = rows.groupby(list(by), sort=False)
    averages, deviations = groups[list(means)].mean(), groups[list(means)].std(ddof=ddof).fillna(0.0)
    return averages.join(deviations.add_suffix("_standard_deviation")).join(groups[list(counts)].sum()).reset_index()
