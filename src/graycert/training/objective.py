"""What a training minimises, and what it looks at to stop: the same for every kind of model."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

StopOn = Literal["loss", "accuracy", "balanced accuracy"]
STOP_ON: tuple[StopOn, ...] = ("loss", "accuracy", "balanced accuracy")


class Drawn(Protocol):
    """Some draws, with the label per target of all draws, int64 (num_samples * num_targets,)."""

    @property
    def labels(self) -> Tensor:
        """Label per target of all draws."""


DrawnT = TypeVar("DrawnT", bound=Drawn)


@dataclass(frozen=True)
class Seen:
    """What a look at the validation nodes gives.

    Args:
        loss: Cross entropy, averaged over draws.
        share: The accuracy that training stops on, the larger the better; 0 if it stops on the loss.
    """

    loss: float
    share: float = 0.0


class Objective(ABC, Generic[DrawnT]):
    """Cross entropy of a smoothed model on some nodes, averaged over draws.

    Args:
        class_weight: Weight per class, shape (num_classes,), or None for equal ones.
    """

    class_weight: Tensor | None = None

    @abstractmethod
    def batch(self, samples: range, *, drop: float = 0.0) -> DrawnT:
        """Draw the given sample numbers; each feature is dropped with probability ``drop``."""

    @abstractmethod
    def scores(self, batch: DrawnT) -> Tensor:
        """Return class scores per target of all draws, shape (num_samples * num_targets, num_classes)."""

    def __call__(self, batch: DrawnT) -> Tensor:
        """Return the loss, averaged over the draws of the batch."""
        return self._loss(self.scores(batch), batch.labels)

    def look(self, batch: DrawnT, stop_on: StopOn) -> Seen:
        """Return loss and accuracy."""
        scores = self.scores(batch)
        loss = float(self._loss(scores, batch.labels))
        if stop_on == "loss":
            return Seen(loss)
        return Seen(loss, accuracy(scores, batch.labels, balanced=stop_on == "balanced accuracy"))

    def _loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        weight = self.class_weight
        return cross_entropy(scores, labels, weight=None if weight is None else weight.to(scores.dtype))


def accuracy(scores: Tensor, labels: Tensor, *, balanced: bool) -> float:
    """Return the share of right classes; balanced: averaged over the classes among the labels.

    Example:
        >>> scores, labels = torch.tensor([[1.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1])
        >>> accuracy(scores, labels, balanced=False), accuracy(scores, labels, balanced=True)
        (0.75, 0.5)
    """
    right = (scores.argmax(dim=1) == labels).double()
    if not balanced:
        return float(right.mean())
    counts = torch.bincount(labels)
    present = counts > 0
    return float((torch.bincount(labels, weights=right)[present] / counts[present]).mean())


def balanced_weights(labels: Tensor, *, num_classes: int) -> Tensor:
    """Return weights with which each class among the labels counts the same, 1 on average over the labels.

    Example:
        >>> balanced_weights(torch.tensor([0, 0, 0, 1]), num_classes=3).tolist()
        [0.6666666865348816, 2.0, 0.0]
    """
    counts = torch.bincount(labels, minlength=num_classes).double()
    weights = labels.numel() / (counts * int((counts > 0).sum()))
    return torch.where(counts > 0, weights, 0.0).float()


AnyObjective = Objective[Any]
