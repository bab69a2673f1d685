"""Fixtures that find the real graphs and the golden values, and which parametrisations are default tests."""

import os
from pathlib import Path

import hypothesis
import pytest
import torch

from support.tiers import mark_deep

collect_ignore = ["support"]  # no tests; some modules load all that a certification needs

# Two busy processes (pytest -n 2) with two threads each on two cores spend most of their time waiting for each other.
torch.set_num_threads(1)


# The first example may compile or load kernels, and no test asserts a time. Examples are the same in every run, so that
# a red run is due to the change; `make test-random` looks for new ones.
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.register_profile("random", deadline=None, print_blob=True)
hypothesis.settings.load_profile("repeatable")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as deep what `few` leaves out of the default tests, before anything is chosen by marks."""
    mark_deep(items)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Folder of the real graphs, from GRAYCERT_DATA."""
    root = os.environ.get("GRAYCERT_DATA")
    if not root:
        pytest.skip("GRAYCERT_DATA is not set: the real graphs are not at hand (see CONTRIBUTING.md)")
    path = Path(root)
    if not path.is_dir():
        pytest.fail(f"GRAYCERT_DATA={root} is not a folder")
    return path


@pytest.fixture(scope="session")
def golden_root(data_root: Path) -> Path:
    """Folder of the values computed by the authors' implementation, beside the real graphs."""
    path = data_root.parent / "golden"
    if not path.is_dir():
        pytest.fail(f"{path} is missing; the golden values lie beside GRAYCERT_DATA")
    return path
