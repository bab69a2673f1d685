"""Kernels are compiled once per machine, said so, and never mixed with kernels of another version."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np, torch, torch_geometric.nn as pyg
from graycert.sampling import Purpose, choose_engine
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from torch_geometric.data import Data
torch.manual_seed(0)
data = Data(x=torch.randn(4, 3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = pyg.GCNConv(3, 2)
    def forward(self, x, edge_index):
        return self.conv(x, edge_index)
smoothing = InterceptionSmoothing(p_delete=0.5, p_ablate=0.5)
options = dict(smoothing=smoothing, num_layers=1, engine="compiled", say=print)
engine = choose_engine(Net().eval(), data, np.arange(4), **options)
print(engine.votes(0, Purpose.SELECTION, num_samples=64).tolist())
"""


def run(cache, **environment):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.deep
def test_the_first_run_says_that_it_compiles_and_later_ones_load(tmp_path):
    first = run(tmp_path)
    assert first[0].startswith("Compiling the sampling kernels")
    assert "compiled in" in first[1]
    (folder,) = (tmp_path / "graycert").iterdir()
    assert any(folder.rglob("gcn.first_layer*.nbi"))
    again = run(tmp_path)
    assert again == first[2:]  # nothing said, the same votes


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a path that cannot be a folder")
def test_works_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    lines = run(tmp_path / "file")
    assert lines[0].startswith("Compiling")
    assert "set NUMBA_CACHE_DIR" in lines[1]
    assert lines[-1].startswith("[[")
