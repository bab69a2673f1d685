"""Stop when nothing gets better on the validation nodes, and give back the best weights."""

import copy

from torch import Tensor, nn


class EarlyStopping:
    """Keeps a copy (not an alias) of the weights with the largest accuracy, and of these the lowest validation loss.

    Args:
        patience: Epochs without improvement after which `should_stop` is True, >= 1.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.best_loss, self.best_share = float("inf"), 0.0
        self.best_epoch = 0
        self._epoch = 0
        self._best_weights: dict[str, Tensor] | None = None

    def observe(self, loss: float, model: nn.Module, *, share: float = 0.0, epochs: int = 1) -> None:
        """Take in the validation loss after so many more epochs, and an accuracy if that counts first."""
        self._epoch += epochs
        if (-share, loss) < (-self.best_share, self.best_loss):
            self.best_loss, self.best_share, self.best_epoch = loss, share, self._epoch
            self._best_weights = copy.deepcopy(model.state_dict())

    @property
    def should_stop(self) -> bool:
        """Whether ``patience`` epochs have passed without improvement."""
        return self._epoch - self.best_epoch >= self.patience

    def restore(self, model: nn.Module) -> None:
        """Put the best weights back into the model."""
        if self._best_weights is not None:
            model.load_state_dict(self._best_weights)
