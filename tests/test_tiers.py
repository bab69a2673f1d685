"""Every test is in one tier, and the default one touches every file of tests."""

import re
import subprocess
import sys
from collections import defaultdict

import pytest

from support.documentation import ROOT
from support.tiers import NOT_DEFAULT, mark_deep, spread

ENTIRELY_DEEP = {"tests/sampling/test_kernel_cache.py"}  # compiles everything anew

COLLECT = f"""
import sys, pytest

class Seen:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        for item in items:
            print("collected", item.nodeid.split("::")[0], *(m for m in {NOT_DEFAULT} if item.get_closest_marker(m)))

sys.exit(pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", "tests"], plugins=[Seen()]))
"""


@pytest.mark.parametrize(
    ("size", "number", "places"), [(5, 2, [0, 4]), (5, 3, [0, 2, 4]), (9, 1, [0]), (3, 3, [0, 1, 2]), (2, 4, [0, 1])]
)
def test_few_are_spread_from_the_first_to_the_last(size, number, places):
    assert spread(size, number) == places


class Item:
    """A test that is collected."""

    def __init__(self, nodeid, *marks):
        self.nodeid, self.marks = nodeid, {each.mark.name: each.mark for each in marks}

    def get_closest_marker(self, name):
        return self.marks.get(name)

    def add_marker(self, mark):
        self.marks[mark.mark.name] = mark.mark


def test_what_stands_for_many_is_default_and_the_others_are_deep():
    few = pytest.mark.few(2)
    items = [Item(f"a.py::test_one[{number}]", few) for number in range(4)]
    items += [Item("a.py::test_one[slow]", few, pytest.mark.slow), Item("a.py::test_two[0]"), Item("a.py::test_two[1]")]
    mark_deep(items)
    assert [item.nodeid for item in items if "deep" in item.marks] == ["a.py::test_one[1]", "a.py::test_one[2]"]


def test_the_tiers_of_the_makefile_leave_nothing_out():
    chosen = re.findall(r'^\t.*pytest -q -n 2 -m "(.*)"$', (ROOT / "Makefile").read_text(), re.MULTILINE)
    others = " and ".join(f"not {name}" for name in NOT_DEFAULT[1:])
    assert chosen[:2] == [f"not deep and {others}", f"deep and {others}"]
    commands = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [f"make test{tier}" in commands for tier in ("", "-deep", "-processes", "-browser")] == [True] * 4


@pytest.mark.deep
def test_every_file_of_tests_has_default_ones():
    done = subprocess.run([sys.executable, "-c", COLLECT], capture_output=True, text=True, check=True, cwd=ROOT)
    tiers = defaultdict(set)
    for line in done.stdout.splitlines():
        if line.startswith("collected "):
            _, file, *marks = line.split()
            tiers[file].add(" ".join(marks))
    assert len(tiers) > 200
    assert {file for file, found in tiers.items() if "deep" in found and "" not in found} == ENTIRELY_DEEP
