"""Models that pad: what they compute for a node depends on the longest list of messages at hand."""

from torch import nn
from torch_geometric.nn import JumpingKnowledge


def reads_padding(model: nn.Module) -> bool:
    """Return whether a model runs a recurrent network, as ``SAGEConv(aggr="lstm")`` does.

    PyTorch Geometric pads the messages of all nodes of a forward pass to the length of the longest list and takes the
    last state, after the padding. The scores of a node then depend on the largest in-degree of the pass: on edges far
    away, and on other samples that share the pass. That is a function of the graph, but only for one graph per pass.
    One over the layers of a node, as in `JumpingKnowledge`, pads nothing.

    Example:
        >>> reads_padding(nn.GRU(2, 2)), reads_padding(nn.Linear(2, 2))
        (True, False)
    """
    if type(model) is JumpingKnowledge:
        return False
    return isinstance(model, nn.RNNBase) or any(reads_padding(child) for child in model.children())
