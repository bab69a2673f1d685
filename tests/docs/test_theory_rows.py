"""Every row of docs/theory.md has a function that exists, and tests that exist; no row is ever dropped."""

import importlib
import re

import pytest

from graycert.bounds import BOUNDS
from graycert.rules import RULES
from support.documentation import ROOT, find_name

PAGE = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
ROWS = [
    "§3, φ1 and φ2",
    "Prop. 1, Lemma 1",
    "Prop. 2",
    "Prop. 3",
    "Thm. 1, Cor. 1",
    "binary certificate (App. A)",
    "Cor. 2",
    "Thm. 2",
    'simple paths (App. "Hyperparameters")',
    "Thm. 3",
    "union bound (App. F)",
    "inclusion-exclusion (App. C)",
    "tree theorem (App. D)",
    "worst nodes of a tree (App. D)",
    "sparsification into trees (App. D, Experiments)",
    "largest radius (App. I)",
    "Clopper-Pearson",
    "§5, nodes deleted or inserted",
    "§5, edges deleted",
    "§6, skip connection",
    "§7, metrics",
    "Experiments (§7, App. H)",
    "Naive baseline ρ = ρ̃/d (§7), regions certificate of Bojchevski et al. (2020)",
    "MLP, the floor",
    "GDC sparsification (§7)",
    "Voting over hash-made subgraphs (AGNNCert, PGNNCert), a rival",
    "Bounded votes",
    "Levine and Feizi's Δ (App. B)",
    '"tighter guarantees" (App. B)',
    "node retention (App. J)",
    "Algorithm 1, β_S (App. J)",
    "label probabilities (App. J)",
    "Table 1 (App. J)",
    "the worst set, two layers",
    "the worst set, more layers",
    "one method per target",
    "event-aware certificates",
    "difference test",
    "stopping at any time",
    "all targets at once",
    "one adversary against all targets",
    "one adversary against all targets of votes",
    "hostile nodes that choose their edges",
    "prediction sets",
    "a probability per edge and node (the paper's future work)",
    "values per edge, and parallel edges",
    "node types and relations",
    "hostile values of edges",
    "p(E(B)) for a fixed set, any depth",
    "Δ under node retention",
    "certificates without a confidence level",
]
_ROW = re.compile(r"^\*\*(?P<title>.+)\*\*\n: (?P<body>(?:.+\n)+)", re.MULTILINE)
_KNOWN = {row["title"]: row["body"] for row in _ROW.finditer(PAGE)}


def part(title: str, name: str) -> list[str]:
    """Return what stands in backticks behind "Code:" or "Tests:" of a row."""
    found = re.search(rf"^ *{name}: (.+?)\.$(?=\n  [A-Z]\w+: |\n?\Z)", _KNOWN[title], re.MULTILINE | re.DOTALL)
    assert found is not None, (title, name)
    return re.findall(r"`([^`]+)`", found[1])


def test_no_row_is_missing_and_none_is_unlisted():
    assert list(_KNOWN) == ROWS


@pytest.mark.parametrize("title", ROWS)
def test_the_code_of_a_row_exists(title):
    names = part(title, "Code")
    assert names
    for name in names:
        assert callable(find_name(name.partition("(")[0])), name
        for argument, value in re.findall(r'(\w+)="([\w-]+)"', name):
            assert value in {"bound": BOUNDS, "rule": RULES}[argument], name


@pytest.mark.parametrize("title", ROWS)
def test_the_tests_of_a_row_exist(title):
    names = part(title, "Tests")
    assert names
    for name in names:
        path = ROOT / "tests" / name
        assert path.is_file() if name.endswith(".py") else any(path.glob("**/test_*.py")), name


def test_a_name_that_does_not_exist_is_found():
    assert find_name("bounds.delta_bounds") is importlib.import_module("graycert").delta_bounds
    with pytest.raises(AttributeError):
        find_name("bounds.no_such_bound")
