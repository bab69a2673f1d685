"""Small certificates to save, load and show."""

from typing import Any

import numpy as np

from graycert.certificates import NodeCertificates
from graycert.rules import certify_votes
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat


def small_certificates(*, num_targets: int = 6, rule: str = "sound", named: bool = True, **changes: Any):
    """Certificates of a made-up graph of 50 nodes and three classes; the first target abstains."""
    generator = np.random.default_rng(num_targets)
    selection = np.tile([[60, 30, 10]], (num_targets, 1))
    wins = np.linspace(1_500, 2_990, num_targets).astype(int)
    wins[0] = 1_010
    rest = 3_000 - wins
    estimation = np.stack([wins, rest - rest // 3, rest // 3], axis=1)
    eligible = generator.integers(0, 9, num_targets)
    deltas = 1 - 0.88 ** np.minimum(np.arange(1, 9)[None, :], eligible[:, None])
    votes = certify_votes(selection, estimation, deltas, rule=rule)
    trusted = np.zeros(max(50, num_targets), dtype=bool)
    trusted[:3] = True
    values: dict[str, Any] = {
        "targets": np.arange(num_targets)[::-1].copy(),
        "prediction": votes.prediction,
        "status": votes.status,
        "p_lower": votes.p_lower,
        "p_upper": votes.p_upper,
        "radius": votes.radius,
        "delta_upper": deltas,
        "receptive_field_size": eligible + 1,
        "num_eligible": eligible,
        "selection_votes": selection,
        "estimation_votes": estimation,
        "num_layers": 2,
        "engine": "reference",
        "smoothing": InterceptionSmoothing(p_delete=0.31, p_ablate=0.1 + 0.2),
        "threat": NodeFeatureThreat(min_distance=1, trusted=trusted if named else None),
        "alpha": 0.01,
        "rule": rule,
        "method": "multiplicative",
        "seed": 2**63 + 5,
        "graph_fingerprint": "sha256:" + "0" * 64,
        "num_nodes": max(50, num_targets),
        "num_edges": 120,
        "provenance": {
            "graph": {"name": "toy", "path": None, "share": np.float64(0.1)},
            "versions": {"numpy": "2"},
        },
    }
    if named:
        values["labels"] = np.where(np.arange(num_targets) % 3 == 2, -1, np.arange(num_targets) % 2)
        values["node_ids"] = np.array([f"<b>nöde</b> {i}" for i in range(num_targets)])
        values["class_names"] = ("zero & co", "one", "two")
    return NodeCertificates(**{**values, **changes})
