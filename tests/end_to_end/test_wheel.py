"""The wheel holds what the package needs, and works in a fresh environment without the extras."""

import importlib.util
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from support.documentation import ROOT, blocks

pytestmark = [
    pytest.mark.processes,
    pytest.mark.end_to_end,
    pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling builds the wheel"),
]
EXTRAS = ("matplotlib", "optuna", "ogb")


def run(*words: object, cwd: Path | None = None, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRAYCERT"))}
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**clean, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    run(sys.executable, *words, "--wheel-dir", folder, ROOT, PYTHONPATH=os.pathsep.join(sys.path))
    (found,) = folder.glob("graycert-*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Path:
    """An environment with the wheel, its dependencies (those of this one), and an import hook that hides the extras."""
    folder = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", folder)
    fresh = folder / "bin" / "python"
    run(fresh, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    here = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(here) + "\n", encoding="utf-8")
    hidden = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"
    (site / "no_extras.pth").write_text(hidden, encoding="utf-8")
    return fresh


def test_it_holds_every_file_of_the_package_the_reasons_and_the_licences(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.run(["git", "ls-files", "src/graycert"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert {name.removeprefix("src/") for name in listed.stdout.splitlines()} <= names
    assert "graycert/messages.md" in names
    assert {Path(name).name for name in names} >= {"LICENSE", "WORDNET-LICENSE.txt", "entry_points.txt"}
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "docs")) or "__pycache__" in name]


def test_what_is_installed_is_the_wheel_and_the_extras_are_hidden(python, wheel):
    place = run(python, "-c", "import graycert; print(graycert.__file__)").strip()
    assert Path(place).is_relative_to(python.parent.parent)
    for name in EXTRAS:
        assert run(python, "-c", f"import sys; print(sys.modules[{name!r}])") == "None\n"


def test_every_module_is_imported_without_the_extras(python):
    program = (
        "import graycert, importlib, pkgutil\n"
        "names = [each.name for each in pkgutil.walk_packages(graycert.__path__, 'graycert.')]\n"
        "for name in names:\n    name.endswith('__main__') or importlib.import_module(name)\n"
        "print(len(names) > 300)"
    )
    assert run(python, "-c", program) == "True\n"


def test_its_command_explains_certifies_and_verifies(python, tmp_path):
    command = python.with_name("graycert")
    assert "message-leak" in run(command, "explain", "message-leak")
    quick = ("--model", "gcn", "--max-epochs", "2", "--n0", "20", "--n1", "50", "--quiet")
    assert "Written to" in run(command, "certify", *quick, "--out", tmp_path / "run")
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    assert "All of them agree." in run(command, "verify", tmp_path / "run")
    assert "fig-3a" in run(command, "reproduce", "--list")


def test_who_follows_the_tutorial_certifies_a_model_of_her_own(python, tmp_path):
    cells = [block.text for block in blocks("docs/tutorials/own-model.md") if block.language == "python"]
    opening = (
        "import shlex, subprocess, sys\nfrom pathlib import Path\n"
        "def run_command_line(command):\n"
        "    program, *words = shlex.split(command)\n"
        "    subprocess.run([Path(sys.executable).with_name(program), *words], check=True)\n"
    )
    program = tmp_path / "tutorial.py"
    program.write_text("\n".join([opening, *cells, "print(certificates.summary())"]), encoding="utf-8")
    said = run(python, program, cwd=tmp_path)
    assert "Lemma 1 holds with 2 propagation steps" in said
    assert "Certified and correct" in said
    assert (tmp_path / "runs" / "net" / "report.html").is_file()
