import dataclasses
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

import graycert
from graycert.errors import InvalidParameterError
from graycert.models import InterceptionGNN
from graycert.sampling import CoinStream, Purpose
from graycert.training.smoothed_loss import SmoothedLoss
from support.communities import two_communities

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.2, p_ablate=0.4)


def split_of(data: Data) -> Any:
    return graycert.inductive_split(data, seed=0, per_class=8, test_fraction="0.2")


def trained(architecture: str = "gcn", **options: Any) -> tuple[InterceptionGNN, Any]:
    split = split_of(two_communities())
    model = graycert.build_model(architecture, split, skip=True, dropout=0.3, seed=1)
    record = graycert.train(model, split, smoothing=SMOOTHING, **{"max_epochs": 5, **options})
    return model, record


@pytest.mark.few(1)
@pytest.mark.parametrize("architecture", ["gcn", "gat", "gatv2", "sma"])
def test_training_learns(architecture: str) -> None:
    split = split_of(two_communities())
    model = graycert.build_model(architecture, split, skip=True, dropout=0.3, seed=1)
    validation = SmoothedLoss(model.eval(), split.validation, SMOOTHING, CoinStream(0, Purpose.VALIDATION))
    held_out = validation.batch(range(4))
    before = float(validation(held_out).detach())
    record = graycert.train(model, split, smoothing=SMOOTHING, learning_rate=0.01, max_epochs=60)
    assert record.best_validation_loss < 0.8 * before
    assert not model.training
    with torch.inference_mode():
        assert float(validation(held_out)) == pytest.approx(record.best_validation_loss, rel=1e-5)


@pytest.mark.parametrize("architecture", ["gcn", "gat", "gatv2", "sma"])
def test_the_same_seed_gives_the_same_weights_and_touches_no_global_generator(architecture: str) -> None:
    torch.manual_seed(123)
    state = torch.get_rng_state()
    first, record = trained(architecture, seed=4)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(17)
    second, again = trained(architecture, seed=4)
    assert dataclasses.replace(again, seconds=0.0) == dataclasses.replace(record, seconds=0.0)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    other, _ = trained(architecture, seed=5)
    assert any(not torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))


def test_the_token_is_trained() -> None:
    split = split_of(two_communities())
    start = graycert.build_model("gcn", split, skip=True, dropout=0.3, seed=1).ablation_token.detach().clone()
    model, _ = trained()
    assert not torch.equal(model.ablation_token, start)


def test_dense_features_and_transductive_splits_work() -> None:
    data = two_communities(sparse=False)
    for split in (split_of(data), graycert.transductive_split(data, seed=0, per_class=8, test_fraction="0.2")):
        model = graycert.build_model("gatv2", split, skip=False, seed=1)
        assert graycert.train(model, split, smoothing=SMOOTHING, max_epochs=2).epochs == 2


def test_patience_stops_and_is_recorded() -> None:
    _, record = trained(learning_rate=5.0, max_epochs=200, patience=3)
    assert record.epochs == record.best_epoch + 3 < 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, "`learning_rate` must be finite and > 0, got 0.0"),
        ({"weight_decay": -1.0}, "`weight_decay` must be finite and > 0, got -1.0. 0 switches it off"),
        ({"max_epochs": 0}, "`max_epochs` must be >= 1, got 0"),
        ({"patience": 0}, "`patience` must be >= 1, got 0"),
        ({"seed": -1}, "`seed` must be >= 0, got -1"),
        ({"smoothing": 0.5}, "`smoothing` must be an InterceptionSmoothing, got float"),
        ({"stop_on": "recall"}, "`stop_on` must be one of 'loss', 'accuracy', 'balanced accuracy', got 'recall'"),
        ({"class_weight": "equal"}, "`class_weight` must be one of 'balanced', got 'equal'"),
        ({"class_weight": [1.0]}, "`class_weight` must hold 2 finite weights >= 0, one per class, got [1.0]"),
        ({"class_weight": [1.0, -1.0]}, "`class_weight` must hold 2 finite weights"),
        ({"edge_inputs": ("edge_attr",)}, "`edge_inputs` must be () for a model of build_model"),
        ({"train_mask": [0]}, "`train_mask` and `validation_mask` must be left out for a split"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    split = split_of(two_communities())
    model = graycert.build_model("gcn", split, seed=1)
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(InvalidParameterError) as error:
        graycert.train(model, split, **{"smoothing": SMOOTHING, **options})
    assert message in str(error.value)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_a_model_for_other_features_is_refused() -> None:
    split = split_of(two_communities())
    other = two_communities()
    other.x = other.x[:, :10]
    with pytest.raises(InvalidParameterError, match="`model` must take 40 features for this graph"):
        graycert.train(graycert.build_model("gcn", other), split, smoothing=SMOOTHING)


def test_a_loss_that_is_not_finite_is_reported() -> None:
    with pytest.raises(InvalidParameterError, match="`learning_rate` must keep the loss finite"):
        trained(learning_rate=1e30, max_epochs=20)
