"""What happened to each class, as pandas tables."""

from typing import TYPE_CHECKING

import numpy as np

from graycert._validation import check_integer
from graycert.certificates import Certificates
from graycert.errors import InvalidParameterError
from graycert.metrics.cost import COST_RADII
from graycert.runs.cost import class_word, cost

if TYPE_CHECKING:
    import pandas as pd

ABSTAINED, NOT_CERTIFIED = "abstained", "not certified"


def confusion(c: Certificates, *, radius: int | None = None) -> "pd.DataFrame":
    """Do the work of `Certificates.confusion`."""
    import pandas as pd

    if c.labels is None or not (c.labels >= 0).any():
        raise InvalidParameterError(
            "`certificates` must know true classes for a confusion table, got none. Certify a graph that has `data.y`."
        )
    holds = c.radius >= 0
    if radius is not None:
        wanted = check_integer("radius", radius, at_least=0)
        holds &= c.radius >= np.minimum(wanted, c.num_eligible)
    size = c.setup.num_classes
    counts = np.zeros((size, size + 1), dtype=np.int64)
    known = c.labels >= 0
    np.add.at(counts, (c.labels[known], np.where(holds, c.prediction, size)[known]), 1)
    names = [class_word(c, number) for number in range(size)]
    return pd.DataFrame(
        counts,
        index=pd.Index(names, name="true class"),
        columns=pd.Index([*names, ABSTAINED if radius is None else NOT_CERTIFIED], name="predicted"),
    )


def by_class(c: Certificates) -> "pd.DataFrame":
    """Do the work of `Certificates.by_class`."""
    import pandas as pd

    found = cost(c)
    rows = {}
    for each in found.classes:
        row = {
            "targets": each.targets,
            "as_trained": each.as_trained,
            "smoothed": each.smoothed,
            **{f"certified_{rho}": count for rho, count in zip(COST_RADII, each.certified, strict=True)},
            **{f"holds_{rho}": count for rho, count in zip(COST_RADII, each.whole_field, strict=True)},
            "without_messages": each.without_messages,
        }
        rows[class_word(c, each.group)] = {name: count for name, count in row.items() if count is not None}
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index.name = "true class" if found.labelled else "class as trained"
    return frame
