"""Our sampler against the authors': the same pretrained GAT, the same graph, independent draws.

Source: shared/golden (weights, reordered test graph and 1,000 + 3,000 votes of the authors' implementation). Draws are
independent, so the counts of a cell are two binomial samples of one probability. The reference's skip branch runs the
same weights without edges, with ReLU (not ELU) between the layers and nothing on the output.
"""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy import stats
from torch_geometric.data import Data

from graycert.models import ModelConfig, build_from_config
from graycert.sampling import Purpose, choose_engine
from graycert.smoothing.interception.parameters import InterceptionSmoothing

FAILURE = 1e-6  # chance that a right sampler fails one of these tests
REFERENCE_SAMPLES = 4_000
SETTINGS = {
    "pd0.31_pa0.794_skip1": (0.31, 0.794, True),
    "pd0.31_pa0.794_skip0": (0.31, 0.794, False),
    "demo_seed0": (0.361449, 0.794, True),
    "pd0.361449_pa0.794_skip0": (0.361449, 0.794, False),
    "pd0.0_pa0.85_skip1": (0.0, 0.85, True),
    "pd0.5_pa0.0_skip1": (0.5, 0.0, True),
    "pd0.31_pa0.71_skip1": (0.31, 0.71, True),
    "pd0.3_pa0.85_skip1": (0.3, 0.85, True),
}


def arrays(path):
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


@pytest.fixture(scope="module")
def golden(golden_root):
    return arrays(golden_root / "deltas_cora_ml.npz"), arrays(golden_root / "gat_cora_ml_weights.npz")


@pytest.fixture(scope="module")
def stored_votes(golden, golden_root):
    """Votes of all 4,000 draws per setting, (253, 7)."""
    targets, votes = golden[0]["target_test_graph_id"], arrays(golden_root / "votes_cora_ml.npz")
    return {
        name: votes[f"{name}/pre_votes"][targets].astype(np.int64) + votes[f"{name}/votes"][targets]
        for name in SETTINGS
    }


@pytest.fixture(scope="module")
def graph(golden, data_root):
    """The reference's test graph: largest component, undirected, words present or absent, its node order."""
    raw = arrays(data_root / "cora_ml.npz")
    words = sp.csr_array((raw["attr_data"], raw["attr_indices"], raw["attr_indptr"]), shape=raw["attr_shape"])
    edges = sp.csr_array((raw["adj_data"], raw["adj_indices"], raw["adj_indptr"]), shape=raw["adj_shape"])
    _, component = sp.csgraph.connected_components(edges, directed=False)
    largest = np.flatnonzero(component == np.bincount(component).argmax())
    order = largest[golden[0]["original_id_of_test_graph_node"]]
    features = (words[order].toarray() > 0).astype(np.float32)
    edge_index = torch.from_numpy(golden[0]["test_graph_edge_index"].astype(np.int64))
    return Data(x=torch.from_numpy(features), edge_index=edge_index)


@pytest.fixture(scope="module")
def engine_for(golden, graph):
    def build(name, engine):
        p_delete, p_ablate, skip = SETTINGS[name]
        config = ModelConfig(
            architecture="gat", num_features=2_879, num_classes=7, hidden_channels=8, heads=8, skip=skip
        )
        model, weights = build_from_config(config), golden[1]
        state = {"ablation_token": weights["ablate.token"]}
        for layer in (0, 1):
            state[f"layers.{layer}.linear.weight"] = weights[f"conv{layer + 1}.lin.weight"]
            for part in ("att_src", "att_dst", "bias"):
                state[f"layers.{layer}.conv.{part}"] = weights[f"conv{layer + 1}.{part}"]
        model.load_state_dict({key: torch.from_numpy(value) for key, value in state.items()})
        return choose_engine(
            model.eval(),
            graph,
            golden[0]["target_test_graph_id"],
            smoothing=InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate),
            num_layers=2,
            engine=engine,
        )

    return build


def draw(engine, num_samples):
    """Classes of every draw, (num_samples, 253), in batches."""
    with torch.inference_mode():
        return np.concatenate(
            [
                engine.logits(0, Purpose.ESTIMATION, samples).argmax(dim=-1).numpy()
                for samples in torch.arange(num_samples).split(64)
            ]
        )


def smallest_cell_pvalue(classes, stored):
    """Smallest two-sided exact (Fisher) p-value over the 253 x 7 cells, times the number of cells."""
    num_samples = classes.shape[0]
    counts = np.stack([(classes == label).sum(axis=0) for label in range(7)], axis=1)
    together = counts + stored
    law = stats.hypergeom(num_samples + REFERENCE_SAMPLES, together, num_samples)
    one_sided = np.minimum(law.cdf(counts), law.sf(counts - 1))
    return float((2 * one_sided).min()) * counts.size


def smallest_class_pvalue(classes, stored):
    """Smallest p-value over classes of "as many targets vote for it per draw", times 7.

    Targets share coins, so their votes depend on each other; the number of votes per draw does not depend on that of
    another draw, and its mean is compared (normal approximation, variance from our draws).
    """
    num_samples, pvalues = classes.shape[0], []
    for label in range(7):
        per_draw = (classes == label).sum(axis=1)
        spread = per_draw.std(ddof=1) * np.sqrt(1 / num_samples + 1 / REFERENCE_SAMPLES)
        difference = per_draw.mean() - stored[:, label].sum() / REFERENCE_SAMPLES
        pvalues.append(2 * stats.norm.sf(abs(difference) / spread))
    return min(pvalues) * 7


@pytest.mark.deep
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "other"),
    [("pd0.31_pa0.794_skip1", "pd0.31_pa0.71_skip1"), ("pd0.31_pa0.794_skip0", "pd0.361449_pa0.794_skip0")],
)
@pytest.mark.parametrize("engine", ["compiled", "torch"])
def test_vote_shares_equal_the_references(engine, name, other, engine_for, stored_votes):
    classes = draw(engine_for(name, engine), 500)
    assert smallest_cell_pvalue(classes, stored_votes[name]) > FAILURE / 2
    assert smallest_class_pvalue(classes, stored_votes[name]) > FAILURE / 2
    # and the comparison has power: neighbouring probabilities, or the other skip setting, differ
    assert smallest_class_pvalue(classes, stored_votes[other]) < FAILURE
    mirror = name[:-1] + ("0" if name.endswith("1") else "1")
    assert smallest_cell_pvalue(classes, stored_votes[mirror]) < FAILURE


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param(name, engine, marks=[pytest.mark.slow] if engine == "torch" else [])
        for name in SETTINGS
        for engine in ("compiled", "torch")
    ],
)
def test_vote_shares_equal_the_references_in_all_settings(name, engine, engine_for, stored_votes):
    classes = draw(engine_for(name, engine), 4_000)
    assert smallest_cell_pvalue(classes, stored_votes[name]) > FAILURE / 2
    assert smallest_class_pvalue(classes, stored_votes[name]) > FAILURE / 2


@pytest.mark.deep
def test_both_engines_cast_the_same_votes(engine_for):
    votes = {
        engine: engine_for("pd0.31_pa0.794_skip1", engine).votes(0, Purpose.ESTIMATION, num_samples=200)
        for engine in ("compiled", "torch")
    }
    np.testing.assert_array_equal(votes["compiled"], votes["torch"])
