"""Whatever goes in, a message comes out: one short paragraph, the right exit status, and nothing half-written."""

import numpy as np
import pytest
import torch

import graycert.sampling  # noqa: F401 - its kernels make their cache folder below HOME, which must not be the test's
from support.commands import FAST, left_behind, run_command, write_graph, write_tables


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_graph(tmp_path / "ring.npz")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAYCERT_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # no cache folder of the developer
    return tmp_path


def refused(capsys, folder, *arguments, status=2, says=()):
    """Run, and check everything that every refusal must have."""
    before = left_behind(folder)
    found = run_command(capsys, *arguments)
    assert found.status == status, found
    assert found.out == ""
    last = found.err.splitlines()[-1]
    assert last.startswith("error: ")
    assert len(last) < 700
    assert "Traceback" not in found.err
    for part in (says,) if isinstance(says, str) else says:
        assert part in last
    assert left_behind(folder) == before
    return last


def certify_refused(capsys, folder, *arguments, **expected):
    given = {argument.partition("=")[0] for argument in arguments}
    defaults = [(flag, value) for flag, value in zip(FAST[:-1:2], FAST[1::2], strict=True) if flag not in given]
    defaults += [] if "--out" in given else [("--out", "run")]
    flat = [text for pair in defaults for text in pair]
    return refused(capsys, folder, "certify", "--graph", "ring.npz", "--quiet", *flat, *arguments, **expected)


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("p-delete", "1.2"),
        ("p-delete", "-0.1"),
        ("p-delete", "nan"),
        ("p-ablate", "inf"),
        ("train-p-delete", "nan"),
        ("train-p-ablate", "2"),
        ("alpha", "0"),
        ("alpha", "1"),
        ("alpha", "nan"),
        ("num-selection", "0"),
        ("num-estimation", "0"),
        ("num-estimation", "-5"),
        ("num-estimation", "many"),
        ("num-estimation", "1.5"),
        ("max-radius", "0"),
        ("min-distance", "-1"),
        ("max-epochs", "0"),
        ("seed", "-1"),
        ("num-layers", "0"),
        ("batch-size", "0"),
        ("engine", "fast"),
        ("rule", "optimistic"),
        ("bound", "guess"),
        ("split", "random"),
        ("learning-rate", "0"),
    ],
)
def test_values_outside_their_domain(capsys, folder, flag, value):
    says = certify_refused(capsys, folder, f"--{flag}={value}", says=value)
    assert f"`{flag.replace('-', '_')}`" in says or f"`--{flag}`" in says


def test_misspelt_flags_and_commands(capsys, folder):
    certify_refused(capsys, folder, "--p-delet", "0.3", says="Did you mean --p-delete?")
    certify_refused(capsys, folder, "--n0", says="--n0")
    certify_refused(capsys, folder, "extra", says="extra")
    refused(capsys, folder, "certifi", says="certifi")
    refused(capsys, folder, "verify", says="RUN")


def test_graphs_that_are_not_there_or_damaged(capsys, folder):
    rest = [*FAST, "--out", "run"]
    refused(capsys, folder, "certify", "--graph", "wordnet_noun", *rest, says="Did you mean 'wordnet_nouns'?")
    refused(capsys, folder, "certify", "--graph", "none.npz", *rest, says="none.npz")
    (folder / "half.npz").write_bytes((folder / "ring.npz").read_bytes()[:300])
    refused(capsys, folder, "certify", "--graph", "half.npz", *rest, says="half.npz")
    refused(capsys, folder, "certify", "--graph", "cora_ml", "--data-root", "nowhere", *rest, says="nowhere")


def test_a_graph_without_enough_nodes_per_class(capsys, folder):
    certify_refused(capsys, folder, "--per-class", "40", says=("per_class", "class 0"))


def test_unknown_models_and_pickles(capsys, folder):
    certify_refused(capsys, folder, "--model", "gats", says="Did you mean 'gat'?")
    torch.save({"a": torch.ones(1)}, folder / "model.pt")
    certify_refused(capsys, folder, "--model", "model.pt", says=("model.pt", "pickle"))
    certify_refused(capsys, folder, "--weights", "model.pt", says=("model.pt", "pickle"))
    certify_refused(capsys, folder, "--model", "no_such_module:Net", says="no_such_module")
    certify_refused(capsys, folder, "--model", "torch.nn:NoSuchClass", says="NoSuchClass")
    certify_refused(capsys, folder, "--model", "torch.nn:Linear", says="torch.nn:Linear")
    certify_refused(capsys, folder, "--model", "builtins:dict", says="builtins:dict")
    certify_refused(capsys, folder, "--model", "missing.safetensors", says="missing")


