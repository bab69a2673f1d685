"""On which nodes of which graph a model is trained and looked at."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from graycert.data import SplitPart, validate_data
from graycert.errors import InvalidParameterError
from graycert.sampling.placed_smoothing import place_smoothing, probability_of
from graycert.sampling.streams import edge_ids
from graycert.smoothing.interception.parameters import InterceptionSmoothing


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a model is trained on, and what it is looked at on.

    Args:
        train: Training nodes in their graph.
        validation: Validation nodes in theirs.
        whole: The whole graph, whose edges and nodes probabilities are counted by.
    """

    train: SplitPart
    validation: SplitPart
    whole: SplitPart

    @classmethod
    def of(cls, data: Any, train_mask: Any = None, validation_mask: Any = None) -> "Parts":
        """Return the parts of a split, or of a graph with masks.

        Raises:
            InvalidParameterError: If there is neither, or labels are missing.
        """
        if is_split(data):
            if train_mask is not None or validation_mask is not None:
                raise InvalidParameterError(
                    "`train_mask` and `validation_mask` must be left out for a split, which says both. Pass "
                    "split.test.data, the whole graph, to choose nodes yourself."
                )
            for part in (data.train, data.validation):
                validate_data(part.data, need_labels=True)
            return cls(train=data.train, validation=data.validation, whole=data.test)
        if not isinstance(data, Data):
            raise InvalidParameterError(
                f"`data` must be a torch_geometric.data.Data, or a split of inductive_split or transductive_split, got "
                f"{type(data).__name__}."
            )
        validate_data(data, need_labels=True)
        train = _chosen("train_mask", train_mask, data, "train_mask")
        validation = _chosen("validation_mask", validation_mask, data, "val_mask")
        shared = train[torch.isin(train, validation)]
        if shared.numel():
            raise InvalidParameterError(
                f"`validation_mask` must have no node in common with `train_mask`, got node {int(shared[0])} in both. "
                "Training would stop on what it has learned by heart."
            )
        everything = torch.arange(int(data.num_nodes or 0))
        first, second, whole = (
            SplitPart(data=data, nodes=nodes, original=everything) for nodes in (train, validation, everything)
        )
        return cls(train=first, validation=second, whole=whole)


def is_split(data: Any) -> bool:
    """Return whether something is an inductive or transductive split."""
    return all(isinstance(getattr(data, part, None), SplitPart) for part in ("train", "validation", "test"))


def _chosen(name: str, mask: Any, data: Data, stored: str) -> Tensor:
    """Return the nodes that a mask, or a list of indices, chooses; by default the mask that the graph has."""
    given = data.get(stored) if mask is None else mask
    if given is None:
        raise InvalidParameterError(
            f"`{name}` must say which nodes are used, because `data.{stored}` does not, got None. Pass a boolean mask "
            "or node indices, or a split: graycert.train(model, graycert.transductive_split(data, seed=0), ...)."
        )
    num_nodes = int(data.num_nodes or 0)
    chosen = torch.as_tensor(np.asarray(given) if not isinstance(given, Tensor) else given.detach().cpu())
    if chosen.dtype == torch.bool and tuple(chosen.shape) == (num_nodes,):
        nodes = chosen.nonzero()[:, 0]
    elif chosen.dtype == torch.long and chosen.dim() == 1 and bool(((chosen >= 0) & (chosen < num_nodes)).all()):
        nodes = torch.unique(chosen)
    else:
        raise InvalidParameterError(
            f"`{name}` must be a boolean mask of shape ({num_nodes},) or node indices in [0, {num_nodes - 1}], got "
            f"{chosen.dtype} of shape {tuple(chosen.shape)}."
        )
    unknown = nodes[data.y.cpu()[nodes] < 0]
    if not nodes.numel() or unknown.numel():
        found = f"node {int(unknown[0])}, whose label is unknown" if unknown.numel() else "none"
        raise InvalidParameterError(f"`{name}` must choose labelled nodes, got {found}.")
    return nodes


def smoothing_on_part(smoothing: InterceptionSmoothing, whole: SplitPart, part: SplitPart) -> InterceptionSmoothing:
    """Return the smoothing with arrays per column of ``part.data.edge_index`` and per node of ``part.data``.

    Args:
        smoothing: Arrays, if any, are per column of ``whole.data.edge_index`` and per node of ``whole.data``.
        whole: The part of a split that holds the whole graph.
        part: Any part of the same split.

    Raises:
        InvalidParameterError: If an array does not have the length that the whole graph asks for.
    """
    num_nodes = int(whole.data.num_nodes)
    placed = place_smoothing(smoothing, whole.data.edge_index, num_nodes=num_nodes)
    nodes = part.original.cpu()
    edges = nodes[part.data.edge_index.cpu()]
    return InterceptionSmoothing(
        p_delete=probability_of(placed.p_delete, edge_ids(edges, num_nodes=num_nodes).numpy()),
        p_ablate=probability_of(placed.p_ablate, np.asarray(nodes)),
    )
