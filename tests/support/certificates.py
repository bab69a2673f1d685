"""Small certificates to save, load and show."""

import dataclasses
from typing import Any

import numpy as np

import graycert
from graycert.certificates import Certificates
from graycert.rules import certify_votes, status_of
from graycert.setup import Setup

_SETUP = {field.name for field in dataclasses.fields(Setup)}


def small_certificates(
    *, num_targets: int = 6, rule: str = "sound", named: bool = True, **changes: Any
) -> graycert.Certificates:
    """Certificates of a made-up graph of 50 nodes and three classes; the first target abstains.

    ``changes`` are attributes of the result or of its set-up.
    """
    generator = np.random.default_rng(num_targets)
    selection = np.tile([[60, 30, 10]], (num_targets, 1))
    wins = np.linspace(1_500, 2_990, num_targets).astype(int)
    wins[0] = 1_010
    rest = 3_000 - wins
    estimation = np.stack([wins, rest - rest // 3, rest // 3], axis=1)
    eligible = generator.integers(0, 9, num_targets)
    deltas = 1 - 0.88 ** np.minimum(np.arange(1, 9)[None, :], eligible[:, None])
    votes = certify_votes(selection, estimation, deltas, rule=rule, belongs_to="a made-up graph")
    trusted = np.zeros(max(50, num_targets), dtype=bool)
    trusted[:3] = True
    setup: dict[str, Any] = {
        "smoothing": graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.1 + 0.2),
        "threat": graycert.NodeFeatureThreat(min_distance=1, trusted=trusted if named else None),
        "draws": graycert.Draws(num_selection=100, num_estimation=3_000),
        "rule": rule,
        "bound": "multiplicative",
        "alpha": 0.01,
        "max_radius": 8,
        "seed": 2**63 + 5,
        "num_layers": 2,
        "engine": "reference",
        "num_classes": 3,
        "graph_fingerprint": "sha256:" + "0" * 64,
        "edges_fingerprint": "sha256:" + "1" * 64,
        "num_nodes": max(50, num_targets),
        "num_edges": 120,
        "provenance": {
            "graph": {"name": "toy", "path": None, "share": np.float64(0.1)},
            "versions": {"numpy": "2"},
        },
    }
    values: dict[str, Any] = {
        "targets": np.arange(num_targets)[::-1].copy(),
        "prediction": votes.prediction,
        "status": status_of(np.minimum(votes.radius, eligible)),
        "p_lower": votes.p_lower,
        "p_upper": votes.p_upper,
        "radius": np.minimum(votes.radius, eligible),
        "delta_upper": deltas,
        "receptive_field_size": eligible + 1,
        "num_eligible": eligible,
        "selection_votes": selection,
        "estimation_votes": estimation,
    }
    if named:
        values["labels"] = np.where(np.arange(num_targets) % 3 == 2, -1, np.arange(num_targets) % 2)
        values["node_ids"] = np.array([f"<b>nöde</b> {i}" for i in range(num_targets)])
        setup["class_names"] = ("zero & co", "one", "two")
    for name, value in changes.items():
        (setup if name in _SETUP else values)[name] = value
    return Certificates(setup=Setup(**setup), **values)
