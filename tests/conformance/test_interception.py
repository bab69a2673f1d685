"""Lemma 1, executed through both engines: without an arriving message not one bit of a logit changes.

The arrival bits come from `support` alone: coins in Python integers, paths by search.
"""

import numpy as np
import pytest
import torch

from graycert.models import build_model
from graycert.sampling import Purpose, choose_engine
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph
from support.enumeration import nodes_that_reach
from support.known_models import KNOWN, known_model, shaken
from support.reference_coins import is_intercepted

SMOOTHING = InterceptionSmoothing(p_delete=0.4, p_ablate=0.6)
NUM_SAMPLES, NUM_NODES = 40, 14


def arrivals(edges, hostile, num_layers):
    """Whether an un-ablated hostile node still reaches the target: (NUM_SAMPLES, NUM_NODES)."""
    found = np.zeros((NUM_SAMPLES, NUM_NODES), dtype=bool)
    for sample in range(NUM_SAMPLES):
        kept = [e for e in edges if not is_intercepted(2, "estimation", "edge", sample, e[0] * NUM_NODES + e[1], 0.4)]
        shown = {w for w in hostile if not is_intercepted(2, "estimation", "node", sample, w, 0.6)}
        if shown:
            for target in range(NUM_NODES):
                found[sample, target] = bool(shown & nodes_that_reach(kept, target, num_layers))
    return found


def check_lemma(model, data, *, num_layers, engine, size, skip=False, power=0.9):
    """Change all features of three nodes: only outputs that a message of theirs reaches may change.

    The test has power: of those that a message reaches in fewer steps, at least the share ``power`` does change.
    """
    hostile = [1, 6, 11]
    edges = [tuple(edge) for edge in data.edge_index.t().tolist()]

    def logits():
        drawing = choose_engine(
            model, data, np.arange(NUM_NODES), smoothing=SMOOTHING, num_layers=num_layers, engine=engine
        )
        with torch.inference_mode():
            return drawing.logits(2, Purpose.ESTIMATION, torch.arange(NUM_SAMPLES))

    clean = logits()
    data.x[hostile] = torch.linspace(-0.9 * size, size, 5)
    changed = (logits() != clean).any(dim=2).numpy()
    allowed = arrivals(edges, hostile, num_layers)
    if skip:
        allowed[:, hostile] = True  # the certificate excludes attacks on the target itself
    assert not (changed & ~allowed).any()
    surely = arrivals(edges, hostile, num_layers - 1)
    assert (changed & surely).sum() > power * surely.sum()
    assert changed.sum() < changed.size / 2 + 1 or num_layers == 3


@pytest.mark.few(4)
@pytest.mark.parametrize(("engine", "size"), [("torch", 1_000), ("compiled", 30)])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize(("skip", "directed"), [(True, True), (False, False)])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_only_arriving_messages_change_logits(architecture, skip, directed, num_layers, engine, size):
    data = random_graph(num_nodes=NUM_NODES, num_pairs=16, directed=directed)
    model = build_model(architecture, data, num_layers=num_layers, skip=skip).eval()
    check_lemma(model, data, num_layers=num_layers, engine=engine, size=size, skip=skip)


@pytest.mark.few(4)
@pytest.mark.parametrize("engine", ["torch", "compiled"])
@pytest.mark.parametrize("name", KNOWN)
def test_models_of_pytorch_geometric_too(name, engine):
    data = random_graph(num_nodes=NUM_NODES, num_pairs=16)
    power = 0.3 if name == "no bias" else 0.9  # its last layer does not see the node itself
    check_lemma(known_model(name), data, num_layers=3 if name == "GCN" else 2, engine=engine, size=10, power=power)


@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_large_weights(architecture):
    """Attention that is far from uniform: a score of a node that is cut off must not even change the rounding."""
    data = random_graph(num_nodes=NUM_NODES, num_pairs=16)
    check_lemma(shaken(build_model(architecture, data)), data, num_layers=2, engine="compiled", size=10)
