"""Training of one small network on scaled features, whether or not what it says is spread over edges."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from graycert.models.node_model import RowNetwork
from graycert.training.features import Features
from graycert.training.fit import fit
from graycert.training.objective import Seen


def _as_it_is(scores: Tensor) -> Tensor:
    return scores


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Nodes, with what is known of them, that a network is trained or looked at on.

    Args:
        features: Scaled features of the nodes.
        chosen: Which of these count in the loss, int64 (num_chosen,).
        wanted: Class per chosen node, int64 (num_chosen,); or probabilities (num_chosen, num_classes).
        spread: What is done to the scores of all rows before they are compared; nothing for a per-node model.
    """

    features: Features
    chosen: Tensor
    wanted: Tensor
    spread: Callable[[Tensor], Tensor] = _as_it_is

    def loss(self, network: RowNetwork, *, drop: float = 0.0) -> Tensor:
        """Return the mean cross entropy."""
        scores = self.spread(network.after_first(self.features.through(network.first, drop=drop)))
        return cross_entropy(scores[self.chosen], self.wanted)


def fit_network(
    make: Callable[[], RowNetwork],
    training: Rows,
    validation: Rows,
    *,
    input_dropout: float,
    seed: int,
    first_layer_decay: float = 0.0,
    **recipe: Any,
) -> RowNetwork:
    """Return a trained network, in evaluation mode; the global generator of torch is left as it was.

    Args:
        make: Builds the network.
        training: What it is trained on.
        validation: What it is looked at on to stop.
        input_dropout: Dropout on the features, in [0, 1).
        seed: Of initial weights and dropout.
        first_layer_decay: Weight decay of the first layer alone, as a term of the loss, >= 0.
        recipe: Further arguments of `graycert.training.fit.fit`.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make()

    def loss(epoch: int) -> Tensor:
        del epoch
        found = training.loss(network, drop=input_dropout)
        decay = 0.5 * first_layer_decay * network.first.weight.square().sum() if first_layer_decay else 0.0
        return found + decay

    fit(
        network,
        loss,
        lambda: Seen(float(validation.loss(network))),
        seed=seed,
        p_delete=0.0,
        p_ablate=0.0,
        **recipe,
    )
    return network


def seed_of_member(seed: int, role: int, member: int) -> int:
    """Return the seed of one member of an ensemble, unlike that of any other.

    Args:
        seed: Of the whole training, >= 0.
        role: Numbers the ensembles of one training, >= 0.
        member: Its place in the ensemble, >= 0.
    """
    return int(np.random.SeedSequence([seed, role, member]).generate_state(1)[0])
