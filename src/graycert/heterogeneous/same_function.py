"""Does a model give the same scores on the one graph as on its own, heterogeneous one?"""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graycert.errors import GraycertError, InvalidParameterError
from graycert.heterogeneous.classifier import EDGE_TYPE, HeteroClassifier, call_on_types, scores_of_type
from graycert.models.calling import AdaptedClassifier
from graycert.models.edge_inputs import sorted_edges
from graycert.models.private_copy import one_line, private_copy, undisturbed

SLUG = "reads-other-nodes"
_DELETED = (0.0, 0.5, 0.9)


def difference(classifier: HeteroClassifier, data: Data) -> str | None:
    """Say what is wrong with a model that gives other scores on one graph than on the graph with its types.

    There nodes without edges have a copy of every type, and nodes without in-edges one of the target type. A model that
    notices reads how many nodes there are, or sums over all of them.

    Args:
        classifier: The model on the one graph.
        data: The one graph, with values per edge.

    Returns:
        The reason, or None if scores agree, on the graph and with half and nearly all of its edges deleted.

    Raises:
        InvalidParameterError: If the model cannot be called, with the line to write where one is known.
    """
    own = classifier.types.nodes_of(classifier.target_type)
    generator = torch.Generator().manual_seed(0)
    with undisturbed(), torch.inference_mode():
        copied: Any = private_copy(classifier).cpu().eval()
        token = copied.ablation_token.to(data.x.dtype)
        order = sorted_edges(torch.stack([*data.edge_index, torch.arange(data.edge_index.size(1))]))[2]
        for chance in _DELETED:
            kept = order[torch.rand(order.numel(), generator=generator) >= chance]
            hidden = torch.rand(data.x.size(0), generator=generator) < chance
            x = torch.where(hidden.unsqueeze(1), token, data.x)
            given = {name: data[name][kept] for name in (EDGE_TYPE, *dict(classifier.types.lengths))}
            theirs = _on_types(copied.model, classifier, x, data.edge_index[:, kept], given)
            ours = copied(x, data.edge_index[:, kept], **given)[own]
            scale = float(theirs.nan_to_num(0.0, 0.0, 0.0).abs().amax())
            if not torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * scale, equal_nan=True):
                return (
                    "Scores changed when nodes without edges were added to a type: the model reads how many nodes a "
                    "type has, or a mean, a norm or an attention over all of them (as the semantic attention of "
                    "HANConv), through which a hostile node is heard without an edge. Let messages move along edges "
                    "alone."
                )
    return None


def _on_types(
    model: nn.Module, like: HeteroClassifier, x: Tensor, edge_index: Tensor, given: dict[str, Tensor]
) -> Tensor:
    """Return the scores on the graph with all its types, as somebody calls the model who knows nothing of graycert."""
    types = like.types
    x_dict = {name: x[types.nodes_of(name), types.columns_of(name)].clone() for name in types.node_types}
    edges: dict[Any, Tensor] = {}
    inputs: dict[str, dict[Any, Tensor]] = {name: {} for name, _ in types.lengths}
    for number, relation in enumerate(types.relations):
        own = given[EDGE_TYPE] == number
        first = [types.nodes_of(end).start for end in (relation[0], relation[2])]
        edges[relation] = edge_index[:, own] - torch.tensor(first).unsqueeze(1)
        for name, lengths in types.lengths:
            width = lengths[number]
            if width is not None:
                inputs[name][relation] = given[name][own][:, :width] if width else given[name][own]
    try:
        returned = call_on_types(model, x_dict, edges, inputs)
    except GraycertError:
        raise
    except Exception as error:
        line = _line_for(model, x_dict, edges, inputs)
        raise InvalidParameterError(
            f"`model` must be callable as model(x_dict, edge_index_dict{_named(inputs)}) with dicts by node type and "
            f"by relation, got {one_line(error)} with {edge_index.size(1)} edges. {line}"
        ) from error
    return scores_of_type(model, returned, like.target_type, num_nodes=x_dict[like.target_type].size(0))


def _named(inputs: dict[str, Any]) -> str:
    return "".join(f", {name}_dict=..." for name in inputs)


def _line_for(model: nn.Module, x_dict: Any, edges: Any, inputs: dict[str, Any]) -> str:
    """Return the line to write if the model takes a `HeteroData`, else what can be done."""
    try:
        call_on_types(AdaptedClassifier(model, "data", None, "logits"), x_dict, edges, inputs)
    except Exception:  # whatever it raises: it is called in another way
        return (
            "Say how it is called: model = graycert.as_node_classifier(model, call=lambda model, x_dict, "
            "edge_index_dict: ...)"
        )
    return 'Write: model = graycert.as_node_classifier(model, call="data")'
