import dataclasses
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

import graycert as gc
from graycert.errors import InvalidParameterError
from graycert.models import InterceptionGNN
from graycert.sampling import CoinStream, InterceptionSampler, Purpose, ablate
from graycert.training.features import Features
from graycert.training.train import _SmoothedLoss

SMOOTHING = gc.InterceptionSmoothing(p_delete=0.2, p_ablate=0.4)


def two_communities(*, seed: int = 0, sparse: bool = True) -> Data:
    """60 nodes in two classes, edges mostly within a class, features that tell the class with noise."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(60) % 2
    likely = torch.where(y[:, None] == y[None, :], 0.15, 0.01)
    upper = torch.triu(torch.rand(60, 60, generator=generator) < likely, diagonal=1)
    edge_index = (upper | upper.T).nonzero().T.contiguous()
    x = torch.rand(60, 40, generator=generator)
    x = (x < torch.where(y[:, None] == torch.arange(40)[None, :] % 2, 0.25, 0.05)).float() if sparse else x + y[:, None]
    return Data(x=x, edge_index=edge_index, y=y)


def split_of(data: Data) -> Any:
    return gc.inductive_split(data, seed=0, per_class=8, test_fraction="0.2")


def trained(architecture: str = "gcn", **options: Any) -> tuple[InterceptionGNN, Any]:
    split = split_of(two_communities())
    model = gc.build_model(architecture, split, skip=True, dropout=0.3, seed=1)
    record = gc.train(model, split, smoothing=SMOOTHING, **{"max_epochs": 5, **options})
    return model, record


@pytest.mark.parametrize("architecture", ["gcn", "gat", "gatv2", "sma"])
def test_training_learns(architecture: str) -> None:
    split = split_of(two_communities())
    model = gc.build_model(architecture, split, skip=True, dropout=0.3, seed=1)
    validation = _SmoothedLoss(model.eval(), split.validation, SMOOTHING, CoinStream(0, Purpose.VALIDATION))
    before = float(validation(range(4)).detach())
    record = gc.train(model, split, smoothing=SMOOTHING, learning_rate=0.01, max_epochs=60)
    assert record.best_validation_loss < 0.8 * before
    assert not model.training
    with torch.inference_mode():
        assert float(validation(range(4))) == pytest.approx(record.best_validation_loss, rel=1e-5)


def test_the_same_seed_gives_the_same_weights_and_touches_no_global_generator() -> None:
    torch.manual_seed(123)
    state = torch.get_rng_state()
    first, record = trained(seed=4)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(17)
    second, again = trained(seed=4)
    assert dataclasses.replace(again, seconds=0.0) == dataclasses.replace(record, seconds=0.0)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    other, _ = trained(seed=5)
    assert any(not torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))


def test_the_token_is_trained() -> None:
    split = split_of(two_communities())
    start = gc.build_model("gcn", split, skip=True, dropout=0.3, seed=1).ablation_token.detach().clone()
    model, _ = trained()
    assert not torch.equal(model.ablation_token, start)


def test_the_loss_is_that_of_the_whole_graph_under_the_same_draw() -> None:
    """Receptive field, shared projection and disjoint copies against one plain pass per draw."""
    split = split_of(two_communities())
    for architecture in ("gcn", "gat", "gatv2", "sma"):
        model = gc.build_model(architecture, split, skip=True, seed=1).eval()
        stream = CoinStream(3, Purpose.TRAINING)
        ours = _SmoothedLoss(model, split.train, SMOOTHING, stream)(range(2, 5))
        data, nodes = split.train.data, split.train.nodes
        sampler = InterceptionSampler.of_graph(SMOOTHING, stream, data.edge_index, num_nodes=data.num_nodes)
        losses = []
        for sample in range(2, 5):
            draw = sampler.draw(torch.tensor([sample]))
            masked = ablate(data.x, model.ablation_token, draw.ablated[0])
            scores = model(masked, data.edge_index[:, draw.kept[0]]) + model.skip_logits(data.x)
            losses.append(cross_entropy(scores[nodes], data.y[nodes]))
        assert float(ours.detach()) == pytest.approx(float(torch.stack(losses).mean().detach()), rel=1e-5)


def test_every_epoch_has_its_own_draw() -> None:
    split = split_of(two_communities())
    model = gc.build_model("gcn", split, seed=1).eval()
    loss = _SmoothedLoss(model, split.train, SMOOTHING, CoinStream(0, Purpose.TRAINING))
    assert len({float(loss(range(epoch, epoch + 1)).detach()) for epoch in range(1, 9)}) == 8


def test_sparse_features_drop_entries_as_dense_ones_do() -> None:
    x = two_communities().x
    model = gc.build_model("gcn", split_of(two_communities()), dropout=0.5, seed=1)
    features = Features(x)
    with torch.no_grad():
        assert torch.allclose(features.project(model.eval()), model.first_layer.project(x), atol=1e-6)
        model.train()
        torch.manual_seed(0)
        draws = torch.stack([features.project(model) for _ in range(4_000)])
        expected = model.first_layer.project(x)
        spread = (x @ (model.first_layer.linear.weight.T**2)).sqrt()  # entry times (1-p)/p variance, p = 1/2
    # 60 · 64 means of 4,000 draws: 7 standard errors are exceeded with probability below 1e-8 in all
    assert bool(((draws.mean(dim=0) - expected).abs() <= 7 * spread / 4_000**0.5 + 1e-6).all())
    assert torch.allclose(draws.std(dim=0), spread, rtol=0.15, atol=1e-6)


def test_dense_features_work() -> None:
    split = split_of(two_communities(sparse=False))
    model = gc.build_model("gatv2", split, skip=False, seed=1)
    assert gc.train(model, split, smoothing=SMOOTHING, max_epochs=2).epochs == 2


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
    ],
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    split = split_of(two_communities())
    model = gc.build_model("gcn", split, seed=1)
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(InvalidParameterError) as error:
        gc.train(model, split, **{"smoothing": SMOOTHING, **options})
    assert message in str(error.value)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_a_model_for_other_features_is_refused() -> None:
    split = split_of(two_communities())
    other = two_communities()
    other.x = other.x[:, :10]
    with pytest.raises(InvalidParameterError, match="`model` must take 40 features for this graph"):
        gc.train(gc.build_model("gcn", other), split, smoothing=SMOOTHING)


def test_a_foreign_model_or_split_is_refused() -> None:
    split = split_of(two_communities())
    with pytest.raises(InvalidParameterError, match="`model` must come from build_model, got Linear"):
        gc.train(torch.nn.Linear(1, 1), split, smoothing=SMOOTHING)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameterError, match="`split` must come from inductive_split"):
        gc.train(gc.build_model("gcn", split), two_communities(), smoothing=SMOOTHING)


def test_a_loss_that_is_not_finite_is_reported() -> None:
    with pytest.raises(InvalidParameterError, match="`learning_rate` must keep the loss finite"):
        trained(learning_rate=1e30, max_epochs=20)
