import os
import subprocess
import sys

import pytest
import torch

from graycert._threads import num_threads


def test_as_many_as_torch_was_told():
    before = torch.get_num_threads()
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            assert num_threads() == number
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("said", ["3", " 2,4", "", "0", "many"])
def test_without_torch_as_many_as_the_environment_says_or_as_there_are(said):
    code = (
        "import os, sys; from graycert._threads import num_threads; number = num_threads();"
        "print(number, os.cpu_count(), 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OMP_NUM_THREADS": said},
        capture_output=True,
        text=True,
        check=True,
    )
    number, processors, loaded = done.stdout.split()
    assert loaded == "False"
    assert int(number) == int(said.split(",")[0]) if said in ("3", " 2,4") else 1 <= int(number) <= int(processors)
