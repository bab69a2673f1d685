"""Training under sparse smoothing: fresh flips of attributes in every epoch."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout

from graycert.data import SplitPart
from graycert.errors import InvalidParameterError
from graycert.models import InterceptionGNN
from graycert.sampling import CoinStream, Purpose
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.smoothing.sparse.draws import AttributeDraws
from graycert.smoothing.sparse.parameters import SparseSmoothing
from graycert.training import TrainingRecord
from graycert.training.features import Features
from graycert.training.fit import VALIDATION_DRAWS, check_training, fit
from graycert.training.objective import Seen
from graycert.training.smoothed_loss import Batch, SmoothedLoss

_UNTOUCHED = InterceptionSmoothing(p_delete=0.0, p_ablate=0.0)


class DrawnFeatures(Features):
    """Hands out rows of the features as they are in one draw.

    Args:
        x: Attributes, 0 or 1, shape (num_nodes, num_features).
        smoothing: Probabilities of flips.
        stream: Where the coins come from.
    """

    def __init__(self, x: Tensor, smoothing: SparseSmoothing, stream: CoinStream) -> None:
        super().__init__(x)
        self.sample = 0
        self._prepared: tuple[Tensor, AttributeDraws] | None = None
        self._smoothing, self._stream = smoothing, stream

    def rows(self, nodes: Tensor, *, drop: float = 0.0) -> Tensor:
        """Return the rows of ``nodes`` in the current ``sample``, sparse (CSR); dropout acts on what is set."""
        if self._prepared is None or not torch.equal(self._prepared[0], nodes):
            p_plus, p_minus = self._smoothing.p_plus, self._smoothing.p_minus
            draws = AttributeDraws.of(self._x, nodes, p_plus=p_plus, p_minus=p_minus, stream=self._stream)
            self._prepared = nodes, draws
        drawn = self._prepared[1].draw(self.sample)
        values = dropout(drawn.values(), p=drop)
        return torch.sparse_csr_tensor(
            drawn.crow_indices(), drawn.col_indices(), values, drawn.shape, check_invariants=False
        )


class SparseSmoothedLoss(SmoothedLoss):
    """Cross entropy of the model under sparse smoothing on the nodes of one part of a split, one draw at a time.

    Args:
        model: The model.
        part: Graph and nodes.
        smoothing: Probabilities of flips.
        stream: Where the coins come from.
    """

    def __init__(self, model: InterceptionGNN, part: SplitPart, smoothing: SparseSmoothing, stream: CoinStream) -> None:
        super().__init__(model, part, _UNTOUCHED, stream)
        self._drawn = self._features = DrawnFeatures(part.data.x, smoothing, stream)

    def batch(self, samples: range, *, drop: float = 0.0) -> Batch:
        """Draw one sample; each set attribute is dropped with probability ``drop``, by torch's generator."""
        (self._drawn.sample,) = samples
        return super().batch(samples, drop=drop)


def train_sparse_smoothing(
    model: InterceptionGNN,
    split: Any,
    *,
    smoothing: SparseSmoothing,
    learning_rate: float = 1e-3,
    weight_decay: float = 5e-4,
    max_epochs: int = 1_000,
    patience: int = 50,
    seed: int = 0,
    progress: bool = True,
) -> TrainingRecord:
    """Train a model in place under sparse smoothing, otherwise by the recipe of `graycert.train`.

    Full batch, Adam, fresh flips in every epoch; after every epoch the loss on the validation nodes is averaged over
    four draws that are the same in every epoch; the weights of the best epoch are put back.

    Args:
        model: From `build_model`, without skip connection. Left in evaluation mode.
        split: An inductive or transductive split with binary features.
        smoothing: Training-time probabilities of flips, usually those of the certificate.
        learning_rate: Of Adam, > 0.
        weight_decay: Of Adam, >= 0.
        max_epochs: Limit of epochs, >= 1.
        patience: Epochs without improvement before stopping, >= 1.
        seed: Seeds draws and dropout. Deterministic on the CPU; the global generator of torch is left as it was.
        progress: Show a progress bar where it is seen: on a terminal, or in a notebook.

    Returns:
        What was done; its ``p_delete`` and ``p_ablate`` are 0, because no message is intercepted.

    Raises:
        InvalidParameterError: If an argument is out of range, labels are missing, features are not binary, or the loss
            is not finite.

    References:
        Bojchevski, Klicpera and Günnemann (2020), Section 7; Scholten et al. (2022), Appendix "Hyperparameters".
    """
    if not isinstance(smoothing, SparseSmoothing):
        raise InvalidParameterError(f"`smoothing` must be a SparseSmoothing, got {type(smoothing).__name__}.")
    check_training(
        model,
        split,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        max_epochs=max_epochs,
        patience=patience,
        seed=seed,
    )
    if model.skip:
        raise InvalidParameterError(
            "`model` must be built with skip=False, got one with skip=True. A skip connection would see attributes "
            "before they are drawn."
        )
    training = SparseSmoothedLoss(model, split.train, smoothing, CoinStream(seed, Purpose.TRAINING))
    validation = SparseSmoothedLoss(model, split.validation, smoothing, CoinStream(seed, Purpose.VALIDATION))
    held_out = [validation.batch(range(draw, draw + 1)) for draw in range(VALIDATION_DRAWS)]
    return fit(
        model,
        lambda epoch: training(training.batch(range(epoch, epoch + 1), drop=model.config.dropout)),
        lambda: Seen(float(torch.stack([validation(batch) for batch in held_out]).mean())),
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        max_epochs=max_epochs,
        patience=patience,
        seed=seed,
        progress=progress,
        p_delete=0.0,
        p_ablate=0.0,
    )
