import numpy as np
import pandas as pd
import pytest

import graycert
from graycert.bounds import settings_grid
from graycert.tuning.planning import draw_grid
from support.commands import left_behind, run_command, write_graph

GRID = ("--grid", "0,0.3:0.6,0.8", "--max-radius", "4")


@pytest.fixture
def graph(tmp_path):
    return write_graph(tmp_path / "ring.npz", extra_edges=7)


def expected(graph):
    data = graycert.load_graph(graph)
    return settings_grid(
        data,
        np.arange(data.num_nodes),
        threat=graycert.NodeFeatureThreat(min_distance=1),
        num_layers=2,
        p_delete=(0, 0.3),
        p_ablate=(0.6, 0.8),
        max_radius=4,
    )


@pytest.mark.deep
def test_the_grid_is_that_of_the_library_in_table_record_and_picture(graph, tmp_path, capsys):
    out, picture = tmp_path / "grid.csv", tmp_path / "grid.png"
    files = ("--out", out, "--heatmap", picture)
    found = run_command(capsys, "bounds", "--graph", graph, *GRID, "--radius", 2, *files, "--json")
    assert found.status == 0, found.err
    wanted = expected(graph)
    assert found.record["certifiable"] == wanted.certifiable.tolist()
    assert found.record["best"]["2"] == [vars(each) for each in wanted.best(2)]
    table = pd.read_csv(out)
    assert list(zip(table["p_delete"], table["p_ablate"], strict=True)) == [(0, 0.6), (0, 0.8), (0.3, 0.6), (0.3, 0.8)]
    for radius in range(1, 5):
        assert table[f"certifiable_{radius}"].tolist() == wanted.certifiable[:, :, radius - 1].ravel().tolist()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert left_behind(tmp_path) == ["grid.csv", "grid.png", "ring.npz"]


def test_the_text_shows_shares_and_pairs_worth_trying(graph, capsys):
    found = run_command(capsys, "bounds", "--graph", graph, *GRID, "--radius", 2)
    wanted, lines = expected(graph), found.out.splitlines()
    row = next(line.split() for line in lines if line.strip().startswith("0.3 "))
    shares = [f"{count * 1000 // 60 / 10:.1f}" for count in wanted.certifiable[1, :, 1].tolist()]
    assert row[1::2] == shares
    assert "Worth trying for ρ = 2" in found.out
    none = run_command(capsys, "bounds", "--graph", graph, "--grid", "0:0.1")
    assert "No pair of the grid could certify a node at ρ = 1." in none.out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--grid", "0.3"), "`--grid` must be all"),
        (("--grid", "0:2"), "`--grid` must be all"),
        (("--grid", "0:0.5:0.5"), "`--grid` must be all"),
        (("--grid", "all", "--p-ablate", "0.5"), "`--p-ablate` is one value"),
        (("--grid", "all", "--radius", "9", "--max-radius", "3"), "`--radius` must be at most"),
        (("--grid", "all", "--heatmap", "x.txt"), "`--heatmap` must end in"),
        (("--heatmap", "x.png"), "`--heatmap` draws a grid"),
    ],
)
def test_what_does_not_fit_is_refused(flags, words, graph, capsys):
    found = run_command(capsys, "bounds", "--graph", graph, *flags)
    assert found.status == 2
    assert words in found.err


def test_the_picture_frames_the_best_pairs_and_takes_axes(graph):
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    grid = expected(graph)
    axes = Figure().subplots()
    assert draw_grid(grid, 2, axes) is axes
    frames = {patch.get_xy() for patch in axes.patches if isinstance(patch, Rectangle)}
    p_d, p_a = grid.p_delete.tolist(), grid.p_ablate.tolist()
    assert frames == {(p_a.index(each.p_ablate), p_d.index(each.p_delete)) for each in grid.best(2)}
    drawn = axes.collections[0].get_array()
    assert np.allclose(np.ravel(drawn), (grid.certifiable[:, :, 1] / 60).ravel())
