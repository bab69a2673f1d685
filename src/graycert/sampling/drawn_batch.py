"""A batch of drawn graphs, as one graph for one forward pass."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class DrawnBatch:
    """One graph that holds the drawn graphs of several samples.

    Args:
        rows: Which row each node has: its position in the field, or ``num_nodes`` of the field for the token,
            int64 (num_batch_nodes,).
        edge_index: Surviving edges, int64 (2, num_batch_edges), with a third row where edges carry values.
        outputs: The nodes whose outputs are the targets' scores, target by target, sample by sample, int64
            (num_outputs,). A batch may begin and end within a sample; the next one goes on where it ended.
    """

    rows: Tensor
    edge_index: Tensor
    outputs: Tensor
