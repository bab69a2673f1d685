import torch
from torch import nn

from graycert.training import EarlyStopping


def test_the_best_weights_come_back_not_the_last() -> None:
    model = nn.Linear(1, 1)
    stopping = EarlyStopping(patience=2)
    for weight, loss in ((1.0, 0.9), (2.0, 0.3), (3.0, 0.5), (4.0, 0.4)):
        with torch.no_grad():
            model.weight.fill_(weight)  # in place, as optimizers do: an alias would change along
        assert not stopping.should_stop
        stopping.observe(loss, model)
    assert stopping.should_stop
    stopping.restore(model)
    assert model.weight.item() == 2.0
    assert (stopping.best_epoch, stopping.best_loss) == (2, 0.3)


def test_an_equal_loss_is_no_improvement() -> None:
    model = nn.Linear(1, 1)
    stopping = EarlyStopping(patience=1)
    stopping.observe(0.5, model)
    stopping.observe(0.5, model)
    assert stopping.should_stop
    assert stopping.best_epoch == 1
