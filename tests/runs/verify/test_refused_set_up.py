import pytest
import torch

import graycert
from graycert.certification import concluded_anew
from graycert.errors import UnsoundSetupError
from support.attributed_graphs import random_graph
from support.foreign_models import TwoLiner


class OneLine(torch.nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.linear = torch.nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index):
        del edge_index
        return self.linear(x)


OTHERS, ANYBODY = graycert.NodeFeatureThreat(min_distance=1), graycert.NodeFeatureThreat()
LABELS = torch.tensor([0, 1] + [-1] * 58)
FORGED = {
    "a hostile target counts in full": (graycert.BoundedVotes(), ANYBODY, "hostile-target-in-full"),
    "hostile edges among ranked voters": (
        graycert.BoundedVotes(voters="walks"), graycert.NodeTakeoverThreat(), "takeover-voters"
    ),
    "hostile edges that carry labels": (
        graycert.BoundedVotes(label_propagation=LABELS), graycert.NodeTakeoverThreat(), "takeover-labels"
    ),
    "a hostile target in every subgraph": (
        graycert.SubgraphVoting(num_subgraphs=5), ANYBODY, "target-in-every-subgraph"
    ),
}  # fmt: skip


@pytest.mark.few(1)
@pytest.mark.parametrize(("smoothing", "threat", "slug"), FORGED.values(), ids=FORGED)
def test_a_run_that_claims_what_certify_refuses_does_not_verify(smoothing, threat, slug, tmp_path):
    torch.manual_seed(0)
    data = random_graph(seed=1, num_nodes=60)
    del data.y
    sizes = int(data.x.size(1)), 3
    model = TwoLiner() if isinstance(smoothing, graycert.SubgraphVoting) else OneLine(*sizes)
    honest = graycert.certify(model, data, smoothing=smoothing, threat=OTHERS)
    honest.save(tmp_path / "honest")
    assert graycert.verify(tmp_path / "honest", data=data).passed
    forged = concluded_anew(honest, data, honest.setup.replace(threat=threat))
    forged.save(tmp_path / "forged")
    found = graycert.verify(tmp_path / "forged", data=data)
    assert [check.name for check in found.checks if slug in check.detail] == ["set-up"]
    assert not found.passed
    with pytest.raises(UnsoundSetupError, match=slug):
        graycert.Certificates.load(tmp_path / "forged").again(data)
