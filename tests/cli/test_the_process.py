"""The whole process: its exit status, what it prints into a pipe, and what clears up after it."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys
from graycert.cli import main as entry

def main():
    atexit.register(lambda: print("cleared up"))
    print("done")
    if {status} == "raises":
        raise ValueError("never seen by users")
    return {status}

entry.main = main
entry.run()
"""


@pytest.mark.parametrize("status", [0, 1, 3])
def test_what_was_registered_clears_up_and_all_is_printed(status):
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(status=status)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (status, "done\ncleared up\n", "")


def test_a_failure_of_the_entry_point_itself_is_a_failure():
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(status="'raises'")], capture_output=True, text=True)
    assert done.returncode == 1
    assert "never seen by users" in done.stderr


@pytest.mark.parametrize("status", [130, 143])
def test_interrupted_it_does_not_wait(status):
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(status=status)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (status, "done\n")
