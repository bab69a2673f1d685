"""CASES F2: float64, float16 and bfloat16 models and data work, or are refused before a draw, naming the cast."""

import copy

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCN, GraphSAGE

import graycert
from graycert.errors import InvalidParameterError
from support.open_scores import three_classes

OTHERS = graycert.NodeFeatureThreat(min_distance=1)
SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.6)


def model_of(kind, dtype):
    torch.manual_seed(0)
    return kind(8, 8, num_layers=2, out_channels=3).to(dtype)


def certified(model, data, **changes):
    arguments = {
        "smoothing": SMOOTHING,
        "threat": OTHERS,
        "targets": [0, 21, 45],
        "draws": graycert.Draws(num_selection=20, num_estimation=60),
    }
    return graycert.certify(model, data, **{**arguments, **changes})


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", [GCN, GraphSAGE])
def test_doubles_vote_as_floats_do(kind):
    single = certified(model_of(kind, torch.float32), three_classes())
    double = certified(model_of(kind, torch.float64), three_classes(dtype=torch.float64))
    np.testing.assert_array_equal(single.estimation_votes, double.estimation_votes)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_works(dtype, tmp_path):
    model, data = model_of(GraphSAGE, dtype), three_classes().clone()
    data.x = data.x.to(dtype)
    found = certified(model, data)
    for_none = 0 if found.estimation_no_class is None else found.estimation_no_class.sum()
    assert found.estimation_votes.sum() + for_none == 180
    assert graycert.verify(found.save(tmp_path / "run"), data=data).passed


@pytest.mark.parametrize(
    ("of_model", "of_data", "cast"),
    [
        (torch.float64, torch.float32, r"data.x = data.x.to\(torch.float64\)`, or `model.to\(torch.float32\)"),
        (torch.float32, torch.float64, r"data.x = data.x.to\(torch.float32\)`, or `model.to\(torch.float64\)"),
        (torch.float32, torch.bfloat16, r"data.x = data.x.to\(torch.float32\)`, or `model.to\(torch.bfloat16\)"),
        (torch.bfloat16, torch.float32, r"data.x = data.x.to\(torch.bfloat16\)`, or `model.to\(torch.float32\)"),
    ],
)
@pytest.mark.parametrize(
    "smoothing",
    [
        SMOOTHING,
        graycert.RandomizedAblation(num_kept=2),
        graycert.SubgraphVoting(num_subgraphs=3),
        graycert.FeaturesOnly(),
    ],
    ids=lambda each: each.name,
)
def test_types_that_differ_are_refused_before_a_draw(of_model, of_data, cast, smoothing):
    data = copy.copy(three_classes())
    data.x = data.x.to(of_data)
    draws = None if smoothing.draws_allowed == () else graycert.Draws(num_selection=20, num_estimation=60)
    with pytest.raises(InvalidParameterError, match=cast):
        certified(model_of(GCN, of_model), data, smoothing=smoothing, draws=draws)
