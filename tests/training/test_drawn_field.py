"""The walk from the targets against masks drawn on the whole graph."""

import pytest
import torch

import graycert
from graycert.sampling import CoinStream, InterceptionSampler, Purpose
from graycert.training.drawn_field import DrawnField, FieldSampler
from support.communities import two_communities

TARGETS = torch.tensor([4, 11, 12, 50])
STREAM = CoinStream(3, Purpose.TRAINING)
DATA = two_communities()


def drawn(smoothing: graycert.InterceptionSmoothing, samples: range, *, num_layers: int) -> DrawnField:
    sampler = FieldSampler(
        DATA.edge_index,
        TARGETS,
        num_nodes=DATA.num_nodes,
        num_layers=num_layers,
        smoothing=smoothing,
        stream=STREAM,
    )
    return sampler.draw(samples)


def within(edges: list[tuple[int, int]], hops: int) -> set[int]:
    """Nodes that reach a target in at most ``hops`` steps."""
    reached = set(TARGETS.tolist())
    for _ in range(hops):
        reached |= {source for source, target in edges if target in reached}
    return reached


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("p_delete", [0.0, 0.4, 1.0])
def test_one_draw_is_what_the_masks_leave(num_layers: int, p_delete: float) -> None:
    smoothing = graycert.InterceptionSmoothing(p_delete=p_delete, p_ablate=0.6)
    field = drawn(smoothing, range(9, 10), num_layers=num_layers)
    masks = InterceptionSampler.of_graph(smoothing, STREAM, DATA.edge_index, num_nodes=DATA.num_nodes)
    draw = masks.draw(torch.tensor([9]))
    edges = [(int(s), int(t)) for s, t in DATA.edge_index[:, draw.kept[0]].T]
    nodes = field.nodes.tolist()

    assert nodes[: TARGETS.numel()] == TARGETS.tolist()
    assert torch.equal(field.ablated, draw.ablated[0, field.nodes])
    for hops in range(num_layers + 1):
        prefix = nodes[: field.copies_within[hops]]
        assert len(prefix) == len(set(prefix))
        assert set(prefix) == within(edges, hops)
    for hops in range(num_layers):
        ours = field.edge_index[:, : field.edges_within[hops]]
        receivers = within(edges, hops)
        assert sorted((nodes[s], nodes[t]) for s, t in ours.T) == sorted(e for e in edges if e[1] in receivers)
        assert not ours.numel() or int(ours.max()) < field.copies_within[hops + 1]
    assert field.in_degree.tolist() == [sum(target == node for _, target in edges) for node in nodes]


def test_several_samples_are_disjoint_copies() -> None:
    smoothing = graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.5)
    together = drawn(smoothing, range(2, 5), num_layers=2)
    alone = [drawn(smoothing, range(s, s + 1), num_layers=2) for s in range(2, 5)]
    assert together.copies_within == [sum(counts) for counts in zip(*(a.copies_within for a in alone), strict=True)]
    assert together.edges_within == [sum(counts) for counts in zip(*(a.edges_within for a in alone), strict=True)]
    assert together.nodes[: together.copies_within[0]].tolist() == TARGETS.tolist() * 3
    assert int(together.ablated.sum()) == sum(int(a.ablated.sum()) for a in alone)
    sample = torch.full_like(together.nodes, -1)
    sample[: together.copies_within[0]] = torch.arange(3).repeat_interleave(TARGETS.numel())
    for source, receiver in together.edge_index.T.tolist():
        assert sample[source] in (-1, sample[receiver])
        sample[source] = sample[receiver]
