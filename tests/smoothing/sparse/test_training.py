"""Training under sparse smoothing: fresh draws, the right loss, and what is refused."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from graycert.data import inductive_split, transductive_split
from graycert.errors import InvalidParameterError
from graycert.models import build_model
from graycert.sampling import CoinStream, Purpose
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.smoothing.sparse.draws import AttributeDraws
from graycert.smoothing.sparse.parameters import SparseSmoothing
from graycert.smoothing.sparse.training import DrawnFeatures, SparseSmoothedLoss, train_sparse_smoothing
from support.attributed_graphs import ARCHITECTURE_NAMES
from support.binary_graphs import binary_graph

STREAM = CoinStream(2, Purpose.TRAINING)


def small_split(make=transductive_split):
    data = binary_graph(num_nodes=60, num_pairs=40, num_features=12, directed=False, density=0.3)
    data.x[:, :9] = torch.nn.functional.one_hot(data.y, 3).float().repeat(1, 3)  # the label can be learnt
    return make(data, seed=0, per_class=5)


@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
@pytest.mark.parametrize("p_plus", [0.0, 0.1])
def test_the_loss_is_that_of_the_model_on_drawn_features(architecture, p_plus):
    split = small_split()
    smoothing = SparseSmoothing(p_plus=p_plus, p_minus=0.6)
    model = build_model(architecture, split, hidden_channels=4, heads=2).eval()
    part, everyone = split.train, torch.arange(60)
    loss = SparseSmoothedLoss(model, part, smoothing, STREAM)
    draws = AttributeDraws.of(part.data.x, everyone, p_plus=smoothing.p_plus, p_minus=0.6, stream=STREAM)
    values = []
    for sample in (1, 2):
        x = draws.draw(sample).to_dense()
        expected = cross_entropy(model(x, part.data.edge_index)[part.nodes], part.data.y[part.nodes])
        values.append(loss(loss.batch(range(sample, sample + 1))))
        torch.testing.assert_close(values[-1], expected, rtol=1e-5, atol=1e-6)
    assert not torch.equal(*values)


def test_dropout_acts_on_what_a_draw_leaves():
    x, nodes = torch.ones(30, 40), torch.arange(30)
    features = DrawnFeatures(x, SparseSmoothing(p_plus=0, p_minus=0.5), STREAM)
    shown = features.rows(nodes).to_dense()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        dropped = features.rows(nodes, drop=0.75).to_dense()
    assert set(dropped[shown == 0].tolist()) == {0.0}
    assert set(dropped[shown == 1].tolist()) == {0.0, 4.0}
    assert torch.equal(features.rows(nodes[:7]).to_dense(), shown[:7])


@pytest.mark.deep
@pytest.mark.parametrize("make", [inductive_split, transductive_split])
def test_training_lowers_the_loss_reproducibly_and_leaves_the_generator_alone(make):
    split = small_split(make)
    arguments = {"smoothing": SparseSmoothing(p_plus=0.01, p_minus=0.4), "learning_rate": 0.05, "max_epochs": 60}
    models = [build_model("gat", split, hidden_channels=4, heads=2, dropout=0.2) for _ in range(2)]
    state = torch.get_rng_state()
    records = [train_sparse_smoothing(model, split, **arguments, seed=1) for model in models]
    assert torch.equal(state, torch.get_rng_state())
    assert records[0].best_validation_loss == records[1].best_validation_loss
    for ours, again in zip(models[0].state_dict().values(), models[1].state_dict().values(), strict=True):
        assert torch.equal(ours, again)
    untrained = build_model("gat", split, hidden_channels=4, heads=2, dropout=0.2).eval()
    validation = SparseSmoothedLoss(
        untrained, split.validation, arguments["smoothing"], CoinStream(1, Purpose.VALIDATION)
    )
    with torch.inference_mode():
        before = torch.stack([validation(validation.batch(range(s, s + 1))) for s in range(4)]).mean()
        validation.model = models[0]
        after = torch.stack([validation(validation.batch(range(s, s + 1))) for s in range(4)]).mean()
    assert after < 0.8 * before
    assert float(after) == pytest.approx(records[0].best_validation_loss, rel=1e-6)  # the best weights were put back
    assert not models[0].training
    assert 1 <= records[0].best_epoch <= records[0].epochs <= 60


def test_stops_when_the_validation_loss_no_longer_falls():
    split = small_split()
    model = build_model("gat", split, hidden_channels=4, heads=2)
    smoothing = SparseSmoothing(p_plus=0, p_minus=1)  # nothing to learn from
    record = train_sparse_smoothing(model, split, smoothing=smoothing, learning_rate=0.1, max_epochs=200, patience=5)
    assert record.epochs == record.best_epoch + 5 < 200


def test_refuses_what_it_cannot_train():
    split = small_split()
    model, smoothing = build_model("gat", split), SparseSmoothing(p_plus=0, p_minus=0.6)
    for changes, name in [
        ({"model": torch.nn.Linear(2, 2)}, "model"),
        ({"model": build_model("gat", split, skip=True)}, "model"),
        ({"split": split.train}, "split"),
        ({"smoothing": InterceptionSmoothing(p_delete=0.1, p_ablate=0.1)}, "smoothing"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": 1e30}, "learning_rate"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"patience": 0}, "patience"),
    ]:
        arguments = {"model": model, "split": split, "smoothing": smoothing} | changes
        with pytest.raises(InvalidParameterError, match=f"`{name}`"):
            train_sparse_smoothing(arguments.pop("model"), arguments.pop("split"), **arguments)