def test_weights_that_are_truncated_or_of_another_graph(capsys, folder):
    train = ["train", "--graph", "ring.npz", "--per-class", "5", "--max-epochs", "1", "--quiet"]
    assert run_command(capsys, *train, "--out", "m.safetensors").status == 0
    with np.load("ring.npz") as arrays:
        np.savez("wide.npz", A=arrays["A"], X=np.concatenate([arrays["X"]] * 2, axis=1), y=arrays["y"])
        np.savez("many.npz", A=arrays["A"], X=arrays["X"], y=np.arange(60) % 3)
    for graph, what in (("wide.npz", "features"), ("many.npz", "classes")):
        refused(
            capsys,
            folder,
            "certify",
            "--graph",
            graph,
            *FAST,
            "--out",
            "run",
            "--model",
            "m.safetensors",
            says=("m.safetensors", what),
        )
    certify_refused(capsys, folder, "--weights", "m.safetensors", "--model", "gcn", says=("--model", "gat"))
    certify_refused(capsys, folder, "--model", "m.safetensors", "--no-skip", says="--skip")
    certify_refused(capsys, folder, "--model", "m.safetensors", "--num-layers", "3", says="--num-layers")
    weights = (folder / "m.safetensors").read_bytes()
    (folder / "m.safetensors").write_bytes(weights[: len(weights) // 2])
    certify_refused(capsys, folder, "--model", "m.safetensors", says="m.safetensors")
    (folder / "m.json").write_text("{")
    certify_refused(capsys, folder, "--model", "m.safetensors", says="m.json")


def test_places_that_cannot_be_written_to(capsys, folder):
    (folder / "file").touch()
    (folder / "full").mkdir()
    (folder / "full" / "notes.txt").touch()
    certify_refused(capsys, folder, "--out", "file", says=("--out", "file"))
    certify_refused(capsys, folder, "--out", "file/run", says=("--out", "file"))
    certify_refused(capsys, folder, "--out", "full", says=("--out", "notes.txt"))
    certify_refused(capsys, folder, "--out", "full", "--overwrite", says=("--out", "notes.txt"))
    certify_refused(capsys, folder, "--out", "/proc/none/run", says="--out")
    refused(capsys, folder, "bounds", "--graph", "ring.npz", "--out", "b.txt", says=".csv")
    refused(capsys, folder, "bounds", "--graph", "ring.npz", "--out", "file/b.csv", says="--out")
    refused(capsys, folder, "train", "--graph", "ring.npz", "--out", "m.pt", says=".safetensors")


def test_node_files(capsys, folder):
    edges, nodes = write_tables(folder)
    named = ["certify", "--graph", edges, "--nodes", nodes, *FAST, "--out", "run", "--targets"]
    for name, content, says in (
        ("empty", "\n\n", "at least one node"),
        ("twice", "3\n4\n3\n", ("line 3", "already in line 1")),
        ("large", "60\n", ("line 1", "[0, 59]")),
        ("negative", "-1\n", "-1"),
        ("words", "n3\n", "n3"),
    ):
        (folder / f"{name}.txt").write_text(content)
        certify_refused(capsys, folder, "--targets", f"{name}.txt", says=says)
    certify_refused(capsys, folder, "--trusted", "empty.txt", says="at least one node")
    certify_refused(capsys, folder, "--targets", "missing.txt", says=("--targets", "missing.txt"))
    (folder / "unknown.txt").write_text("n3\nm4\n")
    refused(capsys, folder, *named, "unknown.txt", says=("line 2", "'m4'"))
    (folder / "index.txt").write_text("3\n")  # the graph has names, so an index is no name
    refused(capsys, folder, *named, "index.txt", says="'3'")


def test_settings_files(capsys, folder):
    for content, says in (
        ("p_delet = 0.3\n", ("unknown key `p_delet`", "Did you mean `p_delete`?", "run.toml")),
        ("p_delete = 'high'\n", ("`p_delete`", "run.toml", "'high'")),
        ("n0 = 2.5\n", "`num_selection`"),
        ("skip = 'yes'\n", "`skip`"),
        ("p_delete = 1.5\n", "`p_delete`"),
        ("p_delete = \n", "TOML"),
    ):
        (folder / "run.toml").write_text(content)
        certify_refused(capsys, folder, "--config", "run.toml", says=says)
    certify_refused(capsys, folder, "--config", "none.toml", says=("--config", "none.toml"))


def test_unsound_set_ups_end_with_status_3(capsys, folder):
    says = certify_refused(capsys, folder, "--skip", "--min-distance", "0", status=3, says="skip-exposes-target")
    assert "--min-distance 1" in says
    (folder / "caching.py").write_text(
        "import torch\nfrom torch_geometric.nn import GCNConv\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, num_features, num_classes):\n"
        "        super().__init__()\n"
        "        self.conv = GCNConv(num_features, num_classes, cached=True)\n"
        "    def forward(self, x, edge_index):\n        return self.conv(x, edge_index)\n"
    )
    import sys

    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        certify_refused(capsys, folder, "--model", "caching:Net", status=3, says=("cached-propagation", "cached=False"))
    finally:
        sys.dont_write_bytecode = before
        sys.path.remove(str(folder))
        sys.modules.pop("caching", None)


def certify_again(capsys, folder):
    """Run the command that was stopped once more: it goes on, and nothing but the run is left."""
    again = [text for pair in zip(FAST[:-1:2], FAST[1::2], strict=True) for text in pair]
    found = run_command(capsys, "certify", "--graph", "ring.npz", *again, "--out", "run")
    assert found.status == 0
    assert "training" not in found.err  # the model is the one that was kept
    assert sorted(path.name for path in folder.iterdir()) == ["ring.npz", "run"]


def stopped(capsys, *says, status):
    found = run_command(capsys, "certify", "--graph", "ring.npz", *FAST, "--out", "run")
    assert found.status == status
    for part in says:
        assert part in found.err


@pytest.mark.deep
def test_a_failure_while_writing_leaves_what_it_goes_on_with(capsys, folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("graycert.runs.store.write_votes", full)
        stopped(capsys, "No space left", "Make room", "1 finished blocks and the trained model", status=1)
    monkeypatch.setattr("graycert.sampling.compiled.CompiledEngine.votes", lambda *_, **__: pytest.fail("drawn twice"))
    certify_again(capsys, folder)


@pytest.mark.deep
def test_interrupted_while_drawing_leaves_the_trained_model(capsys, folder, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("graycert.sampling.compiled.CompiledEngine.votes", interrupt)
        stopped(capsys, "interrupted. Kept in run.unfinished: the trained model.", status=130)
    certify_again(capsys, folder)
