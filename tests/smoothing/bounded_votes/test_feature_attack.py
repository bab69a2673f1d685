"""An attack on features of a real graph, by gradients: nothing that is certified breaks, everything else does."""

from functools import cache

import numpy as np
import pytest
import torch
from torch.nn import functional

import graycert
from graycert.models.node_model import NodeModel, NodeModelConfig

CLASSES = 6
TARGETS = torch.arange(0, 9_000, 600)


@cache
def data():
    return graycert.prepare_graph(graycert.load_graph("wordnet_nouns"), undirected=True, coalesce=True)


@cache
def model():
    width = {"num_features": data().num_features, "num_classes": CLASSES, "hidden_channels": 32, "members": 1}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = NodeModel(NodeModelConfig(**width, input_dropout=0.0, dropout=0.0))
    optimizer = torch.optim.Adam(made.parameters(), lr=0.02, weight_decay=1e-3)
    for _ in range(15):
        optimizer.zero_grad()
        functional.nll_loss(made(data().x), data().y).backward()
        optimizer.step()
    return made.eval()


@cache
def hostile_rows():
    """A row of features for each class that the model is sure of, by gradient descent."""
    first = [int((data().y == given).nonzero()[0]) for given in range(CLASSES)]
    x = data().x[first].clone().requires_grad_(True)
    optimizer = torch.optim.Adam([x], lr=0.05)
    for _ in range(80):
        optimizer.zero_grad()
        functional.nll_loss(model()(x), torch.arange(CLASSES)).backward()
        optimizer.step()
    sure = 20 * x.detach()  # of the same class, farther out
    assert (model()(sure).exp().diagonal() > 0.999).all()
    return sure


@pytest.mark.parametrize(
    ("vote", "min_distance"),
    [
        ("soft", 1),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("soft", 0), ("one-hot", 0), ("one-hot", 1))),
    ],
)
def test_gradients_break_what_is_not_certified_and_nothing_else(vote, min_distance):
    threat = graycert.NodeFeatureThreat(min_distance=min_distance)
    found = graycert.certify(
        model(), data(), targets=TARGETS, smoothing=graycert.BoundedVotes(vote=vote, gate=None), threat=threat
    )
    classifier = found.classifier()
    limited = np.flatnonzero(~found.whole_field)
    assert limited.size >= 2
    for row in limited[:2]:
        nodes = found.attackers[row][: found.radius[row] + 1]
        assert (nodes >= 0).all()
        for number, breaks in ((found.radius[row], False), (found.radius[row] + 1, True)):
            predicted = {
                attacked(classifier, int(found.targets[row]), nodes[:number], given) for given in range(CLASSES)
            }
            assert (predicted != {int(found.prediction[row])}) is breaks


def attacked(classifier, target, nodes, given):
    changed = data().clone()
    changed.x = data().x.clone()
    changed.x[torch.tensor(nodes)] = hostile_rows()[given]
    return int(classifier.predict(changed, [target])[0])
