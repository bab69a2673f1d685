import subprocess
import sys

import pytest

import graycert


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "slowly"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "print('slowly')\nfrom slowly.part import VALUE\n__all__ = ['VALUE']\ndef __getattr__(name):\n"
        "    if name == 'late':\n        return 5\n    raise AttributeError(name)\n"
    )
    (folder / "part.py").write_text("print('part')\nVALUE = 3\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")


BEFORE = "from graycert._lazy import delay, is_loaded; delay('slowly'); import slowly; print(is_loaded('slowly'));"


@pytest.mark.parametrize(
    ("use", "printed"),
    [
        ("", []),
        ("import inspect, sys; inspect.getmodule(sys._getframe())", []),
        ("assert not hasattr(slowly, '__wrapped__')", []),
        ("import slowly", []),
        ("assert slowly.VALUE == 3", ["slowly", "part"]),
        ("assert slowly.late == 5", ["slowly", "part"]),
        ("assert not hasattr(slowly, 'nothing')", ["slowly", "part"]),
        ("from slowly import VALUE", ["slowly", "part"]),
        ("from slowly import *; assert VALUE == 3", ["slowly", "part"]),
        ("import slowly.part", ["slowly", "part"]),
        ("from slowly.part import VALUE", ["slowly", "part"]),
        ("import importlib; slowly.VALUE; importlib.reload(slowly)", ["slowly", "part", "slowly"]),
    ],
)
def test_a_delayed_module_is_executed_once_and_when_something_of_it_is_used(package, use, printed):
    assert run(BEFORE + use).split() == ["False", *printed]


def test_a_module_that_is_there_already_or_does_not_exist_is_left_alone(package):
    assert run(
        "import slowly; from graycert._lazy import delay, is_loaded; delay('slowly'); print(is_loaded('slowly'))"
    )
    code = "from graycert._lazy import delay; delay('no_such_module')\ntry:\n    import no_such_module\nexcept "
    assert run(f"{code}ModuleNotFoundError:\n    print('right')") == "right"


def test_a_certificate_with_a_model_from_a_file_loads_neither_compiler_nor_data_sets(tmp_path):
    data = graycert.load_graph("wordnet_nouns")
    graycert.save_model(graycert.build_model("gcn", data, seed=0), tmp_path / "model.safetensors")
    (tmp_path / "targets.txt").write_text("\n".join(data.node_ids[:3]))
    words = ["certify", "--model", str(tmp_path / "model.safetensors"), "--targets", str(tmp_path / "targets.txt")]
    words += ["--n0", "5", "--n1", "5", "--out", str(tmp_path / "run"), "--quiet"]
    words += ["--engine", "torch", "--bound", "union"]
    code = (
        f"from graycert.cli.main import main; status = main({words!r}); from graycert._lazy import is_loaded;"
        "loaded = [n for n in ('torch', 'torch._dynamo', 'torch_geometric.datasets', 'sympy') if is_loaded(n)];"
        "print(status, *loaded)"
    )
    assert run(code).splitlines()[-1] == "0 torch"
