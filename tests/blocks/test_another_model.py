import pytest
import torch

import graycert
from graycert.errors import InvalidParameterError
from support.attributed_graphs import random_graph


class Scaled(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.scale = torch.nn.Linear(5, 3), scale

    def forward(self, x, edge_index):
        del edge_index
        return self.scale * self.linear(x)


def test_a_model_of_the_same_weights_but_another_attribute_does_not_go_on(tmp_path):
    folder, data = tmp_path / "blocks", random_graph(seed=1, num_nodes=30)

    def certified(scale):
        return graycert.certify(
            Scaled(scale), data, smoothing=graycert.BoundedVotes(), threat=graycert.NodeFeatureThreat(min_distance=1),
            execution=graycert.Execution(folder=folder, block_size=10),
        )  # fmt: skip

    whole = certified(1.0)
    assert sorted(each.name for each in folder.glob("block-*"))
    next(folder.glob("block-*")).unlink()
    with pytest.raises(InvalidParameterError, match="these settings differ: model"):
        certified(-1.0)
    assert (certified(1.0).radius == whole.radius).all()
