import importlib
import re
import subprocess
import sys
from pathlib import Path

import graycert

TESTS = Path(__file__).parent
OF_NO_ROOM = {
    "docs",
    "oracles",
    "properties",
    "golden",
    "conformance",
    "statistical",
    "end_to_end",
    "support",
    "browser",
}
CORE = ("metrics", "rules", "statistics", "bounds", "graph", "threats")


def test_the_mathematical_core_works_without_torch_pandas_and_files() -> None:
    program = f"""
import sys
for name in ("torch", "torch_geometric", "pandas", "pyarrow"):
    sys.modules[name] = None  # any import of it now raises ImportError
import importlib
for name in {CORE!r}:
    importlib.import_module("graycert." + name)
import numpy as np
from graycert.rules import certify_votes
from graycert.bounds.evaluation import delta_bounds
from graycert.graph import star_graph
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat
delta = delta_bounds(star_graph(3), [0], smoothing=InterceptionSmoothing(p_delete=0.3, p_ablate=0.8),
                     threat=NodeFeatureThreat(min_distance=1), num_layers=1, max_radius=2)
found = certify_votes(np.array([[10, 0]]), np.array([[1000, 0]]), delta, belongs_to="a star")
print(found.radius.tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2]\n"


def test_the_package_itself_loads_no_torch() -> None:
    program = "import sys, graycert; print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_public_names_are_what_their_modules_export() -> None:
    assert set(graycert.__all__) >= {
        "load_graph", "inductive_split", "transductive_split", "build_model", "train", "audit_model", "certify",
        "certify_votes", "delta_bounds", "InterceptionSmoothing", "NodeFeatureThreat", "Certificates",
    }  # fmt: skip
    for name in graycert.__all__:
        assert getattr(graycert, name) is not None
    # importing a submodule must not replace a public function of the package
    importlib.import_module("graycert.certification")
    importlib.import_module("graycert.runs.verify")
    assert callable(graycert.certify)
    assert callable(graycert.verify)
    assert callable(graycert.train)


def test_packages_export_existing_names() -> None:
    for name in (*CORE, "data", "models", "training", "sampling", "audit", "runs", "runs.page", "smoothing"):
        module = importlib.import_module(f"graycert.{name}")
        for exported in getattr(module, "__all__", ()):
            assert hasattr(module, exported), (name, exported)


def test_folders_of_tests_are_rooms_of_the_package() -> None:
    house = Path(graycert.__file__).parent
    for file in TESTS.rglob("test_*.py"):
        room = file.parent.relative_to(TESTS)
        if room.parts and room.parts[0] not in OF_NO_ROOM:
            assert (house / room).is_dir() or (house / room).with_suffix(".py").is_file(), room


def test_the_readme_of_the_tests_names_every_module_of_support() -> None:
    named = set(re.findall(r"`(\w+)`", (TESTS / "README.md").read_text(encoding="utf-8")))
    assert {file.stem for file in (TESTS / "support").glob("*.py")} <= named
    assert {f"{folder}/" for folder in OF_NO_ROOM - {"support"}} <= set(
        re.findall(r"`(\w+/)`", (TESTS / "README.md").read_text(encoding="utf-8"))
    )
