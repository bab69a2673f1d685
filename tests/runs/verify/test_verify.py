import pytest
import torch
from torch_geometric.data import Data

import graycert
from graycert.errors import InvalidParameterError, VerificationError
from graycert.runs.verify import verify
from support.flat_arguments import certify_flat


@pytest.fixture(scope="module")
def certified():
    """Certificates of a path with one branch, and what they were made from."""
    forward = torch.tensor([[0, 1, 2, 3, 1], [1, 2, 3, 4, 5]])
    edges = torch.cat([forward, forward.flip(0)], dim=1)
    data = Data(x=torch.eye(6), edge_index=edges, y=torch.tensor([0, 1, 0, 1, 0, 1]))
    model = graycert.build_model("gcn", data, dropout=0.0).eval()
    smoothing = graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.6)
    threat = graycert.NodeFeatureThreat(min_distance=1)
    made = certify_flat(
        model, data, smoothing=smoothing, threat=threat, num_selection=30, num_estimation=300, max_radius=3, alpha=0.3
    )
    return made, data, model


def test_a_run_of_the_library_verifies_against_its_graph_and_model(certified, tmp_path):
    made, data, model = certified
    assert made.radius.max() >= 1  # else nothing is at stake
    folder = made.save(tmp_path / "run")
    found = verify(folder, data=data, model=model)
    assert found.passed
    found.require()
    assert found.not_redone == ("which nodes to protect first: no certificate rests on them",)
    assert str(found).endswith("All of them agree.")


def test_whatever_is_added_to_the_report_is_a_difference(certified, tmp_path):
    made, data, _ = certified
    folder = made.save(tmp_path / "run")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert verify(folder, data=data).passed
    forged = page.replace("</h1>", "</h1><p>Everything is certified.</p>", 1)
    assert forged != page
    (folder / "report.html").write_text(forged, encoding="utf-8")
    failed = [check.name for check in verify(folder, data=data).checks if not check.passed]
    assert failed == ["report.html"]


def test_votes_with_a_token_of_the_user_are_drawn_again_with_it(certified, tmp_path):
    _, data, model = certified
    token = torch.full((6,), 3.0)
    made = certify_flat(
        model,
        data,
        smoothing=graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.6),
        threat=graycert.NodeFeatureThreat(),
        num_selection=30,
        num_estimation=60,
        ablation_token=token,
    )
    folder = made.save(tmp_path / "run")
    assert verify(folder, data=data, model=model, ablation_token=token).passed
    assert not verify(folder, data=data, model=model).passed


def test_a_run_that_names_no_graph_needs_one(certified, tmp_path):
    with pytest.raises(InvalidParameterError, match="`data` must be given"):
        verify(certified[0].save(tmp_path / "run"))


@pytest.mark.parametrize(
    ("change", "quantity"),
    [
        ({"smoothing": graycert.InterceptionSmoothing(p_delete=0.4, p_ablate=0.6)}, "delta_upper"),
        ({"num_layers": 1}, "receptive_field_size"),
        ({"threat": graycert.NodeFeatureThreat(min_distance=0)}, "num_eligible"),
        ({"alpha": 0.2}, "p_lower"),
        ({"bound": "union"}, "delta_upper"),
        ({"num_edges": 12}, "graph"),
    ],
)
def test_parameters_that_were_not_the_real_ones_are_found(certified, tmp_path, change, quantity):
    made, data, _ = certified
    folder = made.replace(setup=made.setup.replace(**change)).save(tmp_path / "run")
    found = verify(folder, data=data)
    assert quantity in {check.name for check in found.checks if not check.passed}
    with pytest.raises(VerificationError, match="does not verify"):
        found.require()


def test_a_radius_that_is_too_large_is_called_a_claim(certified, tmp_path):
    made, data, _ = certified
    radius = made.radius.copy()
    row = int((radius < 3).argmax())
    radius[row] = 3
    status = made.status.copy()
    status[row] = "certified"
    folder = made.replace(radius=radius, status=status).save(tmp_path / "run")
    with pytest.raises(VerificationError, match=rf"radius: node {row}: stored 3, recomputed .*claims more"):
        verify(folder, data=data).require()


def test_another_model_does_not_draw_the_same_votes(certified, tmp_path):
    made, data, _ = certified
    other = graycert.build_model("gcn", data, dropout=0.0, seed=7).eval()
    found = verify(made.save(tmp_path / "run"), data=data, model=other)
    failed = [check.name for check in found.checks if not check.passed]
    assert failed[0] == "model: as trained"
    assert failed[-2:] == ["selection_votes", "estimation_votes"]


def test_relabelled_nodes_are_found(certified, tmp_path):
    made, data, _ = certified
    other = Data(x=data.x, edge_index=data.edge_index, y=1 - data.y)
    failed = [check.name for check in verify(made.save(tmp_path / "run"), data=other).checks if not check.passed]
    assert failed == ["label"]


def test_floats_within_the_tolerance_agree_and_beyond_it_do_not(certified, tmp_path):
    made, data, _ = certified
    for name, change, agrees in (("near", 5e-13, True), ("far", 5e-12, False)):
        folder = made.replace(p_lower=made.p_lower - change).save(tmp_path / name)
        checks = {check.name: check.passed for check in verify(folder, data=data).checks}
        assert checks["p_lower"] is agrees
