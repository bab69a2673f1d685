"""Values per edge on the command line, where files keep none: they are not left out in silence."""

import sys

import pytest
import torch
from torch_geometric.data import Data

import graycert
from support.commands import run_command

MODULE = """\
import torch
from torch_geometric.nn import GCNConv


class Weighted(torch.nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.first = GCNConv(in_channels, out_channels)

    def forward(self, x, edge_index, edge_weight=None):
        return self.first(x, edge_index, edge_weight)
"""
OPTIONS = ("--per-class", "5", "--max-epochs", "2", "--n0", "20", "--n1", "60")


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A module in the working folder, beside a graph with a weight per edge under another name."""
    monkeypatch.chdir(tmp_path)
    name = f"weighted_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(60, (2, 240), generator=generator).unique(dim=1)
    data = Data(
        x=torch.rand(60, 4, generator=generator), edge_index=edges[:, edges[0] != edges[1]], y=torch.arange(60) % 2
    )
    data.amount = torch.rand(data.edge_index.size(1), generator=generator) + 0.5
    torch.save(data, "graph.pt")
    return f"{name}:Weighted"


def test_a_model_that_could_take_values_per_edge_must_be_said_to_take_none(model, capsys):
    train = ("train", "--graph", "graph.pt", "--model", model, *OPTIONS[:4], "--out", "weights.safetensors", "--quiet")
    certify = ("certify", "--graph", "graph.pt", "--model", model, "--weights", "weights.safetensors", *OPTIONS[4:])
    refused = run_command(capsys, *train)
    assert refused.status == 3
    assert "--without-edge-inputs" in refused.err
    assert run_command(capsys, *train, "--without-edge-inputs").status == 0
    refused = run_command(capsys, *certify, "--out", "run", "--quiet", "--targets", "all")
    assert refused.status == 3
    assert "--without-edge-inputs" in refused.err
    found = run_command(
        capsys, *certify, "--out", "run", "--quiet", "--targets", "all", "--without-edge-inputs", "--num-layers", "1"
    )
    assert found.status == 0, found.err
    assert graycert.Certificates.load("run").setup.edge_inputs == ()
    repeated = run_command(capsys, "certify", "--config", "run/config.toml", "--out", "again", "--quiet")
    assert repeated.status == 0, repeated.err
    assert run_command(capsys, "verify", "again", "--quiet").status == 0
