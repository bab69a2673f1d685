"""The loss on prefixes of the drawn field against plain passes over the whole graph."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.utils import add_self_loops

import graycert
from graycert.data import SplitPart
from graycert.models import InterceptionGNN
from graycert.sampling import CoinStream, InterceptionSampler, Purpose, ablate
from graycert.training.smoothed_loss import SmoothedLoss
from support.communities import two_communities

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.2, p_ablate=0.4)
STREAM = CoinStream(3, Purpose.TRAINING)
NODES = torch.tensor([0, 5, 17, 18, 44, 59])


def part_of(data: Data) -> SplitPart:
    return SplitPart(data=data, nodes=NODES, original=torch.arange(data.num_nodes))


def textbook_loss(model: InterceptionGNN, data: Data, samples: range) -> torch.Tensor:
    sampler = InterceptionSampler.of_graph(SMOOTHING, STREAM, data.edge_index, num_nodes=data.num_nodes)
    losses = []
    for sample in samples:
        draw = sampler.draw(torch.tensor([sample]))
        masked = ablate(data.x, model.ablation_token, draw.ablated[0])
        scores = model(masked, data.edge_index[:, draw.kept[0]])
        if model.skip:
            scores = scores + model.skip_logits(data.x)
        losses.append(cross_entropy(scores[NODES], data.y[NODES]))
    return torch.stack(losses).mean()


def gradients(model: InterceptionGNN, loss: torch.Tensor) -> list[torch.Tensor]:
    model.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("architecture", ["gcn", "gat", "gatv2", "sma"])
@pytest.mark.parametrize(("num_layers", "skip"), [(1, True), (2, True), (2, False), (3, True)])
@pytest.mark.parametrize("sparse", [True, False])
def test_loss_and_gradients_are_those_of_the_whole_graph(
    architecture: str, num_layers: int, skip: bool, sparse: bool
) -> None:
    data = two_communities(sparse=sparse)
    data.x = data.x.double()
    data.edge_index, _ = add_self_loops(data.edge_index[:, 3:], num_nodes=20)  # directed, some self-loops
    model = graycert.build_model(
        architecture, data, num_layers=num_layers, skip=skip, dropout=0.0, num_neighbors=4
    ).double()
    smoothed = SmoothedLoss(model, part_of(data), SMOOTHING, STREAM)
    ours, theirs = smoothed(smoothed.batch(range(2, 5))), textbook_loss(model, data, range(2, 5))
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), rel=1e-12)
    for a, b in zip(gradients(model, ours), gradients(model, theirs), strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-12)


def test_every_draw_differs_and_a_batch_can_be_used_again() -> None:
    data = two_communities()
    model = graycert.build_model("gcn", data, seed=1).eval()
    loss = SmoothedLoss(model, part_of(data), SMOOTHING, STREAM)
    assert len({float(loss(loss.batch(range(epoch, epoch + 1))).detach()) for epoch in range(1, 9)}) == 8
    batch = loss.batch(range(4))
    assert float(loss(batch).detach()) == float(loss(batch).detach())


def test_when_everything_is_ablated_the_token_alone_decides() -> None:
    data = two_communities()
    model = graycert.build_model("gat", data, seed=1).eval()
    everything = graycert.InterceptionSmoothing(p_delete=0.2, p_ablate=1.0)
    loss = SmoothedLoss(model, part_of(data), everything, STREAM)
    loss(loss.batch(range(2))).backward()  # type: ignore[no-untyped-call]
    assert model.ablation_token.grad is not None
    assert float(model.ablation_token.grad.abs().max()) > 0
