"""Which test nodes are certified where all of them would take too long."""

import numpy as np
from numpy.typing import NDArray


def chosen_targets(nodes: NDArray[np.int64], num_targets: int | None, *, seed: int) -> NDArray[np.int64]:
    """Return ``num_targets`` of the nodes, ascending; the same for all methods that are compared.

    Args:
        nodes: Test nodes, shape (num_nodes,).
        num_targets: How many; None, or as many as there are, takes all, as they are.
        seed: Seeds the choice.

    Example:
        >>> few, more = (chosen_targets(np.arange(100), number, seed=13) for number in (5, 10))
        >>> bool(np.isin(few, more).all()), few.size
        (True, 5)
    """
    if num_targets is None or num_targets >= nodes.size:
        return nodes
    order = np.argsort(np.random.PCG64(seed).random_raw(nodes.size), kind="stable")
    return np.sort(nodes[order[:num_targets]])
